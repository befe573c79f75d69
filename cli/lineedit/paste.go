package lineedit

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// A terminal in bracketed-paste mode puts marks around what is pasted. Without them a paste of three commands
// would run the first two at once. The reader below takes the marks out: a paste of one line goes on as if it had
// been typed, without its newline; a paste of several is kept aside, and an Enter in its place ends the line.

var (
	pasteOn    = "\x1b[?2004h"
	pasteOff   = "\x1b[?2004l"
	pasteBegin = []byte("\x1b[200~")
	pasteEnd   = []byte("\x1b[201~")
)

// maxPaste bounds what is kept of one paste; the rest is dropped.
const maxPaste = 1 << 20

type pasteReader struct {
	r io.Reader

	mu    sync.Mutex
	ready []byte // to be read before anything else
	held  []byte // the beginning of a mark, perhaps
	paste []byte // between the marks
	in    bool
	multi string // a paste of several lines, for take
}

// Read gives what was typed. It is called by the editing library's goroutine.
func (p *pasteReader) Read(b []byte) (int, error) {
	for {
		p.mu.Lock()
		if len(p.ready) > 0 {
			n := copy(b, p.ready)
			p.ready = p.ready[n:]
			p.mu.Unlock()
			return n, nil
		}
		p.mu.Unlock()
		chunk := make([]byte, max(len(b), 64))
		n, err := p.r.Read(chunk)
		if n > 0 {
			p.mu.Lock()
			p.feed(chunk[:n])
			p.mu.Unlock()
		}
		if err != nil {
			return 0, err
		}
	}
}

// feed sorts bytes into typed and pasted ones.
func (p *pasteReader) feed(chunk []byte) {
	text := append(p.held, chunk...)
	p.held = nil
	for len(text) > 0 {
		mark := pasteBegin
		if p.in {
			mark = pasteEnd
		}
		at := bytes.Index(text, mark)
		if at < 0 {
			// The end may be the beginning of a mark. A lone escape is a key, and is not held back.
			keep := partialMark(text, mark)
			if keep == 1 && !p.in {
				keep = 0
			}
			p.put(text[:len(text)-keep])
			p.held = append([]byte(nil), text[len(text)-keep:]...)
			return
		}
		p.put(text[:at])
		text = text[at+len(mark):]
		if p.in {
			p.finish()
		}
		p.in = !p.in
	}
}

// partialMark is the length of the longest end of text that begins mark.
func partialMark(text, mark []byte) int {
	for n := min(len(text), len(mark)-1); n > 0; n-- {
		if bytes.HasSuffix(text, mark[:n]) {
			return n
		}
	}
	return 0
}

func (p *pasteReader) put(b []byte) {
	if !p.in {
		p.ready = append(p.ready, b...)
		return
	}
	if room := maxPaste - len(p.paste); len(b) > room {
		b = b[:room]
	}
	p.paste = append(p.paste, b...)
}

const ctrlE = 0x05

func (p *pasteReader) finish() {
	text := cleanPaste(string(p.paste))
	p.paste = nil
	if !strings.Contains(text, "\n") {
		p.ready = append(p.ready, text...)
		return
	}
	p.multi = text
	p.ready = append(p.ready, ctrlE, '\r')
}

// take returns the paste of several lines that ended the last line, if one did.
func (p *pasteReader) take() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := p.multi
	p.multi = ""
	return text
}

// cleanPaste makes line ends \n, tabs blanks (a tab is completion), and drops what would act as a key.
func cleanPaste(s string) string {
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\t", " ").Replace(s)
	s = strings.Map(func(r rune) rune {
		if r != '\n' && unicode.IsControl(r) || r == utf8.RuneError {
			return -1
		}
		return r
	}, s)
	return strings.TrimRight(s, "\n")
}
