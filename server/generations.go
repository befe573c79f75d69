package server

import "github.com/eastguard/eastguard/internal/gossip"

// hearGenerations tells the shards here which generation others claim to lead. A shard that was rebuilt after the loss
// of its quorum has one more than before: replicas of the old one must set themselves aside, and those of a node that
// has just started before they run, since two of them could be a majority of the past.
func (s *Server) hearGenerations(agent *gossip.Agent) {
	for _, c := range agent.Claims() {
		if c.Generation > 0 {
			s.host.Heard(c.Shard, c.Generation)
		}
	}
}
