package component

import (
	"github.com/eastguard/eastguard/tui/styles"
)

// Row is a row of a table being drawn. Columns are named by their index in Table.Columns; a column that the width
// has no room for is not drawn.
type Row struct {
	c     *Canvas
	place Rect
	cols  columns
	faded bool
}

// Shows reports whether a column is there: a value that costs something need not be made for one that is not.
func (r *Row) Shows(col int) bool {
	_, w := r.cols.at(col)
	return w > 0
}

// Cell is the place of a column in this row, empty when it is not shown: for sparks and bars.
func (r *Row) Cell(col int) Rect {
	x, w := r.cols.at(col)
	return Rect{r.place.X + x, r.place.Y, w, min(w, 1)}
}

// Canvas is what to draw into a Cell with.
func (r *Row) Canvas() *Canvas { return r.c }

// Text writes text, its end left out where it is too long.
func (r *Row) Text(col int, s string, style styles.Style) {
	if at := r.Cell(col); at.W > 0 {
		r.c.Text(at.X, at.Y, at.W, s, style)
	}
}

// ID writes an id, its middle left out where it is too long.
func (r *Row) ID(col int, s string, style styles.Style) {
	if at := r.Cell(col); at.W > 0 {
		r.c.TextMiddle(at.X, at.Y, at.W, s, style)
	}
}

// Number writes a number to the right; it is never cut.
func (r *Row) Number(col int, s string, style styles.Style) {
	if at := r.Cell(col); at.W > 0 {
		r.c.Number(at.X, at.Y, at.W, s, style)
	}
}

// Sign writes one of our own signs.
func (r *Row) Sign(col int, sign rune, style styles.Style) {
	if at := r.Cell(col); at.W > 0 {
		r.c.Put(at.X, at.Y, sign, style)
	}
}

// Pen writes a cell piece by piece.
func (r *Row) Pen(col int) *Pen { return r.c.Pen(r.Cell(col)) }

// Fade shows the whole row as stale.
func (r *Row) Fade() { r.faded = true }

// columns are the places of a table's columns: offset and width, width 0 for one that is not shown.
type columns []struct{ x, w int }

func (cs columns) at(col int) (x, w int) {
	if col < 0 || col >= len(cs) {
		return 0, 0
	}
	return cs[col].x, cs[col].w
}

// hash tells layouts apart.
func (cs columns) hash(width int) uint64 {
	h := Mix(uint64(width))
	for _, col := range cs {
		h = Mix(h, uint64(col.x)<<32|uint64(col.w))
	}
	return h
}

// layout chooses the columns for a width: all that may be there, then without those of the highest priority number
// until the rest fits; what is left over goes to the columns that grow. A column is there with its least width or
// not at all, but for the last one, which gets whatever there is.
func (t *Table) layout(c *Canvas, width int, wideToo bool) columns {
	cs, gap := make(columns, len(t.Columns)), max(t.Gap, 1)
	total, shown := -gap, 0
	for i, col := range t.Columns {
		if !col.Wide || wideToo {
			cs[i].w = max(col.least(c), width*col.Share/100)
			total += cs[i].w + gap
			shown++
		}
	}
	for total > width && shown > 1 {
		drop := t.leastWanted(cs)
		total -= cs[drop].w + gap
		cs[drop].w = 0
		shown--
	}
	spare := t.widen(cs, width-total)
	if left := t.grow(cs, spare); shown > 1 {
		gap += min(max(left/(shown-1), 0), roomyGap)
	}
	x := 0
	for i := range cs {
		if cs[i].w > 0 {
			cs[i].x = x
			cs[i].w = max(min(cs[i].w, width-x), 0)
			x += cs[i].w + gap
		}
	}
	return cs
}

func (col Column) least(c *Canvas) int {
	least := col.Min
	if least == 0 {
		least = col.Width
	}
	if least == 0 {
		least = c.Width(col.Title)
	}
	return max(least, 1)
}

// leastWanted is the shown column that goes next: of those with the highest priority number the last.
func (t *Table) leastWanted(cs columns) int {
	drop, priority := 0, -1
	for i, col := range t.Columns {
		if cs[i].w > 0 && col.Priority >= priority {
			drop, priority = i, col.Priority
		}
	}
	return drop
}

// widen gives columns what they want, from the left, and returns what is left.
func (t *Table) widen(cs columns, spare int) int {
	for i, col := range t.Columns {
		if more := min(col.Width-cs[i].w, spare); cs[i].w > 0 && more > 0 {
			cs[i].w += more
			spare -= more
		}
	}
	return spare
}

// roomyGap is how many cells more there are between the columns of a table that would else be blank on its right.
const roomyGap = 3

// grow shares what is left among the columns that grow, and returns what none of them takes.
func (t *Table) grow(cs columns, spare int) int {
	growing := 0
	for i, col := range t.Columns {
		if col.Grow && cs[i].w > 0 {
			growing++
		}
	}
	for i, col := range t.Columns {
		if col.Grow && cs[i].w > 0 && spare > 0 {
			part := spare / growing
			cs[i].w += part
			spare -= part
			growing--
		}
	}
	return spare
}
