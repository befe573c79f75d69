// Package screen runs eg-top on a terminal of its own, as a person sees it: it presses keys, waits for what is on the
// screen, and knows the moment at which it came. Beside that it tells what the program takes: of a core, of memory, and of
// the terminal's line.
package screen

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
)

// Screen is a program on a terminal. It belongs to one goroutine, but for Await.
type Screen struct {
	cmd   *exec.Cmd
	ptmx  *os.File
	began time.Time
	ended chan struct{} // closed when the program has ended
	read  chan struct{} // closed when all that it wrote is on the screen

	mu       sync.Mutex
	cells    *vt.Emulator
	bytes    int
	at       time.Time // of the last change
	watchers []*watcher
}

// watcher is somebody who waits for a line.
type watcher struct {
	line  *regexp.Regexp
	found chan sight
}

// sight is a line that was found, and when it came.
type sight struct {
	line string
	at   time.Time
}

// Start runs a program on a terminal of so many cells.
func Start(w, h int, program string, args ...string) (*Screen, error) {
	ptmx, tty, err := pty.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = tty.Close() }()
	if err := pty.Setsize(ptmx, &pty.Winsize{Cols: uint16(w), Rows: uint16(h)}); err != nil {
		_ = ptmx.Close()
		return nil, err
	}
	s := &Screen{
		ptmx: ptmx, cells: vt.NewEmulator(w, h), began: time.Now(),
		cmd: exec.Command(program, args...), ended: make(chan struct{}), read: make(chan struct{}),
	}
	s.cmd.Env = append(os.Environ(), "TERM=xterm-256color", "LC_ALL=C.UTF-8", "TZ=UTC", "EG_CLI_CONFIG=/dev/null", "COLORTERM=")
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = tty, tty, tty
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := s.cmd.Start(); err != nil {
		_ = ptmx.Close()
		return nil, err
	}
	written := make(chan piece, 4096)
	go s.look(written)
	go s.draw(written)
	go func() { _, _ = io.Copy(io.Discard, s.cells) }() // what the emulator answers
	go func() {
		_ = s.cmd.Wait() // how it ended does not matter to what was measured before
		close(s.ended)
	}()
	return s, nil
}

// piece is something that the program wrote, and when that came.
type piece struct {
	at   time.Time
	text []byte
}

// look reads what the program writes until that ends. It does nothing else: a program must not wait for whoever draws.
func (s *Screen) look(written chan<- piece) {
	defer close(written)
	for {
		buf := make([]byte, 16<<10)
		n, err := s.ptmx.Read(buf)
		written <- piece{time.Now(), buf[:n]}
		if err != nil {
			return
		}
	}
}

// draw brings what was read onto the screen.
func (s *Screen) draw(written <-chan piece) {
	defer close(s.read)
	for p := range written {
		s.mu.Lock()
		_, _ = s.cells.Write(p.text)
		s.bytes += len(p.text)
		s.at = p.at
		s.tell()
		s.mu.Unlock()
	}
}

// tell gives those who wait what they wait for, if it is there now. The caller has the lock.
func (s *Screen) tell() {
	if len(s.watchers) == 0 {
		return
	}
	text := s.cells.String()
	s.watchers = slices.DeleteFunc(s.watchers, func(w *watcher) bool {
		for line := range strings.Lines(text) {
			if w.line.MatchString(line) {
				w.found <- sight{line, s.at}
				return true
			}
		}
		return false
	})
}

// Close ends the program, gently at first.
func (s *Screen) Close() error {
	err := s.cmd.Process.Signal(syscall.SIGTERM)
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	select {
	case <-s.ended:
	case <-time.After(10 * time.Second):
		err = errors.Join(fmt.Errorf("%s does not end", s.cmd.Path), s.cmd.Process.Kill())
		<-s.ended
	}
	_ = s.ptmx.Close()
	<-s.read
	_ = s.cells.InputPipe().(io.Closer).Close() // Close itself races with Read
	return err
}

// Press sends keys.
func (s *Screen) Press(keys string) error {
	_, err := io.WriteString(s.ptmx, keys)
	return err
}

// Text is what is on the screen.
func (s *Screen) Text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cells.String()
}

// Await waits until a line of the screen matches, and returns it with the moment at which it was there.
func (s *Screen) Await(pattern string, within time.Duration) (line string, at time.Time, err error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return "", at, err
	}
	w := &watcher{line: re, found: make(chan sight, 1)}
	s.mu.Lock()
	s.watchers = append(s.watchers, w)
	s.tell()
	s.mu.Unlock()
	select {
	case seen := <-w.found:
		return seen.line, seen.at, nil
	case <-s.read:
		err = fmt.Errorf("%s has ended", s.cmd.Path)
	case <-time.After(within):
		err = fmt.Errorf("%q is not on the screen within %v", pattern, within)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers = slices.DeleteFunc(s.watchers, func(other *watcher) bool { return other == w })
	return "", at, fmt.Errorf("%w:\n%s", err, s.cells.String())
}

// First is how long a program takes from its start to the first screen on which something stands.
func First(program, pattern string, args ...string) (took time.Duration, err error) {
	s, err := Start(200, 60, program, args...)
	if err != nil {
		return 0, err
	}
	defer func() {
		if closed := s.Close(); err == nil {
			err = closed
		}
	}()
	_, at, err := s.Await(pattern, patience)
	return at.Sub(s.began), err
}
