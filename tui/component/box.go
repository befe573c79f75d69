package component

import "github.com/eastguard/eastguard/tui/styles"

// Box is a frame with a title at the left and a note at the right of its upper edge.
type Box struct {
	Title      string
	TitleStyle styles.Style // Title unless set
	Note       string
	NoteStyle  styles.Style // Dim unless set
	Frame      styles.Style // Dim unless set
	Focused    bool         // the frame of the panel that has the keys
}

// Draw draws the frame and returns what is inside, a blank column left and right excluded.
func (b Box) Draw(c *Canvas, r Rect) (inside Rect) {
	if r.W < 2 || r.H < 2 {
		return Rect{r.X, r.Y, 0, 0}
	}
	frame, g := styleOr(b.Frame, styles.Dim), c.Glyphs()
	if b.Focused {
		frame = styles.Accent
	}
	right, bottom := r.Right()-1, r.Bottom()-1
	for x := r.X + 1; x < right; x++ {
		c.Put(x, r.Y, g.Horizontal, frame)
		c.Put(x, bottom, g.Horizontal, frame)
	}
	for y := r.Y + 1; y < bottom; y++ {
		c.Put(r.X, y, g.Vertical, frame)
		c.Put(right, y, g.Vertical, frame)
	}
	c.Put(r.X, r.Y, g.TopLeft, frame)
	c.Put(right, r.Y, g.TopRight, frame)
	c.Put(r.X, bottom, g.BottomLeft, frame)
	c.Put(right, bottom, g.BottomRight, frame)
	b.drawTitles(c, r)
	return r.Inset(1, 1).Inset(1, 0)
}

// drawTitles writes into the upper edge: ┌─ Title ──── note ┐. The note is left out before the title is cut.
func (b Box) drawTitles(c *Canvas, r Rect) {
	room := r.W - 6 // corners, a dash, blanks around the title, a dash
	if room < 1 {
		return
	}
	used := 0
	if b.Title != "" {
		used = c.Text(r.X+3, r.Y, room, b.Title, styleOr(b.TitleStyle, styles.Title))
		c.Put(r.X+2, r.Y, ' ', styles.Plain)
		c.Put(r.X+3+used, r.Y, ' ', styles.Plain)
		used += 2
	}
	note := c.Width(b.Note)
	if note == 0 || used+note+2 > r.W-4 {
		return
	}
	x := r.Right() - 2 - note
	c.Put(x-1, r.Y, ' ', styles.Plain)
	c.Text(x, r.Y, note, b.Note, styleOr(b.NoteStyle, styles.Dim))
	c.Put(x+note, r.Y, ' ', styles.Plain)
}

func styleOr(s, other styles.Style) styles.Style {
	if s == styles.Plain {
		return other
	}
	return s
}
