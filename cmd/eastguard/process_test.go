package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/sdk"
)

// The tests here run the broker as a process of its own: this test binary, which becomes the broker when the
// variable below is set, or when it is started under the name eastguard.
const runAsBroker = "EASTGUARD_TEST_RUN_AS_BROKER"

func TestMain(m *testing.M) {
	if os.Getenv(runAsBroker) != "" {
		main()
	}
	testscript.Main(m, map[string]func(){"eastguard": main})
}

// TestScripts runs the command lines of testdata/script.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", RequireExplicitExec: true})
}

// limit bounds each wait for a process. It is met only when something is wrong.
const limit = 30 * time.Second

// process is a broker that was started, and what it has said so far.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	ready chan string   // gets the client address, once
	done  chan struct{} // closed when the process has ended

	mu     sync.Mutex
	stderr bytes.Buffer
}

// command is a broker's command line on data below dir and on a port of its own.
func command(dir string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], append([]string{
		"--host", "127.0.0.1", "--client-port", "0", "--cluster-port", "0", "--data-port", "0", "--admin-port", "0",
		"--node-id", "n1", "--log-format", "json", "--data-dir", filepath.Join(dir, "data"), "--meta-dir", filepath.Join(dir, "meta"),
	}, args...)...)
	cmd.Env = append(os.Environ(), runAsBroker+"=1")
	cmd.Dir = dir
	return cmd
}

// spawn starts a broker and returns at once.
func spawn(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: command(dir, args...), ready: make(chan string, 1), done: make(chan struct{})}
	stderr, err := p.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	go func() {
		p.read(stderr)
		_ = p.cmd.Wait() // the exit code is asked for by whoever cares
		close(p.done)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
		if t.Failed() {
			t.Logf("the last of pid %d's log:\n%s", p.cmd.Process.Pid, p.logTail())
		}
	})
	return p
}

// read keeps what the process says and watches for the line that it is ready.
func (p *process) read(stderr io.Reader) {
	lines := bufio.NewScanner(stderr)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		p.mu.Lock()
		p.stderr.Write(append(lines.Bytes(), '\n'))
		p.mu.Unlock()
		var line struct {
			Msg           string `json:"msg"`
			ClientAddress string `json:"client_address"`
		}
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "ready" {
			p.ready <- line.ClientAddress
		}
	}
}

func (p *process) log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.String()
}

func (p *process) logTail() string {
	lines := strings.Split(p.log(), "\n")
	return strings.Join(lines[max(len(lines)-40, 0):], "\n")
}

// address waits until the broker is ready.
func (p *process) address() string {
	p.t.Helper()
	select {
	case addr := <-p.ready:
		p.ready <- addr
		return addr
	case <-p.done:
		p.t.Fatalf("the broker ended before it was ready:\n%s", p.logTail())
	case <-time.After(limit):
		p.t.Fatal("the broker is not ready in time")
	}
	return ""
}

// exit waits for the end of the process and returns its exit code.
func (p *process) exit() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(limit):
		p.t.Fatal("the broker does not end")
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) signal(sig os.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(sig))
}

func needsProcess(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: no processes")
	}
}

func newClient(t *testing.T, addr string) *sdk.Client {
	t.Helper()
	c, err := sdk.NewClient(sdk.WithSeeds(addr))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// within bounds the operations of one test.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func createTopic(t *testing.T, c *sdk.Client, name string, config sdk.TopicConfig) {
	t.Helper()
	config.ReplicationFactor = 1
	_, err := c.Admin().CreateTopic(within(t, limit), sdk.CreateTopic{Name: name, Config: config})
	require.NoError(t, err)
}

// readAll returns every record of a topic as it is now.
func readAll(t *testing.T, c *sdk.Client, topic string) []sdk.Message {
	t.Helper()
	consumer, err := c.NewConsumer(sdk.WithTopics(topic), sdk.WithStart(sdk.Earliest()), sdk.WithStop(sdk.StopAtEnd()))
	require.NoError(t, err)
	defer consumer.Close()
	ctx := within(t, time.Minute)
	var all []sdk.Message
	for {
		batch, err := consumer.Poll(ctx)
		all = append(all, batch...)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
	}
}

