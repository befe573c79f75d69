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
	read  chan struct{} // closed when all that it wrote has been read

	mu      sync.Mutex
	cells   *vt.Emulator
	bytes   int
	changed chan struct{} // closed at the next change
	at      time.Time     // of the last change
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
		ptmx: ptmx, cells: vt.NewEmulator(w, h), changed: make(chan struct{}), began: time.Now(),
		cmd: exec.Command(program, args...), ended: make(chan struct{}), read: make(chan struct{}),
	}
	s.cmd.Env = append(os.Environ(), "TERM=xterm-256color", "LC_ALL=C.UTF-8", "TZ=UTC", "EG_CLI_CONFIG=/dev/null", "COLORTERM=")
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = tty, tty, tty
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := s.cmd.Start(); err != nil {
		_ = ptmx.Close()
		return nil, err
	}
	go s.look()
	go func() { _, _ = io.Copy(io.Discard, s.cells) }() // what the emulator answers
	go func() {
		_ = s.cmd.Wait() // how it ended does not matter to what was measured before
		close(s.ended)
	}()
	return s, nil
}

// look reads what the program writes until that ends.
func (s *Screen) look() {
	defer close(s.read)
	buf := make([]byte, 64<<10)
	for {
		n, err := s.ptmx.Read(buf)
		at := time.Now()
		s.mu.Lock()
		_, _ = s.cells.Write(buf[:n])
		s.bytes += n
		s.at = at
		close(s.changed)
		s.changed = make(chan struct{})
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
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
	late := time.After(within)
	for {
		s.mu.Lock()
		text, at, changed := s.cells.String(), s.at, s.changed
		s.mu.Unlock()
		for line := range strings.Lines(text) {
			if re.MatchString(line) {
				return line, at, nil
			}
		}
		select {
		case <-changed:
		case <-s.ended:
			return "", at, fmt.Errorf("%s has ended:\n%s", s.cmd.Path, text)
		case <-late:
			return "", at, fmt.Errorf("%q is not on the screen within %v:\n%s", pattern, within, text)
		}
	}
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
