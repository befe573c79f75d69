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
	p := &parking{}
	wake := func() {
		if p.woken.Swap(true) {
			return
		}
		f.s.parked.remove(f)
		if err := f.s.fetchPool.run(func() { p.cancel(); f.serve() }); err != nil {
			f.r.Fail(err)
		}
	}
	if !f.s.parked.add(f, wake) {
		return false
	}
	for _, part := range a.parts {
		part.Release()
	}
	// From here on wake may run at any time, also before all waits are set up.
	until := f.deadline
	for i := range a.Ranges {
		if a.Ranges[i].State == wire.FetchNext {
			until = earlier(until, time.Now().Add(gapPoll))
		}
	}
	timer := time.AfterFunc(time.Until(until), wake)
	p.add(func() { timer.Stop() })
	stop := context.AfterFunc(f.ctx, wake)
	p.add(func() { stop() })
	for i := range a.Ranges {
		r := &a.Ranges[i]
		if r.State == wire.FetchNext {
			continue
		}
		p.add(f.s.store.Notify(base.RangeRef{Topic: r.Topic, Range: r.Range}, max(r.Commit, r.Next), wake))
	}
	return true
}

// parking is one wait of a fetch: whatever comes first ends it, once.
type parking struct {
	woken   atomic.Bool
	mu      sync.Mutex
	cancels []func()
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
	wakers map[*fetch]func()
	closed bool
}

func (l *parkingLot) add(f *fetch, wake func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.wakers) >= maxParked {
		return false
	}
	if l.wakers == nil {
		l.wakers = make(map[*fetch]func())
	}
	l.wakers[f] = wake
	return true
}

func (l *parkingLot) remove(f *fetch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.wakers, f)
}

func (l *parkingLot) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.wakers)
}

// close wakes all and lets nobody park any more.
func (l *parkingLot) close() {
	l.mu.Lock()
	l.closed = true
	wakers := slices.Collect(maps.Values(l.wakers))
	l.mu.Unlock()
	for _, wake := range wakers {
		wake()
	}
}
