package script

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxRepeat bounds "N command".
const MaxRepeat = 1_000_000

// ErrUnfinished says that the text ends inside a quote.
var ErrUnfinished = errors.New("a quote is not closed")

// SyntaxError is text that is no line, and where.
type SyntaxError struct {
	Line int // from 1
	Msg  string
}

// Error names the line.
func (e *SyntaxError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Msg) }

// Line is one command of a script.
type Line struct {
	Number int      // where it begins, from 1
	Text   string   // as written, for messages and history
	Repeat int      // how often to run it, at least 1
	Words  []string // never empty
	Meta   bool     // Words[0] is the name of a meta command, without its colon
	// Redirect is the file that takes the output, empty for none; Append adds to it.
	Redirect string
	Append   bool
}

// Parse reads a whole script. Empty lines and comments are left out.
func Parse(text string) ([]Line, error) {
	p := parser{text: text, line: 1}
	var lines []Line
	for p.pos < len(p.text) {
		l, ok, err := p.parseLine()
		if err != nil {
			return nil, err
		}
		if ok {
			lines = append(lines, l)
		}
	}
	return lines, nil
}

type parser struct {
	text string
	pos  int
	line int // number of the line that pos is on
}

// word is one word and whether any of it was quoted: a quoted ";" or "5" or ">" is only text.
type word struct {
	text   string
	quoted bool
}

func (p *parser) fail(format string, args ...any) error {
	return &SyntaxError{Line: p.line, Msg: fmt.Sprintf(format, args...)}
}

// parseLine reads up to and including the next separator.
func (p *parser) parseLine() (Line, bool, error) {
	p.skipBlanks()
	if p.pos < len(p.text) && p.text[p.pos] == '#' {
		p.skipComment()
		return Line{}, false, nil
	}
	start, number := p.pos, p.line
	var words []word
	l := Line{Number: number, Repeat: 1}
	for {
		p.skipBlanks()
		if p.pos == len(p.text) || p.separator() {
			break
		}
		if p.text[p.pos] == '>' {
			if err := p.redirect(&l); err != nil {
				return l, false, err
			}
			continue
		}
		w, err := p.word()
		if err != nil {
			return l, false, err
		}
		if l.Redirect != "" {
			return l, false, p.fail("%q stands behind the file that takes the output", w.text)
		}
		words = append(words, w)
	}
	l.Text = strings.TrimSpace(p.text[start:p.pos])
	p.skipSeparator()
	return p.finish(l, words)
}

// finish gives meaning to the first words.
func (p *parser) finish(l Line, words []word) (Line, bool, error) {
	fail := func(format string, args ...any) (Line, bool, error) {
		return l, false, &SyntaxError{Line: l.Number, Msg: fmt.Sprintf(format, args...)}
	}
	if len(words) == 0 {
		if l.Redirect != "" {
			return fail("there is no command before >")
		}
		return l, false, nil
	}
	if first := words[0]; len(words) > 1 && !first.quoted && isDigits(first.text) {
		n, err := strconv.Atoi(first.text)
		if err != nil || n < 1 || n > MaxRepeat {
			return fail("%s is not a number of repeats from 1 to %d", first.text, MaxRepeat)
		}
		l.Repeat, words = n, words[1:]
	}
	if name, ok := strings.CutPrefix(words[0].text, ":"); ok && !words[0].quoted {
		if l.Repeat > 1 {
			return fail("a : command cannot be repeated")
		}
		l.Meta, words[0].text = true, name
	}
	for _, w := range words {
		l.Words = append(l.Words, w.text)
	}
	return l, true, nil
}

func (p *parser) redirect(l *Line) error {
	if l.Redirect != "" {
		return p.fail("the output can go to one file only")
	}
	p.pos++
	if l.Append = p.pos < len(p.text) && p.text[p.pos] == '>'; l.Append {
		p.pos++
	}
	p.skipBlanks()
	if p.pos == len(p.text) || p.separator() || p.text[p.pos] == '>' {
		return p.fail("there is no file name behind >")
	}
	w, err := p.word()
	if err != nil {
		return err
	}
	if w.text == "" {
		return p.fail("the file name behind > is empty")
	}
	l.Redirect = w.text
	return nil
}

