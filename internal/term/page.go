package term

import (
	"bufio"
	"fmt"
	"reflect"
	"strings"
)

// Page is the human form of a describe command, written top-down. The first error sticks.
type Page struct {
	o   *Output
	w   *bufio.Writer
	err error
}

// Human is how sizes and times are to be shown.
func (p *Page) Human() Human { return p.o.Human }

// ASCII reports whether only ASCII glyphs may be drawn.
func (p *Page) ASCII() bool { return p.o.ASCII }

// Style colours text, or not.
func (p *Page) Style() Style { return p.o.Style }

// Width is the room on a line; DefaultWidth where nobody said.
func (p *Page) Width() int {
	if p.o.Width > 0 {
		return p.o.Width
	}
	return DefaultWidth
}

// Line prints one line. The caller escapes what came from outside.
func (p *Page) Line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

// Heading begins a section.
func (p *Page) Heading(text string) {
	p.Line("")
	p.Line("%s", p.o.Style.Bold(text))
}

// Fields prints name and value pairs, the values aligned. Values are escaped.
func (p *Page) Fields(pairs ...string) {
	width := 0
	for i := 0; i < len(pairs); i += 2 {
		width = max(width, Width(pairs[i]))
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		p.Line("%s", strings.TrimRight(Pad(pairs[i], width, false)+"  "+Escape(pairs[i+1]), " "))
	}
}

// Table prints rows as a table within the page.
func (p *Page) Table(rows any) {
	if p.err != nil {
		return
	}
	v := reflect.ValueOf(rows)
	var cols []column
	if cols, p.err = p.o.choose(columnsOf(v.Type().Elem())); p.err == nil {
		p.err = p.o.writeTable(p.w, cols, v)
	}
}
