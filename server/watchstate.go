package server

import "github.com/eastguard/eastguard/internal/wire"

// watchedState is what this node sees and leads. What only counts up, or flickers, is left out of it: every difference
// is sent to everyone who watches.
func (s *Server) watchedState() wire.WatchedState {
	ring := s.describeRing(false)
	state := wire.WatchedState{
		Members: ring.Members, RingHash: ring.Hash, RingVersion: ring.Version,
	}
	self, _ := s.view().Node(s.id.Node)
	state.Self = s.believed(self)
	state.Self.Segments, state.Self.Leaders, state.Self.DiskUsed, state.Self.DiskTotal = 0, 0, 0, 0
	for _, sh := range s.shardsHere() {
		state.Self.Replicas++
		if sh.Leader == s.id.Node {
			state.Self.ShardLeaders++
		}
		sh.Commit, sh.Applied, sh.Topics, sh.Trails = 0, 0, 0, 0
		state.Shards = append(state.Shards, sh)
	}
	return state
}
