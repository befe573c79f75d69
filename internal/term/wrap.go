package term

import "strings"

// Wrap breaks text at blanks into lines of at most width cells; a longer word has a line of its own.
func Wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && Width(line)+1+Width(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// Fold lays a text out for a screen of width cells. Lines that begin at the margin are prose, and the lines of a
// paragraph flow into each other; an indented line stays by itself, and what does not fit goes on below its last
// column of text. A text that fits as it is written stays so.
func Fold(text string, width int) string {
	if lines := strings.Split(text, "\n"); !tooWide(lines, width) {
		return text
	}
	var out, prose []string
	flush := func() {
		if len(prose) > 0 {
			out, prose = append(out, Wrap(strings.Join(prose, " "), width)...), nil
		}
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line != "" && line[0] != ' ' {
			prose = append(prose, line)
			continue
		}
		flush()
		out = append(out, foldLine(line, width)...)
	}
	flush()
	folded := strings.Join(out, "\n")
	if strings.HasSuffix(text, "\n") {
		folded += "\n"
	}
	return folded
}

func tooWide(lines []string, width int) bool {
	for _, line := range lines {
		if Width(line) > width {
			return true
		}
	}
	return false
}

// foldLine folds one indented line: its last column is what follows the last gap of two blanks or more.
func foldLine(line string, width int) []string {
	if Width(line) <= width {
		return []string{line}
	}
	start := strings.LastIndex(line, "  ") + len("  ")
	hang := Width(line[:start])
	if width-hang < minColumn {
		start = len(line) - len(strings.TrimLeft(line, " "))
		hang = start
	}
	lines := Wrap(line[start:], width-hang)
	for i, l := range lines {
		lead := strings.Repeat(" ", hang)
		if i == 0 {
			lead = line[:start]
		}
		lines[i] = lead + l
	}
	return lines
}
