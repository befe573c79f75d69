package styles_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/tui/styles"
)

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestModeFor(t *testing.T) {
	for _, tc := range []struct {
		on   bool
		env  func(string) string
		want styles.Mode
	}{
		{false, env("TERM", "xterm-256color", "COLORTERM", "truecolor"), styles.NoColor},
		{true, env("TERM", "xterm-256color", "COLORTERM", "truecolor"), styles.TrueColor},
		{true, env("TERM", "xterm-256color"), styles.Color256},
		{true, env("TERM", "tmux-256color", "COLORTERM", "24bit"), styles.TrueColor},
		{true, env("TERM", "xterm"), styles.Color16},
		{true, env("TERM", "linux"), styles.Color16},
		{true, env("TERM", "screen", "COLORTERM", "truecolor"), styles.Color16},
		{true, env("TERM", "xterm-direct"), styles.TrueColor},
		{true, env(), styles.Color16},
	} {
		require.Equal(t, tc.want, styles.ModeFor(tc.on, tc.env))
	}
}

func TestWideGlyphs(t *testing.T) {
	for want, envs := range map[bool][]func(string) string{
		false: {env(), env("LANG", "C"), env("LANG", "en_US.UTF-8"), env("LC_ALL", "C.UTF-8", "LANG", "ja_JP.UTF-8"), env("LC_CTYPE", "de_DE.utf8"), env("LANG", "kok_IN.UTF-8")},
		true:  {env("LANG", "ja_JP.UTF-8"), env("LANG", "zh_CN.utf8"), env("LC_ALL", "ko_KR.UTF-8", "LANG", "en_US.UTF-8"), env("LC_CTYPE", "zh-Hant"), env("LANG", "ja")},
	} {
		for i, e := range envs {
			require.Equal(t, want, styles.WideGlyphs(e), "%v %d", want, i)
		}
	}
}

// everyStyle is each role with each attribute.
func everyStyle() []styles.Style {
	var all []styles.Style
	for role := styles.Plain; role <= styles.Heat(styles.HeatLevels); role++ {
		all = append(all, role, role.Bold(), role.Underline(), role.Reverse(), role.Bold().Underline().Reverse())
	}
	return append(all, 0xffff)
}

func TestSequencesAreOfTheMode(t *testing.T) {
	for mode, colours := range map[styles.Mode]string{
		styles.NoColor: `^$`, styles.Color16: `^(3[0-7]|9[0-7])?$`, styles.Color256: `^(3[0-7]|9[0-7]|38;5;\d+)?$`, styles.TrueColor: `^(3[0-7]|9[0-7]|38;2;\d+;\d+;\d+)?$`,
	} {
		theme := styles.NewTheme(mode, false)
		require.Equal(t, styles.Reset, theme.SGR(styles.Plain))
		for _, s := range everyStyle() {
			seq := theme.SGR(s)
			require.Zero(t, ansi.StringWidth(seq))
			if seq == styles.Reset {
				continue
			}
			body, ok := strings.CutPrefix(seq, "\x1b[0")
			require.True(t, ok, "%q", seq)
			body = strings.TrimSuffix(body, "m")
			for _, attribute := range []string{";1", ";4", ";7"} {
				body = strings.TrimPrefix(body, attribute)
			}
			require.Regexp(t, colours, strings.TrimPrefix(body, ";"), "%q", seq)
			require.NotContains(t, body, "48;", "the terminal's own background")
		}
	}
}

func TestAttributesStayWithoutColours(t *testing.T) {
	theme := styles.NewTheme(styles.NoColor, false)
	require.Equal(t, "\x1b[0;1m", theme.SGR(styles.Bad.Bold()))
	require.Equal(t, "\x1b[0;4m", theme.SGR(styles.OK.Underline()))
	require.Equal(t, "\x1b[0;7m", theme.SGR(styles.Dim.Reverse()))
	require.Equal(t, styles.Reset, theme.SGR(styles.Warn))
}

func TestFaded(t *testing.T) {
	require.Equal(t, styles.Dim.Reverse(), styles.Bad.Reverse().Faded())
}

func TestSelected(t *testing.T) {
	require.Equal(t, styles.Plain.Bold().Reverse(), styles.Bad.Bold().Selected())
}

func TestLevel(t *testing.T) {
	for _, tc := range []struct {
		value, most float64
		want        int
		ok          bool
	}{{0, 1, 0, false}, {1, 0, 0, false}, {-1, 1, 0, false}, {0.01, 1, 0, true}, {0.5, 1, 4, true}, {1, 1, 7, true}, {9, 1, 7, true}} {
		level, ok := styles.Level(tc.value, tc.most)
		require.Equal(t, tc.want, level)
		require.Equal(t, tc.ok, ok)
	}
}

// Every glyph is one cell on every terminal, and the ASCII set is ASCII.
func TestGlyphsAreOneCell(t *testing.T) {
	for _, ascii := range []bool{false, true} {
		theme := styles.NewTheme(styles.NoColor, ascii)
		eachRune(reflect.ValueOf(theme.Glyphs), func(r rune) {
			require.Equal(t, 1, ansi.StringWidth(string(r)), "%c", r)
			require.Equal(t, 1, ansi.StringWidthWc(string(r)), "%c", r)
			if ascii {
				require.True(t, r >= 0x20 && r < 0x7f, "%c", r)
				return
			}
			if r >= 0x80 {
				spelled, ok := styles.ASCII(r)
				require.True(t, ok, "%c has no ASCII spelling", r)
				require.NotEmpty(t, spelled)
			}
		})
	}
}

// The states of a node, and of a check, differ without colours.
func TestStatesDiffer(t *testing.T) {
	for _, ascii := range []bool{false, true} {
		g := styles.NewTheme(styles.NoColor, ascii).Glyphs
		seen := map[rune]bool{}
		for _, r := range []rune{g.Alive, g.Suspect, g.Dead, g.Left, g.Unknown} {
			require.False(t, seen[r], "%c", r)
			seen[r] = true
		}
		require.Len(t, map[rune]bool{g.Good: true, g.Attention: true, g.Broken: true}, 3)
	}
}

func eachRune(v reflect.Value, f func(rune)) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			eachRune(v.Field(i), f)
		}
	case reflect.Array:
		for i := range v.Len() {
			eachRune(v.Index(i), f)
		}
	case reflect.Int32:
		f(rune(v.Int()))
	}
}
