package server

import (
	"context"

	"github.com/eastguard/eastguard/internal/base"
)

// lookForStrangers asks each seed, once, whether it belongs to this node's cluster. A node that was started without its
// seeds has founded a cluster of its own, and belongs to that for ever, whatever it is told later: who adds the seeds
// then waits for a node that never comes, and neither side would say a word.
func (s *Server) lookForStrangers(ctx context.Context) error {
	for _, seed := range s.cfg.JoinSeedNodes {
		addrs, err := s.resolveSeed(ctx, seed)
		if err != nil {
			continue // a member finds the others by what it remembers
		}
		for _, addr := range addrs {
			if addr == s.self.gossip {
				continue
			}
			_, _, err := callAddr[whoAnswer](ctx, s.peers, addr.String(), kindWho, whoMessage{})
			if base.CodeOf(err) == base.CodeDenied {
				s.deps.Logger.Warn("a seed belongs to another cluster", "seed", seed, "error", inTheWay(err),
					"hint", "a node that is to join there needs empty directories; else take the seed out of join_seed_nodes")
			}
		}
	}
	return nil
}
