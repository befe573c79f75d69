package component

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// The widths that the formats below never exceed, for columns that must not move.
const (
	RateWidth     = 10 // 128.4 MB/s
	ShortWidth    = 6  // 128.4M
	RecordsWidth  = 10 // 512k rec/s
	BytesWidth    = 8  // 1023 MiB
	AgeWidth      = 6  // 59m59s
	PercentWidth  = 4  // 100%
	DurationWidth = 6  // 59.9s, 999ms, 59m59s
)

// None stands for a value that is not known.
const None = "-"

// scaled cuts v down by thousands: the number with at most five characters, and the unit's prefix.
func scaled(v float64, small string) (number, prefix string) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return None, ""
	}
	if v < 0 {
		v = 0
	}
	units := [...]string{"", small, "M", "G", "T", "P", "E"}
	unit := 0
	for v >= 999.95 && unit < len(units)-1 {
		v /= 1000
		unit++
	}
	switch {
	case unit == 0 && v >= 9.95, unit == 1 && v >= 9.95, unit == 0 && v == math.Trunc(v):
		return strconv.FormatFloat(math.Trunc(v), 'f', 0, 64), units[unit]
	case unit >= 3 && v < 9.995:
		return strconv.FormatFloat(v, 'f', 2, 64), units[unit]
	}
	return strconv.FormatFloat(min(v, 9999), 'f', 1, 64), units[unit]
}

// Rate prints bytes per second: 128.4 MB/s, 1.92 GB/s, 12 kB/s.
func Rate(perSecond float64) string {
	n, unit := scaled(perSecond, "k")
	if n == None {
		return None
	}
	return n + " " + unit + "B/s"
}

// Records prints records per second: 512k rec/s, 1.6M rec/s.
func Records(perSecond float64) string {
	n, unit := scaled(perSecond, "k")
	switch whole, _, cut := strings.Cut(n, "."); {
	case n == None:
		return None
	case cut && len(whole) > 1: // 14M: nobody counts the last records
		n = whole
	case cut:
		n = n[:3]
	}
	return n + unit + " rec/s"
}

// Short prints a number in little space: 12, 512k, 25.9M, 1.92G.
func Short(v float64) string {
	n, unit := scaled(v, "k")
	return n + unit
}

// Bytes prints a size in powers of 1024: 2.0 MiB, 402 MiB, 1.0 GiB.
func Bytes(n uint64) string {
	if n < 1024 {
		return strconv.FormatUint(n, 10) + " B"
	}
	units := [...]string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	v, unit := float64(n)/1024, 0
	for v >= 1023.95 && unit < len(units)-1 {
		v /= 1024
		unit++
	}
	decimals := 1
	if v >= 99.95 {
		decimals = 0
	}
	return strconv.FormatFloat(v, 'f', decimals, 64) + " " + units[unit]
}

// Count prints a whole number with separators: 1,204,881.
func Count[T ~int | ~int32 | ~int64 | ~uint | ~uint32 | ~uint64](n T) string {
	s, sign := strconv.FormatUint(uint64(n), 10), ""
	if n < 0 {
		s, sign = strconv.FormatUint(-uint64(n), 10), "-"
	}
	if len(s) <= 3 {
		return sign + s
	}
	var b strings.Builder
	b.WriteString(sign)
	for i := range len(s) {
		if i > 0 && (len(s)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// Age prints how long ago something was: 3s, 2m11s, 1h05m, 3d04h, 412d.
func Age(d time.Duration) string {
	seconds := max(int64(d/time.Second), 0)
	two := func(a int64, unit string, b int64, small string) string {
		s := strconv.FormatInt(b, 10)
		if b < 10 {
			s = "0" + s
		}
		return strconv.FormatInt(a, 10) + unit + s + small
	}
	switch {
	case seconds < 60:
		return strconv.FormatInt(seconds, 10) + "s"
	case seconds < 3600:
		return two(seconds/60, "m", seconds%60, "s")
	case seconds < 86400:
		return two(seconds/3600, "h", seconds/60%60, "m")
	case seconds < 100*86400:
		return two(seconds/86400, "d", seconds/3600%24, "h")
	}
	return strconv.FormatInt(seconds/86400, 10) + "d"
}

// Duration prints how long something took: 0.4ms, 96ms, 1.4s, 2m11s.
func Duration(d time.Duration) string {
	switch ms := float64(d) / float64(time.Millisecond); {
	case d < 0:
		return None
	case ms < 9.95:
		return strconv.FormatFloat(ms, 'f', 1, 64) + "ms"
	case ms < 999.5:
		return strconv.FormatFloat(ms, 'f', 0, 64) + "ms"
	case d < 60*time.Second:
		return strconv.FormatFloat(max(math.Trunc(d.Seconds()*10), 10)/10, 'f', 1, 64) + "s"
	}
	return Age(d)
}

// Percent prints a share: 41%. What is not quite everything is not shown as everything.
func Percent(share float64) string {
	if math.IsNaN(share) || math.IsInf(share, 0) {
		return None
	}
	p := math.Round(share * 100)
	switch {
	case share < 1 && p >= 100:
		p = 99
	case share > 0 && p < 1:
		p = 1
	}
	return strconv.FormatFloat(min(max(p, 0), 999), 'f', 0, 64) + "%"
}
