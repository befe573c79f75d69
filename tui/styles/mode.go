package styles

import (
	"slices"
	"strings"

	"github.com/charmbracelet/colorprofile"
)

// Mode is how many colours a terminal shows.
type Mode uint8

// The modes, fewest colours first.
const (
	NoColor Mode = iota
	Color16
	Color256
	TrueColor
)

// String is the mode's name, as test files spell it.
func (m Mode) String() string {
	switch m {
	case NoColor:
		return "none"
	case Color16:
		return "16"
	case Color256:
		return "256"
	case TrueColor:
		return "truecolor"
	}
	return "unknown"
}

// Profile is the mode in the words of the program that writes the frames.
func (m Mode) Profile() colorprofile.Profile {
	switch m {
	case NoColor:
		return colorprofile.ASCII
	case Color16:
		return colorprofile.ANSI
	case Color256:
		return colorprofile.ANSI256
	case TrueColor:
	}
	return colorprofile.TrueColor
}

// ModeFor is the mode of a terminal that shall have colours (on, which term.ColorMode decides: colorprofile does
// not know every value of NO_COLOR), by what its environment says of it.
func ModeFor(on bool, getenv func(string) string) Mode {
	name, colors := getenv("TERM"), strings.ToLower(getenv("COLORTERM"))
	switch {
	case !on:
		return NoColor
	case name == "linux" || name == "screen" || name == "xterm": // COLORTERM passes through ssh and su unasked
		return Color16
	case colors == "truecolor" || colors == "24bit" || strings.HasSuffix(name, "-direct"):
		return TrueColor
	case strings.Contains(name, "256color"):
		return Color256
	}
	return Color16
}

// WideGlyphs reports whether the locale is one whose fonts may draw boxes and blocks two cells wide (East Asian
// Ambiguous): Chinese, Japanese, Korean.
func WideGlyphs(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := getenv(name); locale != "" {
			return slices.Contains([]string{"ja", "ko", "zh"}, language(locale))
		}
	}
	return false
}

// language is the first part of a locale's name: zh of zh_TW.UTF-8.
func language(locale string) string {
	end := strings.IndexAny(locale, "_.@-")
	if end < 0 {
		end = len(locale)
	}
	return strings.ToLower(locale[:end])
}
