package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/eastguard/eastguard/sdk/sdktest"
)

// console is eg-cli at a terminal of 100 by 40.
type console struct {
	t    *testing.T
	cmd  *exec.Cmd
	ptm  *os.File
	home string
	done chan struct{}

	mu  sync.Mutex
	raw bytes.Buffer
}

func startConsole(t *testing.T, addr string, files map[string]string, env ...string) *console {
	t.Helper()
	home := t.TempDir()
	for name, text := range files {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("eg-cli")
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TERM=xterm", "LC_ALL=C.UTF-8", "TZ=UTC", "EG_SEEDS=" + addr, "EG_TIMEOUT=2s"}, env...)
	ptm, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 100, Rows: 40})
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	c := &console{t: t, cmd: cmd, ptm: ptm, home: home, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		buf := make([]byte, 4096)
		for {
			n, err := ptm.Read(buf)
			c.mu.Lock()
			c.raw.Write(buf[:n])
			c.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		_ = ptm.Close()
		<-c.done
	})
	return c
}

// screen is what the terminal shows: every line so far, with the editor's redrawing done.
func (c *console) screen() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return draw(c.raw.String())
}

// draw is as much of a terminal as the prompt needs: returns, erasing, saved cursor, backspaces.
func draw(raw string) string {
	rows := [][]rune{nil}
	col, saved := 0, 0
	put := func(r rune) {
		row := &rows[len(rows)-1]
		for len(*row) <= col {
			*row = append(*row, ' ')
		}
		(*row)[col] = r
		col++
	}
	runes := []rune(raw)
	for i := 0; i < len(runes); i++ {
		switch r := runes[i]; r {
		case '\r':
			col = 0
		case '\n':
			rows, col = append(rows, nil), 0
		case '\b':
			col = max(col-1, 0)
		case 0x1b:
			i++
			if i == len(runes) {
				break
			}
			switch runes[i] {
			case '7':
				saved = col
			case '8':
				col = saved
			case '[':
				end := i + 1
				for end < len(runes) && (runes[end] < '@' || runes[end] > '~') {
					end++
				}
				if end < len(runes) {
					row := &rows[len(rows)-1]
					switch seq := string(runes[i+1 : end+1]); seq {
					case "2K":
						*row = nil
					case "J", "K":
						*row = (*row)[:min(col, len(*row))]
					}
				}
				i = end
			}
		default:
			put(r)
		}
	}
	var b strings.Builder
	for _, row := range rows {
		b.WriteString(strings.TrimRight(string(row), " ") + "\n")
	}
	return b.String()
}

func (c *console) keys(s string) {
	c.t.Helper()
	if _, err := c.ptm.WriteString(s); err != nil {
		c.t.Fatal(err)
	}
}

// await waits until the screen satisfies ok.
func (c *console) await(what string, ok func(screen string) bool) {
	c.t.Helper()
	for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if ok(c.screen()) {
			return
		}
	}
	c.t.Fatalf("%s does not come; the screen:\n%s", what, c.screen())
}

func (c *console) awaitText(text string) {
	c.t.Helper()
	c.await(fmt.Sprintf("%q", text), func(s string) bool { return strings.Contains(s, text) })
}

// prompted waits for the nth prompt, which stands alone on the last line.
func (c *console) prompted(prompt string) {
	c.t.Helper()
	c.await("the prompt", func(s string) bool {
		return strings.HasSuffix(strings.TrimRight(s, "\n"), "\n"+strings.TrimRight(prompt, " "))
	})
}

// line types a command and waits for the prompt after it.
func (c *console) line(s string) {
	c.t.Helper()
	c.prompted("eastguard> ")
	before := strings.Count(c.screen(), "\n")
	c.keys(s + "\r")
	c.await("the next prompt", func(screen string) bool {
		return strings.Count(screen, "\n") > before && strings.HasSuffix(strings.TrimRight(screen, "\n"), "\neastguard>")
	})
}

