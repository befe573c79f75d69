package component

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/eastguard/eastguard/tui/styles"
)

// nasty are texts that try to leave their place.
var nasty = []string{
	"", "plain", "ESC \x1b[31mred\x1b[0m", "\x1b]52;c;aGk=\a", "\x9b31m", "\u009b2J", "\u009d0;title\u009c", "a\tb\nc\rd\x00\x7f", "\xff\xfe\x80",
	"日本語のトピック", "한국어", "각", "ᄀ", "ᅡ", "ᆨ", "👨‍👩‍👧‍👦", "👩🏽‍🚀", "❤️", "1️⃣", "🇩🇪🇫🇷", "🇩", "🇪", "\u200d", "👨\u200d", "é", "é", "́", "a" + strings.Repeat("́", 40),
	"שלום עולם", "مرحبا", "\u202eevil\u202c", "\u2066x\u2069", "\u200b\u200e\u200f\u00ad\ufeff", "क्षि", "क्", "ष", "ः", "ൎ", "𑇂", "ก็", "ﷺ", "⚡", "✅", "✖", "☔︎", "☔️", "⏎ → … ⟶ ×",
	"\u0600", "𝕏", "\U0010ffff", "\ufffd", "\u2028", "ｗｉｄｅ", "ﾊﾝ", "\u3000", "x\u20dd", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "\U000e0001",
}

func allThemes() []*styles.Theme {
	return []*styles.Theme{
		styles.NewTheme(styles.TrueColor, false), styles.NewTheme(styles.Color256, false), styles.NewTheme(styles.Color16, false),
		styles.NewTheme(styles.NoColor, false), styles.NewTheme(styles.Color16, true), styles.NewTheme(styles.NoColor, true),
	}
}

var themes = allThemes()

func anyText(t *rapid.T) string {
	return rapid.OneOf(
		rapid.SampledFrom(nasty),
		rapid.String(),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 12), func(b []byte) string { return string(b) }),
		rapid.Map(rapid.SliceOfN(rapid.SampledFrom(nasty), 1, 4), func(s []string) string { return strings.Join(s, "") }),
	).Draw(t, "text")
}

// requireTidy checks what must hold of every frame: as many lines as rows, each exactly as wide as the canvas however
// the terminal counts, and no control byte but those of our own SGR sequences.
func requireTidy(t require.TestingT, c *Canvas) {
	lines := c.Lines()
	require.Len(t, lines, c.h)
	for _, line := range lines {
		require.Equal(t, c.w, ansi.StringWidth(line), "%q", line)
		require.Equal(t, c.w, ansi.StringWidthWc(line), "%q", line)
		requireOnlySGR(t, c.theme, line)
	}
	for _, line := range c.Plain() {
		require.LessOrEqual(t, ansi.StringWidth(line), c.w, "%q", line)
		requireOnlySGR(t, c.theme, line)
	}
}

func requireOnlySGR(t require.TestingT, theme *styles.Theme, line string) {
	require.True(t, utf8.ValidString(line), "%q", line)
	for i := 0; i < len(line); {
		r, n := utf8.DecodeRuneInString(line[i:])
		if r == 0x1b {
			end := strings.IndexByte(line[i:], 'm') + 1
			if end < 3 || line[i+1] != '[' || strings.Trim(line[i+2:i+end-1], "0123456789;") != "" {
				require.Fail(t, "a foreign sequence", "%q", line)
			}
			i += end
			continue
		}
		control := r < 0x20 || r >= 0x7f && r < 0xa0
		bidi := r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f || r == 0x061c
		if control || bidi || theme.ASCII && r >= 0x80 {
			require.Fail(t, "a rune that acts on the terminal, or is not ASCII where all must be", "%U in %q", r, line)
		}
		i += n
	}
}

