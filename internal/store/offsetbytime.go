package store

import "github.com/eastguard/eastguard/internal/base"

// OffsetByTime finds the first committed batch of the range that holds a record of time ms or later: the offset of its
// first record and its highest timestamp. The records before the first later one inside the batch are the reader's to skip.
// ok is false when there is none: then the caller means the end.
func (s *Store) OffsetByTime(ref base.RangeRef, ms int64) (off, tsMs int64, ok bool, err error) {
	rng := s.rangeOf(ref)
	if rng == nil {
		return 0, 0, false, base.Errorf(base.CodeNotReplica, "find offset by time", "range %s is not on this node", ref)
	}
	for _, g := range rng.segments() {
		g.rng.mu.Lock()
		highest := g.maxTime
		g.rng.mu.Unlock()
		if highest < ms {
			continue
		}
		if off, tsMs, ok, err = s.offsetByTime(g, ms); ok || err != nil {
			return off, tsMs, ok, err
		}
	}
	return 0, 0, false, nil
}

// offsetByTime looks into the file first and then at what only memory has. What moves from memory to the file in
// between is found by looking again.
func (s *Store) offsetByTime(g *segmentLog, ms int64) (off, tsMs int64, ok bool, err error) {
	limit := g.commit.Load()
	for {
		end := g.flushed.Load().End
		if end > g.spec.Base {
			if off, tsMs, ok, err = s.offsetByTimeInFile(g, ms, limit); ok || err != nil {
				return off, tsMs, ok, err
			}
		}
		e, resident := g.tail.FirstAtOrAfter(ms, end, limit)
		if e != nil {
			return e.Base, e.MaxTimestamp, true, nil
		}
		if resident || g.flushed.Load().End == end {
			return 0, 0, false, nil
		}
	}
}

func (s *Store) offsetByTimeInFile(g *segmentLog, ms, limit int64) (off, tsMs int64, ok bool, err error) {
	h, err := s.files.acquire(g, false)
	if err != nil {
		return 0, 0, false, s.readError(g, err)
	}
	defer s.files.release(h)
	off, tsMs, ok, err = h.file.FirstAtOrAfter(ms, limit)
	if err != nil {
		return 0, 0, false, s.readError(g, err)
	}
	return off, tsMs, ok, nil
}
