package component

import (
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/eastguard/eastguard/tui/styles"
)

// ToEdge as a width means up to the edge of the canvas.
const ToEdge = maxWidth

// Text draws s at most w cells wide and returns how many it took. What does not fit is left out, with an ellipsis
// in the last cell. Control bytes and the like are shown escaped.
func (c *Canvas) Text(x, y, w int, s string, style styles.Style) int {
	w = c.room(x, w)
	cells, more := c.cellsOf(s, style, w)
	if more {
		cells = c.shorten(cells, w, style)
	}
	c.blit(x, y, cells)
	return len(cells)
}

// TextRight draws s at the right end of w cells.
func (c *Canvas) TextRight(x, y, w int, s string, style styles.Style) {
	w = c.room(x, w)
	cells, more := c.cellsOf(s, style, w)
	if more {
		cells = c.shorten(cells, w, style)
	}
	c.blit(x+w-len(cells), y, cells)
}

// Number draws s at the right end of w cells, whole: where it does not fit there is only an ellipsis, for a number
// without its last digits is another number.
func (c *Canvas) Number(x, y, w int, s string, style styles.Style) {
	w = c.room(x, w)
	cells, more := c.cellsOf(s, style, w)
	if more {
		cells = c.shorten(cells[:0], w, style)
	}
	c.blit(x+w-len(cells), y, cells)
}

// maxID is how much of a text TextMiddle looks at, in cells: the end of a longer one does not tell things apart.
const maxID = 256

// TextMiddle draws s like Text, but leaves out its middle: the ends of ids tell them apart.
func (c *Canvas) TextMiddle(x, y, w int, s string, style styles.Style) int {
	w = c.room(x, w)
	cells, more := c.cellsOf(s, style, max(maxID, w))
	switch {
	case len(cells) <= w && !more:
	case w < 5:
		cells = c.shorten(cells, w, style)
	default:
		tail := cells[len(cells)-(w-1)/2:]
		if tail[0]&rest != 0 {
			tail = tail[1:]
		}
		cells = append(c.shorten(cells, w-len(tail), style), tail...) // the tail lies behind what is kept, so nothing is lost
	}
	c.blit(x, y, cells)
	return len(cells)
}

// Width is the number of cells that Text would take for s if it had room.
func (c *Canvas) Width(s string) int {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] >= 0x7f {
			cells, _ := c.cellsOf(s, styles.Plain, maxWidth)
			return len(cells)
		}
	}
	return len(s)
}

// Wrap breaks a text into lines of at most w cells: between its words, within one that is longer than a line. What
// follows is indented as the text is.
func (c *Canvas) Wrap(s string, w int) (lines []string) {
	indent := s[:len(s)-len(strings.TrimLeft(s, " "))]
	if len(indent)*2 > w {
		indent, s = "", strings.TrimLeft(s, " ")
	}
	for c.Width(s) > w {
		at := c.breakAt(s, len(indent), w)
		lines = append(lines, strings.TrimRight(s[:at], " "))
		s = indent + strings.TrimLeft(s[at:], " ")
		if len(s) == len(indent) {
			return lines
		}
	}
	return append(lines, s)
}

// breakAt is where the first line of a text ends, in bytes: behind the last word that fits whole, else behind what fits
// of the first, one grapheme at least.
func (c *Canvas) breakAt(s string, indent, w int) (at int) {
	word, used := 0, indent
	for at = indent; at < len(s); {
		n := graphemeLen(s[at:])
		if used += c.Width(s[at : at+n]); used > w && at > indent {
			break
		}
		at += n
		if s[at-1] == ' ' {
			word = at
		}
	}
	if at < len(s) && s[at] == ' ' || word <= indent {
		return at
	}
	return word
}

// room is how many cells there are at x, w at most.
func (c *Canvas) room(x, w int) int {
	return max(min(w, c.w-x), 0)
}

// cellsOf turns text into at most w cells; more says that not all fitted, and the last cell may be half a grapheme
// then, which shorten and blit mend. The cells are valid until the next call.
func (c *Canvas) cellsOf(s string, style styles.Style, w int) (cells []cell, more bool) {
	cells = c.scratch[:0]
	for i := 0; i < len(s) && !more; {
		b := s[i]
		switch next := i + 1; {
		case b >= 0x20 && b < 0x7f && (next == len(s) || s[next] < utf8.RuneSelf): // no mark follows
			cells = append(cells, glyph(rune(b), style))
			i = next
		case b < utf8.RuneSelf && (next == len(s) || s[next] < utf8.RuneSelf):
			cells = appendASCII(cells, spell(s[i:next]), style)
			i = next
		default:
			grapheme, _ := ansi.FirstGraphemeCluster(s[i:], ansi.GraphemeWidth)
			if len(grapheme) > maxLookahead {
				grapheme = grapheme[:maxLookahead]
			}
			cells = c.appendGrapheme(cells, grapheme, style)
			i += len(grapheme)
		}
		more = len(cells) > w
	}
	c.scratch = cells
	return cells[:min(len(cells), w)], more
}

// maxLookahead bounds what is taken for one grapheme, in bytes.
const maxLookahead = 256

// shorten puts an ellipsis behind what fits of cells.
func (c *Canvas) shorten(cells []cell, w int, style styles.Style) []cell {
	if w == 0 {
		return cells[:0]
	}
	cells = cells[:min(len(cells), w-1)]
	if n := len(cells); n > 0 && cells[n-1]&wide != 0 {
		cells[n-1] = glyph(0, style)
	}
	v, _ := c.sign(c.theme.Glyphs.Ellipsis, style)
	return append(cells, v)
}

// blit copies cells to the canvas, what lies outside it left out; a grapheme half outside becomes a blank.
func (c *Canvas) blit(x, y int, cells []cell) {
	if y < 0 || y >= c.h {
		return
	}
	if x < 0 {
		cells = cells[min(-x, len(cells)):]
		x = 0
	}
	cells = cells[:min(len(cells), max(c.w-x, 0))]
	at := y*c.w + x
	for i := 0; i < len(cells); i++ {
		switch v := cells[i]; {
		case v&wide != 0 && i+1 < len(cells):
			c.setWide(at+i, v)
			i++
		case v&(wide|rest) != 0:
			c.set(at+i, glyph(0, v.style()))
		default:
			c.set(at+i, v)
		}
	}
}
