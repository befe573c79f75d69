package shard

import (
	"sync"
	"time"
)

// gate counts who waits for an answer of raft. Raft drops what is still queued when it shuts down without answering
// it, so a group is stopped only once nobody waits, and whoever comes later is turned away.
type gate struct {
	mu     sync.Mutex
	inside int
	shut   bool
	empty  chan struct{} // closed when shut and nobody is inside
}

func newGate() *gate { return &gate{empty: make(chan struct{})} }

// enter reports whether the group still takes requests; if so, leave must follow.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return false
	}
	g.inside++
	return true
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.shut && g.inside == 0 {
		close(g.empty)
	}
}

// close turns newcomers away and waits for the others, but no longer than patience: after a failure of the disk raft
// answers nobody.
func (g *gate) close(patience time.Duration) {
	g.mu.Lock()
	already := g.shut
	g.shut = true
	if !already && g.inside == 0 {
		close(g.empty)
	}
	g.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-g.empty:
	case <-timer.C:
	}
}
