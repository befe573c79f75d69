package script

import "strings"

// Partial is a line that is still being typed, up to the cursor: what completion and hints work on.
type Partial struct {
	Words  []string // finished words of the last command
	Last   string   // the word being typed, without quotes; empty behind a blank
	Quote  byte     // the quote that is open in it, or 0
	Meta   bool     // the command begins with a colon, which Words[0] or Last has lost
	Target bool     // Last is the file of a redirect

	Comment bool // it is a comment: nothing to complete
}

// ParsePartial reads the last command of text. It never fails: what is wrong is found when the line is run.
func ParsePartial(text string) Partial {
	var p Partial
	var b strings.Builder
	inWord := false
	finish := func() {
		if inWord {
			p.Words = append(p.Words, b.String())
		}
		b.Reset()
		inWord = false
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case p.Quote == '\'':
			if c == '\'' {
				p.Quote = 0
			} else {
				b.WriteByte(c)
			}
		case p.Quote == '"' && c == '\\':
			part, n, err := Unescape(text[i:])
			if err == nil {
				b.WriteString(part)
				i += n - 1
			}
		case p.Quote == '"':
			if c == '"' {
				p.Quote = 0
			} else {
				b.WriteByte(c)
			}
		case c == '#' && len(p.Words) == 0 && !inWord && !p.Target:
			n := strings.IndexByte(text[i:], '\n')
			if n < 0 {
				return Partial{Comment: true}
			}
			i += n
		case c == '\'' || c == '"':
			p.Quote, inWord = c, true
		case c == ';' || c == '\n':
			b.Reset()
			inWord = false
			p = Partial{}
		case c == '>':
			finish()
			p.Target = true
		case isBlank(c):
			finish()
		default:
			inWord = true
			b.WriteByte(c)
		}
	}
	p.Last = b.String()
	p.trimFront()
	return p
}

// trimFront takes the repeat count and the colon off.
func (p *Partial) trimFront() {
	if len(p.Words) > 0 && isDigits(p.Words[0]) {
		p.Words = p.Words[1:]
	}
	first := &p.Last
	if len(p.Words) > 0 {
		first = &p.Words[0]
	}
	if rest, ok := strings.CutPrefix(*first, ":"); ok {
		p.Meta, *first = true, rest
	}
}
