package component

import (
	"math"
	"time"

	"github.com/eastguard/eastguard/tui/styles"
)

// Timeline draws what happened when: a lane a node, a cell a short while, a letter an event. Cells begin at
// multiples of their length, so events move by whole cells and do not flicker.
type Timeline struct {
	Now   time.Time
	Cell  time.Duration // 3 s unless set
	Lanes []Lane
	Gap   []Sample // the lane of the waits, below the others; nil for none
	Name  int      // cells for the names, 4 unless set
	Note  int      // cells for the notes at the right
	Notes string   // the note of the gap lane: "p99 121 ms"
}

// Lane is one line.
type Lane struct {
	Name  string
	Marks []Mark // in any order; the last one in a cell is shown
	Note  string
	Style styles.Style
}

// Mark is an event on a lane.
type Mark struct {
	At     time.Time
	Letter rune
	Style  styles.Style
}

// Sample is a value at a moment.
type Sample struct {
	At    time.Time
	Value float64
}

// Draw draws as many lanes as there is room for, then the gap lane and the axis.
func (t Timeline) Draw(c *Canvas, r Rect) {
	below := 1
	if t.Gap != nil {
		below++
	}
	lanes, foot := r.CutBottom(min(below, r.H))
	for i, lane := range t.Lanes {
		row := lanes.Line(i)
		if row.Empty() {
			break
		}
		if more := len(t.Lanes) - i; i == lanes.H-1 && more > 1 {
			c.Text(row.X, row.Y, row.W, "… "+Count(more)+" more", styles.Dim)
			break
		}
		t.drawLane(c, row, lane)
	}
	y := 0
	if t.Gap != nil {
		t.drawGap(c, foot.Line(0))
		y++
	}
	t.drawAxis(c, foot.Line(y))
}

// parts splits a row into name, cells and note.
func (t Timeline) parts(row Rect) (name, cells, note Rect) {
	names := t.Name
	if names == 0 {
		names = 4
	}
	name, cells = row.CutLeft(names)
	if t.Note > 0 {
		cells, note = cells.CutRight(t.Note)
	}
	return name, cells, note
}

// cell is the length of a cell, a millisecond at least.
func (t Timeline) cell() time.Duration {
	if t.Cell <= 0 {
		return 3 * time.Second
	}
	return max(t.Cell, time.Millisecond)
}

// cellOf is the cell of a moment, counted from the left; the last one holds now.
func (t Timeline) cellOf(at time.Time, w int) (x int, ok bool) {
	cell := t.cell()
	ago := t.Now.Truncate(cell).Sub(at.Truncate(cell)) / cell
	if ago < 0 || ago >= time.Duration(w) {
		return 0, false
	}
	return w - 1 - int(ago), true
}

func (t Timeline) drawLane(c *Canvas, row Rect, lane Lane) {
	name, cells, note := t.parts(row)
	c.TextMiddle(name.X, name.Y, name.W-1, lane.Name, lane.Style)
	c.Fill(cells, c.Glyphs().Quiet, styles.Dim)
	for _, m := range lane.Marks {
		if x, ok := t.cellOf(m.At, cells.W); ok {
			c.Put(cells.X+x, cells.Y, m.Letter, m.Style)
		}
	}
	if !note.Empty() {
		c.Text(note.X+1, note.Y, note.W-1, lane.Note, styleOr(lane.Style, styles.Dim))
	}
}

// drawGap draws the longest wait of each cell.
func (t Timeline) drawGap(c *Canvas, row Rect) {
	if row.Empty() {
		return
	}
	name, cells, note := t.parts(row)
	c.Text(name.X, name.Y, name.W-1, "gap", styles.Head)
	c.Fill(cells, c.Glyphs().Quiet, styles.Dim)
	longest, most := make([]float64, cells.W), 0.0
	for _, s := range t.Gap {
		if x, ok := t.cellOf(s.At, cells.W); ok && !math.IsNaN(s.Value) {
			longest[x] = max(longest[x], s.Value)
			most = max(most, s.Value)
		}
	}
	for x, v := range longest {
		if v > 0 {
			sign, style := c.blockOf(v, most)
			c.Put(cells.X+x, cells.Y, sign, style)
		}
	}
	if !note.Empty() {
		c.Text(note.X+1, note.Y, note.W-1, t.Notes, styles.Plain)
	}
}

// drawAxis writes how long ago a few cells are.
func (t Timeline) drawAxis(c *Canvas, row Rect) {
	if row.Empty() {
		return
	}
	_, cells, _ := t.parts(row)
	const now = "now"
	if cells.W < len(now) {
		return
	}
	cell := t.cell()
	c.TextRight(cells.X, cells.Y, cells.W, now, styles.Head)
	step := t.step(cell, cells.W)
	free := cells.W - len(now) - 1
	for ago := step; ; ago += step {
		x, text := cells.W-1-int(ago/cell), "-"+Age(ago)
		if x < 0 {
			return
		}
		if x+len(text) <= free {
			c.Text(cells.X+x, cells.Y, len(text), text, styles.Head)
			free = x - 1
		}
	}
}

// step is a round time of at least twelve cells, and an eighth of the lane.
func (t Timeline) step(cell time.Duration, w int) time.Duration {
	least := max(12, w/8)
	for _, step := range []time.Duration{10 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute} {
		if step >= cell*time.Duration(least) {
			return step
		}
	}
	return cell * time.Duration(least)
}
