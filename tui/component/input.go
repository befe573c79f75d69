package component

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/eastguard/eastguard/tui/styles"
)

// Input is one line of text being typed. It is a value: each edit returns the next one.
type Input struct {
	Text string
	At   int // the cursor, in bytes of Text, between two graphemes
}

// maxInput bounds what can be typed or pasted, in bytes.
const maxInput = 4096

// NewInput is a line with the cursor at its end.
func NewInput(text string) Input { return Input{text, len(text)} }

// Insert puts typed or pasted text at the cursor; newlines and tabs become blanks, other control bytes are left out.
func (in Input) Insert(s string) Input {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r == utf8.RuneError || unicode.IsControl(r):
			return -1
		}
		return r
	}, s)
	if len(in.Text)+len(s) > maxInput {
		return in
	}
	at := in.at()
	return Input{in.Text[:at] + s + in.Text[at:], at + len(s)}
}

// at is the cursor, kept inside the text and between two graphemes.
func (in Input) at() int {
	at := 0
	for at < min(in.At, len(in.Text)) {
		next := at + graphemeLen(in.Text[at:])
		if next > in.At {
			break
		}
		at = next
	}
	return at
}

// Left moves one grapheme back.
func (in Input) Left() Input { return Input{in.Text, in.before()} }

// Right moves one grapheme on.
func (in Input) Right() Input { return Input{in.Text, in.after()} }

// Home goes to the start.
func (in Input) Home() Input { return Input{in.Text, 0} }

// End goes to the end.
func (in Input) End() Input { return NewInput(in.Text) }

// Backspace removes the grapheme before the cursor.
func (in Input) Backspace() Input {
	before, at := in.before(), in.at()
	return Input{in.Text[:before] + in.Text[at:], before}
}

// Delete removes the grapheme after the cursor.
func (in Input) Delete() Input {
	at := in.at()
	return Input{in.Text[:at] + in.Text[in.after():], at}
}

// DeleteWord removes the word before the cursor.
func (in Input) DeleteWord() Input {
	at := in.at()
	head := strings.TrimRight(in.Text[:at], " ")
	head = head[:strings.LastIndexByte(head, ' ')+1]
	return Input{head + in.Text[at:], len(head)}
}

// DeleteToStart removes all before the cursor.
func (in Input) DeleteToStart() Input { return Input{in.Text[in.at():], 0} }

// DeleteToEnd removes all behind the cursor.
func (in Input) DeleteToEnd() Input { return NewInput(in.Text[:in.at()]) }

// before is the start of the grapheme that ends at the cursor.
func (in Input) before() int {
	start, at := 0, in.at()
	for i := 0; i < at; {
		start = i
		i += graphemeLen(in.Text[i:])
	}
	return start
}

// after is the end of the grapheme that starts at the cursor.
func (in Input) after() int {
	at := in.at()
	return at + graphemeLen(in.Text[at:])
}

func graphemeLen(s string) int {
	if s == "" {
		return 0
	}
	first, _ := ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
	return max(len(first), 1)
}

// Draw draws the line in the first row of a rect, with the cursor as a cell in reverse; a long one is scrolled so
// that the cursor stays in sight.
func (in Input) Draw(c *Canvas, r Rect, prompt string, style styles.Style) {
	p := c.Pen(r).Text(prompt, styles.Key)
	room := p.Left() - 1 // the cursor behind the last letter
	if room < 1 {
		return
	}
	start, at := 0, in.at()
	for start < at && c.Width(in.Text[start:at]) > room {
		start += graphemeLen(in.Text[start:])
	}
	p.Text(in.Text[start:at], style)
	after := in.after()
	if at == after {
		p.Sign(' ', style.Reverse())
		return
	}
	p.Text(in.Text[at:after], style.Reverse()).Text(in.Text[after:], style)
}
