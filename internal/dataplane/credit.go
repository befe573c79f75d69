package dataplane

import (
	"sync"
	"sync/atomic"
)

// credit bounds what is in flight over all segments of the node, beside what each may have. A segment with nothing in
// flight gets one batch in beyond it, up to twice the limit: segments that wait for a replica hold what they have until
// they are sealed, and must not keep the others from going on.
type credit struct {
	used atomic.Int64

	mu      sync.Mutex
	starved []*actor // found none, in the order they came; each is in it once
}

// hasCredit reports whether a batch may be in flight beside all others. An actor for which there is no credit has a turn
// when there is some.
func (p *Plane) hasCredit(a *actor, size int) bool {
	used, limit := p.credit.used.Load(), p.o.NodeCreditBytes
	if a.lead.credit == 0 {
		limit *= 2
	}
	if used == 0 || used+int64(size) <= limit {
		return true
	}
	if !a.starved {
		a.starved = true
		p.credit.mu.Lock()
		p.credit.starved = append(p.credit.starved, a)
		p.credit.mu.Unlock()
	}
	return false
}

// lend counts a batch that is in flight now.
func (p *Plane) lend(l *lead, size int) {
	l.credit += int64(size)
	p.credit.used.Add(int64(size))
}

// repay gives credit back. Who waits for it has a turn soon, on the watchdog's goroutine.
func (p *Plane) repay(l *lead, size int64) {
	if size == 0 {
		return
	}
	l.credit -= size
	p.credit.used.Add(-size)
	p.credit.mu.Lock()
	waits := len(p.credit.starved) > 0
	p.credit.mu.Unlock()
	if waits {
		mark(p.fed)
	}
}

// feed gives a turn to the actors that waited for credit.
func (p *Plane) feed() {
	p.credit.mu.Lock()
	starved := p.credit.starved
	p.credit.starved = nil
	p.credit.mu.Unlock()
	for _, a := range starved {
		a.box.post(event{kind: evFed})
	}
}

// mark leaves a token in a channel of capacity one.
func mark(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
