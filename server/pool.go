package server

import (
	"context"
	"sync"

	"github.com/eastguard/eastguard/internal/base"
)

// pool runs work that may block on a fixed number of goroutines behind a bounded queue. It never makes the caller
// wait: a full queue is an answer.
type pool struct {
	name  string
	queue chan func()
	wg    sync.WaitGroup

	mu     sync.RWMutex
	closed bool
}

func newPool(name string, workers, queued int) *pool {
	p := &pool{name: name, queue: make(chan func(), queued)}
	for range workers {
		p.wg.Go(func() {
			for work := range p.queue {
				work()
			}
		})
	}
	return p
}

// run queues work, or says why not.
func (p *pool) run(work func()) error {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.closed {
		return base.Errorf(base.CodeShuttingDown, p.name, "the broker is stopping")
	}
	select {
	case p.queue <- work:
		return nil
	default:
		return base.Errorf(base.CodeBusy, p.name, "%d requests wait already", cap(p.queue))
	}
}

// close refuses new work, runs what is queued and waits for it, or for ctx.
func (p *pool) close(ctx context.Context) {
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		close(p.queue)
	}
	p.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.wg.Wait()
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}
