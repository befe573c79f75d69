package term

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"
)

// Records hold anything: escape sequences that repaint the screen, bidirectional overrides that make text read
// as something else, newlines that forge a second record. Escape makes all of it visible instead of effective.

// Escape returns s as one line of text that is safe to print on a terminal. Control bytes, C1 controls,
// bidirectional and other invisible format characters and bytes that are not UTF-8 appear as \n, \t, \r,
// \xHH or \u{HHHH}; everything else, emoji joiners included, stays as it is.
func Escape(s string) string {
	i := firstActing(s)
	if i < 0 {
		return s
	}
	b := make([]byte, 0, len(s)+len(s)/2+16)
	b = append(b, s[:i]...)
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			b = appendHex(b, s[i])
		case !actsOnTerminal(r):
			b = append(b, s[i:i+n]...)
		default:
			b = appendEscaped(b, r)
		}
		i += n
	}
	return string(b)
}

// EscapeLines is Escape for text that has lines of its own: newlines and tabs stay.
func EscapeLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		cells := strings.Split(line, "\t")
		for j, cell := range cells {
			cells[j] = Escape(cell)
		}
		lines[i] = strings.Join(cells, "\t")
	}
	return strings.Join(lines, "\n")
}

func appendEscaped(b []byte, r rune) []byte {
	switch r {
	case '\n':
		return append(b, '\\', 'n')
	case '\t':
		return append(b, '\\', 't')
	case '\r':
		return append(b, '\\', 'r')
	}
	if r < 0x80 {
		return appendHex(b, byte(r))
	}
	return fmt.Appendf(b, `\u{%04x}`, r)
}

func appendHex(b []byte, c byte) []byte {
	const digits = "0123456789abcdef"
	return append(b, '\\', 'x', digits[c>>4], digits[c&15])
}

func firstActing(s string) int {
	for i, r := range s {
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
				return i
			}
		}
		if actsOnTerminal(r) {
			return i
		}
	}
	return -1
}

// actsOnTerminal reports whether printing r could do something other than show a glyph. The zero-width joiner holds
// emoji together and stays; the other format characters (Cf) hide or reorder text.
func actsOnTerminal(r rune) bool {
	switch {
	case r < 0x20 || r == 0x7f:
		return true
	case r < 0x7f:
		return false
	case r > 0x9f && r < 0xad: // the first format character is the soft hyphen
		return false
	case r <= 0x9f, r == 0x2028, r == 0x2029:
		return true
	case r == 0x200d:
		return false
	}
	return unicode.Is(unicode.Cf, r)
}

// escapeJSON rewrites the runes of encoded JSON that would act on a terminal as \uXXXX. They can only stand
// inside strings, where the escape means the same, so the document is unchanged.
func escapeJSON(doc []byte) []byte {
	if !bytes.ContainsFunc(doc, actsInJSON) {
		return doc
	}
	var b bytes.Buffer
	b.Grow(len(doc) + 16)
	for _, r := range string(doc) {
		switch {
		case !actsInJSON(r):
			b.WriteRune(r)
		case r > 0xffff:
			hi, lo := surrogates(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, hi, lo)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.Bytes()
}

// The newlines and spaces of indented JSON are layout; inside strings encoding/json has escaped them already.
func actsInJSON(r rune) bool { return r != '\n' && actsOnTerminal(r) }

func surrogates(r rune) (hi, lo rune) {
	r -= 0x10000
	return 0xd800 + r>>10, 0xdc00 + r&0x3ff
}

// Width is the number of terminal cells s takes; s must be escaped already.
func Width(s string) int { return displaywidth.String(s) }

// Truncate cuts s to at most width cells, the last of them an ellipsis when something was cut. It never cuts
// inside a grapheme.
func Truncate(s string, width int, ascii bool) string {
	tail := Ellipsis(ascii)
	switch {
	case Width(s) <= width:
		return s
	case width < Width(tail):
		return displaywidth.TruncateString(s, max(width, 0), "")
	}
	return displaywidth.TruncateString(s, width, tail)
}

// Ellipsis stands for what was left out.
func Ellipsis(ascii bool) string {
	if ascii {
		return "..."
	}
	return "…"
}

// Pad fills s with blanks to width cells, on the left for numbers.
func Pad(s string, width int, right bool) string {
	gap := width - Width(s)
	if gap <= 0 {
		return s
	}
	if right {
		return strings.Repeat(" ", gap) + s
	}
	return s + strings.Repeat(" ", gap)
}
