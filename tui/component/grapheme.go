package component

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/tui/styles"
)

// graphemes is the canvas's table of texts from outside that are not ASCII: a cell holds an index into it.
type graphemes struct {
	index map[string]cell // what to draw for a grapheme, without style; 0 when it must be spelled out
	text  []string
}

// maxGraphemes bounds the table; a fuller one is emptied before the next frame.
const maxGraphemes = 8192

func (g *graphemes) full() bool { return len(g.index) > maxGraphemes }

// cellOf is the cell of a grapheme, and ok false when it must be spelled out.
func (g *graphemes) cellOf(s string) (v cell, ok bool) {
	v, known := g.index[s]
	if !known {
		if w := steadyWidth(s); w > 0 {
			v = cell(len(g.text)) | wild
			if w == 2 {
				v |= wide
			}
			g.text = append(g.text, s)
		}
		if g.index == nil {
			g.index = make(map[string]cell)
		}
		g.index[s] = v
	}
	return v, v != 0
}

// maxGrapheme is the longest grapheme that is drawn as one, in bytes: a pile of marks on one letter would cover the
// lines around it.
const maxGrapheme = 32

// steadyWidth is the number of columns that a grapheme takes on every terminal, 1 or 2; 0 when terminals differ (they
// count per rune or per grapheme), when it acts on the terminal, when it would join with what stands beside it, or when
// it may move that.
func steadyWidth(s string) int {
	w := ansi.GraphemeWidth.StringWidth(s)
	switch {
	case w < 1 || w > 2 || len(s) > maxGrapheme:
	case w != ansi.WcWidth.StringWidth(s):
	case term.Escape(s) != s:
	case endsOpen(s):
	case strings.ContainsFunc(s, turns):
	case joins("a", s) || joins(s, "a"):
	default:
		return w
	}
	return 0
}

// endsOpen reports whether a grapheme waits for another rune: a joiner, or half a flag.
func endsOpen(s string) bool {
	last, n := utf8.DecodeLastRuneInString(s)
	half := n == len(s) && last >= 0x1f1e6 && last <= 0x1f1ff
	return last == 0x200d || half
}

// turns reports whether a rune is written from right to left. A terminal that orders text itself (VTE, Konsole and the
// ones of macOS do) takes the numbers and signs beside such a rune along, so that what stands in other columns changes
// places with it; and the marks that would hold it apart are what the same terminals leave out. So it is spelled. These
// are the blocks to which Unicode gives that direction, whether their runes are assigned yet or not (UAX #9, 3.2).
func turns(r rune) bool {
	switch {
	case r < 0x590:
		return false
	case r <= 0x8ff: // Hebrew, Arabic, Syriac, Thaana, N'Ko, Samaritan, Mandaic
	case r >= 0xfb1d && r <= 0xfdff, r >= 0xfe70 && r <= 0xfeff: // presentation forms
	case r >= 0x10800 && r <= 0x10fff, r >= 0x1e800 && r <= 0x1efff: // older and younger scripts
	default:
		return false
	}
	return true
}

// joins reports whether the end of a and the start of b would be one grapheme.
func joins(a, b string) bool {
	first, _ := ansi.FirstGraphemeCluster(a+b, ansi.GraphemeWidth)
	return len(first) > len(a)
}

// ours reports whether a rune is of the blocks that our signs come from: one column on every terminal, and never
// part of a grapheme of several runes.
func ours(r rune) bool {
	switch {
	case r >= 0x2500 && r < 0x25fd: // boxes, blocks, shapes
	case r >= 0x2010 && r <= 0x2027, r >= 0x2030 && r <= 0x205e: // dashes, dots, quotes
	case r >= 0x2190 && r <= 0x22ff: // arrows, operators
	case r >= 0x2070 && r <= 0x208e: // small numbers
	case r == 0x2713, r == 0x2716, r == 0x2717: // ticks and crosses
	case r >= 0x27f5 && r <= 0x27ff: // long arrows
	case r == 0x23ce, r == 0xb7, r == 0xd7, r == 0xb5, r == 0xb1: // return, dot, times, micro, plus or minus
	default:
		return false
	}
	return true
}

// sign is the cell of one of our own runes; ok is false for a rune that is none.
func (c *Canvas) sign(r rune, s styles.Style) (v cell, ok bool) {
	switch {
	case r == 0 || r >= 0x20 && r < 0x7f:
	case !ours(r):
		return glyph('?', s), true
	case c.theme.ASCII:
		spelled, ok := styles.ASCII(r)
		if !ok {
			spelled = "?"
		}
		r = rune(spelled[len(spelled)-1])
	}
	return glyph(r, s), true
}

// appendGrapheme appends the cells of one grapheme that is not plain ASCII.
func (c *Canvas) appendGrapheme(cells []cell, s string, style styles.Style) []cell {
	r, n := utf8.DecodeRuneInString(s)
	if n == len(s) && ours(r) {
		if !c.theme.ASCII {
			return append(cells, glyph(r, style))
		}
		if spelled, ok := styles.ASCII(r); ok {
			return appendASCII(cells, spelled, style)
		}
	}
	if c.theme.ASCII {
		return appendASCII(cells, spell(s), style)
	}
	if v, ok := c.graphemes.cellOf(s); ok {
		return appendWide(cells, v, style)
	}
	return c.appendRunes(cells, s, style)
}

// appendRunes spells a grapheme: the runes that stand alone safely as they are, the others as \u{…}.
func (c *Canvas) appendRunes(cells []cell, s string, style styles.Style) []cell {
	for len(s) > 0 {
		_, n := utf8.DecodeRuneInString(s)
		one := s[:n]
		s = s[n:]
		if n == 1 && one[0] >= 0x20 && one[0] < 0x7f {
			cells = append(cells, glyph(rune(one[0]), style))
		} else if v, ok := c.graphemes.cellOf(one); ok {
			cells = appendWide(cells, v, style)
		} else {
			cells = appendASCII(cells, spell(one), style)
		}
	}
	return cells
}

func appendWide(cells []cell, v cell, style styles.Style) []cell {
	cells = append(cells, v.styled(style))
	if v&wide != 0 {
		cells = append(cells, glyph(0, style)|rest)
	}
	return cells
}

func appendASCII(cells []cell, s string, style styles.Style) []cell {
	for i := range len(s) {
		cells = append(cells, glyph(rune(s[i]), style))
	}
	return cells
}

// spell writes every rune that is not ASCII in an escaped form.
func spell(s string) string {
	var b []byte
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r >= 0x20 && r < 0x7f:
			b = append(b, s[i])
		case r < utf8.RuneSelf || r == utf8.RuneError && n == 1 || term.Escape(s[i:i+n]) != s[i:i+n]:
			b = append(b, term.Escape(s[i:i+n])...)
		default:
			b = fmt.Appendf(b, `\u{%04x}`, r)
		}
		i += n
	}
	return string(b)
}