// exit waits for the end of the program and returns its code.
func (c *console) exit() int {
	c.t.Helper()
	got := make(chan int, 1)
	go func() { _ = c.cmd.Wait(); got <- c.cmd.ProcessState.ExitCode() }()
	select {
	case code := <-got:
		return code
	case <-time.After(15 * time.Second):
		c.t.Fatalf("it does not end; the screen:\n%s", c.screen())
		return -1
	}
}

const transcript = `eastguard> create-topic my_topic 1
created topic my_topic  replication factor 1  1 range  shard S (leader n1)  T ms
eastguard> publish my_topic user123 "Hello EastGuard!"
my_topic r1 @0  key=user123  16 B  acked by n1  T ms
eastguard> consume my_topic earliest 10
@0  TIME  r1  user123  Hello EastGuard!
1 record, caught up (asked for up to 10). -f to follow.
`

func TestPromptTranscript(t *testing.T) {
	broker := sdktest.Start(t)
	c := startConsole(t, broker.Addr(), nil)
	for _, l := range strings.Split(transcript, "\n") {
		if cmd, ok := strings.CutPrefix(l, "eastguard> "); ok {
			c.line(cmd)
		}
	}
	c.keys("\x04")
	if code := c.exit(); code != 0 {
		t.Errorf("exit %d", code)
	}
	_, shown, _ := strings.Cut(c.screen(), "leaves.\n")
	if got := mask(shown); !strings.HasPrefix(got, transcript) {
		t.Errorf("got\n%s\nwant\n%s", got, transcript)
	}
}

func TestPromptKeys(t *testing.T) {
	broker := sdktest.Start(t, sdktest.WithTopic("orders", 1))
	c := startConsole(t, broker.Addr(), map[string]string{".config/eastguard/clirc": "# my own\n:set timing off\nversion\n"})
	c.awaitText("eg-cli 1.2.3") // from clirc
	c.awaitText("EastGuard CLI 1.2.3, " + broker.Addr() + ".\nhelp shows")
	c.line(":connect " + broker.Addr())
	c.awaitText("EastGuard CLI 1.2.3, " + broker.Addr() + "\n")

	// Ctrl-C ends the command, not the prompt. It is the normal end of one that follows, and of no other.
	c.line("publish orders first one")
	c.keys("consume orders -f\r")
	c.awaitText("  first  one\n") // now it runs, and waits
	c.keys("\x03")
	c.awaitText("1 record, stopped.")
	c.prompted("eastguard> ")
	if s := c.screen(); strings.Contains(s, "cancelled") {
		t.Errorf("a normal end is called cancelled:\n%s", s)
	}
	c.keys("publish orders\r")
	c.awaitText("reading records from the terminal")
	c.keys("\x03")
	c.awaitText("^C cancelled")
	c.prompted("eastguard> ")

	// Completion of commands and, from the cluster, of topics.
	c.keys("cons\tord\t")
	c.awaitText("eastguard> consume orders ")
	c.keys("\x15")
	c.keys("topic ")
	c.awaitText("eastguard> topic alter | create | delete | describe | list") // the hint
	c.keys("\t")
	c.awaitText("describe  Show one topic")
	c.keys("\x15")

	// An open quote asks for more; Ctrl-C drops it.
	c.keys("publish orders k 'two\r")
	c.await("the continuation", func(s string) bool { return strings.HasSuffix(s, "\n       ...>\n") })
	c.keys("lines'\r")
	c.awaitText("orders r1 @1  key=k  9 B")
	c.prompted("eastguard> ")
	c.keys("publish orders k 'two\r")
	c.await("the continuation", func(s string) bool { return strings.HasSuffix(s, "\n       ...>\n") })
	c.keys("\x03")
	c.prompted("eastguard> ")

	// A paste of several lines is asked about, and not run when declined.
	c.keys("\x1b[200~create-topic pasted 1\rtopic list\r\x1b[201~")
	c.awaitText("run 2 lines? [y/N]")
	c.keys("n\r")
	c.prompted("eastguard> ")
	c.line(":history 3")
	c.line(" publish orders secret-by-space v")
	c.line("topic delete nothing --yes --if-exists")

	// Twice Ctrl-C leaves.
	c.keys("\x03")
	c.awaitText("Ctrl-C again, Ctrl-D or exit leaves")
	c.keys("\x03")
	if code := c.exit(); code != 0 {
		t.Errorf("exit %d", code)
	}
	path := filepath.Join(c.home, ".local/state/eastguard/history")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("history has mode %v, %v", info.Mode(), err)
	}
	for line, kept := range map[string]bool{
		"consume orders -f\n": true, "publish orders k \"two\\nlines\"\n": true, "create-topic pasted 1; topic list\n": true, "secret-by-space": false, "my own": false,
	} {
		if strings.Contains(string(b), line) != kept {
			t.Errorf("history has %q: %v, want %v\n%s", line, !kept, kept, b)
		}
	}
}

