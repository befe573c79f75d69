package store

import (
	"errors"
	"io/fs"
	"maps"
	"slices"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/segment"
)

// unlinkDropped removes the files of what was dropped, and tells those who wait for it.
func (s *Store) unlinkDropped() error {
	waiting := s.queue.takeUnlinks() // before the look at what is to be unlinked
	err := s.unlinkAll()
	if len(waiting) > 0 && s.space.full.Load() {
		s.space.probe(s.dirty.Load())
	}
	for _, done := range waiting {
		done(err)
	}
	return err
}

func (s *Store) unlinkAll() error {
	segs, topics := s.toUnlink()
	dirs := map[string]struct{}{}
	for _, g := range segs {
		s.forgetFile(g)
		if slices.Contains(topics, g.spec.Ref.Topic) {
			continue // with its directory
		}
		if err := s.unlinkSegment(g); err != nil {
			return err
		}
		dirs[s.rangeDir(g.spec.Ref)] = struct{}{}
	}
	if err := s.unlinkTopics(topics); err != nil {
		return err
	}
	for dir := range dirs {
		if err := s.syncDir(dir); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range segs {
		delete(s.dropping, g.spec.Segment)
	}
	for _, t := range topics {
		delete(s.droppingTopics, t)
	}
	return nil
}

// toUnlink returns what was dropped durably and may still have files.
func (s *Store) toUnlink() (segs []*segmentLog, topics []base.TopicID) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for t, durable := range s.droppingTopics {
		if durable {
			topics = append(topics, t)
		}
	}
	return slices.Collect(maps.Values(s.dropping)), topics
}

// unlinkTopics removes the directories of the topics whose drop is durable.
func (s *Store) unlinkTopics(topics []base.TopicID) error {
	for _, t := range topics {
		if _, err := s.o.FS.Stat(s.topicDir(t)); errors.Is(err, fs.ErrNotExist) {
			continue // nothing was written to it, or it went in an earlier boot
		}
		if err := s.o.FS.RemoveAll(s.topicDir(t)); err != nil {
			return base.Wrap(base.CodeInternal, opDropTopic, err)
		}
		s.event(Event{Kind: EventDropped, Path: s.topicDir(t), Detail: "topic"})
	}
	if len(topics) == 0 {
		return nil
	}
	return s.syncDir(s.topicsDir())
}

// forgetFile gives up the descriptor of a dropped segment's file, and the flusher's claims on it.
func (s *Store) forgetFile(g *segmentLog) {
	s.flusher.dirtyFiles = slices.DeleteFunc(s.flusher.dirtyFiles, func(h *openFile) bool {
		if h.seg != g {
			return false
		}
		s.files.setClean(h)
		s.files.release(h)
		return true
	})
	s.files.forget(g)
}

func (s *Store) unlinkSegment(g *segmentLog) error {
	path, found := s.path(g), false
	for _, suffix := range []string{segment.LogSuffix, segment.IndexSuffix, segment.TimeSuffix, stateSuffix} {
		err := s.o.FS.Remove(path + suffix)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return base.Wrap(base.CodeInternal, opDrop, err)
		}
		found = found || err == nil
	}
	if found { // an empty segment has no files, and its end is no news
		s.event(Event{Kind: EventDropped, Ref: g.spec.Ref, Segment: g.spec.Segment, Path: path, Bytes: g.bytes})
	}
	return nil
}
