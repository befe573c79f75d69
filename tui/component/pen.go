package component

import "github.com/eastguard/eastguard/tui/styles"

// Pen writes one line piece by piece, from the left; it stops at the end of its place.
//
//	c.Pen(r.Line(0)).Text("in ", styles.Dim).Right(10, "128.4 MB/s", styles.Plain).Skip(1).Rest(...)
type Pen struct {
	c      *Canvas
	x, y   int
	end    int
	start  int
	noLine bool
}

// Pen starts a line in the first row of a rect.
func (c *Canvas) Pen(r Rect) *Pen {
	return &Pen{c: c, x: r.X, y: r.Y, start: r.X, end: r.Right(), noLine: r.Empty()}
}

// Text writes s, as far as there is room.
func (p *Pen) Text(s string, style styles.Style) *Pen {
	if left := p.Left(); left > 0 {
		p.x += p.c.Text(p.x, p.y, left, s, style)
	}
	return p
}

// Field writes s into exactly w cells, from the left.
func (p *Pen) Field(w int, s string, style styles.Style) *Pen {
	if w = min(w, p.Left()); w > 0 {
		p.c.Text(p.x, p.y, w, s, style)
		p.x += w
	}
	return p
}

// Number writes s into exactly w cells, to the right. A number that does not fit is never cut.
func (p *Pen) Number(w int, s string, style styles.Style) *Pen {
	if w = min(w, p.Left()); w > 0 {
		p.c.Number(p.x, p.y, w, s, style)
		p.x += w
	}
	return p
}

// Sign writes one of our own signs.
func (p *Pen) Sign(r rune, style styles.Style) *Pen {
	if p.Left() > 0 {
		p.c.Put(p.x, p.y, r, style)
		p.x++
	}
	return p
}

// Skip leaves n cells as they are.
func (p *Pen) Skip(n int) *Pen {
	p.x = min(p.x+n, p.end)
	return p
}

// To goes to a column, counted from the start of the line; it never goes back.
func (p *Pen) To(column int) *Pen {
	p.x = min(max(p.x, p.start+column), p.end)
	return p
}

// AtRight writes s at the right end of what is left, if it fits there whole.
func (p *Pen) AtRight(s string, style styles.Style) *Pen {
	if w := p.c.Width(s); w <= p.Left() {
		p.c.Text(p.end-w, p.y, w, s, style)
		p.end -= w
	}
	return p
}

// Left is how many cells are left.
func (p *Pen) Left() int {
	if p.noLine {
		return 0
	}
	return max(p.end-p.x, 0)
}

// Rest is the place that is left: for a bar or a spark at the end of a line.
func (p *Pen) Rest() Rect { return Rect{p.x, p.y, p.Left(), min(p.Left(), 1)} }
