package app

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/tui/styles"
)

// TestASCIIOnly decides on glyphs in one place: the flag first, then the locale's encoding, then its fonts.
func TestASCIIOnly(t *testing.T) {
	for _, tc := range []struct {
		name         string
		locale       string
		ascii, given bool // --ascii, --ascii=false
		want         bool
	}{
		{"utf-8", "en_US.UTF-8", false, false, false},
		{"no locale: a terminal of this century", "", false, false, false},
		{"not utf-8", "C", false, false, true},
		{"fonts with wide boxes", "ja_JP.UTF-8", false, false, true},
		{"wide boxes, but asked for", "ja_JP.UTF-8", false, true, false},
		{"--ascii", "en_US.UTF-8", true, true, true},
	} {
		getenv := func(name string) string {
			if name == "LC_ALL" {
				return tc.locale
			}
			return ""
		}
		streams, _, _, _ := term.Test()
		streams.Decide(term.ColorAuto, tc.ascii, getenv)
		require.Equal(t, tc.want, asciiOnly(Options{Getenv: getenv, GlyphsChosen: tc.given}, streams), tc.name)
	}
}

// TestSimpleTerminals get the sixteen colours that they have, whatever COLORTERM says.
func TestSimpleTerminals(t *testing.T) {
	for _, name := range []string{"linux", "screen", "xterm"} {
		getenv := func(key string) string { return map[string]string{"TERM": name, "COLORTERM": "truecolor"}[key] }
		streams, _, _, _ := term.Test()
		streams.SetTTY(true, true, true)
		streams.Decide(term.ColorAuto, false, getenv)
		require.Equal(t, styles.Color16, colors(Options{Getenv: getenv}, streams), name)
	}
}

// TestWhatHasNoScreen is what was asked for as a document; a format that is usual for commands keeps nobody from the screen.
func TestWhatHasNoScreen(t *testing.T) {
	for _, tc := range []struct {
		opts     Options
		tty      bool
		termName string
		want     bool
	}{
		{Options{Format: term.FormatTable}, true, "xterm", false},
		{Options{Format: term.FormatJSON}, true, "xterm", false},
		{Options{Format: term.FormatJSON, FormatChosen: true}, true, "xterm", true},
		{Options{Format: term.FormatTable, FormatChosen: true}, true, "xterm", false},
		{Options{Format: term.FormatTable, Once: true}, true, "xterm", true},
		{Options{Format: term.FormatJSON}, false, "xterm", true},
		{Options{Format: term.FormatTable}, true, "dumb", true},
	} {
		tc.opts.Getenv = func(string) string { return tc.termName }
		streams, _, _, _ := term.Test()
		streams.SetTTY(tc.tty, tc.tty, tc.tty)
		text, _ := textOnly(tc.opts, streams)
		require.Equal(t, tc.want, text, "%+v", tc)
	}
}