// word reads one word: bare text and quoted parts, joined.
func (p *parser) word() (word, error) {
	var b strings.Builder
	w := word{}
	for p.pos < len(p.text) {
		c := p.text[p.pos]
		switch {
		case c == '\'':
			w.quoted = true
			if err := p.raw(&b); err != nil {
				return w, err
			}
		case c == '"':
			w.quoted = true
			if err := p.escapes(&b); err != nil {
				return w, err
			}
		case c == '>' || isBlank(c) || p.separator():
			w.text = b.String()
			return w, nil
		default:
			b.WriteByte(c)
			p.pos++
		}
	}
	w.text = b.String()
	return w, nil
}

func (p *parser) raw(b *strings.Builder) error {
	end := strings.IndexByte(p.text[p.pos+1:], '\'')
	if end < 0 {
		return ErrUnfinished
	}
	part := p.text[p.pos+1 : p.pos+1+end]
	p.line += strings.Count(part, "\n")
	b.WriteString(part)
	p.pos += end + 2
	return nil
}

func (p *parser) escapes(b *strings.Builder) error {
	p.pos++
	for p.pos < len(p.text) {
		switch c := p.text[p.pos]; c {
		case '"':
			p.pos++
			return nil
		case '\\':
			text, n, err := Unescape(p.text[p.pos:])
			if errors.Is(err, ErrUnfinished) {
				return err
			}
			if err != nil {
				return p.fail("%v", err)
			}
			b.WriteString(text)
			p.pos += n
		default:
			if c == '\n' {
				p.line++
			}
			b.WriteByte(c)
			p.pos++
		}
	}
	return ErrUnfinished
}

// Unescape reads the escape that s begins with and returns its text and its length in s.
func Unescape(s string) (text string, n int, err error) {
	if len(s) < 2 {
		return "", 0, ErrUnfinished
	}
	switch s[1] {
	case 'n':
		return "\n", 2, nil
	case 't':
		return "\t", 2, nil
	case 'r':
		return "\r", 2, nil
	case '0':
		return "\x00", 2, nil
	case '\\', '"':
		return s[1:2], 2, nil
	case 'x':
		v, err := hexDigits(s, 2)
		return string([]byte{byte(v)}), 4, err
	case 'u':
		v, err := hexDigits(s, 4)
		return string(rune(v)), 6, err
	}
	_, size := utf8.DecodeRuneInString(s[1:])
	return "", 0, fmt.Errorf(`%q is not an escape; there are \n \t \r \\ \" \0 \xHH \uHHHH`, s[:1+size])
}

func hexDigits(s string, count int) (uint64, error) {
	if len(s) < 2+count {
		return 0, ErrUnfinished
	}
	v, err := strconv.ParseUint(s[2:2+count], 16, 32)
	if err != nil {
		return 0, fmt.Errorf(`%q needs %d hexadecimal digits`, s[:2], count)
	}
	return v, nil
}

func (p *parser) separator() bool { return p.text[p.pos] == '\n' || p.text[p.pos] == ';' }

func (p *parser) skipSeparator() {
	if p.pos < len(p.text) {
		if p.text[p.pos] == '\n' {
			p.line++
		}
		p.pos++
	}
}

func (p *parser) skipBlanks() {
	for p.pos < len(p.text) && isBlank(p.text[p.pos]) {
		p.pos++
	}
}

// skipComment goes to the end of the line, not to the next ";": a comment may hold one.
func (p *parser) skipComment() {
	end := strings.IndexByte(p.text[p.pos:], '\n')
	if end < 0 {
		p.pos = len(p.text)
		return
	}
	p.pos += end + 1
	p.line++
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// Quote writes s so that Parse reads it back as one plain word.
func Quote(s string) string {
	if s != "" && strings.IndexFunc(s, needsQuote) < 0 && s[0] != '#' && s[0] != ':' && !isDigits(s) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < 0x20 || c == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func needsQuote(r rune) bool {
	return r <= ' ' || r == 0x7f || strings.ContainsRune(`"';>\`, r)
}

// OneLine writes the command so that it has no newline in it and means the same.
func (l Line) OneLine() string {
	if !strings.Contains(l.Text, "\n") {
		return l.Text
	}
	var parts []string
	if l.Repeat > 1 {
		parts = append(parts, strconv.Itoa(l.Repeat))
	}
	for i, w := range l.Words {
		if i == 0 && l.Meta {
			parts = append(parts, ":"+w)
			continue
		}
		parts = append(parts, Quote(w))
	}
	if l.Redirect != "" {
		op := ">"
		if l.Append {
			op = ">>"
		}
		parts = append(parts, op, Quote(l.Redirect))
	}
	return strings.Join(parts, " ")
}
