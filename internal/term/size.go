package term

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/eastguard/eastguard/internal/base"
)

// BytesMode is the --bytes flag: how people see sizes.
type BytesMode string

// The modes: 1.0 GiB, 1.1 GB, 1073741824.
const (
	BytesIEC BytesMode = "iec"
	BytesSI  BytesMode = "si"
	BytesRaw BytesMode = "raw"
)

// ParseBytesMode reads the flag's value.
func ParseBytesMode(s string) (BytesMode, error) {
	switch m := BytesMode(s); m {
	case BytesIEC, BytesSI, BytesRaw:
		return m, nil
	}
	return "", base.Errorf(base.CodeInvalidArgument, "", "--bytes %q is not one of iec, si, raw", s)
}

// Format prints n bytes: below one unit exactly (16 B), above it with one decimal (1.5 KiB).
func (m BytesMode) Format(n int64) string {
	switch m {
	case BytesRaw:
		return strconv.FormatInt(n, 10)
	case BytesSI:
		return scaled(float64(n), 1000, "B", "kB", "MB", "GB", "TB", "PB", "EB")
	case BytesIEC:
	}
	return scaled(float64(n), 1024, "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
}

// FormatCount prints a number of things with thousands separators.
func FormatCount(n int64) string {
	s := strconv.FormatUint(magnitude(n), 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	if n < 0 {
		return "-" + s
	}
	return s
}

// FormatRate prints a number of things per second: 512 or 51.2k or 1.6M.
func FormatRate(perSec float64) string {
	return strings.ReplaceAll(scaled(perSec, 1000, "", "k", "M", "G", "T"), " ", "")
}

func magnitude(n int64) uint64 {
	if n < 0 {
		return uint64(-(n + 1)) + 1
	}
	return uint64(n)
}

func scaled(v, step float64, units ...string) string {
	if math.Abs(v) < step {
		return strings.TrimRight(fmt.Sprintf("%.0f %s", v, units[0]), " ")
	}
	i := 0
	// 1023.97 KiB would print as 1024.0 KiB; it is 1.0 MiB.
	for math.Abs(v) >= step-0.05 && i < len(units)-1 {
		v /= step
		i++
	}
	return fmt.Sprintf("%.1f %s", v, units[i])
}

var countUnits = map[string]float64{"": 1, "k": 1e3, "m": 1e6, "g": 1e9}

// ParseRate reads records per second: 100, 5000/s, 50k/s, 600/m.
func ParseRate(s string) (perSec float64, err error) {
	count, per, _ := strings.Cut(s, "/")
	n, unit, ok := numberAndUnit(count)
	scale, known := countUnits[strings.ToLower(unit)]
	div, knownPer := map[string]float64{"": 1, "s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600}[per]
	if !ok || !known || !knownPer || n <= 0 || math.IsInf(n*scale, 0) {
		return 0, base.Errorf(base.CodeInvalidArgument, "", "%q is not a rate such as 100/s, 50k/s or 600/m", s)
	}
	return n * scale / div, nil
}

// ParseCount reads a number of things: 100, 10k, 1M.
func ParseCount(s string) (int64, error) {
	n, unit, ok := numberAndUnit(s)
	scale, known := countUnits[strings.ToLower(unit)]
	if !ok || !known || n < 0 || n*scale >= math.MaxInt64 || n*scale != math.Trunc(n*scale) {
		return 0, base.Errorf(base.CodeInvalidArgument, "", "%q is not a count such as 100, 10k or 1M", s)
	}
	return int64(n * scale), nil
}

func numberAndUnit(s string) (n float64, unit string, ok bool) {
	s = strings.TrimSpace(s)
	i := strings.IndexFunc(s, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if i < 0 {
		i = len(s)
	}
	n, err := strconv.ParseFloat(s[:i], 64)
	return n, strings.TrimSpace(s[i:]), err == nil
}
