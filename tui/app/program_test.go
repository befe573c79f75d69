package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/eastguard/eastguard/cli"
	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/tui/feed"
	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/store/storetest"
)

// childMode says that this test binary is to be eg-top itself, on a terminal of the test's, and what shall go wrong in it.
const childMode = "EASTGUARD_TEST_EG_TOP"

func TestMain(m *testing.M) {
	if term.RunKeeper() {
		return
	}
	mode := os.Getenv(childMode)
	if mode == "" {
		os.Exit(m.Run())
	}
	deps := cli.Deps{IO: term.System(os.Getenv), Getenv: os.Getenv, Version: "test", Top: func(ctx context.Context, streams *term.IOStreams, t cli.Top) error {
		opts := Options(t)
		switch mode {
		case "panic in a command":
			opts.Exec = func(context.Context, term.Context, []string, func(func())) (string, error) { panic(mode) }
		case "a change does not answer":
			opts.Exec = func(ctx context.Context, _ term.Context, words []string, _ func(func())) (string, error) {
				if slices.Contains(words, "--yes") {
					<-ctx.Done()
				}
				return "the plan", nil
			}
		}
		go dieOnScreen(mode)
		_, err := runOnce(ctx, opts, streams, func(opts Options, g *guard) (feed.Feed, error) {
			if strings.HasPrefix(mode, planted) {
				return openLive(opts, g, plantedIn(mode)), nil
			}
			return newMadeUp(mode, g), nil
		})
		return err
	}}
	os.Exit(cli.MainTop(context.Background(), deps, os.Args[1:]))
}

// madeUp is a feed of a cluster that does not exist, at its own pace.
type madeUp struct {
	mode   string
	out    chan store.Message
	cancel context.CancelFunc
	ends   sync.WaitGroup
}

func newMadeUp(mode string, g *guard) *madeUp {
	ctx, cancel := context.WithCancel(context.Background())
	f := &madeUp{mode: mode, out: make(chan store.Message, 1024), cancel: cancel}
	o := storetest.Options{Seed: 1, Start: time.Now(), Length: time.Hour, Quiet: true}
	if mode == "large" {
		o = storetest.Large(1)
		o.Start, o.Length, o.Quiet = time.Now(), time.Hour, true
	}
	f.ends.Add(1)
	g.Go(func() {
		defer f.ends.Done()
		for m := range storetest.Stream(o) {
			if mode == "panic in the feed" && time.Since(o.Start) > 200*time.Millisecond {
				panic(mode)
			}
			select {
			case <-time.After(time.Until(m.Time)):
			case <-ctx.Done():
				return
			}
			select {
			case f.out <- m:
			case <-ctx.Done():
				return
			}
		}
	})
	return f
}

func (f *madeUp) Messages() <-chan store.Message { return f.out }
func (f *madeUp) Retry()                         {}
func (f *madeUp) SetSeeds([]string)              {}
func (f *madeUp) Err() error                     { return nil }

func (f *madeUp) Now() time.Time { return time.Now() }

func (f *madeUp) Show(v feed.Viewport) {
	if f.mode == "panic in the model" && v.Logs != nil {
		panic(f.mode)
	}
}

func (f *madeUp) Close() error {
	f.cancel()
	f.ends.Wait()
	return nil
}

// child is eg-top on a terminal.
type child struct {
	t        testing.TB
	cmd      *exec.Cmd
	ptmx     *os.File
	tty      *os.File
	before   unix.Termios
	mu       sync.Mutex
	bytes    int
	raw      bytes.Buffer
	screen   *vt.Emulator
	finished chan error
	ended    bool
	err      error
}

func startChild(t testing.TB, mode string, w, h int, args ...string) *child {
	t.Helper()
	return onTerminal(t, mode, w, h, os.Args[0], args...)
}

// onTerminal runs a program as the first of a terminal of its own. Wherever eg-top runs in it, it is this test binary.
func onTerminal(t testing.TB, mode string, w, h int, program string, args ...string) *child {
	t.Helper()
	ptmx, tty, err := pty.Open()
	require.NoError(t, err)
	require.NoError(t, pty.Setsize(ptmx, &pty.Winsize{Cols: uint16(w), Rows: uint16(h)}))
	c := &child{t: t, ptmx: ptmx, tty: tty, screen: vt.NewEmulator(w, h), finished: make(chan error, 1)}
	c.before = c.settings()
	c.cmd = exec.Command(program, args...)
	c.cmd.Env = append(os.Environ(), childMode+"="+mode, "TERM=xterm-256color", "LC_ALL=C.UTF-8", "EG_CLI_CONFIG=/dev/null", "PS1=ready>", "ENV=")
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = tty, tty, tty
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, c.cmd.Start())
	go c.read()
	go func() { _, _ = io.Copy(io.Discard, c.screen) }() // what the emulator answers
	go func() { c.finished <- c.cmd.Wait() }()
	t.Cleanup(func() {
		if !c.ended {
			_ = c.cmd.Process.Kill()
			<-c.finished
		}
		_ = tty.Close()
		_ = ptmx.Close()
		_ = c.screen.InputPipe().(io.Closer).Close() // Close itself races with Read
	})
	return c
}

