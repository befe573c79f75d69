package lineedit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
)

func TestHistoryFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "eastguard", "history")
	h := openHistory(path)
	for _, l := range []string{"a", "b", "b", "", " c ", "d\ne"} {
		h.add(l)
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "d e"}, h.list()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	dir, err := os.Stat(filepath.Dir(path))
	if err != nil || dir.Mode().Perm() != 0o700 {
		t.Errorf("directory mode %v, %v", dir.Mode(), err)
	}
	// A second session sees the lines, and both append to one file.
	h2 := openHistory(path)
	h2.add("from two")
	h.add("from one")
	h2.add("a")
	if diff := cmp.Diff([]string{"b", "c", "d e", "from two", "from one", "a"}, openHistory(path).list()); diff != "" {
		t.Errorf("folded (-want +got)\n%s", diff)
	}
}

func TestHistoryIsCreatedPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	if err := os.WriteFile(path, []byte("old\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	openHistory(path)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("an old file keeps mode %v, %v", info.Mode(), err)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	var b strings.Builder
	for i := range 2*historyLimit + 10 {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	h := openHistory(path)
	if n := len(h.list()); n != historyLimit || h.list()[n-1] != fmt.Sprintf("line %d", 2*historyLimit+9) {
		t.Errorf("%d lines, the last %q", n, h.list()[n-1])
	}
	file, err := os.ReadFile(path)
	if n := bytes.Count(file, []byte("\n")); err != nil || n != historyLimit {
		t.Errorf("the file has %d lines, %v", n, err)
	}
	h.add("one more")
	if n := len(h.list()); n != historyLimit {
		t.Errorf("%d lines in memory", n)
	}
}

func TestHistoryWithoutAHome(t *testing.T) {
	h := openHistory("")
	h.add("a")
	if len(h.list()) != 1 {
		t.Error("memory does not work")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h = openHistory(filepath.Join(file, "under", "history")) // cannot be made
	h.add("a")
	if len(h.list()) != 1 {
		t.Error("memory does not work")
	}
}

func TestHistoryOfManySessions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	var wg sync.WaitGroup
	for s := range 4 {
		wg.Go(func() {
			h := openHistory(path)
			for i := range 50 {
				h.add(fmt.Sprintf("session %d line %d", s, i))
			}
		})
	}
	wg.Wait()
	if n := len(openHistory(path).list()); n != 200 {
		t.Errorf("%d of 200 lines are there", n)
	}
}

func TestPaste(t *testing.T) {
	tests := map[string]struct{ in, keys, multi string }{
		"typed":             {"topic list\r", "topic list\r", ""},
		"one line":          {"\x1b[200~topic list\x1b[201~", "topic list", ""},
		"one line, newline": {"\x1b[200~topic list\r\x1b[201~", "topic list", ""},
		"between keys":      {"con\x1b[200~sume t\x1b[201~ -f\r", "consume t -f\r", ""},
		"several":           {"\x1b[200~a\rb\rc\r\x1b[201~", "\x05\r", "a\nb\nc"},
		"windows":           {"\x1b[200~a\r\nb\x1b[201~", "\x05\r", "a\nb"},
		"keys inside":       {"\x1b[200~a\tb\x1b[A\x03\x1b[201~", "a b[A", ""},
		"empty":             {"\x1b[200~\x1b[201~x", "x", ""},
		"escape key":        {"\x1b", "\x1b", ""},
		"arrow":             {"\x1b[A", "\x1b[A", ""},
		"not a mark":        {"\x1b[20~", "\x1b[20~", ""},
	}
	for name, tt := range tests {
		for _, chunk := range []func(io.Reader) io.Reader{
			func(r io.Reader) io.Reader { return r },
			iotest.HalfReader,
		} {
			t.Run(name, func(t *testing.T) {
				p := &pasteReader{r: chunk(strings.NewReader(tt.in))}
				keys, err := io.ReadAll(p)
				if err != nil || string(keys) != tt.keys || p.take() != tt.multi {
					t.Errorf("keys %q, %v", keys, err)
				}
			})
		}
	}
}

func TestPasteIsBounded(t *testing.T) {
	p := &pasteReader{r: strings.NewReader("\x1b[200~" + strings.Repeat("a\n", maxPaste) + "\x1b[201~x")}
	if keys, err := io.ReadAll(p); err != nil || string(keys) != "\x05\rx" {
		t.Errorf("keys %q, %v", keys, err)
	}
	if n := len(p.take()); n > maxPaste {
		t.Errorf("%d bytes are kept", n)
	}
}

// FuzzPaste checks that no bytes make the reader lose what is outside of marks or panic.
func FuzzPaste(f *testing.F) {
	f.Add("a\x1b[200~b\x1b[201~c", 3)
	f.Add("\x1b[200~a\nb", 1)
	f.Add("\x1b[201~\x1b[200", 2)
	f.Fuzz(func(t *testing.T, s string, size int) {
		if size < 1 || size > 100 {
			return
		}
		p := &pasteReader{r: strings.NewReader(s)}
		buf := make([]byte, size)
		var got []byte
		for {
			n, err := p.Read(buf)
			got = append(got, buf[:n]...)
			if err != nil {
				break
			}
		}
		if !strings.Contains(s, "\x1b") && string(got) != s {
			t.Fatalf("%q became %q", s, got)
		}
	})
}

// terminal is a pty with an editor on one end and the test on the other.
type terminal struct {
	t      *testing.T
	ptm    *os.File
	editor Editor
	n      int // lines read so far: each has a prompt of its own to wait for
	mu     sync.Mutex
	out    bytes.Buffer
}

func openTerminal(t *testing.T, o Options) *terminal {
	t.Helper()
	ptm, tty, err := pty.Open()
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	if err := pty.Setsize(ptm, &pty.Winsize{Cols: 80, Rows: 24}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	o.In, o.Out = tty, tty
	if o.Context == nil {
		o.Context = ctx
	}
	e, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	term := &terminal{t: t, ptm: ptm, editor: e}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 4096)
		for {
			n, err := ptm.Read(buf)
			term.mu.Lock()
			term.out.Write(buf[:n])
			term.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		_ = e.Close()
		_ = tty.Close()
		_ = ptm.Close()
		<-done
	})
	return term
}

// typing sends keys and returns what ReadLine makes of them.
func (term *terminal) typing(keys string) (Line, error) {
	term.t.Helper()
	term.n++
	prompt := fmt.Sprintf("%d> ", term.n)
	type result struct {
		line Line
		err  error
	}
	got := make(chan result, 1)
	term.clear()
	go func() {
		line, err := term.editor.ReadLine(prompt)
		got <- result{line, err}
	}()
	term.await(prompt)
	if _, err := term.ptm.WriteString(keys); err != nil {
		term.t.Fatal(err)
	}
	select {
	case r := <-got:
		return r.line, r.err
	case <-time.After(10 * time.Second):
		term.t.Fatalf("no line came; the screen has %q", term.screen())
		return Line{}, nil
	}
}

func (term *terminal) screen() string {
	term.mu.Lock()
	defer term.mu.Unlock()
	return term.out.String()
}

func (term *terminal) clear() {
	term.mu.Lock()
	defer term.mu.Unlock()
	term.out.Reset()
}

// await waits until text is on the screen.
func (term *terminal) await(text string) {
	term.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if strings.Contains(term.screen(), text) {
			return
		}
	}
	term.t.Fatalf("%q does not appear in %q", text, term.screen())
}

