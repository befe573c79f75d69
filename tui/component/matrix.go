package component

import "github.com/eastguard/eastguard/tui/styles"

// Matrix shows what each of the rows says of each of the columns, with notes at the right: what every node believes
// of the others.
type Matrix struct {
	Columns []string
	Rows    []MatrixRow
	Notes   string // heading of the notes
	From    int    // first column shown, where not all fit
	Top     int    // first row shown
}

// MatrixRow is an observer.
type MatrixRow struct {
	Name      string
	Style     styles.Style
	Cells     []MatrixCell // one a column; those that are missing stay blank
	Note      string
	NoteStyle styles.Style
}

// MatrixCell is a sign and its look; the zero sign is a quiet dot.
type MatrixCell struct {
	Sign  rune
	Style styles.Style
}

// Draw draws the heading and as many rows as fit.
func (m Matrix) Draw(c *Canvas, r Rect) {
	if r.Empty() {
		return
	}
	names, notes := 0, c.Width(m.Notes)
	for _, row := range m.Rows {
		names, notes = max(names, c.Width(row.Name)), max(notes, c.Width(row.Note))
	}
	names = min(max(names, 3)+1, max(r.W/3, 1))
	notes = min(notes, max(r.W/2-names, 0))
	pitch := m.pitch(c, r.W-names-notes-1)
	shown := min(max((r.W-names-notes-1)/pitch, 0), max(len(m.Columns)-m.From, 0))
	noteX := r.X + names + shown*pitch + 1

	m.drawHead(c, Rect{r.X + names, r.Y, shown * pitch, 1}, pitch, shown)
	c.Text(noteX, r.Y, r.Right()-noteX, m.Notes, styles.Head)
	for i := range r.H - 1 {
		if m.Top+i >= len(m.Rows) || m.Top+i < 0 {
			break
		}
		row, y := m.Rows[m.Top+i], r.Y+1+i
		c.TextMiddle(r.X, y, names-1, row.Name, row.Style)
		for x := range shown {
			if col := m.From + x; col >= 0 && col < len(row.Cells) {
				c.drawMatrixCell(r.X+names+x*pitch, y, row.Cells[col])
			}
		}
		c.Text(noteX, y, r.Right()-noteX, row.Note, row.NoteStyle)
	}
}

func (c *Canvas) drawMatrixCell(x, y int, cell MatrixCell) {
	if cell.Sign == 0 {
		cell = MatrixCell{c.Glyphs().Quiet, styles.Dim}
	}
	c.Put(x, y, cell.Sign, cell.Style)
}

// pitch is the distance of two columns: enough for their names, less where there are many.
func (m Matrix) pitch(c *Canvas, w int) int {
	widest := 1
	for _, name := range m.Columns {
		widest = max(widest, c.Width(name))
	}
	fair := w / max(len(m.Columns), 1)
	return min(max(fair, 1), widest+3)
}

// drawHead writes the names of the columns; where they are too long for their columns, only each second, third…
func (m Matrix) drawHead(c *Canvas, r Rect, pitch, shown int) {
	next := 0
	for i := range shown {
		if m.From+i < 0 {
			continue
		}
		name := m.Columns[m.From+i]
		if x, w := i*pitch, c.Width(name); x >= next && x+w <= r.W+pitch {
			c.Text(r.X+x, r.Y, w, name, styles.Head)
			next = x + w + 1
		}
	}
}
