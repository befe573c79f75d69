package lineedit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chzyer/readline"

	"github.com/eastguard/eastguard/internal/term"
)

// editor is Editor over chzyer/readline v1.5.1. What is non-obvious, so that nobody mends it away:
//
//   - Its history must never be empty: Ctrl-R or Ctrl-S and then Ctrl-C would dereference nil. With a HistoryFile it
//     pushes an element on loading, so it is given the null device. Our own history file is ours: the library
//     creates its with mode 0666.
//   - SaveHistory(text) saves what the user navigated to, not text, unless the pointer stands at the end; the empty
//     SaveHistory moves it there.
//   - Close hangs while a read is under way. ReadLine is called by one goroutine only, and ends by the Context
//     through the reader instead.
//   - At the end of its input it takes what has been typed so far for a line. Half a command must never run because
//     the terminal went away, so the end is remembered and reported instead.
//   - Raw mode holds during ReadLine only, so Ctrl-C is a signal while a command runs.
//   - Its own list of candidates would insert their help text. Candidates are printed here, above the prompt, and
//     only what can be inserted is handed back.
//   - It changes its width from a signal handler while another goroutine draws, and its goroutine goes on for a
//     moment after it has handed a line out. So width and vi mode are set by that goroutine itself, in key.
type editor struct {
	o       Options
	rl      *readline.Instance
	in      *pasteReader
	history *history
	closed  sync.Once
	ended   *atomic.Bool // the terminal is gone, or the Context is over
	inFd    int
	outFd   int

	vi      bool
	prompt  string
	width   atomic.Int64
	resized func()
	raw     *readline.State
}

func newEditor(o Options, h *history) (*editor, error) {
	ended := new(atomic.Bool)
	e := &editor{o: o, history: h, in: &pasteReader{r: eofReader{term.Interruptible(o.Context, o.In), ended}}, ended: ended, inFd: int(o.In.Fd()), outFd: int(o.Out.Fd())}
	e.width.Store(int64(e.columns()))
	rl, err := readline.NewEx(&readline.Config{
		HistoryFile: os.DevNull, HistoryLimit: historyLimit, DisableAutoSaveHistory: true, HistorySearchFold: true,
		Stdin: io.NopCloser(e.in), Stdout: o.Out, Stderr: o.Out,
		AutoComplete: e, Painter: e,
		InterruptPrompt: "^C", EOFPrompt: "exit",
		FuncIsTerminal: func() bool { return true },
		FuncMakeRaw:    e.makeRaw, FuncExitRaw: e.exitRaw,
		FuncGetWidth:        func() int { return int(e.width.Load()) },
		FuncOnWidthChanged:  func(f func()) { e.resized = f },
		FuncFilterInputRune: e.key,
	})
	if err != nil {
		return nil, fmt.Errorf("open the line editor: %w", err)
	}
	e.rl = rl
	for _, line := range h.list() {
		_ = rl.SaveHistory(line) // it writes to the null device
	}
	return e, nil
}

// eofReader makes every error the end of the input, and notes it.
type eofReader struct {
	r     io.Reader
	ended *atomic.Bool
}

func (r eofReader) Read(b []byte) (int, error) {
	n, err := r.r.Read(b)
	if err != nil {
		r.ended.Store(true)
		err = io.EOF
	}
	return n, err
}

// key sees each key on the goroutine that edits, before it is acted upon. It drops Ctrl-Z: the library would
// suspend the parent as well.
func (e *editor) key(r rune) (rune, bool) {
	e.checkWidth()
	if vi := e.o.Vi != nil && e.o.Vi(); vi != e.vi {
		e.vi = vi
		e.rl.SetVimMode(vi)
	}
	return r, r != readline.CharCtrlZ
}

func (e *editor) makeRaw() (err error) {
	e.raw, err = readline.MakeRaw(e.inFd)
	return err
}

func (e *editor) exitRaw() error {
	if e.raw == nil {
		return nil
	}
	err := readline.Restore(e.inFd, e.raw)
	e.raw = nil
	return err
}

func (e *editor) columns() int {
	cols, _, err := readline.GetSize(e.outFd)
	if err != nil || cols < 1 {
		return term.DefaultWidth
	}
	return cols
}

// checkWidth passes a resize on. It runs on the goroutine that edits, or while that one waits.
func (e *editor) checkWidth() {
	if cols := int64(e.columns()); e.width.Swap(cols) != cols && e.resized != nil {
		e.resized()
	}
}