func TestEditor(t *testing.T) {
	term := openTerminal(t, Options{
		HistoryFile: filepath.Join(t.TempDir(), "history"),
		Complete: func(line string) []Candidate {
			var out []Candidate
			for _, c := range []Candidate{{"consume", "print records"}, {"config", "settings"}, {"topic", ""}} {
				if strings.HasPrefix(c.Text, lastWord(line)) {
					out = append(out, c)
				}
			}
			return out
		},
		Hint: func(line string) string {
			if line == "consume " {
				return "<topic> [start] [count]"
			}
			return ""
		},
	})
	line := func(want, keys string) {
		t.Helper()
		got, err := term.typing(keys)
		if err != nil || got.Text != want {
			t.Errorf("%q: %q, %v; want %q", keys, got.Text, err, want)
		}
	}
	// The crash of the library: search in an empty history, then Ctrl-C.
	if _, err := term.typing("\x13\x03\x03"); !errors.Is(err, ErrInterrupt) {
		t.Errorf("Ctrl-S Ctrl-C: %v", err)
	}
	if _, err := term.typing("\x12\x03\x03"); !errors.Is(err, ErrInterrupt) {
		t.Errorf("Ctrl-R Ctrl-C: %v", err)
	}
	line("hello", "hello\r")
	line("topic ", "to\t\r")
	line("consume ", "cons\t\r")
	term.await("\x1b7\x1b[90m<topic> [start] [count]\x1b[0m\x1b8")
	line("con", "c\t\t\r") // what they share, then the list
	term.await("consume  print records")
	term.await("config   settings")
	if got, err := term.typing("half a line\x03"); !errors.Is(err, ErrInterrupt) || got.Text != "half a line" {
		t.Errorf("Ctrl-C: %q, %v", got.Text, err)
	}
	term.editor.Remember("topic list")
	term.editor.Remember("consume t")
	line("consume t", "\x1b[A\r")
	line("topic list", "\x1b[A\x1b[A\r")
	line("consume t", "\x1b[A\r") // an Enter on an old line does not leave the history there
	line("one line", "\x1b[200~one line\r\x1b[201~\r")
	if got, err := term.typing("x \x1b[200~a\rb\r\x1b[201~"); err != nil || !got.Pasted || got.Text != "x a\nb" {
		t.Errorf("paste: %+v, %v", got, err)
	}
	line("wide 日本", "wide 日本\r")
	if _, err := term.typing("\x04"); !errors.Is(err, io.EOF) {
		t.Errorf("Ctrl-D: %v", err)
	}
	if diff := cmp.Diff([]string{"topic list", "consume t"}, term.editor.History()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestHintIsCutToTheRow(t *testing.T) {
	term := openTerminal(t, Options{Hint: func(string) string { return strings.Repeat("hint ", 40) }})
	if _, err := term.typing(strings.Repeat("x", 60) + "\r"); err != nil {
		t.Fatal(err)
	}
	term.await("\x1b[90m")
	for _, part := range strings.Split(term.screen(), "\x1b7\x1b[90m")[1:] {
		hint, _, _ := strings.Cut(part, "\x1b[0m")
		if len(hint) > 78 {
			t.Errorf("a hint of %d cells", len(hint))
		}
	}
}

func TestEditorEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	term := openTerminal(t, Options{Context: ctx})
	go func() {
		term.await("> ")
		_, _ = term.ptm.WriteString("half a command")
		term.await("half a command")
		cancel()
	}()
	done := make(chan error, 1)
	go func() {
		l, err := term.editor.ReadLine("> ")
		if l.Text != "" {
			err = fmt.Errorf("%q would run", l.Text)
		}
		done <- err
	}()
	select {
	case err := <-done:
		if !errors.Is(err, io.EOF) {
			t.Errorf("err = %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("ReadLine did not end")
	}
}

func TestPlainEditor(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	e, err := Open(Options{In: r, Out: out, Dumb: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.WriteString("one\r\ntwo\nhalf"); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	for _, want := range []string{"one", "two"} {
		if l, err := e.ReadLine("> "); err != nil || l.Text != want {
			t.Errorf("%q, %v; want %q", l.Text, err, want)
		}
	}
	if _, err := e.ReadLine("> "); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
	b, err := os.ReadFile(out.Name())
	if err != nil || string(b) != "> > > " {
		t.Errorf("TERM=dumb gets %q: no escape belongs there", b)
	}
	if err := errors.Join(e.Close(), e.Close()); err != nil {
		t.Error(err)
	}
}
