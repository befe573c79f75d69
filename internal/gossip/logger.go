package gossip

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"time"
)

// logWriter lets memberlist log through slog. Refusals and failed probes are its daily bread, so all but its errors are
// our Debug, and of those at most one a second gets through.
type logWriter struct {
	log *slog.Logger

	mu         sync.Mutex
	last       time.Time
	suppressed int
}

func (w *logWriter) Write(line []byte) (int, error) {
	level := slog.LevelDebug
	if bytes.HasPrefix(line, []byte("[ERR")) {
		level = slog.LevelWarn
	}
	if !w.log.Enabled(context.Background(), level) {
		return len(line), nil
	}
	suppressed, ok := 0, true
	if level > slog.LevelDebug {
		suppressed, ok = w.allow()
	}
	if ok {
		_, detail, _ := bytes.Cut(bytes.TrimSpace(line), []byte("memberlist: "))
		w.log.Log(context.Background(), level, "memberlist", "detail", string(detail), "suppressed", suppressed)
	}
	return len(line), nil
}

// allow lets one line a second through and says how many it kept back before.
func (w *logWriter) allow() (suppressed int, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if now.Sub(w.last) < time.Second {
		w.suppressed++
		return 0, false
	}
	w.last, suppressed, w.suppressed = now, w.suppressed, 0
	return suppressed, true
}
