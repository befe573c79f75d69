package component

import "github.com/eastguard/eastguard/tui/styles"

// Dialog is a box over the middle of the screen: what is asked, the exact command, what to type. Long lines are
// wrapped; where there is not room for all, the lines of the text give way, never what stands below them.
type Dialog struct {
	Title string
	Note  string       // at the right of the title: "esc to close"
	Warn  string       // in its place, when there is something to be careful about: "protected context"
	Style styles.Style // of the frame and the title
	Lines []Line
	Foot  []Line // below the lines: the command, the question
	Input *Input // the last line, when something is to be typed
	Ask   string // before the input
}

// Line is a line of text with its style; Indent is in cells.
type Line struct {
	Text   string
	Style  styles.Style
	Indent int
}

// The widths of a dialog: what it has at least, so that it does not change with every word, and at most, for lines of
// text longer than that are hard to read.
const (
	leastDialog = 64
	mostDialog  = 100
)

// Draw draws the dialog over what is there and returns its place.
func (d Dialog) Draw(c *Canvas, screen Rect) Rect {
	width := d.width(c, screen.W-4)
	inner := width - 4
	text, foot := wrapLines(c, d.Lines, inner), wrapLines(c, d.Foot, inner)
	rows := len(text) + len(foot) + 2
	if len(text) > 0 && len(foot) > 0 {
		rows++
	}
	if d.Input != nil {
		rows += 2
	}
	place := screen.Center(width, rows)
	c.Fill(place, ' ', styles.Plain)
	box := Box{Title: d.Title, TitleStyle: d.Style, Note: d.Note, Frame: styleOr(d.Style, styles.Accent)}
	if d.Warn != "" {
		box.Note, box.NoteStyle = d.Warn, styles.Warn
	}
	inside := box.Draw(c, place)
	if d.Input != nil {
		var ask Rect
		inside, ask = inside.CutBottom(1)
		if !ask.Empty() {
			d.Input.Draw(c, ask, d.Ask, styles.Plain)
		}
		inside, _ = inside.CutBottom(1)
	}
	var below Rect
	inside, below = inside.CutBottom(len(foot))
	drawText(c, below, foot)
	if len(foot) > 0 && len(text) > 0 {
		inside, _ = inside.CutBottom(1)
	}
	if more := len(text) - inside.H; more > 0 && inside.H > 0 {
		text = append(text[:inside.H-1:inside.H-1], Line{Text: "… " + Count(more+1) + " more", Style: styles.Dim})
	}
	drawText(c, inside, text)
	return place
}

// width is that of the widest line, within reason.
func (d Dialog) width(c *Canvas, room int) int {
	widest := c.Width(d.Title) + max(c.Width(d.Note), c.Width(d.Warn)) + 6
	for _, lines := range [][]Line{d.Lines, d.Foot} {
		for _, l := range lines {
			widest = max(widest, l.Indent+c.Width(l.Text)+4)
		}
	}
	if d.Input != nil {
		widest = max(widest, c.Width(d.Ask)+30)
	}
	return max(min(max(widest, leastDialog), mostDialog, room), 0)
}

// wrapLines breaks what is too long for a width.
func wrapLines(c *Canvas, lines []Line, w int) (wrapped []Line) {
	for _, l := range lines {
		for _, part := range c.Wrap(l.Text, w-l.Indent) {
			wrapped = append(wrapped, Line{part, l.Style, l.Indent})
		}
	}
	return wrapped
}

func drawText(c *Canvas, r Rect, lines []Line) {
	for i, line := range lines {
		row := r.Line(i)
		if row.Empty() {
			return
		}
		_, row = row.CutLeft(line.Indent)
		c.Text(row.X, row.Y, row.W, line.Text, line.Style)
	}
}
