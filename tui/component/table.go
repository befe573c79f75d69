package component

import (
	"github.com/eastguard/eastguard/tui/styles"
)

// Table shows rows of which only the visible ones are ever asked for.
//
// A row keeps its cells in the canvas while its version, the columns and the theme stay the same; selection and
// marks are laid over it. A row that shows an age must mix what it shows into its version (Mix).
type Table struct {
	Name    string // tells the rows of this table apart from those of others with the same ids
	Columns []Column
	Len     int
	ID      func(i int) string
	Version func(i int) uint64 // nil, or 0 for a row: drawn anew each time
	Row     func(i int, row *Row)

	SortBy     string // title of a column
	Descending bool
	Empty      string // what to say where there are no rows, and why
	Gap        int    // cells between columns, 1 unless set; a few more where there is room that no column takes
}

// Column is a column of a table.
type Column struct {
	Title    string
	Width    int  // cells it wants
	Min      int  // cells it can do with, Width unless set; never less than its widest number
	Share    int  // percent of the table's width that it can do with, if that is more than Min
	Grow     bool // takes a part of the room that is left
	Right    bool // numbers: heading at the right
	Priority int  // 0 is always shown; the highest goes first where there is no room
	Wide     bool // only in the wide layout
	Bare     bool // keeps its look in a selected row: a bar in reverse is another bar
}

// TableState is how a table is looked at. It is a value; the methods of Table return the next one.
type TableState struct {
	Selected string // id of the selected row: it stays with the row wherever that moves; empty for none so far
	At       int    // where the row was last, and what is selected when the row is gone
	Top      int    // first visible row
	Focused  bool
	Wide     bool
	Marked   func(id string) bool // may be nil
}

// TableView is what was drawn, for the mouse and the paging keys.
type TableView struct {
	Rows    Rect // where the rows are
	Top     int  // index of the first
	Visible int  // how many
}

// RowAt is the index of the row at a line of the screen.
func (v TableView) RowAt(y int) (i int, ok bool) {
	i = y - v.Rows.Y
	return i + v.Top, i >= 0 && i < v.Visible
}

// Page is how many rows a page has when the table is drawn h cells high.
func (t *Table) Page(h int) int {
	rows := max(h-1, 0) // below the heading
	if t.Len > rows {
		rows = max(rows-1, 0) // the last line says how many more there are
	}
	return rows
}

// Resolve finds the selected row again and brings it into sight. A table with rows always has a selected one.
func (t *Table) Resolve(s TableState, h int) TableState {
	if t.Len == 0 {
		return TableState{Focused: s.Focused, Wide: s.Wide, Marked: s.Marked}
	}
	s.At = t.find(s)
	s.Selected = t.ID(s.At)
	page := max(t.Page(h), 1)
	s.Top = min(max(s.Top, s.At-page+1, 0), s.At, max(t.Len-page, 0))
	return s
}

// find looks for the selected row, first where it was.
func (t *Table) find(s TableState) int {
	at := min(max(s.At, 0), t.Len-1)
	if s.Selected == "" || t.ID(at) == s.Selected {
		return at
	}
	for i := range t.Len {
		if t.ID(i) == s.Selected {
			return i
		}
	}
	return at
}

// Move selects the row delta further down.
func (t *Table) Move(s TableState, delta, h int) TableState {
	s = t.Resolve(s, h)
	return t.Select(s, s.At+delta, h)
}

// Select selects the row at an index, the nearest there is.
func (t *Table) Select(s TableState, i, h int) TableState {
	if t.Len == 0 {
		return t.Resolve(s, h)
	}
	s.At = min(max(i, 0), t.Len-1)
	s.Selected = t.ID(s.At)
	return t.Resolve(s, h)
}

