package store

import (
	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/rangestate"
	"github.com/eastguard/eastguard/internal/vfs"
)

const opState = "read range state"

// RangeState returns what the range remembered at the segment's durable end, or at its sealed end: what the leader of the
// successor loads. The caller owns it.
func (s *Store) RangeState(seg base.SegmentID) (*rangestate.State, error) {
	g := s.segmentOf(seg)
	if g == nil {
		return nil, segmentNotFound(opState, seg)
	}
	g.rng.mu.Lock()
	opened, st, saved := g.opened, g.state, g.stateSaved
	if st != nil {
		st = st.Clone()
	}
	commit, end := g.commit.Load(), g.durable.Load()
	g.rng.mu.Unlock()
	switch {
	case !opened:
		return nil, segmentNotFound(opState, seg)
	case st == nil && !saved:
		st = rangestate.New()
	case st == nil:
		var err error
		if st, err = s.readState(g); err != nil {
			return nil, base.Wrap(base.CodeCorruptData, opState, err)
		}
	}
	st.Commit(commit)
	st.Rollback(end)
	return st, nil
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