func TestPromptWithoutABroker(t *testing.T) {
	broker := sdktest.Start(t)
	c := startConsole(t, broker.Addr(), nil)
	c.line("topic list")
	broker.Stop()
	c.keys("topic list -t 0.3\r")
	c.awaitText("[UNREACHABLE]")
	c.prompted("eastguard(offline)> ")
	c.keys("version\r") // needs no broker, and proves nothing of one
	c.prompted("eastguard(offline)> ")
	broker.Restart()
	c.keys("cluster health --wait\r")
	c.awaitText("healthy: 1 node")
	c.line("topic list")
	c.keys("exit\r")
	if code := c.exit(); code != 0 {
		t.Errorf("exit %d", code)
	}
}

func TestPromptIsTerminated(t *testing.T) {
	broker := sdktest.Start(t)
	c := startConsole(t, broker.Addr(), nil)
	c.prompted("eastguard> ")
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := c.exit(); code != 143 {
		t.Errorf("exit %d, want 143", code)
	}
}

func TestPromptOnADumbTerminal(t *testing.T) {
	broker := sdktest.Start(t)
	c := startConsole(t, broker.Addr(), nil, "TERM=dumb")
	c.line("version")
	c.keys("topic lst\r")
	c.awaitText(`did you mean "eg-cli topic list"?`)
	c.keys("quit\r")
	if code := c.exit(); code != 0 {
		t.Errorf("exit %d", code)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if strings.Contains(c.raw.String(), "\x1b") {
		t.Errorf("escape codes on a dumb terminal: %q", c.raw.String())
	}
}

// TestSignals checks the exit codes of one-shot commands that are stopped, and that what they printed is whole.
func TestSignals(t *testing.T) {
	broker := sdktest.Start(t, sdktest.WithTopic("t", 1))
	for sig, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		cmd := exec.Command("eg-cli", "publish", "t", "k", "v{{.Count}}", "-n", "3")
		cmd.Env = append(os.Environ(), "EG_SEEDS="+broker.Addr())
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatal(err, string(out))
		}
		cmd = exec.Command("eg-cli", "consume", "t", "-f", "-o", "jsonl")
		cmd.Env = append(os.Environ(), "EG_SEEDS="+broker.Addr())
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		first := make([]byte, 1)
		if _, err := out.Read(first); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		var rest bytes.Buffer
		if _, err := rest.ReadFrom(out); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != want {
			t.Errorf("%v: exit %d, want %d", sig, code, want)
		}
		if !strings.HasSuffix(rest.String(), "}\n") {
			t.Errorf("%v: the last line is cut: %q", sig, rest.String())
		}
	}
}

// What repaints the screen ends with q or Ctrl-C, and the prompt after it takes lines as before.
func TestPromptAfterAWatch(t *testing.T) {
	broker := sdktest.Start(t)
	c := startConsole(t, broker.Addr(), nil)
	c.line("create-topic orders 1")
	for _, key := range []string{"q", "\x03"} {
		before := strings.Count(c.screen(), "q ends")
		c.keys("shard leaders -w=100ms\r")
		c.await("a repaint", func(s string) bool { return strings.Count(s, "q ends") >= before+2 })
		c.keys(key)
		c.prompted("eastguard> ")
		c.line("topic list")
	}
	if strings.Contains(c.screen(), "eastguard> q") {
		t.Errorf("the key became part of the next line:\n%s", c.screen())
	}
	c.keys("\x04")
	if code := c.exit(); code != 0 {
		t.Errorf("exit %d", code)
	}
}
