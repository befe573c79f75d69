package shard

import (
	"sync"
	"time"
)

// A disk that hangs stops a leader, but not its heartbeats: raft writes an entry down before it sends it. So a node says
// with its heartbeats that its log stands still, and the other voters treat it as they treat one that is lost.
const (
	stillAfter = 1 * time.Second // a log that has work, and has finished none for so long, stands still
	stillKept  = 2 * time.Second // how long that is believed; heartbeats come more often
)

// standstill watches whether writes come to an end.
type standstill struct {
	mu      sync.Mutex
	waiting int
	since   time.Time // when a write was finished last, or the first of those that wait was begun
}

func (s *standstill) begin(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting == 0 {
		s.since = now
	}
	s.waiting++
}

func (s *standstill) end(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting--
	s.since = now
}

// lasts reports whether writes stand still. Before resumed the whole process did, which says nothing of the disk.
func (s *standstill) lasts(now, resumed time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	since := s.since
	if since.Before(resumed) {
		since = resumed
	}
	return s.waiting > 0 && now.Sub(since) >= stillAfter
}
