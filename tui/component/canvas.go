package component

import (
	"github.com/eastguard/eastguard/tui/styles"
)

// Largest canvas: beyond it a terminal's size is taken for a mistake and clamped.
const (
	maxWidth  = 1000
	maxHeight = 500
)

// Canvas is a grid of cells with a theme. It belongs to one goroutine, and is used again for each frame: it keeps
// what it drew before, so that what did not change costs little.
type Canvas struct {
	w, h  int
	theme *styles.Theme
	cells []cell // w*h

	scratch   []cell
	graphemes graphemes
	lines     lineCache
	rows      rowCache
}

// NewCanvas makes an empty canvas.
func NewCanvas(w, h int, theme *styles.Theme) *Canvas {
	c := &Canvas{}
	c.Reset(w, h, theme)
	return c
}

// Reset empties the canvas for the next frame.
func (c *Canvas) Reset(w, h int, theme *styles.Theme) {
	w, h = min(max(w, 0), maxWidth), min(max(h, 0), maxHeight)
	if w != c.w || h != c.h || theme != c.theme {
		c.w, c.h, c.theme = w, h, theme
		c.cells = make([]cell, w*h)
		c.lines = lineCache{}
	} else {
		clear(c.cells)
	}
	if c.graphemes.full() {
		c.graphemes = graphemes{}
		c.lines = lineCache{}
		c.rows = rowCache{}
	}
	c.rows.nextFrame()
}

// Bounds is the whole canvas.
func (c *Canvas) Bounds() Rect { return Rect{0, 0, c.w, c.h} }

// Theme is what it is drawn with.
func (c *Canvas) Theme() *styles.Theme { return c.theme }

// Glyphs are the theme's signs.
func (c *Canvas) Glyphs() *styles.Glyphs { return &c.theme.Glyphs }

// Put draws one of our own signs, one cell wide. Names and values of users go through Text.
func (c *Canvas) Put(x, y int, r rune, s styles.Style) {
	if x < 0 || y < 0 || x >= c.w || y >= c.h {
		return
	}
	if v, ok := c.sign(r, s); ok {
		c.set(y*c.w+x, v)
	}
}

// Fill draws a sign into every cell of a rect.
func (c *Canvas) Fill(r Rect, sign rune, s styles.Style) {
	v, ok := c.sign(sign, s)
	if r = r.Intersect(c.Bounds()); !ok {
		return
	}
	for y := r.Y; y < r.Bottom(); y++ {
		for x := r.X; x < r.Right(); x++ {
			c.set(y*c.w+x, v)
		}
	}
}

// Restyle changes the look of what is drawn in a rect already.
func (c *Canvas) Restyle(r Rect, change func(styles.Style) styles.Style) {
	if r = r.Intersect(c.Bounds()); r.Empty() {
		return
	}
	for y := r.Y; y < r.Bottom(); y++ {
		row := c.cells[y*c.w+r.X : y*c.w+r.Right()]
		for i, cell := range row {
			row[i] = cell.styled(change(cell.style()))
		}
	}
}

// Fade shows a rect as stale.
func (c *Canvas) Fade(r Rect) { c.Restyle(r, styles.Style.Faded) }

// Select shows a rect as what is selected: in reverse video, without colours, which would be a patchwork there.
func (c *Canvas) Select(r Rect) { c.Restyle(r, styles.Style.Selected) }

// set writes one narrow cell; what is left of a wide one that it hits becomes a blank.
func (c *Canvas) set(i int, v cell) {
	old := c.cells[i]
	if old&(wide|rest) != 0 {
		c.breakWide(i, old)
	}
	c.cells[i] = v
}

func (c *Canvas) breakWide(i int, old cell) {
	if old&wide != 0 {
		c.cells[i+1] = glyph(0, old.style())
	}
	if old&rest != 0 {
		c.cells[i-1] = glyph(0, old.style())
	}
}

// setWide writes a cell of two columns, both of which are on the canvas and in one row.
func (c *Canvas) setWide(i int, v cell) {
	c.set(i, 0)
	c.set(i+1, 0)
	c.cells[i], c.cells[i+1] = v|wide, glyph(0, v.style())|rest
}
