package component

import "github.com/eastguard/eastguard/tui/styles"

// HelpGroup is a heading of the help and the keys below it.
type HelpGroup struct {
	Title string
	Keys  []HelpKey
}

// HelpKey is a key, as a person would write it, and what it does.
type HelpKey struct{ Keys, Text string }

// Help is the list of keys in two columns, or in one where there is no room for two. No text of it is cut: what does
// not fit on the screen is scrolled to.
type Help struct {
	Title  string
	Note   string
	Groups []HelpGroup
	Top    int // the first line shown, see Last
}

// helpGap is between the two columns.
const helpGap = 3

// helpColumn is a column with the widths that it needs.
type helpColumn struct {
	lines      []helpLine
	keys, text int
}

// helpLine is a heading, a key, or a blank.
type helpLine struct {
	title string
	key   HelpKey
}

func (col helpColumn) width() int { return col.keys + col.text }

// Draw draws the help over the middle of the screen and returns its place.
func (h Help) Draw(c *Canvas, screen Rect) Rect {
	cols, rows := h.layout(c, screen)
	width := 4
	for i, col := range cols {
		width += col.width() + min(i, 1)*helpGap
	}
	place := screen.Center(width, rows+2)
	c.Fill(place, ' ', styles.Plain)
	inside := Box{Title: h.Title, Note: h.Note, Frame: styles.Accent}.Draw(c, place)
	top := min(max(h.Top, 0), max(rows-inside.H, 0))
	if rows > inside.H {
		text := " " + Count(top+1) + "-" + Count(top+inside.H) + " of " + Count(rows) + " "
		if w := c.Width(text); place.W > w+4 && inside.H > 0 {
			c.Text(place.Right()-2-w, place.Bottom()-1, w, text, styles.Dim)
		}
	}
	for _, col := range cols {
		var part Rect
		part, inside = inside.CutLeft(col.width() + helpGap)
		col.draw(c, part, top)
	}
	return place
}

// Last is the greatest Top that makes sense.
func (h Help) Last(c *Canvas, screen Rect) int {
	_, rows := h.layout(c, screen)
	return max(rows-max(screen.H-2, 0), 0)
}

// layout deals the groups into columns: two of about the same height where both have room, and a blank between groups
// where that costs nothing.
func (h Help) layout(c *Canvas, screen Rect) (cols []helpColumn, rows int) {
	for _, airy := range []bool{true, false} {
		left, right := h.split()
		cols = []helpColumn{newHelpColumn(c, left, airy), newHelpColumn(c, right, airy)}
		if cols[0].width()+helpGap+cols[1].width()+4 > screen.W {
			cols = []helpColumn{newHelpColumn(c, h.Groups, airy)}
		}
		rows = 0
		for _, col := range cols {
			rows = max(rows, len(col.lines))
		}
		if rows+2 <= screen.H {
			break
		}
	}
	return cols, rows
}

// split finds where to cut the groups so that the higher column is as low as can be.
func (h Help) split() (left, right []HelpGroup) {
	best, at := -1, 0
	for i := range len(h.Groups) + 1 {
		if most := max(helpHeight(h.Groups[:i]), helpHeight(h.Groups[i:])); best < 0 || most < best {
			best, at = most, i
		}
	}
	return h.Groups[:at], h.Groups[at:]
}

func helpHeight(groups []HelpGroup) (rows int) {
	for _, g := range groups {
		rows += len(g.Keys) + 1
	}
	return rows
}

func newHelpColumn(c *Canvas, groups []HelpGroup, airy bool) (col helpColumn) {
	for i, g := range groups {
		if airy && i > 0 {
			col.lines = append(col.lines, helpLine{})
		}
		col.lines = append(col.lines, helpLine{title: g.Title})
		for _, k := range g.Keys {
			col.lines = append(col.lines, helpLine{key: k})
			col.keys = max(col.keys, c.Width(k.Keys)+2)
			col.text = max(col.text, c.Width(k.Text))
		}
		col.text = max(col.text, c.Width(g.Title)-col.keys)
	}
	return col
}

func (col helpColumn) draw(c *Canvas, r Rect, top int) {
	for y := range r.H {
		if top+y >= len(col.lines) {
			return
		}
		l := col.lines[top+y]
		c.Pen(r.Line(y)).Text(l.title, styles.Head).Field(min(col.keys, r.W), l.key.Keys, styles.Key).Text(l.key.Text, styles.Plain)
	}
}
