package app

import (
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	xterm "golang.org/x/term"

	"github.com/eastguard/eastguard/internal/term"
)

// leave puts a terminal's modes back: no mouse, no pasting, no other screen, a cursor.
const leave = "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[?2026l\x1b[<u\x1b[>4;0m\x1b[?1049l\x1b[?25h\x1b[m\r"

// terminal is the one that the program draws on, and how it was before.
type terminal struct {
	in, out *os.File
	guard   *guard
	before  *xterm.State
	keeper  atomic.Pointer[term.Keeper] // for when this process cannot do it; nil when there is none
	once    sync.Once
	over    atomic.Bool // it was rescued: nothing is drawn any more
}

// openTerminal remembers how the terminal is. It changes nothing of it.
func openTerminal(s *term.IOStreams, g *guard) (*terminal, error) {
	in, okIn := s.In.(*os.File)
	out, okOut := s.Out.(*os.File)
	if !okIn || !okOut {
		return nil, invalid("the screen needs a terminal: use --once")
	}
	before, err := xterm.GetState(int(in.Fd()))
	if err != nil {
		return nil, invalid("the screen needs a terminal to read keys from: use --once")
	}
	t := &terminal{in: in, out: out, guard: g, before: before}
	t.keep()
	return t, nil
}

// settle puts the line settings back as they were. It may be called again. A terminal that somebody else has meanwhile is
// left alone: it was given back before, and whoever changes it from the background is stopped.
func (t *terminal) settle() {
	if t.inFront() {
		_ = xterm.Restore(int(t.in.Fd()), t.before)
	}
}

// keep has somebody look after the terminal, for as long as a screen is on it.
func (t *terminal) keep() {
	keeper, _ := term.Keep(t.in, t.out, leave) // it can do without
	t.keeper.Store(keeper)
}

// giveBack is settle for the end of a screen.
func (t *terminal) giveBack() {
	t.settle()
	t.keeper.Load().Dismiss()
}

// inFront reports whether the terminal is this program's: it runs in the foreground.
func (t *terminal) inFront() bool { return term.InForeground(t.in) }

// rescue is settle for when the program could not end in good order: the modes too.
func (t *terminal) rescue() {
	if !t.inFront() {
		return
	}
	t.over.Store(true)
	t.once.Do(func() {
		written := t.guard.start(func() { _, _ = io.WriteString(t.out, leave) })
		within(time.Second, written) // a terminal that takes nothing any more must not hold the program
	})
	t.settle()
}

// slowWrite is how long a write may block before the screen is drawn half as often.
const slowWrite = 50 * time.Millisecond

// screen is the terminal as Bubble Tea writes to it. It counts, and notices when the line is slow, or gone.
type screen struct {
	*os.File
	tty     *terminal
	gone    func(error) // it can be written to no more
	bytes   atomic.Int64
	slowest atomic.Int64 // nanoseconds of the slowest write since the last look
}

// Write drops what is drawn in the background: the terminal is another's, and all is drawn anew in the foreground. It also
// drops what a program still draws that was left behind.
func (s *screen) Write(b []byte) (int, error) {
	if s.tty.over.Load() || !s.tty.inFront() {
		return len(b), nil
	}
	start := time.Now()
	n, err := s.File.Write(b)
	s.bytes.Add(int64(n))
	if took := int64(time.Since(start)); took > s.slowest.Load() {
		s.slowest.Store(took)
	}
	if err != nil {
		s.gone(err) // Bubble Tea goes on without a word, and without keys
	}
	return n, err
}

// slow reports whether a write has blocked since the last call.
func (s *screen) slow() bool { return time.Duration(s.slowest.Swap(0)) > slowWrite }
