package store

import (
	"iter"
	"maps"
	"strconv"
	"strings"

	"github.com/eastguard/eastguard/sdk"
)

// Fields are the words of an event's detail in their order: segment=s881 next=s907 reason="asked by an operator".
func Fields(detail string) iter.Seq2[string, string] {
	return func(yield func(key, value string) bool) {
		for text := strings.TrimLeft(detail, " "); text != ""; text = strings.TrimLeft(text, " ") {
			key, rest, ok := strings.Cut(text, "=")
			if !ok {
				return
			}
			value := ""
			if quoted, err := strconv.QuotedPrefix(rest); err == nil && quoted[0] == '"' {
				value, _ = strconv.Unquote(quoted)
				text = rest[len(quoted):]
			} else {
				value, text, _ = strings.Cut(rest, " ")
			}
			if !yield(key, value) {
				return
			}
		}
	}
}

// Field is the value that a detail has for a key; empty if it has none.
func Field(detail, key string) string {
	for k, v := range Fields(detail) {
		if k == key {
			return v
		}
	}
	return ""
}

// details are fields by their keys.
type details map[string]string

func parseDetail(text string) details { return maps.Collect(Fields(text)) }

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

func (d details) nodes(key string, known names) (list []sdk.NodeID) {
	for name := range strings.SplitSeq(d[key], ",") {
		if name != "" {
			list = append(list, known.node(sdk.NodeID(name)))
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
