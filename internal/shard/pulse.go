package shard

import "sync"

// pulse wakes everybody who waits for something to change.
type pulse struct {
	mu sync.Mutex
	c  chan struct{}
}

// next is closed by the beat that comes next.
func (p *pulse) next() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.c == nil {
		p.c = make(chan struct{})
	}
	return p.c
}

func (p *pulse) beat() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.c != nil {
		close(p.c)
		p.c = nil
	}
}