// Draw draws the heading and the rows.
func (t *Table) Draw(c *Canvas, r Rect, s TableState) TableView {
	head, body := r.CutTop(1)
	if head.Empty() {
		return TableView{Rows: body}
	}
	cols := t.layout(c, r.W, s.Wide)
	t.drawHead(c, head, cols)
	if t.Len == 0 {
		c.Text(body.X, body.Y, min(body.W, body.W*body.H), t.Empty, styles.Dim)
		return TableView{Rows: body}
	}
	chosen := s.Selected != "" // by somebody, not the first row for want of another
	s = t.Resolve(s, r.H)
	if !s.Focused && !chosen {
		s.Selected = ""
	}
	view := TableView{Rows: body, Top: s.Top, Visible: min(t.Page(r.H), t.Len-s.Top)}
	row := Row{c: c, cols: cols}
	layout := cols.hash(r.W)
	for n := range view.Visible {
		row.place = body.Line(n)
		t.drawRow(&row, s, s.Top+n, layout)
	}
	if more := t.Len - s.Top - view.Visible; more > 0 && body.H > view.Visible {
		line := body.Line(view.Visible)
		c.Text(line.X, line.Y, line.W, "… "+Count(more)+" more", styles.Dim)
	}
	return view
}

func (t *Table) drawHead(c *Canvas, r Rect, cols columns) {
	for i, col := range t.Columns {
		x, w := cols.at(i)
		if w == 0 {
			continue
		}
		title, style := col.Title, styles.Head
		if t.SortBy != "" && col.Title == t.SortBy {
			style = styles.Head.Underline()
			if sign := t.sortSign(c); c.Width(title)+1 <= w {
				title += sign
			}
		}
		if col.Right {
			c.TextRight(r.X+x, r.Y, w, title, style)
		} else {
			c.Text(r.X+x, r.Y, w, title, style)
		}
	}
}

func (t *Table) sortSign(c *Canvas) string {
	if t.Descending {
		return string(c.Glyphs().Descend)
	}
	return string(c.Glyphs().Ascend)
}

func (t *Table) drawRow(row *Row, s TableState, i int, layout uint64) {
	id := t.ID(i)
	key := rowKey{table: t.Name, id: id, layout: layout, theme: row.c.theme.ID()}
	if t.Version != nil {
		key.version = t.Version(i)
	}
	c, r := row.c, row.place
	if cells := c.rows.find(key); key.version != 0 && cells != nil {
		c.blit(r.X, r.Y, cells)
	} else {
		row.faded = false
		t.Row(i, row)
		if row.faded {
			c.Fade(r)
		}
		if key.version != 0 {
			c.keepRow(key, r)
		}
	}
	if s.Marked != nil && s.Marked(id) {
		c.Restyle(r, func(s styles.Style) styles.Style { return s.Bold().Underline() })
	}
	switch {
	case s.Focused && i == s.At:
		t.selectRow(row)
	case id == s.Selected && s.Selected != "":
		c.Restyle(r, styles.Style.Underline)
	}
}

// selectRow shows a row as what is selected, but for its bars.
func (t *Table) selectRow(row *Row) {
	from, r := row.place.X, row.place
	for i, col := range t.Columns {
		if bar := row.Cell(i); col.Bare && bar.W > 0 {
			row.c.Select(Rect{from, r.Y, bar.X - from, 1})
			from = bar.Right()
		}
	}
	row.c.Select(Rect{from, r.Y, r.Right() - from, 1})
}

// keepRow remembers the cells of a row, if all of it is on the canvas.
func (c *Canvas) keepRow(key rowKey, r Rect) {
	if r.Intersect(c.Bounds()) == r {
		at := r.Y*c.w + r.X
		c.rows.keep(key, c.cells[at:at+r.W])
	}
}

// Mix folds values that a row shows into its version.
func Mix(version uint64, values ...uint64) uint64 {
	for _, v := range values {
		version = (version^v)*0x9e3779b97f4a7c15 + 1
		version ^= version >> 32
	}
	return max(version, 1)
}
