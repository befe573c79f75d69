package server

import (
	"hash/fnv"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/shard"
	"github.com/eastguard/eastguard/internal/store"
)

// Inside is what a broker holds at one moment. Those who check whole clusters look at all brokers at once.
type Inside struct {
	Node     base.NodeID
	Disk     base.DiskID
	Boot     uint64
	Cluster  base.ClusterID
	Replicas []ReplicaInside
	Segments []store.SegmentInfo // that the node holds copies of
}

// ReplicaInside is one replica of a shard with the state that it has applied.
type ReplicaInside struct {
	shard.Status
	Index  uint64        // of the last command in the state
	Sum    uint64        // of the whole state: equal states, equal sums
	Topics []*meta.Topic // as committed; they never change
	Err    error         // an invariant of the state that does not hold
}

// Inspect looks inside. It is for tests: it encodes every state. A broker that has not opened its shards yet shows none.
func (s *Server) Inspect() Inside {
	var in Inside
	if !s.visible.Load() {
		return in
	}
	in.Node, in.Disk, in.Boot, in.Cluster = s.id.Node, s.id.Disk, s.id.Boot, s.host.Cluster()
	in.Segments = s.store.All()
	for _, status := range s.host.Status() {
		r := ReplicaInside{Status: status}
		if err := s.host.ViewStale(status.ID, r.look); err != nil {
			r.Err = err
		}
		in.Replicas = append(in.Replicas, r)
	}
	return in
}

func (r *ReplicaInside) look(state *meta.State) error {
	sum := fnv.New64a()
	if err := state.Encode(sum); err != nil {
		return err
	}
	r.Index, r.Sum = state.Applied(), sum.Sum64()
	for t := range state.All() {
		r.Topics = append(r.Topics, t)
	}
	return state.Check()
}
