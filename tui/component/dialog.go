package component

import "github.com/eastguard/eastguard/tui/styles"

// Dialog is a box over the middle of the screen: what is asked, the exact command, what to type.
type Dialog struct {
	Title string
	Note  string // at the right of the title: "protected context"
	Style styles.Style
	Lines []Line
	Input *Input // the last line, when something is to be typed
	Ask   string // before the input
	Width int    // 64 unless set
}

// Line is a line of text with its style; Indent is in cells.
type Line struct {
	Text   string
	Style  styles.Style
	Indent int
}

// Draw draws the dialog over what is there and returns its place.
func (d Dialog) Draw(c *Canvas, screen Rect) Rect {
	width := d.Width
	if width == 0 {
		width = 64
	}
	rows := len(d.Lines) + 2
	if d.Input != nil {
		rows += 2
	}
	place := screen.Center(width, rows)
	c.Fill(place, ' ', styles.Plain)
	inside := Box{Title: d.Title, TitleStyle: d.Style, Note: d.Note, NoteStyle: styles.Warn, Frame: styleOr(d.Style, styles.Accent)}.Draw(c, place)
	text := inside
	if d.Input != nil {
		var ask Rect
		text, ask = inside.CutBottom(1)
		if !ask.Empty() {
			d.Input.Draw(c, ask, d.Ask, styles.Plain)
		}
	}
	for i, line := range d.Lines {
		row := text.Line(i)
		if row.Empty() {
			break
		}
		_, row = row.CutLeft(line.Indent)
		c.Text(row.X, row.Y, row.W, line.Text, line.Style)
	}
	return place
}

// HelpGroup is a heading of the help and the keys below it.
type HelpGroup struct {
	Title string
	Keys  []HelpKey
}

// HelpKey is a key, as a person would write it, and what it does.
type HelpKey struct{ Keys, Text string }

// Help is the list of keys in two columns.
type Help struct {
	Title  string
	Note   string
	Groups []HelpGroup
}

// Draw draws the help over the middle of the screen and returns its place.
func (h Help) Draw(c *Canvas, screen Rect) Rect {
	left, right, rows := h.split()
	place := screen.Center(72, rows+2)
	c.Fill(place, ' ', styles.Plain)
	inside := Box{Title: h.Title, Note: h.Note, Frame: styles.Accent}.Draw(c, place)
	a, b := inside.CutLeft(inside.W / 2)
	drawGroups(c, a, left)
	drawGroups(c, b, right)
	return place
}

// split deals the groups into two columns of about the same height.
func (h Help) split() (left, right []HelpGroup, rows int) {
	total := 0
	for _, g := range h.Groups {
		total += len(g.Keys) + 1
	}
	height := 0
	for i, g := range h.Groups {
		if height*2 >= total {
			return h.Groups[:i], h.Groups[i:], max(height, total-height)
		}
		height += len(g.Keys) + 1
	}
	return h.Groups, nil, height
}

func drawGroups(c *Canvas, r Rect, groups []HelpGroup) {
	const keys = 12
	y := 0
	for _, g := range groups {
		if line := r.Line(y); !line.Empty() {
			c.Text(line.X, line.Y, line.W, g.Title, styles.Head)
		}
		y++
		for _, k := range g.Keys {
			if line := r.Line(y); !line.Empty() {
				c.Pen(line).Field(keys, k.Keys, styles.Key).Text(k.Text, styles.Plain)
			}
			y++
		}
	}
}
