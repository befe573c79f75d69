package term

import (
	"fmt"

	"github.com/eastguard/eastguard/internal/base"
)

// ColorMode is the --color flag.
type ColorMode string

// The modes.
const (
	ColorAuto   ColorMode = "auto"
	ColorAlways ColorMode = "always"
	ColorNever  ColorMode = "never"
)

// ParseColorMode reads the flag's value.
func ParseColorMode(s string) (ColorMode, error) {
	switch m := ColorMode(s); m {
	case ColorAuto, ColorAlways, ColorNever:
		return m, nil
	}
	return "", base.Errorf(base.CodeInvalidArgument, "", "--color %q is not one of auto, always, never", s)
}

// On decides whether a stream gets colour. The flag wins; then NO_COLOR, which counts when present and not
// empty, whatever its text (no-color.org); then CLICOLOR_FORCE and CLICOLOR; then the terminal itself.
func (m ColorMode) On(tty bool, getenv func(string) string) bool {
	switch m {
	case ColorAlways:
		return true
	case ColorNever:
		return false
	case ColorAuto:
	}
	if getenv("NO_COLOR") != "" {
		return false
	}
	if f := getenv("CLICOLOR_FORCE"); f != "" && f != "0" {
		return true
	}
	return tty && getenv("CLICOLOR") != "0" && getenv("TERM") != "dumb"
}

// Style wraps text in SGR sequences of the 16-colour palette, so that the user's theme applies; the zero Style
// returns it unchanged.
type Style struct{ on bool }

// On reports whether the style does anything.
func (s Style) On() bool { return s.on }

func (s Style) sgr(code, text string) string {
	if !s.on || text == "" {
		return text
	}
	return fmt.Sprintf("\x1b[%sm%s\x1b[0m", code, text)
}

// Bold is for headings.
func (s Style) Bold(text string) string { return s.sgr("1", text) }

// Dim is for what can be skipped.
func (s Style) Dim(text string) string { return s.sgr("90", text) }

// OK is green.
func (s Style) OK(text string) string { return s.sgr("32", text) }

// Warn is yellow.
func (s Style) Warn(text string) string { return s.sgr("33", text) }

// Bad is red.
func (s Style) Bad(text string) string { return s.sgr("31", text) }

// Info is cyan.
func (s Style) Info(text string) string { return s.sgr("36", text) }

// Reverse swaps foreground and background: what changed, or what is selected.
func (s Style) Reverse(text string) string { return s.sgr("7", text) }
