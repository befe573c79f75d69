package server

import (
	"context"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/topology"
	"github.com/eastguard/eastguard/internal/wire"
)

// listShards shows every shard by its leader's word. All nodes are asked at once for the replicas on them, because who
// leads is what the question is about; one whose leader does not answer is shown as far as this node knows it.
func (s *Server) listShards(ctx context.Context, _ wire.ListShardsRequest) (wire.ListShardsResponse, error) {
	resp := wire.ListShardsResponse{Observer: s.id.Node, ObservedMs: time.Now().UnixMilli()}
	view := s.view()
	answers := make([]wire.ListShardsResponse, len(view.Nodes))
	errs := s.askEach(ctx, view, func(ctx context.Context, i int) error {
		return s.ask(ctx, view.Nodes[i].ID, askShards, nil, &answers[i])
	})
	connected := s.connected()
	led, answered := make(map[base.ShardID]wire.ShardStatus), make(map[base.NodeID]bool)
	for i, a := range answers {
		if errs[i] != nil {
			continue
		}
		answered[a.Observer] = true
		for _, st := range a.Shards {
			if best, ok := led[st.ID]; st.Leader == a.Observer && (!ok || newer(st, best)) {
				led[st.ID] = st
			}
		}
	}
	for _, id := range s.allShards() {
		st, ok := led[id]
		if !ok {
			st = s.strayStatus(id)
			if answered[st.Leader] || !lives(connected, st.Leader) { // it would have said so, or cannot lead
				st.Leader, st.State = "", "no_leader"
			}
			resp.Missing = append(resp.Missing, id)
		}
		st.Hosted = s.host.Hosts(id)
		resp.Shards = append(resp.Shards, st)
	}
	return resp, nil
}

// lives reports whether a node is there as far as is known here.
func lives(view topology.View, node base.NodeID) bool {
	n, ok := view.Node(node)
	return ok && n.Liveness == topology.Alive
}

// newer compares two nodes that both say they lead a shard: one of them has not heard of the other yet.
func newer(a, b wire.ShardStatus) bool {
	if a.Generation != b.Generation {
		return a.Generation > b.Generation
	}
	return a.Term > b.Term
}

// shardsHere lists the replicas on this node.
func (s *Server) shardsHere() []wire.ShardStatus {
	var list []wire.ShardStatus
	for _, st := range s.host.Status() {
		w := hostedStatus(st)
		w.SinceMs = s.leadSince(st.ID, w.Leader)
		if st.Leader == s.id.Node {
			if d, err := s.host.Detail(st.ID); err == nil {
				s.addSeats(&w, d)
			}
		}
		list = append(list, w)
	}
	return list
}