func (c *child) read() {
	buf := make([]byte, 64<<10)
	for {
		n, err := c.ptmx.Read(buf)
		c.mu.Lock()
		c.bytes += n
		c.raw.Write(buf[:n])
		_, _ = c.screen.Write(buf[:n])
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (c *child) settings() unix.Termios {
	s, err := unix.IoctlGetTermios(int(c.ptmx.Fd()), unix.TCGETS)
	require.NoError(c.t, err)
	return *s
}

func (c *child) send(keys string) {
	_, err := io.WriteString(c.ptmx, keys)
	require.NoError(c.t, err)
}

func (c *child) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.screen.String()
}

func (c *child) written() (int, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes, c.raw.String()
}

// until waits for a text on the screen.
func (c *child) until(want string) {
	c.t.Helper()
	c.look(want, 5*time.Millisecond)
}

// look waits for a text on the screen, and looks so often.
func (c *child) look(want string, every time.Duration) {
	c.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !strings.Contains(c.text(), want) {
		if time.Now().After(deadline) {
			c.t.Fatalf("%q is not on the screen:\n%s", want, c.text())
		}
		time.Sleep(every)
	}
}

// end waits for the end and checks that the terminal is as it was.
func (c *child) end(exit int) {
	c.t.Helper()
	select {
	case c.err = <-c.finished:
		c.ended = true
	case <-time.After(30 * time.Second):
		c.t.Fatalf("it does not end:\n%s", c.text())
	}
	code := 0
	var failed *exec.ExitError
	if errors.As(c.err, &failed) {
		code = failed.ExitCode()
	}
	require.Equal(c.t, c.before, c.settings(), "the line settings are not as they were")
	c.modesAreOff()
	_, raw := c.written()
	require.Equal(c.t, exit, code, "%s", tail(raw))
}

// modesAreOff checks that what was switched on in the terminal was switched off again.
func (c *child) modesAreOff() {
	c.t.Helper()
	for on, off := range map[string]string{"?1049h": "?1049l", "?25l": "?25h", "?1002h": "?1002l", "?1006h": "?1006l", "?2004h": "?2004l"} {
		c.wrote(on+" is undone", func(raw string) bool { return strings.LastIndex(raw, off) >= strings.LastIndex(raw, on) })
	}
}

// wrote waits for what the program has written to be read: it may have ended before.
func (c *child) wrote(what string, ok func(raw string) bool) {
	c.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		_, raw := c.written()
		if ok(raw) {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("not seen: %s\n%q", what, tail(raw))
		}
	}
}

func tail(s string) string { return s[max(len(s)-1500, 0):] }

// TestTerminalIsAsBefore ends the program in every way there is.
func TestTerminalIsAsBefore(t *testing.T) {
	for _, tt := range []struct {
		name string
		mode string
		end  func(*child)
		exit int
		says string
	}{
		{name: "q", end: func(c *child) { c.send("q") }},
		{name: "ctrl-c", end: func(c *child) { c.send("\x03") }},
		{name: ":quit", end: func(c *child) { c.send(":q\r") }},
		{name: "q in a dialog's page", end: func(c *child) { c.send("?"); c.until("Keys"); c.send("\x03") }},
		{name: "SIGTERM", end: func(c *child) { _ = c.cmd.Process.Signal(syscall.SIGTERM) }, exit: cli.ExitTerminated},
		{name: "SIGHUP", end: func(c *child) { _ = c.cmd.Process.Signal(syscall.SIGHUP) }, exit: cli.ExitHungUp},
		{name: "SIGINT", end: func(c *child) { _ = c.cmd.Process.Signal(syscall.SIGINT) }, exit: cli.ExitInterrupted},
		{name: "panic in the model", mode: "panic in the model", end: func(c *child) { c.send("9") }, exit: cli.ExitError, says: "panic in the model"},
		{name: "panic in the feed", mode: "panic in the feed", end: func(*child) {}, exit: cli.ExitError, says: "panic in the feed"},
		{name: "panic in a command", mode: "panic in a command", end: func(c *child) { c.send("2jd") }, exit: cli.ExitError, says: "panic in a command"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			mode := tt.mode
			if mode == "" {
				mode = "well"
			}
			c := startChild(t, mode, 100, 30)
			if mode != "panic in the feed" {
				c.until("[1 Overview]")
				c.until("n5")
			}
			tt.end(c)
			c.end(tt.exit)
			if tt.says != "" {
				c.wrote(tt.says, func(raw string) bool { return strings.Contains(raw[strings.LastIndex(raw, "?1049l")+1:], tt.says) })
			}
		})
	}
}

