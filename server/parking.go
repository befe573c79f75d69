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

// hearPoll is how often a fetch that waits looks whether the leader is still heard, or at the leader whether anybody is.
// Without it nothing would wake the fetch: nothing comes from a node that is gone.
const hearPoll = 200 * time.Millisecond

// gapPoll is how often a fetch at the end of a sealed segment looks for the successor, which the store cannot announce
// before it knows it: for the milliseconds of a roll.
const gapPoll = 5 * time.Millisecond

// gapPatience is how long it does so at most.
const gapPatience = 500 * time.Millisecond

// park lets the fetch wait for more. It reports false when too many do.
func (f *fetch) park(a *answer) bool {
	p := &parking{f: f}
	if !f.s.parked.add(p) {
		return false
	}
	for _, part := range a.parts {
		part.Release()
	}
	p.until = f.deadline
	others := len(f.s.view().Nodes) > 1
	for i := range a.Ranges {
		r := &a.Ranges[i]
		ref := base.RangeRef{Topic: r.Topic, Range: r.Range}
		switch {
		case r.State == wire.FetchNext:
			if p.until = earlier(p.until, time.Now().Add(gapPoll)); f.gapUntil.IsZero() {
				f.gapUntil = time.Now().Add(gapPatience)
			}
		case others:
			p.ends = append(p.ends, end{ref, r.Next})
		}
	}
	// From here on p.wake may run at any time, also before all waits are set up.
	p.timer = time.AfterFunc(time.Hour, p.tick)
	p.timer.Reset(p.patience())
	p.add(func() { p.timer.Stop() })
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
	until   time.Time // an answer comes in any case
	ends    []end     // which are known here only while other nodes are heard
	timer   *time.Timer
	woken   atomic.Bool
	mu      sync.Mutex
	cancels []func()
}

// end is where a range ends as far as a fetch has read it.
type end struct {
	ref    base.RangeRef
	offset int64
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

// patience is how long the fetch may wait before it is looked at.
func (p *parking) patience() time.Duration {
	wait := time.Until(p.until)
	if len(p.ends) > 0 {
		wait = min(wait, hearPoll)
	}
	return wait
}

// tick ends the wait when its time has come, or when a node has fallen silent.
func (p *parking) tick() {
	if p.woken.Load() {
		return
	}
	deaf := slices.ContainsFunc(p.ends, func(e end) bool { return !p.f.s.hearsOn(e.ref, e.offset) })
	if deaf || !time.Now().Before(p.until) {
		p.wake()
		return
	}
	p.timer.Reset(p.patience())
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
