package term

import (
	"bufio"
	"reflect"
	"slices"
	"strings"
)

const (
	columnGap     = 2 // blanks between columns
	minColumn     = 8 // a column of text is not shrunk below this
	tableMinWidth = 20
)

// writeTable prints aligned columns with no trailing blanks. On a terminal that is too narrow, spare columns are left
// out, from the right, which an ellipsis behind the headings tells; then columns of text are shortened, widest first.
// A sentence that is shortened goes on below. Numbers are never cut.
func (o *Output) writeTable(w *bufio.Writer, cols []column, rows reflect.Value) error {
	grid := make([][]string, 0, rows.Len()+1)
	if !o.NoHeaders {
		head := make([]string, len(cols))
		for i, c := range cols {
			head[i] = c.heading
			if head[i] == "" {
				head[i] = strings.ToUpper(c.name)
			}
		}
		grid = append(grid, head)
	}
	for i := range rows.Len() {
		line := make([]string, len(cols))
		for j, c := range cols {
			line[j] = c.human(rows.Index(i), o.Human)
		}
		grid = append(grid, line)
	}
	before := len(cols)
	if o.Format != FormatWide && len(o.Columns) == 0 { // else somebody has asked for each of them
		cols, grid = o.spare(cols, grid)
	}
	widths := o.fit(cols, grid)
	for i, line := range grid {
		heading := i == 0 && !o.NoHeaders
		for _, part := range folded(line, cols, widths) {
			text := layout(part, cols, widths, o.ASCII)
			if heading && len(cols) < before {
				text += " " + Ellipsis(o.ASCII)
			}
			if heading {
				text = o.Style.Bold(text)
			}
			if _, err := w.WriteString(text + "\n"); err != nil {
				return err
			}
		}
	}
	return nil
}

// spare leaves out spare columns, the last one first, until the line fits with the ellipsis that tells of it.
func (o *Output) spare(cols []column, grid [][]string) ([]column, [][]string) {
	room := o.Width
	for o.Width >= tableMinWidth && lineWidth(natural(cols, grid)) > room {
		room = o.Width - len(" ...")
		last := -1
		for i, c := range cols {
			if c.spare {
				last = i
			}
		}
		if last < 0 {
			break
		}
		cols = slices.Delete(slices.Clone(cols), last, last+1)
		for i, line := range grid {
			grid[i] = slices.Delete(line, last, last+1)
		}
	}
	return cols, grid
}

// natural is how wide each column wants to be.
func natural(cols []column, grid [][]string) []int {
	widths := make([]int, len(cols))
	for _, line := range grid {
		for i, cell := range line {
			widths[i] = max(widths[i], Width(cell))
		}
	}
	return widths
}

func lineWidth(widths []int) int {
	total := columnGap * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	return total
}

// folded is a row as the lines that it takes: more than one where a column of sentences has less room than it wants.
func folded(line []string, cols []column, widths []int) [][]string {
	rows := [][]string{slices.Clone(line)}
	for i, cell := range line {
		if !cols[i].fold || Width(cell) <= widths[i] {
			continue
		}
		for at, part := range Wrap(cell, widths[i]) {
			if at == len(rows) {
				rows = append(rows, make([]string, len(line)))
			}
			rows[at][i] = part
		}
	}
	return rows
}

func layout(line []string, cols []column, widths []int, ascii bool) string {
	cells := make([]string, len(line))
	for i, cell := range line {
		cells[i] = Pad(Truncate(cell, widths[i], ascii), widths[i], cols[i].right)
	}
	return strings.TrimRight(strings.Join(cells, strings.Repeat(" ", columnGap)), " ")
}

// fit gives each column its natural width, then takes from the widest text column until the line fits.
func (o *Output) fit(cols []column, grid [][]string) []int {
	widths := natural(cols, grid)
	if o.Width < tableMinWidth {
		return widths
	}
	for total := lineWidth(widths); total > o.Width; {
		widest := -1
		for i, w := range widths {
			if !cols[i].right && w > minColumn && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
		total--
	}
	return widths
}
