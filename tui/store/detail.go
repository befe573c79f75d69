package store

import (
	"strconv"
	"strings"

	"github.com/eastguard/eastguard/sdk"
)

// details are the words of an event: segment=s881 next=s907 detail="asked by an operator".
type details map[string]string

func parseDetail(text string) details {
	d := make(details)
	for text = strings.TrimLeft(text, " "); text != ""; text = strings.TrimLeft(text, " ") {
		key, rest, ok := strings.Cut(text, "=")
		if !ok {
			break
		}
		value := rest
		if quoted, err := strconv.QuotedPrefix(rest); err == nil && quoted[0] == '"' {
			value, _ = strconv.Unquote(quoted)
			text = rest[len(quoted):]
		} else {
			value, text, _ = strings.Cut(rest, " ")
		}
		d[key] = value
	}
	return d
}

func (d details) segment(key string) sdk.SegmentID {
	id, _ := sdk.ParseSegmentID(d[key])
	return id
}

func (d details) number(key string) int64 {
	n, _ := strconv.ParseInt(d[key], 0, 64)
	return n
}

func (d details) position(key string) uint64 {
	n, _ := strconv.ParseUint(d[key], 0, 64)
	return n
}

func (d details) nodes(key string) (list []sdk.NodeID) {
	for name := range strings.SplitSeq(d[key], ",") {
		if name != "" {
			list = append(list, sdk.NodeID(name))
		}
	}
	return list
}

func (d details) ranges(key string) (list []sdk.RangeID) {
	for name := range strings.SplitSeq(d[key], ",") {
		if id, err := sdk.ParseRangeID(name); err == nil {
			list = append(list, id)
		}
	}
	return list
}

// rangeOf reads a subject: orders/r9.
func rangeOf(subject string) (RangeKey, bool) {
	i := strings.LastIndexByte(subject, '/')
	if i <= 0 {
		return RangeKey{}, false
	}
	id, err := sdk.ParseRangeID(subject[i+1:])
	return RangeKey{Topic: subject[:i], Range: id}, err == nil
}