// TestTextStaysInItsPlace draws texts anywhere and looks at all that lies outside their places.
func TestTextStaysInItsPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := NewCanvas(rapid.IntRange(0, 30).Draw(t, "w"), rapid.IntRange(0, 6).Draw(t, "h"), themes[rapid.IntRange(0, len(themes)-1).Draw(t, "theme")])
		for range rapid.IntRange(1, 8).Draw(t, "texts") {
			x, y, w := rapid.IntRange(-5, 35).Draw(t, "x"), rapid.IntRange(-2, 8).Draw(t, "y"), rapid.IntRange(-1, 40).Draw(t, "room")
			s, style := anyText(t), styles.Style(rapid.Uint16().Draw(t, "style"))
			before := append([]cell(nil), c.cells...)
			switch rapid.IntRange(0, 3).Draw(t, "how") {
			case 0:
				require.LessOrEqual(t, c.Text(x, y, w, s, style), c.room(x, w))
			case 1:
				c.TextRight(x, y, w, s, style)
			case 2:
				c.TextMiddle(x, y, w, s, style)
			case 3:
				c.Number(x, y, w, s, style)
			}
			place := Rect{x, y, c.room(x, w), 1}
			for i := range c.cells {
				if at := i % max(c.w, 1); !place.Contains(at, i/c.w) && c.cells[i] != before[i] {
					require.NotZero(t, before[i]&(wide|rest), "cell %d changed", i) // half a glyph whose other half was in the place
				}
			}
		}
		requireTidy(t, c)
	})
}

func TestTextIsWhole(t *testing.T) {
	c := NewCanvas(60, 1, styles.NewTheme(styles.NoColor, false))
	for _, tc := range []struct{ text, want string }{
		{"orders", "orders"},
		{"日本語", "日本語"},
		{"é", "é"},
		{"שלום", `\u{05e9}\u{05dc}\u{05d5}\u{05dd}`},
		{"\x1b[31mred", `\x1b[31mred`},
		{"a\nb\tc", `a\nb\tc`},
		{"x\u202ey", `x\u{202e}y`},
		{"\u009b", `\u{009b}`},
		{"\xff", `\xff`},
		{"🇩🇪", "🇩🇪"},
		{"👩‍🚀", `👩\u{200d}🚀`},
		{"́", `\u{0301}`},
	} {
		c.Reset(60, 1, c.theme)
		c.Text(0, 0, ToEdge, tc.text, styles.Plain)
		require.Equal(t, tc.want, c.Plain()[0])
		require.Equal(t, ansi.StringWidth(tc.want), c.Width(tc.text))
	}
}

// TestRightToLeft: no rune gets to the terminal that it might order anew, of any script that is written from the right.
func TestRightToLeft(t *testing.T) {
	c := NewCanvas(40, 1, styles.NewTheme(styles.NoColor, false))
	for _, script := range []string{
		"Hebrew", "Arabic", "Syriac", "Thaana", "Nko", "Samaritan", "Mandaic", "Adlam", "Mende_Kikakui", "Hanifi_Rohingya",
		"Phoenician", "Imperial_Aramaic", "Old_South_Arabian", "Avestan", "Old_Turkic", "Old_Hungarian", "Yezidi", "Sogdian",
	} {
		table := unicode.Scripts[script]
		require.NotNil(t, table, script)
		rangetable(table, func(r rune) {
			c.Reset(40, 1, c.theme)
			c.Text(0, 0, ToEdge, "a"+string(r)+" 12", styles.Plain)
			for _, shown := range c.Plain()[0] {
				require.Less(t, shown, rune(0x80), "%U of %s", r, script)
			}
		})
	}
}

// rangetable visits the runes of a table.
func rangetable(t *unicode.RangeTable, visit func(rune)) {
	for _, r := range t.R16 {
		for at := rune(r.Lo); at <= rune(r.Hi); at += rune(r.Stride) {
			visit(at)
		}
	}
	for _, r := range t.R32 {
		for at := rune(r.Lo); at <= rune(r.Hi); at += rune(r.Stride) {
			visit(at)
		}
	}
}

func TestTextInASCII(t *testing.T) {
	c := NewCanvas(40, 1, styles.NewTheme(styles.NoColor, true))
	c.Text(0, 0, ToEdge, "⏎ r17 ⟶ r41… 日é", styles.Plain)
	require.Equal(t, `enter r17 -> r41~ \u{65e5}\u{00e9}`, c.Plain()[0])
}

