// Package lineedit reads lines from a terminal: editing, history, completion and hints. It is the only package
// that knows which library does it; everything else sees [Editor].
//
// [Open] gives a full editor where the terminal can carry one, and a plain reader where it cannot (TERM=dumb, or
// output that is no terminal). The full one is chzyer/readline, with its traps fenced: see editor.go.
package lineedit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/eastguard/eastguard/internal/term"
)

// Editor is all that a prompt needs. ReadLine is called by one goroutine; nothing is read between its calls, so
// that a command may use the terminal itself.
type Editor interface {
	// ReadLine shows prompt and returns a line. It fails with ErrInterrupt after Ctrl-C and with io.EOF after Ctrl-D
	// on an empty line, or when the terminal is gone.
	ReadLine(prompt string) (Line, error)
	// Remember puts a line into the history, in memory and on disk.
	Remember(line string)
	// History lists what is remembered, oldest first.
	History() []string
	// Close gives the terminal back. It may be called twice.
	Close() error
}

// Line is what was entered.
type Line struct {
	Text string
	// Pasted says that several lines came in one paste: nobody has pressed Enter behind them, so ask first.
	Pasted bool
}

// ErrInterrupt is Ctrl-C. The Line beside it holds what had been typed.
var ErrInterrupt = errors.New("interrupted")

// Candidate is one way to complete a word.
type Candidate struct {
	Text string // the whole word
	Help string // a few words about it
}

// Options are what the editor needs of its surroundings.
type Options struct {
	In  *os.File
	Out *os.File
	// Context ends ReadLine with io.EOF when it is cancelled, by a signal say.
	Context context.Context
	// Dumb asks for the plain reader.
	Dumb bool
	// HistoryFile is where lines are kept; empty keeps them in memory.
	HistoryFile string
	// Complete lists the candidates for the word that ends at the end of line.
	Complete func(line string) []Candidate
	// Hint is the grey text behind the cursor: what could follow line.
	Hint func(line string) string
	// Vi asks for vi keys.
	Vi func() bool
}

// Open makes an editor.
func Open(o Options) (Editor, error) {
	if o.Context == nil {
		o.Context = context.Background()
	}
	h := openHistory(o.HistoryFile)
	if o.Dumb {
		return &plain{o: o, r: bufio.NewReaderSize(term.Interruptible(o.Context, o.In), 1), history: h}, nil
	}
	return newEditor(o, h)
}

// plain reads lines as the terminal's own line discipline gives them.
type plain struct {
	o       Options
	r       *bufio.Reader
	history *history
}

func (p *plain) ReadLine(prompt string) (Line, error) {
	if _, err := fmt.Fprint(p.o.Out, prompt); err != nil {
		return Line{}, err
	}
	text, err := p.r.ReadString('\n')
	if err != nil { // what has no newline is not a line: the terminal went away
		return Line{}, io.EOF
	}
	return Line{Text: strings.TrimRight(text, "\r\n")}, nil
}

func (p *plain) Remember(line string) { p.history.add(line) }
func (p *plain) History() []string    { return p.history.list() }
func (p *plain) Close() error         { return nil }
