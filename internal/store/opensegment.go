package store

import (
	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/rangestate"
)

const opOpen = "open segment"

// OpenSegment lists an assigned segment in the catalogue. Appends are taken once done was called without error. It may be
// repeated with an equal spec (of which State, CreatedMs, LeaderHere and Memory count only the first time); another spec
// under the same id is CodePreconditionFailed. CodeFenced is final: the range has been fenced up to the segment's epoch, by
// a fence or by the seal of that segment or a later one, or the segment was opened in an earlier boot: only the process
// that opened a segment appends to it.
func (s *Store) OpenSegment(spec SegmentSpec, done func(error)) error {
	if err := s.usable(opOpen); err != nil {
		return err
	}
	if spec.Base < 0 || spec.Segment == 0 || spec.Epoch < 0 {
		return base.Errorf(base.CodeInvalidArgument, opOpen, "segment %s of epoch %d cannot begin at %d", spec.Segment, spec.Epoch, spec.Base)
	}
	if len(spec.State) > 0 {
		if _, err := rangestate.Decode(spec.State); err != nil {
			return base.Wrap(base.CodeInvalidArgument, opOpen, err)
		}
	}
	if err := s.mayOpen(spec); err != nil {
		return err // before it is listed, so that what is refused leaves nothing behind
	}
	g, err := s.list(spec)
	if err != nil {
		return err
	}
	return s.logOpen(g, openRecord{spec: spec, boot: g.boot}, done, true)
}

// mayOpen says that a segment comes too late: its range has been fenced up to its epoch.
func (s *Store) mayOpen(spec SegmentSpec) error {
	rng := s.rangeOf(spec.Ref)
	if rng == nil {
		return nil
	}
	rng.mu.Lock()
	defer rng.mu.Unlock()
	return rng.mayOpen(spec)
}

// mayOpen is Store's; mu is held.
func (r *rangeLog) mayOpen(spec SegmentSpec) error {
	if spec.Epoch <= r.fenced {
		return base.Errorf(base.CodeFenced, opOpen, "%s is fenced up to epoch %d, segment %s has %d", r.ref, r.fenced, spec.Segment, spec.Epoch)
	}
	return nil
}

// logOpen puts the record into the log, unless a drop is there already or about to be: under the lock of the range the
// two are in order, and a segment that was dropped does not come back.
func (s *Store) logOpen(g *segmentLog, r openRecord, done func(error), again bool) error {
	g.rng.mu.Lock()
	defer g.rng.mu.Unlock()
	switch {
	case g.rng.dropped:
		return topicDropped(opOpen, r.spec.Ref.Topic)
	case g.dropped:
		return segmentDropped(r.spec.Segment)
	case g.boot != s.boot.Load():
		return base.Errorf(base.CodeFenced, opOpen, "segment %s was opened in boot %d, this is boot %d", g.spec.Segment, g.boot, s.boot.Load())
	}
	if err := g.rng.mayOpen(r.spec); err != nil {
		return err
	}
	var retry func() error
	if again {
		retry = func() error { return s.logOpen(g, r, done, false) }
	}
	return s.tryRecord(opOpen, kindOpen, r.encode(), func() { s.applyOpen(r) }, done, retry)
}

func segmentDropped(seg base.SegmentID) error {
	return base.Errorf(base.CodePreconditionFailed, opOpen, "segment %s is being removed from this node", seg)
}

// list enters the segment into the map, not yet opened: from now on another spec of the same id is refused.
func (s *Store) list(spec SegmentSpec) (*segmentLog, error) {
	rng := s.makeRange(spec.Ref)
	s.mu.Lock()
	defer s.mu.Unlock()
	if rng == nil || s.isDropped(spec.Ref.Topic) {
		return nil, topicDropped(opOpen, spec.Ref.Topic)
	}
	if g := s.segs[spec.Segment]; g != nil {
		if g.spec.Ref != spec.Ref || g.spec.Epoch != spec.Epoch || g.spec.Base != spec.Base || g.spec.Keyed != spec.Keyed {
			return nil, base.Errorf(base.CodePreconditionFailed, opOpen, "segment %s is listed as %s, base %d, epoch %d; asked for %s, base %d, epoch %d",
				spec.Segment, g.spec.Ref, g.spec.Base, g.spec.Epoch, spec.Ref, spec.Base, spec.Epoch)
		}
		return g, nil
	}
	if s.dropping[spec.Segment] != nil {
		return nil, segmentDropped(spec.Segment)
	}
	g := newSegmentLog(rng, spec, s.boot.Load())
	s.segs[spec.Segment] = g
	return g, nil
}

// applyOpen makes the segment one that is held here. Replay comes here too.
func (s *Store) applyOpen(r openRecord) {
	rng := s.makeRange(r.spec.Ref)
	if rng == nil {
		return
	}
	s.mu.Lock()
	g := s.segs[r.spec.Segment]
	if g == nil {
		g = newSegmentLog(rng, r.spec, r.boot)
		s.segs[r.spec.Segment] = g
	}
	s.mu.Unlock()
	rng = g.rng
	defer rng.waiting.wakeAll()
	rng.mu.Lock()
	defer rng.mu.Unlock()
	if g.opened || g.dropped {
		return
	}
	g.opened = true
	if st, err := rangestate.Decode(r.spec.State); err == nil { // checked before it was logged; empty is an error too
		g.state, g.stateDirty = st, true
	}
	rng.insert(g)
}
