package store

import "github.com/eastguard/eastguard/internal/base"

const opFence = "fence"

// Fence makes sure, durably and for ever, that no append of this epoch or below is acked for the range, and says what
// this node holds of seg: everything that came before the fence. The node need not have heard of range or segment. A topic
// that was dropped has nothing to fence.
func (s *Store) Fence(ref base.RangeRef, epoch base.Epoch, seg base.SegmentID, done func(FenceAnswer, error)) error {
	if err := s.usable(opFence); err != nil {
		return err
	}
	rng := s.makeRange(ref)
	if rng == nil {
		return topicDropped(opFence, ref.Topic)
	}
	// Under the lock of the range: every append is in the log before the fence, or is refused.
	rng.mu.Lock()
	defer rng.mu.Unlock()
	if rng.dropped {
		return topicDropped(opFence, ref.Topic)
	}
	rng.fenced = max(rng.fenced, epoch)
	r := fenceRecord{ref: ref, epoch: epoch}
	return s.record(opFence, kindFence, r.encode(), func() { s.applyFence(r) }, func(err error) {
		if err != nil {
			done(FenceAnswer{}, err)
			return
		}
		done(s.extent(seg), nil)
	})
}

// applyFence raises the fence. The range may have gone, and with it the need.
func (s *Store) applyFence(r fenceRecord) {
	rng := s.makeRange(r.ref)
	if rng == nil {
		return
	}
	rng.mu.Lock()
	defer rng.mu.Unlock()
	rng.fenced = max(rng.fenced, r.epoch)
}

// extent is the answer to a fence that has just become durable.
func (s *Store) extent(seg base.SegmentID) FenceAnswer {
	g := s.segmentOf(seg)
	if g == nil {
		s.mu.RLock()
		defer s.mu.RUnlock()
		if s.lossy {
			// The record that listed it may be among those that were lost: its base would be too low an extent.
			return FenceAnswer{Kind: FenceDamaged}
		}
		return FenceAnswer{Kind: FenceExtent}
	}
	g.rng.mu.Lock()
	defer g.rng.mu.Unlock()
	a := FenceAnswer{Kind: FenceExtent, Listed: g.opened, End: g.durable.Load(), Unbroken: g.boot == s.boot.Load()}
	switch {
	case g.damaged || g.rotten:
		a.Kind, a.DamagedAbove = FenceDamaged, g.intact
	case g.broken && g.spec.Memory: // what the disk has refused since may have been acked
		a.Kind, a.DamagedAbove = FenceDamaged, a.End
	}
	return a
}

// Lossy reports whether records of the log were lost once, so that a segment that is not listed may have been here.
func (s *Store) Lossy() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.lossy
}

// RaiseBoot gives this start the number that it turned out to have: a node whose disk was replaced goes on counting where
// the old disk ended, once it has learnt where that is. Nothing may have been opened in this start yet.
func (s *Store) RaiseBoot(boot uint64) { s.boot.Store(boot) }

// FenceAllLed fences, by one record, every segment that this node led in an earlier boot. It is the first thing a node
// does, before it opens a port: it leads a segment for one process start only.
func (s *Store) FenceAllLed(done func(error)) error {
	if err := s.usable(opFence); err != nil {
		return err
	}
	boot := s.boot.Load()
	return s.record(opFence, kindFenceAllLed, encodeFenceAllLed(boot), func() { s.applyFenceAllLed(boot) }, done)
}

func (s *Store) applyFenceAllLed(boot uint64) {
	for _, g := range s.allSegments() {
		if !g.spec.LeaderHere || g.boot >= boot {
			continue
		}
		g.rng.mu.Lock()
		g.rng.fenced = max(g.rng.fenced, g.spec.Epoch)
		g.rng.mu.Unlock()
	}
}
