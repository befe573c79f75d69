package main

import (
	"fmt"
	"html"
	"image/color"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
)

// Size of a cell, and the colours of a terminal with a dark ground.
const (
	cellWidth  = 8.43 // the advance of DejaVu Sans Mono and Menlo, for viewers that know no textLength
	cellHeight = 16
	margin     = 12
	ground     = "#16181d"
	ink        = "#d6d9de"
)

// palette are the sixteen colours as such a terminal has them; a user's own theme may differ.
var palette = [16]string{
	"#2b2f37", "#e5534b", "#57ab5a", "#d5a12b", "#539bf5", "#b083f0", "#39c5cf", "#c5c9d0",
	"#6f7683", "#ff7b72", "#7ee787", "#f2cc60", "#79c0ff", "#d2a8ff", "#56d4dd", "#ffffff",
}

// svg draws lines as a terminal shows them: words that look the same are one text element, each with its place and its
// length, so that all stays aligned in any font.
func svg(lines []string, width, height int) (string, error) {
	e, err := screen(lines, width, height)
	if err != nil {
		return "", err
	}
	defer e.Close()
	w, h := float64(width)*cellWidth+2*margin, height*cellHeight+2*margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" viewBox="0 0 %.0f %d" font-family="ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace" font-size="14">`+"\n", w, h, w, h)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="8" fill="%s"/>`+"\n", ground)
	for y := range height {
		drawRow(&b, e.CellAt, y, width)
	}
	b.WriteString("</svg>\n")
	return b.String(), nil
}

// stretch is neighbouring cells that look the same.
type stretch struct {
	x     int
	cells []string // what each holds; a wide one is a stretch of its own
	wide  int      // cells that it takes
	look  look
}

type look struct {
	fill, back string
	bold       bool
	underline  bool
}

func drawRow(b *strings.Builder, at func(x, y int) *uv.Cell, y, width int) {
	r := &stretch{}
	for x := 0; x < width; {
		c := at(x, y)
		text, cells, l := " ", 1, look{fill: ink}
		if c != nil {
			text, cells, l = c.Content, max(c.Width, 1), lookOf(c.Style)
			if text == "" {
				text = " "
			}
		}
		if l != r.look || cells > 1 {
			r.flush(b, y)
			r = &stretch{x: x, look: l}
		}
		r.cells = append(r.cells, text)
		r.wide += cells
		x += cells
		if cells > 1 {
			r.flush(b, y)
			r = &stretch{x: x, look: l}
		}
	}
	r.flush(b, y)
}

// flush writes the ground of a stretch, and its text in pieces: what stands behind a gap has a place of its own, so that
// it is where it belongs in a font of another width, too.
func (r *stretch) flush(b *strings.Builder, y int) {
	if r.wide == 0 {
		return
	}
	if r.look.back != "" {
		fmt.Fprintf(b, `<rect x="%.2f" y="%d" width="%.2f" height="%d" fill="%s"/>`+"\n", left(r.x), top(y), float64(r.wide)*cellWidth, cellHeight, r.look.back)
	}
	for from := 0; from < len(r.cells); {
		if r.cells[from] == " " {
			from++
			continue
		}
		to := from + 1
		for to < len(r.cells) && (r.cells[to] != " " || to+1 < len(r.cells) && r.cells[to+1] != " ") {
			to++
		}
		r.write(b, y, from, to)
		from = to
	}
}

// write writes some of the cells as one text.
func (r *stretch) write(b *strings.Builder, y, from, to int) {
	more := ""
	if r.look.bold {
		more += ` font-weight="bold"`
	}
	if r.look.underline {
		more += ` text-decoration="underline"`
	}
	cells := to - from
	if len(r.cells) == 1 {
		cells = r.wide
	}
	fmt.Fprintf(b, `<text x="%.2f" y="%d" textLength="%.2f" lengthAdjust="spacingAndGlyphs" xml:space="preserve" fill="%s"%s>%s</text>`+"\n",
		left(r.x+from), top(y)+cellHeight-3, float64(cells)*cellWidth, r.look.fill, more, html.EscapeString(strings.Join(r.cells[from:to], "")))
}

// left and top are where a cell begins.
func left(x int) float64 { return margin + float64(x)*cellWidth }

func top(y int) int { return margin + y*cellHeight }

func lookOf(s uv.Style) look {
	l := look{fill: hex(s.Fg, ink), back: hex(s.Bg, ""), bold: s.Attrs&uv.AttrBold != 0, underline: s.Underline != uv.UnderlineNone}
	if s.Attrs&uv.AttrReverse != 0 {
		back := l.back
		if back == "" {
			back = ground
		}
		l.fill, l.back = back, l.fill
	}
	return l
}

// hex is a colour as SVG has it.
func hex(c color.Color, none string) string {
	switch c := c.(type) {
	case nil:
		return none
	case ansi.BasicColor:
		return palette[c&15]
	case ansi.IndexedColor:
		if c < 16 {
			return palette[c]
		}
	}
	r, g, b, _ := c.RGBA()
	return fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)
}
