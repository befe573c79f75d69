package routing

import (
	"context"
	"sync"

	"github.com/eastguard/eastguard/internal/base"
)

// gate bounds the requests under way and lets Close wait for them.
type gate struct {
	most, mostShard int

	mu      sync.Mutex
	total   int
	byShard map[base.ShardID]int
	closed  bool
	idle    chan struct{} // made by close, closed when nothing is under way any more
}

func newGate(most, mostShard int) *gate {
	return &gate{most: most, mostShard: mostShard, byShard: make(map[base.ShardID]int)}
}

// enter counts a request in, or says why not. It never waits.
func (g *gate) enter(shard base.ShardID) error {
	const op = "take request"
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed:
		return base.Errorf(base.CodeShuttingDown, op, "the broker is stopping")
	case g.total >= g.most:
		return base.Errorf(base.CodeBusy, op, "%d requests are under way already", g.total)
	case g.byShard[shard] >= g.mostShard:
		return base.Errorf(base.CodeBusy, op, "%d requests wait for shard %s already", g.byShard[shard], shard)
	}
	g.total++
	g.byShard[shard]++
	return nil
}

func (g *gate) leave(shard base.ShardID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.total--
	if g.byShard[shard]--; g.byShard[shard] == 0 {
		delete(g.byShard, shard)
	}
	if g.closed && g.total == 0 {
		close(g.idle)
	}
}

// close refuses what comes from now on and waits for what is under way, or for ctx.
func (g *gate) close(ctx context.Context) {
	g.mu.Lock()
	if !g.closed {
		g.closed, g.idle = true, make(chan struct{})
		if g.total == 0 {
			close(g.idle)
		}
	}
	idle := g.idle
	g.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
	}
}
