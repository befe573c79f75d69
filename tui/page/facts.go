package page

import (
	"strings"

	"github.com/eastguard/eastguard/tui/component"
	"github.com/eastguard/eastguard/tui/styles"
)

// fact is a value with its name.
type fact struct {
	name, value string
	w           int // cells of the value, so that what follows keeps still; 0: as many as it has
	style       styles.Style
}

// facts writes a line of facts, so many blanks between them. One that there is no room for is left out whole, and what
// follows it too: half a number is another number.
func (d *drawing) facts(line component.Rect, gap int, list ...fact) {
	pen := d.c.Pen(line)
	for i, f := range list {
		value := max(f.w, d.c.Width(f.value))
		w := d.c.Width(f.name) + 1 + value
		if i > 0 {
			if w+gap > pen.Left() {
				return
			}
			pen.Skip(gap)
		}
		pen.Text(f.name+" ", styles.Dim)
		if f.w > 0 {
			pen.Number(value, f.value, f.style)
		} else {
			pen.Text(f.value, f.style)
		}
	}
}

// parts joins as many parts of a line as there is room for.
func (d *drawing) parts(w int, list ...string) string {
	text := list[0]
	for _, p := range list[1:] {
		next := text + "   " + p
		if d.c.Width(next) > w {
			break
		}
		text = next
	}
	return text
}

// hurt is a number that should be 0.
func (d *drawing) hurt(name string, n int) fact {
	f := fact{name: name, value: component.Count(n)}
	if n > 0 {
		f.style = styles.Warn.Bold()
	}
	return f
}

// padded is a value at the right end of so many cells, in a text that is right-aligned itself.
func padded(w int, value string) string {
	return strings.Repeat(" ", max(w-len(value), 0)) + value
}