func TestCutting(t *testing.T) {
	c := NewCanvas(80, 1, styles.NewTheme(styles.NoColor, false))
	draw := func(f func()) string {
		c.Reset(80, 1, c.theme)
		f()
		return c.Plain()[0]
	}
	require.Equal(t, "ord…", draw(func() { c.Text(0, 0, 4, "orders", 0) }))
	require.Equal(t, "…", draw(func() { c.Text(0, 0, 1, "orders", 0) }))
	require.Equal(t, "", draw(func() { c.Text(0, 0, 0, "orders", 0) }))
	require.Equal(t, "日 …", draw(func() { c.Text(0, 0, 4, "日本語", 0) }))
	require.Equal(t, "n-eu…-17", draw(func() { c.TextMiddle(0, 0, 8, "n-eu-west-1-17", 0) }))
	require.Equal(t, "orders", draw(func() { c.TextMiddle(0, 0, 6, "orders", 0) }))
	require.Equal(t, "   …", draw(func() { c.Number(0, 0, 4, "12,004", 0) }))
	require.Equal(t, "  12,004", draw(func() { c.Number(0, 0, 8, "12,004", 0) }))
}

// Two texts that would become one grapheme where they meet keep their columns.
func TestNeighboursDoNotJoin(t *testing.T) {
	for _, theme := range []*styles.Theme{themes[2], themes[4]} {
		c := NewCanvas(12, 1, theme)
		for _, a := range nasty {
			for _, b := range nasty {
				c.Reset(12, 1, theme)
				n := c.Text(0, 0, 6, a, styles.OK)
				c.Text(n, 0, 6, b, styles.OK)
				requireTidy(t, c)
			}
		}
	}
}

func TestSameCellsSameBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		theme := themes[rapid.IntRange(0, len(themes)-1).Draw(t, "theme")]
		texts := rapid.SliceOfN(rapid.Custom(anyText), 1, 6).Draw(t, "texts")
		draw := func(c *Canvas) string {
			c.Reset(30, 3, theme)
			for i, s := range texts {
				c.Text(i*5, i%3, 7, s, styles.Heat(i).Bold())
			}
			return c.String()
		}
		used := NewCanvas(30, 3, theme)
		for _, s := range nasty {
			used.Text(0, 0, ToEdge, s, styles.Bad)
		}
		used.Lines()
		want := draw(NewCanvas(1, 1, theme))
		require.Equal(t, want, draw(used), "a canvas that was used before")
		require.Equal(t, want, draw(used), "the same again")
	})
}

func TestUnchangedRowsAreTheSameString(t *testing.T) {
	c := benchCanvas(t, 80, 24)
	first, whole := append([]string(nil), c.Lines()...), c.String()
	c.Reset(80, 24, c.theme)
	drawBench(c, 1, 0)
	c.Put(3, 7, 'x', styles.Bad)
	second := c.Lines()
	for y := range second {
		require.Equal(t, y != 7, first[y] == second[y], "row %d", y)
	}
	require.NotEqual(t, whole, c.String())
}

func TestGraphemeTableIsBounded(t *testing.T) {
	c := NewCanvas(10, 1, themes[0])
	for r := rune(0x4e00); r < 0x4e00+2*maxGraphemes; r++ {
		c.Reset(10, 1, themes[0])
		c.Text(0, 0, ToEdge, string(r), styles.Plain)
		require.LessOrEqual(t, len(c.graphemes.index), maxGraphemes+1)
	}
	require.Equal(t, ansi.StringWidth(c.Lines()[0]), 10)
}

func TestWideCellsBreakCleanly(t *testing.T) {
	c := NewCanvas(6, 1, themes[3])
	c.Text(0, 0, ToEdge, "日本語", styles.Plain)
	c.Put(1, 0, 'x', styles.Plain)
	require.Equal(t, " x本語", c.Plain()[0])
	c.Text(3, 0, 2, "木", styles.Plain)
	require.Equal(t, " x 木", c.Plain()[0])
	c.Text(-1, 0, 3, "日x", styles.Plain)
	requireTidy(t, c)
}

func FuzzText(f *testing.F) {
	for _, s := range nasty {
		f.Add(s, "b", 12, 3)
	}
	f.Fuzz(func(t *testing.T, a, b string, w, x int) {
		for _, theme := range themes {
			c := NewCanvas(20, 2, theme)
			n := c.Text(x%25, 0, w%25, a, styles.Warn)
			c.Text(x%25+n, 0, w%25, b, styles.Warn)
			c.TextMiddle(0, 1, w%25, a+b, styles.Plain)
			requireTidy(t, c)
		}
	})
}
