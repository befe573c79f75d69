package term

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/eastguard/eastguard/internal/base"
)

// TimeMode is the --time flag: how people see points in time. Machine output ignores it.
type TimeMode string

// The modes.
const (
	TimeLocal TimeMode = "local"
	TimeUTC   TimeMode = "utc"
	TimeRel   TimeMode = "rel"
	TimeMs    TimeMode = "ms"
)

// ParseTimeMode reads the flag's value.
func ParseTimeMode(s string) (TimeMode, error) {
	switch m := TimeMode(s); m {
	case TimeLocal, TimeUTC, TimeRel, TimeMs:
		return m, nil
	}
	return "", base.Errorf(base.CodeInvalidArgument, "", "--time %q is not one of local, utc, rel, ms", s)
}

// rfc3339ms is the one form of machine output.
const rfc3339ms = "2006-01-02T15:04:05.000Z07:00"

// Time is a time.Time that marshals as RFC 3339 in UTC with milliseconds; the zero Time as null.
type Time struct{ time.Time }

// MarshalJSON prints the machine form.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return []byte(`"` + t.UTC().Format(rfc3339ms) + `"`), nil
}

// UnmarshalJSON reads RFC 3339 with any zone and fraction, or null.
func (t *Time) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*t = Time{}
		return nil
	}
	v, err := time.Parse(`"`+time.RFC3339Nano+`"`, string(b))
	t.Time = v
	return err
}

// Hash is a position in the key space. JSON numbers lose it above 2^53, so it is a string everywhere.
type Hash uint64

// String prints all 16 digits.
func (h Hash) String() string { return fmt.Sprintf("0x%016x", uint64(h)) }

// MarshalText is String.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// FormatStamp prints a record's time: within the day of now the time of day, else the date too.
func (m TimeMode) FormatStamp(t, now time.Time) string {
	switch {
	case t.IsZero():
		return "-"
	case m == TimeMs:
		return strconv.FormatInt(t.UnixMilli(), 10)
	case m == TimeRel:
		return FormatAge(now.Sub(t)) + " ago"
	case m == TimeUTC:
		t, now = t.UTC(), now.UTC()
	default:
		t, now = t.Local(), now.Local()
	}
	layout := "2006-01-02 15:04:05.000"
	if t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		layout = "15:04:05.000"
	}
	if m == TimeUTC {
		layout += "Z"
	}
	return t.Format(layout)
}

// FormatDate prints a point in time with its date and zone: 2026-11-29 11:58:02 UTC.
func (m TimeMode) FormatDate(t, now time.Time) string {
	switch {
	case t.IsZero():
		return "-"
	case m == TimeMs:
		return strconv.FormatInt(t.UnixMilli(), 10)
	case m == TimeRel:
		return FormatAge(now.Sub(t)) + " ago"
	case m == TimeUTC:
		return t.UTC().Format("2006-01-02 15:04:05 UTC")
	}
	return t.Local().Format("2006-01-02 15:04:05 MST")
}

// FormatAge prints a span with its two largest units: 4s, 3m12s, 3d04h, 2y31d.
func FormatAge(d time.Duration) string {
	if d < 0 {
		return "0s"
	}
	const day, year = 24 * time.Hour, 365 * 24 * time.Hour
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	case d < year:
		return fmt.Sprintf("%dd%02dh", d/day, d%day/time.Hour)
	}
	return fmt.Sprintf("%dy%02dd", d/year, d%year/day)
}

// FormatSpan prints a setting such as a retention: 7d, 1h30m.
func FormatSpan(d time.Duration) string { return base.FormatDuration(d) }

// FormatTook prints how long something took, to two significant digits below 10 ms: 0.31 ms, 7.9 ms, 14 ms, 2.3 s.
func FormatTook(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case ms < 0.995:
		return fmt.Sprintf("%.2f ms", ms)
	case ms < 9.95:
		return fmt.Sprintf("%.1f ms", ms)
	case ms < 999.5:
		return fmt.Sprintf("%.0f ms", ms)
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return FormatAge(d)
}

// ParseDuration reads a timeout or a span on the command line: 30s, 1.5s, 7d, 1d12h. A bare number is seconds,
// as with -t 5.
func ParseDuration(s string) (time.Duration, error) {
	if n, err := strconv.ParseFloat(s, 64); err == nil {
		if n < 0 || math.IsNaN(n) || n*1e9 >= math.MaxInt64 {
			return 0, base.Errorf(base.CodeInvalidArgument, "", "%q seconds is not between 0 and 292 years", s)
		}
		return time.Duration(math.Round(n * 1e9)), nil
	}
	if d, err := base.ParseDuration(s); err == nil {
		return d, nil
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return d, nil
	}
	return 0, base.Errorf(base.CodeInvalidArgument, "", "%q is not a duration such as 30s, 5m or 7d", s)
}

// ParseTime reads a point in time: RFC 3339 with any part left out from the right, "2026-11-29 12:00", a bare
// time of day (today), milliseconds since 1970, or an age such as -10m. Without a zone it is local.
func ParseTime(s string, now time.Time) (time.Time, error) {
	if age, ok := strings.CutPrefix(s, "-"); ok {
		d, err := ParseDuration(age)
		return now.Add(-d), err
	}
	if s == "now" {
		return now, nil
	}
	if len(s) >= 10 && strings.Trim(s, "0123456789") == "" {
		if ms, err := strconv.ParseInt(s, 10, 64); err == nil {
			return time.UnixMilli(ms), nil
		}
	}
	for _, layout := range []string{
		time.RFC3339Nano, "2006-01-02T15:04Z07:00", "2006-01-02T15Z07:00",
		"2006-01-02T15:04:05.999999999", "2006-01-02T15:04", "2006-01-02T15",
		"2006-01-02 15:04:05.999999999", "2006-01-02 15:04", "2006-01-02",
	} {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			return t, nil
		}
	}
	for _, layout := range []string{"15:04:05.999999999", "15:04"} {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			y, m, d := now.Date()
			return time.Date(y, m, d, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), now.Location()), nil
		}
	}
	return time.Time{}, base.Errorf(base.CodeInvalidArgument, "", "%q is not a time such as 2026-11-29T12:00Z, 12:00 or -10m", s)
}
