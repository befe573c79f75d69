package server

import (
	"context"
	"sync"

	"github.com/eastguard/eastguard/internal/base"
)

// crew runs work that may block on goroutines that live only while there is work: at most so many at once, and more is
// refused. It suits what comes seldom, where a pool's workers would sit idle. Its zero value refuses everything.
type crew struct {
	name  string
	limit int

	mu     sync.Mutex
	busy   int
	closed bool
	idle   chan struct{} // closed when the last one has ended after close
}

// run starts work, or says why not.
func (c *crew) run(work func()) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return base.Errorf(base.CodeShuttingDown, c.name, "the broker is stopping")
	case c.busy >= c.limit:
		return base.Errorf(base.CodeBusy, c.name, "%d requests are under way", c.busy)
	}
	c.busy++
	go func() {
		defer c.done()
		work()
	}()
	return nil
}

func (c *crew) done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy--
	if c.busy == 0 && c.idle != nil {
		close(c.idle)
	}
}

// close refuses new work and waits for what runs, or for ctx. It is called once.
func (c *crew) close(ctx context.Context) {
	c.mu.Lock()
	c.closed = true
	idle := make(chan struct{})
	if c.busy == 0 {
		close(idle)
	} else {
		c.idle = idle
	}
	c.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
	}
}
