package server

import (
	"log/slog"
	"strings"
	"testing"
)

// Whoever reads one node's log learns there that others came and went.
func TestTheLogTellsOfMembers(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	here, there := newMachine(t, 1), newMachine(t, 2)
	here.deps = func(d *Deps) { d.Logger = slog.New(slog.NewTextHandler(&log, nil)) }
	here.start()
	there.cfg.JoinSeedNodes = []string{here.seed()}
	there.start()
	soon(t, "n2 is said to have joined", func() bool {
		return strings.Contains(log.String(), `level=INFO msg="node joined" node=n2 boot=1 liveness=alive`)
	})
	there.stop()
	soon(t, "n2 is said to have left", func() bool {
		return strings.Contains(log.String(), `level=INFO msg="node left" node=n2 boot=1 liveness=left`)
	})
}