func TestStopsGracefullyAndKeepsItsData(t *testing.T) {
	needsProcess(t)
	dir := t.TempDir()
	p := spawn(t, dir)
	c := newClient(t, p.address())
	createTopic(t, c, "orders", sdk.TopicConfig{})
	producer, err := c.NewProducer("orders")
	require.NoError(t, err)
	ack, err := producer.Send(within(t, limit), sdk.Record{Key: []byte("k"), Value: []byte("v")})
	require.NoError(t, err)
	require.NoError(t, producer.Close(within(t, limit)))
	require.NoError(t, c.Close())

	p.signal(syscall.SIGTERM)
	require.Zero(t, p.exit(), p.log())
	require.Contains(t, p.log(), `"msg":"stopped"`)

	again := spawn(t, dir)
	all := readAll(t, newClient(t, again.address()), "orders")
	require.Len(t, all, 1)
	require.Equal(t, ack.Offset, all[0].Offset)
	require.Equal(t, "k=v", fmt.Sprintf("%s=%s", all[0].Key, all[0].Value))
	again.signal(syscall.SIGINT)
	require.Zero(t, again.exit(), again.log())
}

// Whatever keeps a broker from starting is one line that says how to mend it, and exit 1 or 2.
func TestRefusesToStart(t *testing.T) {
	needsProcess(t)
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer busy.Close()
	_, busyPort, err := net.SplitHostPort(busy.Addr().String())
	require.NoError(t, err)

	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	foreign := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(foreign, "payroll.xls"), []byte("not ours"), 0o600))
	badYAML := filepath.Join(t.TempDir(), "bad.yaml")
	require.NoError(t, os.WriteFile(badYAML, []byte("client_port: 1\nrack: [\n"), 0o600))
	running := t.TempDir()
	spawn(t, running).address()

	for _, tc := range []struct {
		name string
		dir  string // of the broker; a new one when empty
		args []string
		code int
		says string
	}{
		{name: "port in use", args: []string{"--client-port", busyPort}, code: 1, says: busyPort},
		{name: "data directory below a file", args: []string{"--data-dir", filepath.Join(file, "data")}, code: 1, says: file},
		{name: "unwritable data directory", args: []string{"--data-dir", "/proc/eastguard/data"}, code: 1, says: "/proc/eastguard"},
		{name: "foreign data directory", args: []string{"--data-dir", foreign}, code: 1, says: foreign},
		{name: "data directory in use", dir: running, code: 1, says: running},
		{name: "bad YAML", args: []string{"-c", badYAML}, code: 2, says: "bad.yaml:2: "},
		{name: "missing file", args: []string{"-c", "none.yaml"}, code: 2, says: "none.yaml"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := tc.dir
			if dir == "" {
				dir = t.TempDir()
			}
			cmd := command(dir, append(tc.args, "--log-level", "error")...)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			err := cmd.Run()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit)
			require.Equal(t, tc.code, exit.ExitCode(), stderr.String())
			last := lastLine(stderr.String())
			require.True(t, strings.HasPrefix(last, "eastguard: "), stderr.String())
			require.Contains(t, last, tc.says)
			require.Contains(t, last, "; hint: ")
			require.NotContains(t, stderr.String(), "goroutine ")
		})
	}
	require.FileExists(t, filepath.Join(foreign, "payroll.xls"))
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}

// Whatever comes in on the client port, memory stays flat and clients do not notice.
func TestGarbageOnThePort(t *testing.T) {
	needsProcess(t)
	p := spawn(t, t.TempDir())
	addr := p.address()
	c := newClient(t, addr)
	createTopic(t, c, "orders", sdk.TopicConfig{})
	producer, err := c.NewProducer("orders", sdk.WithLinger(0))
	require.NoError(t, err)
	before := residentBytes(t, p)

	rng := rand.NewChaCha8([32]byte{7})
	random := make([]byte, 64<<10)
	for round := range 100 {
		_, _ = rng.Read(random)
		for _, garbage := range [][]byte{
			random[:1+int(random[0])],
			random,
			[]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
			append([]byte("EG\x01\x00\x00\x01\x00\x00\x7f\xff\xff\xff\x7f\xff\xff\xff"), random[:64]...), // lengths of 2^31-1
			append([]byte("EG\x01\x00\x00\x01\x00\x00\x00\xff\xff\xff\x00\x00\x00\x00"), random[:64]...), // a frame that is never finished
			nil,
		} {
			conn, err := net.Dial("tcp", addr)
			require.NoError(t, err)
			_, _ = conn.Write(garbage) // refused halfway or not: both are fine
			require.NoError(t, conn.Close())
		}
		_, err := producer.Send(within(t, limit), sdk.Record{Value: []byte{byte(round)}})
		require.NoError(t, err)
	}
	require.Len(t, readAll(t, c, "orders"), 100)
	require.Less(t, residentBytes(t, p)-before, int64(64<<20))
}

func residentBytes(t *testing.T, p *process) int64 {
	t.Helper()
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.cmd.Process.Pid))
	if err != nil {
		t.Skip("memory is read from /proc, which is not there")
	}
	pages, err := strconv.ParseInt(strings.Fields(string(statm))[1], 10, 64)
	require.NoError(t, err)
	return pages * int64(os.Getpagesize())
}