func (e *editor) ReadLine(prompt string) (Line, error) {
	e.checkWidth()
	e.prompt = prompt
	e.rl.SetPrompt(prompt)
	fmt.Fprint(e.o.Out, pasteOn)
	text, err := e.rl.Readline()
	fmt.Fprint(e.o.Out, pasteOff)
	_ = e.rl.SaveHistory("") // back to the end of the history
	pasted := e.in.take()
	switch {
	case e.ended.Load():
		return Line{}, io.EOF
	case errors.Is(err, readline.ErrInterrupt):
		return Line{Text: text}, ErrInterrupt
	case err != nil:
		return Line{}, io.EOF
	case pasted != "":
		return Line{Text: text + pasted, Pasted: true}, nil
	}
	return Line{Text: text}, nil
}

func (e *editor) Remember(line string) {
	e.history.add(line)
	if lines := e.history.list(); len(lines) > 0 {
		_ = e.rl.SaveHistory(lines[len(lines)-1])
	}
}

func (e *editor) History() []string { return e.history.list() }

// closeWait bounds the library's own Close, which can hang; the terminal is in its normal mode by then anyway.
const closeWait = 200 * time.Millisecond

func (e *editor) Close() error {
	e.closed.Do(func() {
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = e.rl.Close()
		}()
		select {
		case <-done:
		case <-time.After(closeWait):
		}
	})
	return nil
}

// Paint draws the line and, when the cursor stands at its end, the hint behind it: save the cursor, grey text,
// restore. The hint is cut to the rest of the row, for a row that scrolls would move the saved cursor.
func (e *editor) Paint(line []rune, pos int) []rune {
	if e.o.Hint == nil || pos != len(line) || len(line) == 0 {
		return line
	}
	text := string(line)
	if strings.ContainsAny(text, "\n\x1b") {
		return line
	}
	cols := int(e.width.Load())
	room := cols - (term.Width(e.prompt)+term.Width(text))%cols - 1
	hint := term.Truncate(term.Escape(e.o.Hint(text)), room, true)
	if room <= 0 || hint == "" {
		return line
	}
	return []rune(text + "\x1b7\x1b[90m" + hint + "\x1b[0m\x1b8")
}

// Do completes the word before the cursor: it inserts what all candidates share, and lists them when that is
// nothing new.
func (e *editor) Do(line []rune, pos int) ([][]rune, int) {
	if e.o.Complete == nil {
		return nil, 0
	}
	before := string(line[:pos])
	candidates := e.o.Complete(before)
	typed := lastWord(before)
	switch shared := common(candidates); {
	case len(candidates) == 0:
		return nil, 0
	case len(candidates) == 1:
		rest, ok := strings.CutPrefix(candidates[0].Text, typed)
		if !ok {
			return nil, 0
		}
		if !strings.HasSuffix(rest, "=") && !strings.HasSuffix(rest, "/") {
			rest += " "
		}
		return [][]rune{[]rune(rest)}, len([]rune(typed))
	case len(shared) > len(typed) && strings.HasPrefix(shared, typed):
		return [][]rune{[]rune(shared[len(typed):])}, len([]rune(typed))
	}
	e.show(candidates)
	return nil, 0
}

// lastWord is the text since the last blank or quote: what completion adds to.
func lastWord(s string) string {
	return s[strings.LastIndexAny(s, " \t'\";>:")+1:]
}

// common is the longest beginning that all candidates share.
func common(candidates []Candidate) string {
	if len(candidates) == 0 {
		return ""
	}
	shared := candidates[0].Text
	for _, c := range candidates[1:] {
		for !strings.HasPrefix(c.Text, shared) {
			shared = shared[:len(shared)-1]
		}
	}
	return shared
}

// maxShown bounds the list of candidates.
const maxShown = 40

func (e *editor) show(candidates []Candidate) {
	cols := int(e.width.Load())
	width := 0
	for _, c := range candidates {
		width = max(width, term.Width(term.Escape(c.Text)))
	}
	var b strings.Builder
	for i, c := range candidates {
		if i == maxShown {
			fmt.Fprintf(&b, "… and %d more\n", len(candidates)-i)
			break
		}
		text := term.Pad(term.Escape(c.Text), width, false)
		if c.Help != "" {
			text += "  " + term.Escape(c.Help)
		}
		b.WriteString(strings.TrimRight(term.Truncate(text, cols-1, true), " ") + "\n")
	}
	// The library's writer takes the prompt away, prints, and draws the prompt again.
	_, _ = io.WriteString(e.rl.Stdout(), b.String())
}
