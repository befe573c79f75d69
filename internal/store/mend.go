package store

import (
	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/rangestate"
)

const opMend = "mend segment"

// HoldSealed lists a segment that has ended and of which this node, a replica of it, holds nothing: as a copy that is
// short. Fences do not stand against it, for it takes no append. It may be repeated, also for a segment that is listed.
func (s *Store) HoldSealed(spec SegmentSpec, end int64, cause base.Cause, done func(error)) error {
	if err := s.usable(opMend); err != nil {
		return err
	}
	g, err := s.list(spec)
	if err != nil {
		return err
	}
	g.rng.mu.Lock()
	opened, gone := g.opened, g.dropped || g.rng.dropped
	g.rng.fenced = max(g.rng.fenced, spec.Epoch)
	g.rng.mu.Unlock()
	switch {
	case gone:
		return segmentDropped(spec.Segment)
	case opened:
		return s.Seal(spec.Segment, end, cause, done)
	}
	r := openRecord{spec: spec, boot: g.boot}
	// The end comes only behind what it is the end of.
	return s.record(opMend, kindOpen, r.encode(), func() { s.applyOpen(r) }, func(err error) {
		if err == nil {
			err = s.Seal(spec.Segment, end, cause, done)
		}
		if err != nil {
			done(err)
		}
	})
}

// Mend adds to a short copy of a sealed segment what it lacks, batches of another replica that follow each other and what
// is here, and returns when they are durable, or with as many of them as are. Readers see them from then on. It blocks on
// the disk. CodeBusy: another call mends the segment, or the log has no room at the moment.
func (s *Store) Mend(seg base.SegmentID, batches []Batch) error {
	if err := s.usable(opMend); err != nil {
		return err
	}
	g := s.segmentOf(seg)
	if g == nil {
		return segmentNotFound(opMend, seg)
	}
	if err := s.beginMend(g); err != nil {
		return err
	}
	defer s.endMend(g)
	answers := make(chan error, len(batches))
	entered := 0
	var first error
	for i := range batches {
		if first = s.mendBy(g, &batches[i], func(_ int64, err error) { answers <- err }); first != nil {
			break
		}
		entered++
	}
	for range entered {
		if err := <-answers; first == nil {
			first = err
		}
	}
	return first
}

// beginMend makes sure that the copy's file is exactly what the copy is: what lay behind it, and never counted, has been
// cut off, and its places and numbers may be used again.
func (s *Store) beginMend(g *segmentLog) error {
	s.takeToken()
	defer s.giveToken()
	if err := s.err(); err != nil {
		return base.Wrap(base.CodeInternal, opMend, err)
	}
	if err := s.flushSegment(g); err != nil {
		if isNoSpace(err) {
			return base.Errorf(base.CodeDiskFull, opMend, "%w", err)
		}
		return base.Wrap(base.CodeInternal, opMend, s.fail(err))
	}
	g.rng.mu.Lock()
	defer g.rng.mu.Unlock()
	switch {
	case !g.opened || g.dropped:
		return segmentNotFound(opMend, g.spec.Segment)
	case g.sealed.Load() < 0:
		return base.Errorf(base.CodePreconditionFailed, opMend, "segment %s is not sealed here", g.spec.Segment)
	case g.damaged || g.rotten:
		return base.Errorf(base.CodeCorruptData, opMend, "segment %s is damaged above %d", g.spec.Segment, g.intact)
	case g.mending || !g.finished:
		return base.Errorf(base.CodeBusy, opMend, "segment %s is being written", g.spec.Segment)
	}
	if g.state == nil && g.stateSaved {
		g.state = s.stateOrNone(g)
	}
	g.mending, g.finished = true, false
	return nil
}

// stateOrNone is a segment's saved state or, if that cannot be read, one that knows of nobody.
func (s *Store) stateOrNone(g *segmentLog) *rangestate.State {
	st, err := s.readState(g)
	if err != nil {
		return rangestate.NewForgetful()
	}
	st.Commit(g.durable.Load())
	return st
}

// mendBy is Append to a copy that is being mended.
func (s *Store) mendBy(g *segmentLog, b *Batch, done func(int64, error)) error {
	if err := s.admit(len(b.Bytes), b.AppendMs); err != nil {
		return err
	}
	p := s.newPending(g, b, done)
	g.rng.mu.Lock()
	defer g.rng.mu.Unlock()
	switch {
	case g.dropped:
		return segmentNotFound(opMend, g.spec.Segment)
	case g.broken:
		return base.Errorf(base.CodeDiskFull, opMend, "a batch before this one was not written")
	case b.Header.End() > g.sealed.Load():
		return base.Errorf(base.CodeInvalidArgument, opMend, "segment %s ends at %d, a batch ends at %d", g.spec.Segment, g.sealed.Load(), b.Header.End())
	}
	if err := g.follows(b); err != nil {
		return err
	}
	return s.enter(p, b)
}

// endMend leaves a copy that is longer, or whole. What the log refused is taken back.
func (s *Store) endMend(g *segmentLog) {
	g.rng.mu.Lock()
	defer g.rng.mu.Unlock()
	g.mending = false
	if g.dropped {
		return
	}
	durable := g.durable.Load()
	s.cutTail(g, durable)
	g.broken = false
	if g.state != nil {
		g.state.Commit(durable)
		g.state.Rollback(durable)
		g.stateDirty = true
	}
	s.enqueue(g)
}

// Whole reports whether this node's copy of a sealed segment reaches its end and nothing of it is known to be damaged.
func (i *SegmentInfo) Whole() bool {
	return i.SealedEnd >= 0 && i.DurableEnd >= i.SealedEnd && !i.Damaged
}
