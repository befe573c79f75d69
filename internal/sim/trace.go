package sim

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// maxTrace bounds what one run keeps; a run that is longer loses its middle.
const maxTrace = 32 << 20

// Trace is everything that happened in a run, on the run's own clock: what the script did, what clients were told, and
// the logs of all brokers.
type Trace struct {
	mu    sync.Mutex
	began time.Time
	buf   bytes.Buffer
	full  bool
}

func newTrace() *Trace { return &Trace{began: time.Now()} }

// Logf adds a line.
func (tr *Trace) Logf(who, format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.buf.Len() > maxTrace {
		if !tr.full {
			tr.buf.WriteString("the trace is full\n")
		}
		tr.full = true
		return
	}
	fmt.Fprintf(&tr.buf, "%12.6f  %-8s %s\n", time.Since(tr.began).Seconds(), who, line)
}

// logger is a broker's logger.
func (tr *Trace) logger(who string) *slog.Logger {
	level := slog.LevelInfo
	if os.Getenv("EASTGUARD_SIM_DEBUG") != "" {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(traceWriter{tr, who}, &slog.HandlerOptions{
		Level: level,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}

type traceWriter struct {
	trace *Trace
	who   string
}

func (w traceWriter) Write(line []byte) (int, error) {
	w.trace.Logf(w.who, "%s", bytes.TrimSuffix(line, []byte("\n")))
	return len(line), nil
}

// tail is the last n lines.
func (tr *Trace) tail(n int) string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	lines := strings.Split(tr.buf.String(), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// keep writes the trace of a run that failed where somebody can read it, and says where that is.
func (tr *Trace) keep(t *testing.T, seed uint64) {
	dir := os.Getenv("EASTGUARD_SIM_TRACES")
	if dir == "" {
		dir = filepath.Join(os.TempDir(), "eastguard-sim")
	}
	name := filepath.Join(dir, fmt.Sprintf("%s-%d.txt", strings.ReplaceAll(t.Name(), "/", "-"), seed))
	tr.mu.Lock()
	defer tr.mu.Unlock()
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		err = os.WriteFile(name, tr.buf.Bytes(), 0o644)
	}
	if err != nil {
		t.Logf("the trace cannot be kept: %v", err)
		return
	}
	t.Logf("seed %d; the trace is in %s; again: EASTGUARD_SIM_SEED=%d go test ./internal/sim -run '^%s$'", seed, name, seed, strings.Split(t.Name(), "/")[0])
}
