package store

import (
	"sync"
	"sync/atomic"

	"github.com/eastguard/eastguard/internal/base"
)

// waiters are the readers that wait for a range to change. Nobody sleeps here: each is a function.
type waiters struct {
	n    atomic.Int64 // len(list); lets Publish pass by without the lock
	mu   sync.Mutex
	list []*waiter
}

type waiter struct {
	above int64
	wake  func()
}

func (w *waiters) add(x *waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, x)
	w.n.Store(int64(len(w.list)))
}

// remove takes x out and reports whether it was still in.
func (w *waiters) remove(x *waiter) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, y := range w.list {
		if x == y {
			w.drop(i)
			return true
		}
	}
	return false
}

func (w *waiters) drop(i int) {
	last := len(w.list) - 1
	w.list[i], w.list[last] = w.list[last], nil
	w.list = w.list[:last]
	if last == 0 {
		w.list = nil
	}
	w.n.Store(int64(last))
}

// take removes and returns those for whom match holds.
func (w *waiters) take(match func(*waiter) bool) []*waiter {
	if w.n.Load() == 0 {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var taken []*waiter
	for i := len(w.list) - 1; i >= 0; i-- {
		if x := w.list[i]; match(x) {
			taken = append(taken, x)
			w.drop(i)
		}
	}
	return taken
}

// wakeUp wakes those who wait for a commit above what commit is not.
func (w *waiters) wakeUp(commit int64) {
	for _, x := range w.take(func(x *waiter) bool { return commit > x.above }) {
		x.wake()
	}
}

// wakeAll wakes everybody: the range has changed otherwise, and each has to look again.
func (w *waiters) wakeAll() {
	for _, x := range w.take(func(*waiter) bool { return true }) {
		x.wake()
	}
}

// Notify calls wake once, from any goroutine, possibly before it returns, when the range's commit is above the given
// offset or the range changes otherwise: a segment is opened, sealed or dropped, the store closes. wake must not block.
// cancel takes the waiter away; wake may still be under way then.
func (s *Store) Notify(ref base.RangeRef, above int64, wake func()) (cancel func()) {
	rng := s.rangeOf(ref)
	if rng == nil {
		wake()
		return func() {}
	}
	x := &waiter{above: above, wake: wake}
	rng.waiting.add(x)
	// Look only now: a commit published before the waiter was in the list is seen here, a later one sees the waiter.
	if s.changedFor(rng, above) && rng.waiting.remove(x) {
		wake()
	}
	return func() { rng.waiting.remove(x) }
}

// changedFor reports whether a reader that waits at above has something to do.
func (s *Store) changedFor(rng *rangeLog, above int64) bool {
	if s.closing.Load() || s.failed.Load() != nil {
		return true
	}
	g := find(rng.segments(), above)
	return g == nil || g.commit.Load() > above || g.sealed.Load() >= 0
}

// wakeAll wakes every waiter of every range: the store is going away.
func (s *Store) wakeAll() {
	s.mu.RLock()
	var all []*rangeLog
	for _, ranges := range s.topics {
		for _, r := range ranges {
			all = append(all, r)
		}
	}
	s.mu.RUnlock()
	for _, r := range all {
		r.waiting.wakeAll()
	}
}

// Publish lets readers see what lies below commit, which every replica has made durable, and wakes those that waited
// for it: as much of it as is durable here, or in memory where the topic asks for no more. A lower commit than the last
// one changes nothing.
func (s *Store) Publish(seg base.SegmentID, commit int64) {
	g := s.segmentOf(seg)
	if g == nil {
		return
	}
	for {
		old := g.commit.Load()
		commit = min(commit, g.readable())
		if e := g.sealed.Load(); e >= 0 {
			commit = min(commit, e)
		}
		if commit <= old {
			return
		}
		if g.commit.CompareAndSwap(old, commit) {
			break
		}
	}
	g.rng.waiting.wakeUp(commit)
}

// readable is the highest commit that can be true of this copy.
func (g *segmentLog) readable() int64 {
	if g.spec.Memory {
		return g.inMemory.Load()
	}
	return g.durable.Load()
}