// Who leaves while a change is under way is told that nobody knows what became of it.
func TestLeavingAChangeBehind(t *testing.T) {
	c := startChild(t, "a change does not answer", 100, 30, "--allow-actions")
	c.until("n5")
	c.send("2jxl")
	c.until("y to do it")
	c.send("y")
	c.until("doing it")
	c.send("\x03")
	c.end(0)
	said := "whether it was done is not known: eg-cli node leave n"
	c.wrote(said, func(raw string) bool { return strings.Contains(raw[strings.LastIndex(raw, "?1049l")+1:], said) })
}

// TestScreenFollowsSize resizes the terminal through the sizes.
func TestScreenFollowsSize(t *testing.T) {
	c := startChild(t, "well", 80, 24)
	c.until("n5")
	for _, size := range [][2]int{{120, 40}, {200, 60}, {40, 10}, {80, 24}} {
		c.mu.Lock()
		c.screen.Resize(size[0], size[1])
		c.mu.Unlock()
		require.NoError(t, pty.Setsize(c.ptmx, &pty.Winsize{Cols: uint16(size[0]), Rows: uint16(size[1])}))
		if size[0] < 60 {
			c.until("a screen of 60x15")
			continue
		}
		c.until("[1 Overview]")
		c.until("quit")
	}
	c.send("q")
	c.end(0)
}

// TestNoScreenWithoutTerminal checks that a pipe gets text, whatever was asked for.
func TestNoScreenWithoutTerminal(t *testing.T) {
	for name, args := range map[string][]string{"table": nil, "json": {"-o", "json"}, "jsonl": {"-o", "jsonl", "-n", "2"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			cmd := exec.Command(os.Args[0], args...)
			cmd.Env = append(os.Environ(), childMode+"=well", "LC_ALL=C.UTF-8", "EG_CLI_CONFIG=/dev/null")
			cmd.Stdout, cmd.Stderr = &out, &errs
			require.NoError(t, cmd.Run(), "%s", errs.String())
			require.NotContains(t, out.String()+errs.String(), "\x1b")
			switch name {
			case "table":
				require.Contains(t, errs.String(), "stdout is no terminal")
				require.Contains(t, out.String(), "EastGuard")
			case "json":
				require.Contains(t, out.String(), `"schema": "top/1"`)
			case "jsonl":
				require.Equal(t, 2, strings.Count(out.String(), "\n"))
			}
		})
	}
}

// BenchmarkProgram watches a cluster of 60 nodes and 10,000 ranges, all of whose rates change each second, on 200 by 60
// cells, and reports what that takes of a core, of memory and of the terminal's line.
func BenchmarkProgram(b *testing.B) {
	const watched = 8 * time.Second
	for _, still := range []bool{false, true} {
		b.Run(map[bool]string{false: "4Hz", true: "paused"}[still], func(b *testing.B) {
			for b.Loop() {
				start := time.Now()
				c := startChild(b, "large", 200, 60)
				c.until("[1 Overview]")
				first := time.Since(start)
				c.until("n60")
				if still {
					c.send("p")
					c.until("paused")
				}
				cpu, written := c.spent(), c.count()
				time.Sleep(watched)
				b.ReportMetric(100*float64(c.spent()-cpu)/float64(watched), "%core")
				b.ReportMetric(float64(c.count()-written)/(4*watched.Seconds()), "B/update")
				b.ReportMetric(float64(first.Milliseconds()), "first-ms")
				b.ReportMetric(c.resident(), "MB")
				b.ReportMetric(float64(c.slowestKey().Microseconds())/1000, "key-p99-ms")
				c.send("q")
				c.end(0)
			}
		})
	}
}

func (c *child) count() int {
	n, _ := c.written()
	return n
}

// spent is the processor time of the program.
func (c *child) spent() time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.cmd.Process.Pid))
	require.NoError(c.t, err)
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// resident is the memory of the program, in MB.
func (c *child) resident() float64 {
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", c.cmd.Process.Pid))
	require.NoError(c.t, err)
	pages, _ := strconv.Atoi(strings.Fields(string(statm))[1])
	return float64(pages) * 4096 / (1 << 20)
}

// slowestKey is how long a key takes to the screen, for all but the slowest of a hundred.
func (c *child) slowestKey() time.Duration {
	var took []time.Duration
	for i := range 100 {
		view := 4 + i%2
		want := fmt.Sprintf("[%d ", view)
		start := time.Now()
		c.send(strconv.Itoa(view))
		c.look(want, time.Millisecond)
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	return took[98]
}
