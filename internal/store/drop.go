package store

import (
	"github.com/eastguard/eastguard/internal/base"
)

const opDrop = "drop segments"

// DropSegments removes segments by a committed decision: a trim, or a copy that metadata has placed elsewhere. done is
// called when their files are unlinked, durably; parts that readers hold stay readable, and the disk is free once they
// are released. Segments that are not here are skipped, so it may be repeated.
func (s *Store) DropSegments(ref base.RangeRef, segs []base.SegmentID, done func(error)) error {
	if err := s.usable(opDrop); err != nil {
		return err
	}
	r := dropRecord{ref: ref}
	for _, id := range segs {
		if g := s.segmentOf(id); g != nil && g.spec.Ref == ref {
			g.rng.mu.Lock()
			g.dropped = true // no append and no seal may come behind the record
			g.rng.mu.Unlock()
			r.segments = append(r.segments, id)
		}
	}
	return s.record(opDrop, kindDropSegments, r.encode(), func() { s.applyDrop(r) }, s.whenUnlinked(done))
}

// whenUnlinked turns a caller's done into one that waits for the flusher to unlink all that was dropped before.
func (s *Store) whenUnlinked(done func(error)) func(error) {
	return func(err error) {
		if err != nil {
			done(err)
			return
		}
		s.queue.pushUnlink(done)
		if s.err() != nil {
			s.abandon()
		}
	}
}

// applyDrop hides the segments from everybody and leaves their files to the flusher.
func (s *Store) applyDrop(r dropRecord) {
	for _, id := range r.segments {
		if g := s.segmentOf(id); g != nil && g.spec.Ref == r.ref {
			s.drop(g)
		}
	}
}

func (s *Store) drop(g *segmentLog) {
	s.mu.Lock()
	delete(s.segs, g.spec.Segment)
	s.dropping[g.spec.Segment] = g
	s.mu.Unlock()

	defer g.rng.waiting.wakeAll()
	g.rng.mu.Lock()
	defer g.rng.mu.Unlock()
	end := g.appended
	if e := g.sealed.Load(); e >= 0 {
		end = e
	}
	if end > g.spec.Base { // with an empty one no offset goes
		g.rng.trimmedTo = max(g.rng.trimmedTo, end)
	}
	g.rng.remove(g)
	g.dropped = true
	s.letGo(g)
	g.state = nil
}

// letGo takes all of a dropped segment out of memory. rng.mu is held.
func (s *Store) letGo(g *segmentLog) {
	next := g.tail.Next()
	_, dirtyBytes := g.tail.Bounds(g.spec.Base, g.flushSeq)
	if dirty := int(next - min(next, g.flushSeq)); dirty > 0 {
		s.dirty.Add(-cost(dirty, dirtyBytes))
	}
	n, bytes := g.tail.Evict(next)
	s.cached.Add(-cost(n, bytes))
	g.flushSeq = next
}

const opDropTopic = "drop topic"

// DropTopic removes all that this node holds of a topic, its fences included: the topic's tombstone is committed, its id
// will never be used again. done is called when the files are unlinked, durably. It may be repeated.
func (s *Store) DropTopic(topic base.TopicID, done func(error)) error {
	if err := s.usable(opDropTopic); err != nil {
		return err
	}
	s.mu.Lock()
	if !s.droppingTopics[topic] {
		s.droppingTopics[topic] = false // from now on nothing of it is opened
	}
	s.mu.Unlock()
	for _, rng := range s.rangesOf(topic) {
		rng.mu.Lock()
		rng.dropped = true // what is asked for from here on would come behind the drop
		for _, g := range rng.segments() {
			g.dropped = true
		}
		rng.mu.Unlock()
	}
	return s.record(opDropTopic, kindDropTopic, topic[:], func() { s.applyDropTopic(topic) }, s.whenUnlinked(done))
}

func (s *Store) applyDropTopic(topic base.TopicID) {
	s.mu.Lock()
	s.droppingTopics[topic] = true
	s.tombstones.add(topic)
	for id, g := range s.segs { // also those whose opening was overtaken
		if g.spec.Ref.Topic == topic && !g.opened {
			delete(s.segs, id)
		}
	}
	s.mu.Unlock()
	for _, rng := range s.rangesOf(topic) {
		for _, g := range rng.segments() {
			s.drop(g)
		}
		rng.mu.Lock()
		rng.dropped = true
		rng.mu.Unlock()
		rng.waiting.wakeAll()
	}
	s.mu.Lock()
	delete(s.topics, topic)
	s.mu.Unlock()
}

// rangesOf returns the topic's ranges.
func (s *Store) rangesOf(topic base.TopicID) []*rangeLog {
	s.mu.RLock()
	defer s.mu.RUnlock()
	ranges := make([]*rangeLog, 0, len(s.topics[topic]))
	for _, r := range s.topics[topic] {
		ranges = append(ranges, r)
	}
	return ranges
}

// allSegments returns every segment held, opened or not, in no order.
func (s *Store) allSegments() []*segmentLog {
	s.mu.RLock()
	defer s.mu.RUnlock()
	segs := make([]*segmentLog, 0, len(s.segs))
	for _, g := range s.segs {
		segs = append(segs, g)
	}
	return segs
}
