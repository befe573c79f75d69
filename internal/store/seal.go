package store

import (
	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/rangestate"
)

const opSeal = "seal segment"

// Seal ends seg at end, a committed decision: from the call on no append of its epoch is taken in its range, for ever and
// whatever becomes of the segment, and once it is durable readers see everything below end and nothing above, after any
// restart. What was appended above end is void. It may be repeated with the same end; another end is
// CodePreconditionFailed. A copy that is shorter than end keeps what it has.
//
// An end below what this copy has shown to readers contradicts what was acked, and is refused with CodeInvalidArgument.
// Where metadata has recorded that loss there is ForceSeal.
func (s *Store) Seal(seg base.SegmentID, end int64, cause base.Cause, done func(error)) error {
	return s.seal(seg, end, cause, (*segmentLog).acked, done)
}

// ForceSeal is Seal at an end that may lie below what was acked: somebody has accepted the loss, and it is recorded.
func (s *Store) ForceSeal(seg base.SegmentID, end int64, cause base.Cause, done func(error)) error {
	return s.seal(seg, end, cause, (*segmentLog).base, done)
}

// base is the lowest end that a segment can have.
func (g *segmentLog) base() int64 { return g.spec.Base }

// acked is the lowest end that contradicts nothing this copy has shown. What a topic keeps in memory alone may be lost with
// all who had it: the end that is found then is below what one of them has shown.
func (g *segmentLog) acked() int64 {
	if g.spec.Memory {
		return g.spec.Base
	}
	return g.commit.Load()
}

// seal ends a segment at or above what lowest says of it.
func (s *Store) seal(seg base.SegmentID, end int64, cause base.Cause, lowest func(*segmentLog) int64, done func(error)) error {
	if err := s.usable(opSeal); err != nil {
		return err
	}
	g := s.segmentOf(seg)
	if g == nil {
		return segmentNotFound(opSeal, seg)
	}
	g.rng.mu.Lock()
	defer g.rng.mu.Unlock()
	switch {
	case !g.opened || g.dropped:
		return segmentNotFound(opSeal, seg)
	case end < lowest(g):
		return base.Errorf(base.CodeInvalidArgument, opSeal, "segment %s cannot end at %d: base %d, commit %d", seg, end, g.spec.Base, g.commit.Load())
	case g.sealing >= 0 && g.sealing != end:
		return base.Errorf(base.CodePreconditionFailed, opSeal, "segment %s ends at %d, asked for %d", seg, g.sealing, end)
	}
	g.sealing = end
	g.rng.fenced = max(g.rng.fenced, g.spec.Epoch)
	r := sealRecord{segment: seg, end: end, cause: cause}
	return s.record(opSeal, kindSeal, r.encode(), func() { s.applySeal(r) }, done)
}

// applySeal ends the segment. All that came before the record in the log is durable by now, or failed and is void.
func (s *Store) applySeal(r sealRecord) {
	g := s.segmentOf(r.segment)
	if g == nil {
		return
	}
	defer g.rng.waiting.wakeAll()
	g.rng.mu.Lock()
	defer g.rng.mu.Unlock()
	if g.dropped || g.sealed.Load() >= 0 {
		return
	}
	end := min(r.end, g.durable.Load()) // of this copy
	g.sealing, g.cause, g.broken = r.end, r.cause, false
	g.rng.fenced = max(g.rng.fenced, g.spec.Epoch)
	s.cutTail(g, end)
	g.durable.Store(end)
	g.commit.Store(g.provable()) // before the end, by which a reader knows that there is no more to come
	g.sealed.Store(r.end)
	if g.state != nil {
		g.state.Rollback(end)
		if g.state.Committed() > end { // an end that was forced below what had been acked
			g.state = rangestate.NewForgetful()
		}
		g.state.Commit(end)
		g.stateDirty = true
	}
	s.enqueue(g) // the flusher finishes the files
	g.check()
}

// provable is how far this copy can be trusted. rng.mu is held.
func (g *segmentLog) provable() int64 {
	if g.damaged {
		return min(g.intact, g.durable.Load())
	}
	return g.durable.Load()
}

// cutTail drops what lies in memory at and above end; the file's part is the flusher's to cut. rng.mu is held.
func (s *Store) cutTail(g *segmentLog, end int64) {
	if g.appended <= end {
		return
	}
	// Those of the cut entries that are in the file have left the dirty count already.
	next := g.tail.Next()
	first, dirtyBytes := g.tail.Bounds(end, g.flushSeq)
	if dirty := int(next - max(first, min(next, g.flushSeq))); dirty > 0 {
		s.dirty.Add(-cost(dirty, dirtyBytes))
	}
	n, bytes := g.tail.Cut(end)
	s.cached.Add(-cost(n, bytes))
	g.flushSeq = min(g.flushSeq, g.tail.Next())
	g.bytes -= bytes
	g.appended = end
	g.inMemory.Store(end)
}

// cost is what n entries in memory are counted as.
func cost(n int, bytes int64) int64 { return bytes + int64(n)*entryOverhead }
