package component

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/eastguard/eastguard/tui/styles"
)

// lineCache holds the last frame that was read: its cells and the line made of each row.
type lineCache struct {
	cells []cell
	lines []string
	whole string // the lines as one text, empty when it must be made
	buf   []byte
}

// Lines is the frame: one string a row, each exactly as wide as the canvas. Rows that did not change since the
// last call give the same string again. The slice is the caller's until the next call.
func (c *Canvas) Lines() []string {
	l := &c.lines
	fresh := len(l.lines) != c.h
	if fresh {
		l.cells, l.lines = make([]cell, len(c.cells)), make([]string, c.h)
	}
	for y := range c.h {
		row, old := c.cells[y*c.w:(y+1)*c.w], l.cells[y*c.w:(y+1)*c.w]
		if !fresh && slices.Equal(row, old) {
			continue
		}
		copy(old, row)
		l.buf = c.appendLine(l.buf[:0], row)
		l.lines[y] = string(l.buf)
		l.whole = ""
	}
	return l.lines
}

// String is the frame as one text: what a program's view returns. A frame without a change is the same string.
func (c *Canvas) String() string {
	lines := c.Lines()
	if c.lines.whole == "" {
		c.lines.whole = strings.Join(lines, "\n")
	}
	return c.lines.whole
}

// appendLine writes one row: an SGR sequence where the style changes, and plain text at the end.
func (c *Canvas) appendLine(b []byte, row []cell) []byte {
	look := styles.Reset
	var style styles.Style
	var before cell
	for _, v := range row {
		if v&rest != 0 {
			continue
		}
		if s := v.style(); s != style {
			style = s
			if next := c.theme.SGR(s); next != look { // two styles may look the same here
				b, look = append(b, next...), next
			}
		}
		b = c.appendCell(b, before, v)
		before = v
	}
	if look != styles.Reset {
		b = append(b, styles.Reset...)
	}
	return b
}

// appendCell writes the text of one cell.
func (c *Canvas) appendCell(b []byte, before, v cell) []byte {
	switch r := v.low(); {
	case v&wild != 0:
		return c.appendWild(b, before, v)
	case r == 0:
		return append(b, ' ')
	case r < utf8.RuneSelf:
		return append(b, byte(r))
	default:
		return utf8.AppendRune(b, rune(r))
	}
}

// appendWild writes a cell with text from outside. Two texts drawn side by side can meet in graphemes that would
// become one; the second then gives way, for its columns would be lost.
func (c *Canvas) appendWild(b []byte, before, v cell) []byte {
	text := c.graphemes.text[v.low()]
	if before&wild != 0 && joins(c.graphemes.text[before.low()], text) {
		text = "?"
		if v&wide != 0 {
			text = "??"
		}
	}
	return append(b, text...)
}

// Plain is the frame without styles, blanks at the ends of rows cut: what a saved screen and a test file hold.
func (c *Canvas) Plain() []string {
	lines := make([]string, c.h)
	for y := range c.h {
		var b []byte
		var before cell
		for _, v := range c.cells[y*c.w : (y+1)*c.w] {
			if v&rest != 0 {
				continue
			}
			b = c.appendCell(b, before, v)
			before = v
		}
		lines[y] = strings.TrimRight(string(b), " ")
	}
	return lines
}
