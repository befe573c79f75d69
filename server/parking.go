package server

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/wire"
)

// maxParked bounds the fetches that wait for data.
const maxParked = 16_384

// gapPoll is how often a fetch at the end of a sealed segment looks for the successor, which the store cannot announce
// before it knows it: for the milliseconds of a roll.
const gapPoll = 5 * time.Millisecond

// park lets the fetch wait for more. It reports false when too many do.
func (f *fetch) park(a *answer) bool {
	p := &parking{f: f}
	if !f.s.parked.add(p) {
		return false
	}
	for _, part := range a.parts {
		part.Release()
	}
	// From here on p.wake may run at any time, also before all waits are set up.
	until := f.deadline
	for i := range a.Ranges {
		if a.Ranges[i].State == wire.FetchNext {
			until = earlier(until, time.Now().Add(gapPoll))
		}
	}
	timer := time.AfterFunc(time.Until(until), p.wake)
	p.add(func() { timer.Stop() })
	stop := context.AfterFunc(f.ctx, p.wake)
	p.add(func() { stop() })
	for i := range a.Ranges {
		r := &a.Ranges[i]
		if r.State == wire.FetchNext {
			continue
		}
		p.add(f.s.store.Notify(base.RangeRef{Topic: r.Topic, Range: r.Range}, max(r.Commit, r.Next), p.wake))
	}
	return true
}

// parking is one wait of a fetch: whatever comes first ends it, once.
type parking struct {
	f       *fetch
	woken   atomic.Bool
	mu      sync.Mutex
	cancels []func()
}

// wake lets the fetch read again. The pool ends the other waits, so that an append does not wait for it.
func (p *parking) wake() {
	if p.woken.Swap(true) {
		return
	}
	f := p.f
	f.s.parked.remove(p)
	if err := f.s.fetchPool.run(func() { p.cancel(); f.serve() }); err != nil {
		p.cancel() // an idle range would keep its waiter for ever
		f.r.Fail(err)
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// add remembers how to end one of the waits; if the parking has ended meanwhile, it ends it at once.
func (p *parking) add(cancel func()) {
	p.mu.Lock()
	ended := p.woken.Load()
	if !ended {
		p.cancels = append(p.cancels, cancel)
	}
	p.mu.Unlock()
	if ended {
		cancel()
	}
}

func (p *parking) cancel() {
	p.mu.Lock()
	cancels := p.cancels
	p.cancels = nil
	p.mu.Unlock()
	for _, c := range cancels {
		c()
	}
}

// parkingLot holds the fetches that wait: a bounded number, all of which shutdown can wake.
type parkingLot struct {
	mu     sync.Mutex
	parked map[*parking]struct{}
	closed bool
}

func (l *parkingLot) add(p *parking) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.parked) >= maxParked {
		return false
	}
	if l.parked == nil {
		l.parked = make(map[*parking]struct{})
	}
	l.parked[p] = struct{}{}
	return true
}

func (l *parkingLot) remove(p *parking) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.parked, p)
}

func (l *parkingLot) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.parked)
}

func (l *parkingLot) all() []*parking {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.parked))
}

// close wakes all and lets nobody park any more.
func (l *parkingLot) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	for _, p := range l.all() {
		p.wake()
	}
}
