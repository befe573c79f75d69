package base

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// The units of ParseDuration, largest first: String uses the same order to print.
var durationUnits = []struct {
	suffix string
	unit   time.Duration
}{
	{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond},
}

// ParseDuration reads "7d", "1h30m", "250ms" or "0": whole numbers with the units w, d, h, m, s and ms. A number
// without a unit is refused, since people disagree about what it would mean.
func ParseDuration(s string) (time.Duration, error) {
	const op = "parse duration"
	bad := func(why string) (time.Duration, error) {
		return 0, Errorf(CodeInvalidArgument, op, "%q %s", s, why).WithHint("write a whole number with a unit: 250ms, 30s, 15m, 12h, 7d or 2w")
	}
	if s == "0" {
		return 0, nil
	}
	if s == "" {
		return bad("is not a duration")
	}
	var total time.Duration
	for rest := s; rest != ""; {
		n := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
		if n < 0 {
			return bad("has a number without a unit")
		}
		end := n
		for end < len(rest) && 'a' <= rest[end] && rest[end] <= 'z' {
			end++
		}
		count, err := strconv.ParseInt(rest[:n], 10, 64)
		unit := durationUnit(rest[n:end])
		if err != nil || unit == 0 {
			return bad("is not a duration")
		}
		if count > int64((math.MaxInt64-total)/unit) {
			return bad("is longer than 292 years")
		}
		total += time.Duration(count) * unit
		rest = rest[end:]
	}
	return total, nil
}

func durationUnit(suffix string) time.Duration {
	for _, u := range durationUnits {
		if u.suffix == suffix {
			return u.unit
		}
	}
	return 0
}

// FormatDuration prints d in the form ParseDuration reads: "7d", "1h30m", "0". Weeks are printed as days, and
// what is below a millisecond is cut off.
func FormatDuration(d time.Duration) string {
	d = d.Truncate(time.Millisecond)
	if d <= 0 {
		return "0"
	}
	var b strings.Builder
	for _, u := range durationUnits[1:] {
		if n := d / u.unit; n > 0 {
			b.WriteString(strconv.FormatInt(int64(n), 10))
			b.WriteString(u.suffix)
			d -= n * u.unit
		}
	}
	return b.String()
}

var sizeUnits = []struct {
	suffix string
	unit   int64
}{
	{"TiB", 1 << 40},
	{"GiB", 1 << 30},
	{"MiB", 1 << 20},
	{"KiB", 1 << 10},
	{"TB", 1e12},
	{"GB", 1e9},
	{"MB", 1e6},
	{"KB", 1e3},
	{"kB", 1e3},
	{"B", 1},
}

// ParseSize reads a number of bytes: "1048576", "1MiB", "1.5 GiB", "20MB". KiB, MiB, … are powers of 1,024 and
// KB, MB, … powers of 1,000; a bare K or M is refused, since it means both.
func ParseSize(s string) (int64, error) {
	bad := func(why string) (int64, error) {
		return 0, Errorf(CodeInvalidArgument, "parse size", "%q %s", s, why).WithHint("write a number of bytes, or one with a unit: 512KiB, 64MiB, 1GiB")
	}
	number, unit := s, int64(1)
	for _, u := range sizeUnits {
		if rest, ok := strings.CutSuffix(s, u.suffix); ok {
			number, unit = strings.TrimRight(rest, " "), u.unit
			break
		}
	}
	if n, err := strconv.ParseInt(number, 10, 64); err == nil && n >= 0 {
		if n > math.MaxInt64/unit {
			return bad("is too large")
		}
		return n * unit, nil
	}
	// A fraction is for people ("1.5GiB"), so it has a unit and digits on both sides of one point, nothing else.
	whole, fraction, ok := strings.Cut(number, ".")
	if !ok || unit == 1 || !allDigits(whole) || !allDigits(fraction) {
		return bad("is not a size")
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || f*float64(unit) >= math.MaxInt64 {
		return bad("is too large")
	}
	return int64(math.Round(f * float64(unit))), nil
}

func allDigits(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' }) < 0
}

// FormatSize prints n bytes so that ParseSize reads the same number back: "1GiB", "1536MiB", "1000".
func FormatSize(n int64) string {
	for _, u := range sizeUnits[:4] {
		if n >= u.unit && n%u.unit == 0 {
			return strconv.FormatInt(n/u.unit, 10) + u.suffix
		}
	}
	return strconv.FormatInt(n, 10)
}
