package store

import (
	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/segment"
)

// finish makes a sealed segment's files final: all that is below the end, and nothing above it. They are synced with the
// next checkpoint, like every dirty file; bytes above the end are taken off when the catalogue knows about it.
func (s *Store) finish(g *segmentLog) error {
	g.rng.mu.Lock()
	finished := g.finished || g.mending || g.dropped
	end := min(g.sealed.Load(), g.durable.Load()) // of a copy that is short, where it ends
	whole := g.flushed.Load().End >= end
	g.rng.mu.Unlock()
	if finished || !whole {
		return nil
	}
	if g.flushed.Load().Pos > 0 {
		if err := s.cutFile(g, end); err != nil {
			return err
		}
		s.flusher.trims = append(s.flusher.trims, g)
	}
	g.rng.mu.Lock()
	g.finished = true
	g.bytes = g.flushed.Load().Pos
	g.rng.mu.Unlock()
	return nil
}

func (s *Store) cutFile(g *segmentLog, end int64) error {
	if g.flushed.Load().End <= end {
		return nil
	}
	h, err := s.openForWriting(g)
	if err != nil {
		return err
	}
	defer s.files.release(h)
	if err := h.file.Cut(end); err != nil {
		return base.Wrap(base.CodeInternal, opSeal, err)
	}
	extent := h.file.Extent()
	g.flushed.Store(&extent)
	return nil
}

// trimFiles takes off the files what lies behind the ends that the catalogue has just been told.
func (s *Store) trimFiles() error {
	for _, g := range s.flusher.trims {
		if err := s.trimFile(g); err != nil {
			return err
		}
	}
	s.flusher.trims = nil
	return nil
}

func (s *Store) trimFile(g *segmentLog) error {
	g.rng.mu.Lock()
	dropped := g.dropped
	g.rng.mu.Unlock()
	if dropped {
		return nil
	}
	info, err := s.o.FS.Stat(s.path(g) + segment.LogSuffix)
	if err != nil || info.Size <= g.flushed.Load().Pos {
		return err
	}
	h, err := s.openForWriting(g)
	if err != nil {
		return err
	}
	defer s.files.release(h)
	_, err = h.file.Trim()
	return err
}
