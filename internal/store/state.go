package store

import (
	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/rangestate"
	"github.com/eastguard/eastguard/internal/vfs"
)

const opState = "read range state"

// RangeState returns what the range remembered at the segment's durable end, or at its sealed end: what the leader of the
// successor loads. The caller owns it. Of a segment that has ended for a while it is read from the disk.
func (s *Store) RangeState(seg base.SegmentID) (*rangestate.State, error) {
	g := s.segmentOf(seg)
	if g == nil {
		return nil, segmentNotFound(opState, seg)
	}
	st, at, opened := g.heldState()
	if !opened {
		return nil, segmentNotFound(opState, seg)
	}
	if st == nil {
		var err error
		if st, err = s.readState(g); err != nil {
			return nil, base.Wrap(base.CodeCorruptData, opState, err)
		}
	}
	return at.of(st), nil
}

// HeldState is RangeState for those who cannot wait for the disk: false when that would be needed, or when nothing is
// remembered of the segment here.
func (s *Store) HeldState(seg base.SegmentID) (*rangestate.State, bool) {
	g := s.segmentOf(seg)
	if g == nil {
		return nil, false
	}
	st, at, opened := g.heldState()
	if !opened || st == nil {
		return nil, false
	}
	return at.of(st), true
}

// moment is how far a segment was when its state was looked at.
type moment struct{ commit, end int64 }

// of is the state as of then.
func (m moment) of(st *rangestate.State) *rangestate.State {
	st.Commit(m.commit)
	st.Rollback(m.end)
	return st
}

// heldState is a copy of the state that is in memory; nil when it lies in its file.
func (g *segmentLog) heldState() (st *rangestate.State, at moment, opened bool) {
	g.rng.mu.Lock()
	defer g.rng.mu.Unlock()
	switch {
	case g.state != nil:
		st = g.state.Clone()
	case !g.stateSaved:
		st = rangestate.New()
	}
	return st, moment{commit: g.commit.Load(), end: g.durable.Load()}, g.opened
}

// readState reads a segment's state from its file.
func (s *Store) readState(g *segmentLog) (*rangestate.State, error) {
	b, err := vfs.ReadFile(s.o.FS, s.path(g)+stateSuffix)
	if err != nil {
		return nil, err
	}
	st, err := rangestate.Decode(b)
	if err != nil {
		return nil, err
	}
	// The file may be newer than the catalogue, never newer than the log.
	return st, nil
}
