package server

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// lockedBuffer is a log that several goroutines write.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A node that has founded a cluster by mistake, and is then told whom to join, says why it does not.
func TestASeedOfAnotherCluster(t *testing.T) {
	t.Parallel()
	there := newMachine(t, 1)
	there.start()
	var log lockedBuffer
	here := newMachine(t, 2)
	here.deps = func(d *Deps) { d.Logger = slog.New(slog.NewTextHandler(&log, nil)) }
	here.start()
	here.stop()
	require.NotContains(t, log.String(), "another cluster")

	here.cfg.JoinSeedNodes = []string{there.seed()}
	here.start()
	soon(t, "it is said", func() bool { return strings.Contains(log.String(), "a seed belongs to another cluster") })
	require.Contains(t, log.String(), there.srv.id.Cluster.String())
	require.Contains(t, log.String(), "needs empty directories")
}
