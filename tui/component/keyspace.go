package component

import (
	"math/bits"

	"github.com/eastguard/eastguard/tui/styles"
)

// Keyspace draws the hash space as a line: a cell is a slice of it, the height of its glyph the write rate there.
// Slices are sorted by Start.
type Keyspace struct {
	Slices []Slice
	Most   float64 // the rate of a full block, 0 for the greatest of the slices
}

// Slice is a range on the bar.
type Slice struct {
	Start, End uint64 // from Start up to, not with, End; an End of 0 is the top of the space
	Rate       float64
	Name       string
	Sign       rune // at its start: '!' about to split, '~' about to be merged, 0 nothing
	Fresh      bool // new a moment ago: shown in reverse
}

// Note is a line of text below the place on the bar that it is about: ▲▲ r17 ⟶ r41 r42.
type Note struct {
	At    uint64
	Text  string
	Style styles.Style
}

// column is the cell of a place in a bar of w cells.
func column(hash uint64, w int) int {
	hi, _ := bits.Mul64(hash, uint64(max(w, 0)))
	return int(hi)
}

// end is the cell behind a slice.
func (s Slice) end(w int) int {
	if s.End == 0 {
		return w
	}
	return column(s.End, w)
}

// Dense reports whether a bar of w cells shows heat alone: there are too many ranges for boundaries.
func (k Keyspace) Dense(w int) bool { return len(k.Slices)*2 > w }

// Bar draws the bar over all rows of a rect. Where it is dense the number of ranges stands at its end.
func (k Keyspace) Bar(c *Canvas, r Rect) {
	if r.Empty() {
		return
	}
	most := k.most()
	if !k.Dense(r.W) {
		k.bar(c, r, most)
		return
	}
	count := " " + string('×') + Count(len(k.Slices))
	if w := c.Width(count); w*3 <= r.W {
		c.TextRight(r.X, r.Bottom()-1, r.W, count, styles.Dim)
		r.W -= w
	}
	k.heat(c, r, most)
}

func (k Keyspace) most() float64 {
	most := k.Most
	if most <= 0 {
		for _, s := range k.Slices {
			most = max(most, s.Rate)
		}
	}
	return most
}

// bar draws each slice with its boundary.
func (k Keyspace) bar(c *Canvas, r Rect, most float64) {
	g, foot := c.Glyphs(), r.Bottom()-1
	c.Fill(r.Line(r.H-1), g.Quiet, styles.Dim) // where no range is known
	for _, s := range k.Slices {
		from, to := column(s.Start, r.W), s.end(r.W)
		for x := from; x < to; x++ {
			c.tower(r, x, s.Rate, most, s.Fresh)
		}
		if s.Start != 0 && to-from > 1 {
			c.Fill(Rect{r.X + from, r.Y, 1, r.H}, g.Boundary, styles.Dim)
			from++
		}
		if s.Sign != 0 && from < to {
			c.Put(r.X+from, foot, s.Sign, styles.Warn)
		}
	}
}

// heat draws for each cell the hottest of its slices: its colour, and its height too, for colour is never alone.
func (k Keyspace) heat(c *Canvas, r Rect, most float64) {
	c.Fill(r.Line(r.H-1), c.Glyphs().Quiet, styles.Dim)
	drawn, hottest := -1, 0.0
	for _, s := range k.Slices {
		from, to := column(s.Start, r.W), max(s.end(r.W), column(s.Start, r.W)+1)
		for x := from; x < min(to, r.W); x++ {
			if x == drawn && s.Rate <= hottest {
				continue
			}
			drawn, hottest = x, s.Rate
			c.tower(r, x, s.Rate, most, false)
		}
	}
}

// tower draws a rate as a column of a rect, from its foot up, in the colour of its heat.
func (c *Canvas) tower(r Rect, x int, rate, most float64, reverse bool) {
	_, style := c.blockOf(rate, most)
	if reverse {
		style = style.Reverse()
	}
	ramp := c.theme.Glyphs.Ramp
	full := len(ramp) - 1
	step, _ := styles.Step(rate, most, full*r.H)
	for y := r.Bottom() - 1; y >= r.Y && step >= 0; y, step = y-1, step-full {
		c.Put(r.X+x, y, ramp[min(step+1, full)], style)
	}
}

// blockOf is the glyph and the heat of a rate.
func (c *Canvas) blockOf(rate, most float64) (rune, styles.Style) {
	level, ok := styles.Level(rate, most)
	if !ok {
		return c.theme.Glyphs.Ramp[1], styles.Dim
	}
	return c.theme.Glyphs.Ramp[level+1], styles.Heat(level)
}

// Names writes the names of the slices below their starts, those that fit.
func (k Keyspace) Names(c *Canvas, r Rect) {
	if r.Empty() {
		return
	}
	next := 0
	for _, s := range k.Slices {
		x, w := column(s.Start, r.W), c.Width(s.Name)
		if x < next || x+w > r.W {
			continue
		}
		style := styles.Plain
		if s.Fresh {
			style = styles.Info
		}
		c.Text(r.X+x, r.Y, w, s.Name, style)
		next = x + w + 1
	}
}

// Scale writes the ends of the key space and its quarters.
func (k Keyspace) Scale(c *Canvas, r Rect) {
	if r.Empty() {
		return
	}
	for i, name := range [...]string{"0x00", "0x40", "0x80", "0xc0"} {
		x := r.W * i / 4
		if r.W < 24 && i > 0 {
			return // there is no room for more
		}
		c.Text(r.X+x, r.Y, r.W-x, name, styles.Head)
	}
	if r.W >= 36 {
		c.TextRight(r.X, r.Y, r.W, "0xff", styles.Head)
	}
}

// DrawNote writes a note below the bar that is drawn in the same columns: at its place, further left where it would
// not fit.
func DrawNote(c *Canvas, r Rect, n Note) {
	if r.Empty() {
		return
	}
	w := min(c.Width(n.Text), r.W)
	x := min(column(n.At, r.W), r.W-w)
	c.Text(r.X+x, r.Y, r.W-x, n.Text, n.Style)
}
