package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/config"
)

// fakeBroker does what its test says, in virtual time.
type fakeBroker struct {
	startErr  error
	startTime time.Duration
	closeErr  error
	closeTime time.Duration
	fatal     chan error
	stopped   chan error
	retired   chan struct{}

	mu     sync.Mutex
	closed bool
}

// open makes the channels, inside the bubble. What a timer will send comes after it.
func (b *fakeBroker) open() *fakeBroker {
	b.fatal, b.stopped, b.retired = make(chan error, 1), make(chan error, 1), make(chan struct{}, 1)
	return b
}

func (b *fakeBroker) Start(ctx context.Context) error {
	select {
	case <-time.After(b.startTime):
		return b.startErr
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *fakeBroker) Addr() string        { return "127.0.0.1:2921" }
func (b *fakeBroker) Fatal() <-chan error { return b.fatal }

func (b *fakeBroker) Stopped() <-chan error { return b.stopped }

func (b *fakeBroker) Retired() <-chan struct{} { return b.retired }

func (b *fakeBroker) Close() error {
	time.Sleep(b.closeTime)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	return b.closeErr
}

type result struct {
	code           int
	stdout, stderr string
	took           time.Duration
}

// runApp runs a command line as the process would, with b as the broker and the signals given at their times.
func runApp(t *testing.T, b *fakeBroker, signals map[time.Duration]os.Signal, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	ch := make(chan os.Signal, len(signals))
	for at, sig := range signals {
		time.AfterFunc(at, func() { ch <- sig })
	}
	a := &app{
		args: args, stdout: &stdout, stderr: &stderr, signals: ch,
		readFile: func(name string) ([]byte, error) {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		},
		interfaces: func() ([]net.Addr, error) { return []net.Addr{&net.IPNet{IP: net.IPv4(10, 0, 0, 7)}}, nil },
		newBroker: func(cfg config.Config, _ config.Sources, _ *slog.Logger) (broker, error) {
			if cfg.AdvertiseHost == "" {
				t.Error("the broker was not given an address to advertise")
			}
			return b, nil
		},
	}
	began := time.Now()
	code := a.run()
	return result{code, stdout.String(), stderr.String(), time.Since(began)}
}

func TestLifeOfTheProcess(t *testing.T) {
	type signals = map[time.Duration]os.Signal
	inUse := base.Errorf(base.CodeInternal, "listen", "tcp 0.0.0.0:2921: address already in use").WithHint("stop the other process, or choose another --client-port")
	for _, tc := range []struct {
		name    string
		broker  *fakeBroker
		signals signals
		fatal   time.Duration
		stopped time.Duration
		retired time.Duration
		code    int
		took    time.Duration
		stderr  []string
		closed  bool
	}{
		{
			name: "graceful stop", broker: &fakeBroker{closeTime: time.Second},
			signals: signals{time.Minute: syscall.SIGTERM}, code: 0, took: time.Minute + time.Second,
			stderr: []string{"msg=ready", "client_address=127.0.0.1:2921", "msg=stopping signal=terminated", "msg=stopped"}, closed: true,
		},
		{
			name: "second signal", broker: &fakeBroker{closeTime: time.Hour},
			signals: signals{time.Minute: syscall.SIGTERM, 2 * time.Minute: syscall.SIGINT}, code: 130, took: 2 * time.Minute,
			stderr: []string{"stopped at once"},
		},
		{
			name: "signal during the start", broker: &fakeBroker{startTime: time.Hour},
			signals: signals{time.Second: syscall.SIGINT}, code: 0, took: time.Second, stderr: []string{"msg=stopped"}, closed: true,
		},
		{
			name: "start fails", broker: &fakeBroker{startErr: inUse}, code: 1,
			stderr: []string{"eastguard: listen: tcp 0.0.0.0:2921: address already in use; hint: stop the other process, or choose another --client-port\n"}, closed: true,
		},
		{
			name: "stop fails", broker: &fakeBroker{closeErr: errors.New("wal: fsync: input/output error")},
			signals: signals{time.Second: syscall.SIGTERM}, code: 1, took: time.Second, stderr: []string{"eastguard: wal: fsync: input/output error\n"}, closed: true,
		},
		{
			name: "failed fsync", broker: &fakeBroker{}, fatal: time.Minute, code: 74, took: time.Minute,
			stderr: []string{"eastguard: stable storage failed: fsync: input/output error; hint: check the disk"},
		},
		{
			name: "a double runs", broker: &fakeBroker{}, stopped: time.Minute, code: 1, took: time.Minute,
			stderr: []string{"eastguard: another process of this node was met"},
		},
		{
			name: "a double is met during the start", broker: &fakeBroker{startTime: time.Hour}, stopped: time.Minute, code: 1, took: time.Minute,
			stderr: []string{"eastguard: another process of this node was met"},
		},
		{
			name: "told to leave", broker: &fakeBroker{closeTime: time.Second}, retired: time.Minute, code: 0, took: time.Minute + time.Second,
			stderr: []string{"msg=stopping", "msg=stopped"}, closed: true,
		},
		{
			name: "failed fsync while stopping", broker: &fakeBroker{closeTime: time.Hour}, fatal: time.Minute,
			signals: signals{time.Second: syscall.SIGTERM}, code: 74, took: time.Minute, stderr: []string{"stable storage failed"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tc.broker.open()
				if tc.fatal > 0 {
					time.AfterFunc(tc.fatal, func() { tc.broker.fatal <- errors.New("fsync: input/output error") })
				}
				if tc.stopped > 0 {
					time.AfterFunc(tc.stopped, func() { tc.broker.stopped <- errors.New("another process of this node was met") })
				}
				if tc.retired > 0 {
					time.AfterFunc(tc.retired, func() { tc.broker.retired <- struct{}{} })
				}
				got := runApp(t, tc.broker, tc.signals)
				require.Equal(t, tc.code, got.code, got.stderr)
				require.Equal(t, tc.took, got.took)
				for _, want := range tc.stderr {
					require.Contains(t, got.stderr, want)
				}
				require.Contains(t, got.stderr, "advertised address was chosen")
				require.Empty(t, got.stdout)
				tc.broker.mu.Lock()
				require.Equal(t, tc.closed, tc.broker.closed)
				tc.broker.mu.Unlock()
				// Let what a cut stop has left behind come to its end, as the end of the process would.
				time.Sleep(2 * time.Hour)
			})
		})
	}
}

func TestJSONLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := runApp(t, new(fakeBroker).open(), map[time.Duration]os.Signal{time.Second: syscall.SIGTERM}, "--log-format", "json", "--host", "127.0.0.1")
		require.Zero(t, got.code)
		for line := range strings.Lines(got.stderr) {
			var m map[string]any
			require.NoError(t, json.Unmarshal([]byte(line), &m), line)
		}
		require.Contains(t, got.stderr, `"msg":"ready"`)
		require.Contains(t, got.stderr, `"took_ms":`)
	})
}

func TestColourOnlyInTextLogs(t *testing.T) {
	for _, tc := range []struct {
		format string
		colour bool
		want   bool
	}{{"text", true, true}, {"text", false, false}, {"json", true, false}} {
		var out bytes.Buffer
		cfg := config.Default()
		cfg.LogFormat = tc.format
		log := newLogger(cfg, &out, tc.colour)
		log.Debug("below the level")
		log.Warn("hello")
		require.Contains(t, out.String(), "hello")
		require.NotContains(t, out.String(), "below")
		require.Equal(t, tc.want, strings.Contains(out.String(), "\x1b["), "%+v", tc)
	}
}

func TestCommandLine(t *testing.T) {
	for _, tc := range []struct {
		args           string
		code           int
		stdout, stderr string
	}{
		{args: "--version", stdout: "eastguard 0.1.0-dev (commit "},
		{args: "version", stdout: "eastguard 0.1.0-dev (commit "},
		{args: "--help", stdout: "--segment-size-limit-bytes bytes"},
		{args: "config print", stdout: "client_port "},
		{args: "config print --client-port 4000", stdout: "flag --client-port"},
		{args: "config print -o json", stdout: `"source": "default"`},
		{args: "config check", stdout: "the configuration is valid", stderr: "warning: advertise_host is not set"},
		{args: "config check -o json --host 127.0.0.1", stdout: `"key": "host"`},
		{args: "config print -o xml", code: 2, stderr: `eastguard: --output: "xml" is not table or json; hint: `},
		{args: "config", code: 2, stderr: "eastguard: config needs a verb: print or check; hint: "},
		{args: "config prnt", code: 2, stderr: `eastguard: unknown command "prnt"; hint: did you mean eastguard config print?`},
		{args: "start", code: 2, stderr: `eastguard: unexpected argument "start"; hint: `},
		{args: "verson", code: 2, stderr: `did you mean eastguard version?`},
		{args: "version now", code: 2, stderr: `unexpected argument "now"`},
		{args: "--no-such-flag", code: 2, stderr: "eastguard: unknown flag: --no-such-flag; hint: eastguard --help"},
		{args: "--client-port x", code: 2, stderr: `"x" is not a whole number`},
		{args: "-c none.yaml", code: 2, stderr: "eastguard: configuration file: open none.yaml: file does not exist; hint: check the path given with -c"},
		{args: "config check --shards 3", code: 2, stderr: "shards: 3 is not a power of two; hint: use a power of two such as 32"},
		{args: "config check -c none.yaml", code: 2, stderr: "configuration file: open none.yaml"},
	} {
		t.Run(tc.args, func(t *testing.T) {
			got := runApp(t, nil, nil, strings.Fields(tc.args)...)
			require.Equal(t, tc.code, got.code, got.stderr)
			require.Contains(t, got.stdout, tc.stdout)
			require.Contains(t, got.stderr, tc.stderr)
			if tc.code != 0 {
				require.Equal(t, 1, strings.Count(got.stderr, "\n"), "one line: %q", got.stderr)
				require.Empty(t, got.stdout)
			} else if tc.stderr == "" {
				require.Empty(t, got.stderr)
			}
		})
	}
}

