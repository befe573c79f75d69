package term

import (
	"bufio"
	"reflect"
	"strings"
)

const (
	columnGap     = 2 // blanks between columns
	minColumn     = 8 // a column of text is not shrunk below this
	tableMinWidth = 20
)

// writeTable prints aligned columns with no trailing blanks. On a terminal that is too narrow, columns of text
// are shortened, widest first; numbers are never cut.
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
	widths := o.fit(cols, grid)
	for i, line := range grid {
		text := layout(line, cols, widths, o.ASCII)
		if i == 0 && !o.NoHeaders {
			text = o.Style.Bold(text)
		}
		if _, err := w.WriteString(text + "\n"); err != nil {
			return err
		}
	}
	return nil
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
	widths := make([]int, len(cols))
	for _, line := range grid {
		for i, cell := range line {
			widths[i] = max(widths[i], Width(cell))
		}
	}
	if o.Width < tableMinWidth {
		return widths
	}
	total := columnGap * (len(cols) - 1)
	for _, w := range widths {
		total += w
	}
	for total > o.Width {
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
