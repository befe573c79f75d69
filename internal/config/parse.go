package config

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// parse turns the text of a value, from whichever source, into the setting's type. An empty text is a valid
// string, list or mapping; callers decide whether empty means unset. The error is a clause that follows the key.
func (s Setting) parse(raw string) (any, error) {
	switch s.Kind {
	case KindInt:
		return s.parseInt(raw)
	case KindTriBool:
		return parseTriBool(raw)
	case KindList:
		return parseList(raw), nil
	case KindMap:
		return parseMap(raw)
	case KindString:
	}
	if s.OneOf == nil {
		return raw, nil
	}
	if word := strings.ToLower(raw); slices.Contains(s.OneOf, word) {
		return word, nil
	}
	return nil, fmt.Errorf("%q is not one of %s", raw, strings.Join(s.OneOf, ", "))
}

func (s Setting) parseInt(raw string) (any, error) {
	n, err := strconv.ParseInt(raw, 10, 64)
	if err != nil {
		var ok bool
		if n, ok = parseUnit(raw, s.Unit); !ok {
			return nil, fmt.Errorf("%q is not %s", raw, s.example())
		}
	}
	if n < s.Min || n > s.Max {
		return nil, fmt.Errorf("%s is not between %d and %d", raw, s.Min, s.Max)
	}
	return n, nil
}

func (s Setting) example() string {
	switch s.Unit {
	case "bytes":
		return "a number of bytes such as 10485760 or 10MiB"
	case "s":
		return "a number of seconds such as 90 or 1m30s"
	case "ms":
		return "a number of milliseconds such as 1500 or 1.5s"
	}
	return "a whole number"
}

// parseUnit reads a number that carries its own unit: a size or a duration.
func parseUnit(raw, unit string) (int64, bool) {
	switch unit {
	case "bytes":
		n, err := humanize.ParseBytes(raw)
		return int64(n), err == nil && n <= math.MaxInt64
	case "s":
		return wholeUnits(raw, time.Second)
	case "ms":
		return wholeUnits(raw, time.Millisecond)
	}
	return 0, false
}

func wholeUnits(raw string, unit time.Duration) (int64, bool) {
	d, err := time.ParseDuration(raw)
	return int64(d / unit), err == nil && d%unit == 0
}

// parseTriBool gives true, false, or nil for unset.
func parseTriBool(raw string) (any, error) {
	if raw == "" || strings.EqualFold(raw, "auto") {
		return nil, nil
	}
	b, err := strconv.ParseBool(strings.ToLower(raw))
	if err != nil {
		return nil, fmt.Errorf("%q is not true, false or auto", raw)
	}
	return b, nil
}

func parseList(raw string) []string {
	var list []string
	for word := range strings.SplitSeq(raw, ",") {
		if word = strings.TrimSpace(word); word != "" {
			list = append(list, word)
		}
	}
	return list
}

func parseMap(raw string) (any, error) {
	m := make(map[string]string)
	for _, pair := range parseList(raw) {
		k, v, ok := strings.Cut(pair, "=")
		k, v = strings.TrimSpace(k), strings.TrimSpace(v)
		if !ok || k == "" {
			return nil, fmt.Errorf("%q is not of the form name=value", pair)
		}
		if _, twice := m[k]; twice {
			return nil, fmt.Errorf("%q is given twice", k)
		}
		m[k] = v
	}
	return m, nil
}

// Format prints a value as parse reads it.
func Format(value any) string {
	switch v := value.(type) {
	case nil:
		return "auto"
	case []string:
		return strings.Join(v, ",")
	case map[string]string:
		pairs := make([]string, 0, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			pairs = append(pairs, k+"="+v[k])
		}
		return strings.Join(pairs, ",")
	}
	return fmt.Sprint(value)
}