func TestConfigJSONHoldsKeyValueSource(t *testing.T) {
	got := runApp(t, nil, nil, "config", "print", "-o", "json", "--rack", "r1")
	var rows []struct {
		Key, Source string
		Value       any
	}
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &rows))
	require.Len(t, rows, len(config.Settings()))
	for _, row := range rows {
		if row.Key == "rack" {
			require.Equal(t, "r1", row.Value)
			require.Equal(t, "flag --rack", row.Source)
		}
	}
}

func TestMistypedEnvironmentIsTold(t *testing.T) {
	const want = "warning: the environment's EASTGUARD_CLINT_PORT is no setting and has no effect; did you mean EASTGUARD_CLIENT_PORT?\n"
	var stdout, stderr bytes.Buffer
	a := &app{
		args: []string{"config", "check", "--host", "127.0.0.1"}, stdout: &stdout, stderr: &stderr,
		env:      []string{"EASTGUARD_CLINT_PORT=1", "EASTGUARD_SOAK=1", "EASTGUARD_RACK=r", "CLINT_PORT=1"},
		readFile: func(string) ([]byte, error) { return nil, fs.ErrNotExist },
	}
	require.Equal(t, 0, a.run())
	require.Equal(t, want, stderr.String())
}

func TestNoRoutableAddressIsRefusedBeforeTheStart(t *testing.T) {
	a := &app{
		stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{},
		readFile:   func(string) ([]byte, error) { return nil, fs.ErrNotExist },
		interfaces: func() ([]net.Addr, error) { return nil, nil },
	}
	require.Equal(t, 2, a.run())
	require.Contains(t, a.stderr.(*bytes.Buffer).String(), "hint: set advertise_host")
}

func TestErrorsAreOneLine(t *testing.T) {
	require.Equal(t, "eastguard: a b", oneLine(errors.New("a\n\tb")))
}

func TestCommit(t *testing.T) {
	require.Equal(t, "unknown", commitOf(nil))
	require.Equal(t, "0123456789ab+changes", commitOf([]debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"},
	}))
}

func TestErrorsReachNoTerminalAsEscapes(t *testing.T) {
	text := oneLine(base.Errorf(base.CodeInvalidArgument, "", "open \x1b[2J\u202e:\nno such file").WithHint("look at \u009b1m"))
	require.Equal(t, `eastguard: open \x1b[2J\u{202e}: no such file; hint: look at \u{009b}1m`, text)
}
