package coord

import (
	"sync"

	"github.com/eastguard/eastguard/internal/base"
)

// silence is which nodes do not take their orders: each is complained about once, however many shards have something to
// tell it, and however often.
type silence struct {
	mu    sync.Mutex
	nodes map[base.NodeID]bool
}

// begins reports whether it is news that a node does not answer.
func (s *silence) begins(node base.NodeID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nodes[node] {
		return false
	}
	put(&s.nodes, node, true)
	return true
}

func (s *silence) ends(node base.NodeID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.nodes, node)
}
