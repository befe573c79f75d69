package coord

import (
	"log/slog"
	"sync"

	"github.com/eastguard/eastguard/internal/base"
)

// silence is which nodes do not take their orders, and which disks are not where they are listed: each is complained about
// once, however many shards have something to tell it, and however often. A node stands for all its disks by having none.
type silence struct {
	mu    sync.Mutex
	names map[base.Replica]bool
}

// begins reports whether it is news that a node, or a disk, does not answer.
func (s *silence) begins(who base.Replica) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names[who] {
		return false
	}
	put(&s.names, who, true)
	return true
}

// level is how loud a complaint is.
func (s *silence) level(about base.Replica) slog.Level {
	if s.begins(about) {
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

func (s *silence) ends(who base.Replica) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.names, who)
}
