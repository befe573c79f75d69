package term

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A column comes from one field of a row struct:
//
//	Rate float64 `json:"in_per_sec" col:"IN/s" as:"bytes_per_sec"`
//	Shard string `json:"shard" col:"SHARD,wide"`
//
// col is the heading, with ",wide" for those of -o wide alone, ",spare" for those that a table may lack where the
// terminal is too narrow, and ",fold" for sentences, which go on below there; as names the human format (below); a
// field without col is in JSON only.
type column struct {
	path    []int  // of the field in the row
	name    string // json name: what --columns and --sort-by use, and the heading of CSV
	heading string
	wide    bool
	spare   bool
	fold    bool
	as      string
	of      []int // path of the whole that a share is of
	right   bool
}

// Kinds of human format: the as tag.
const (
	asBytes       = "bytes"         // 1.0 GiB
	asBytesPerSec = "bytes_per_sec" // 61.2 MiB/s
	asCount       = "count"         // 1,204,881
	asRate        = "rate"          // 51.2k
	asMillis      = "ms"            // 96 ms, from milliseconds; 0 is "-"
	asMicros      = "us"            // 7.9 ms, from microseconds; 0 is "-"
	asSpan        = "span"          // 7d, from milliseconds; 0 is "-"
	asUptime      = "uptime"        // 3d04h, from milliseconds; 0 is "-"
	asAge         = "age"           // 3m12s, from a Time
	asStamp       = "stamp"         // 12:04:31.207, from a Time
	asPercent     = "percent"       // 41%
	asShare       = "share"         // 69% of 252.0 GiB: the field is part of the one that the of tag names
	asHash        = "hash"          // 0x4000, as --split-at reads it, from a full hash
)

// columnsOf lists the columns of a row type, those of embedded structs in their place.
func columnsOf(t reflect.Type) []column {
	var cols []column
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous && f.Type.Kind() == reflect.Struct && f.Tag.Get("json") == "" {
			for _, c := range columnsOf(f.Type) {
				c.path = append([]int{i}, c.path...)
				if c.of != nil {
					c.of = append([]int{i}, c.of...)
				}
				cols = append(cols, c)
			}
			continue
		}
		heading, flags, _ := strings.Cut(f.Tag.Get("col"), ",")
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		var of []int
		if whole, ok := t.FieldByName(f.Tag.Get("of")); ok {
			of = whole.Index
		}
		cols = append(cols, column{
			path: []int{i}, name: name, heading: heading, wide: flags == "wide", spare: flags == "spare", fold: flags == "fold",
			as: f.Tag.Get("as"), of: of, right: numeric(f.Type) || f.Tag.Get("as") == asSpan,
		})
	}
	return cols
}

func numeric(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeFor[Hash]() {
		return false
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
		reflect.Float32, reflect.Float64:
		return true
	}
	return false
}

// value is the column's field of row; a nil pointer on the way gives the zero Value.
func (c column) value(row reflect.Value) reflect.Value {
	v := row
	for _, i := range c.path {
		v = v.Field(i)
	}
	if v.Kind() == reflect.Pointer {
		return v.Elem()
	}
	return v
}

// raw is the text of machine formats: numbers without separators, times as in JSON, lists and maps as JSON.
func (c column) raw(row reflect.Value) string {
	v := c.value(row)
	if !v.IsValid() {
		return ""
	}
	switch x := v.Interface().(type) {
	case Time:
		if x.IsZero() {
			return ""
		}
		return x.UTC().Format(rfc3339ms)
	case fmt.Stringer:
		return x.String()
	}
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Float32, reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'f', -1, 64)
	case reflect.Struct, reflect.Map, reflect.Slice:
		if list, ok := v.Interface().([]string); ok {
			return strings.Join(list, " ")
		}
		b, err := json.Marshal(v.Interface())
		if err != nil {
			return err.Error()
		}
		return string(b)
	}
	return fmt.Sprint(v.Interface())
}

// human is the text of the table: escaped, with units; "-" where there is nothing to say.
func (c column) human(row reflect.Value, h Human) string {
	v := c.value(row)
	if !v.IsValid() {
		return "-"
	}
	if c.as == asHash {
		return shortHash(c.raw(row))
	}
	if c.as == asShare && c.of != nil {
		return share(v.Int(), row.FieldByIndex(c.of).Int(), h)
	}
	if text, ok := c.formatted(v, h); ok {
		return text
	}
	var text string
	switch x := v.Interface().(type) {
	case map[string]string:
		text = formatLabels(x)
	case bool:
		text = map[bool]string{true: "yes", false: "no"}[x]
	default:
		text = c.raw(row)
	}
	if text == "" {
		return "-"
	}
	return Escape(text)
}

// formatted applies the as tag.
func (c column) formatted(v reflect.Value, h Human) (string, bool) {
	if t, ok := v.Interface().(Time); ok {
		switch {
		case t.IsZero():
			return "-", true
		case c.as == asAge:
			return FormatAge(h.Now.Sub(t.Time)), true
		case c.as == asStamp:
			return h.Time.FormatStamp(t.Time, h.Now), true
		}
		return h.Time.FormatDate(t.Time, h.Now), true
	}
	if c.as == "" || !numeric(v.Type()) {
		return "", false
	}
	f := number(v)
	switch c.as {
	case asBytes:
		return h.Bytes.Format(int64(f)), true
	case asBytesPerSec:
		return h.Bytes.Format(int64(f)) + "/s", true
	case asCount:
		return FormatCount(int64(f)), true
	case asRate:
		return FormatRate(f), true
	case asMillis, asMicros:
		if f == 0 {
			return "-", true
		}
		if c.as == asMillis {
			f *= 1e3
		}
		return FormatTook(time.Duration(f * 1e3)), true
	case asUptime:
		if f == 0 {
			return "-", true
		}
		return FormatAge(time.Duration(f * 1e6)), true
	case asPercent:
		return fmt.Sprintf("%.0f%%", f), true
	case asSpan:
		if f == 0 {
			return "-", true
		}
		return FormatSpan(time.Duration(f) * time.Millisecond), true
	}
	return "", false
}

// share prints a part of a whole in bytes; without a whole the part alone.
func share(part, whole int64, h Human) string {
	switch {
	case whole <= 0 && part == 0:
		return "-"
	case whole <= 0:
		return h.Bytes.Format(part)
	}
	return fmt.Sprintf("%.0f%% of %s", 100*float64(part)/float64(whole), h.Bytes.Format(whole))
}

// shortHash leaves trailing zeros out, down to four digits: 0x4000. That is still the same point, since digits
// stand for the most significant ones wherever a point is typed. The end of the key space is 2^64.
func shortHash(full string) string {
	if full == "0x10000000000000000" {
		return "2^64"
	}
	short := strings.TrimRight(full, "0")
	if least := len("0x4000"); len(short) < least && len(full) >= least {
		short = full[:least]
	}
	return short
}

func number(v reflect.Value) float64 {
	switch {
	case v.CanInt():
		return float64(v.Int())
	case v.CanUint():
		return float64(v.Uint())
	case v.CanFloat():
		return v.Float()
	}
	return 0
}

func formatLabels(m map[string]string) string {
	pairs := make([]string, 0, len(m))
	for k, v := range m {
		pairs = append(pairs, k+"="+v)
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}
