package server

import (
	"context"
	"slices"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/shard"
	"github.com/eastguard/eastguard/internal/telemetry"
	"github.com/eastguard/eastguard/internal/wire"
)

// shardEvents is how many of a shard's events its description ends with.
const shardEvents = 20

// describeShard shows a shard as its leader sees it; without one, as the first replica that answers.
func (s *Server) describeShard(ctx context.Context, req wire.DescribeShardRequest) (wire.DescribeShardResponse, error) {
	const op = "describe shard"
	if err := s.mustBeShard(op, req.Shard); err != nil {
		return wire.DescribeShardResponse{}, err
	}
	var err error = base.Errorf(base.CodeNoLeader, op, "no replica of shard %s is known here", req.Shard)
	for _, node := range s.replicasOf(req.Shard) {
		var resp wire.DescribeShardResponse
		if err = s.askSoon(ctx, node, askShard, req, &resp); err == nil {
			return resp, nil
		}
	}
	return wire.DescribeShardResponse{}, err
}

// describeShardHere is a shard as the replica on this node sees it.
func (s *Server) describeShardHere(_ context.Context, req wire.DescribeShardRequest) (wire.DescribeShardResponse, error) {
	d, err := s.host.Detail(req.Shard)
	if err != nil {
		return wire.DescribeShardResponse{}, err
	}
	resp := wire.DescribeShardResponse{
		Status: hostedStatus(d.Status), Observer: s.id.Node, FirstIndex: d.FirstIndex, LastIndex: d.LastIndex,
		SnapshotIndex: d.SnapshotIndex, SnapshotBytes: d.SnapshotBytes, Generation: d.Generation, Seats: d.Seats,
		Events: s.eventsAbout(req.Shard),
	}
	resp.Status.SinceMs = s.leadSince(req.Shard, d.Leader)
	live := routedPeers{s}.Liveness()
	for _, m := range d.Members {
		w := wire.ShardMember{Node: m.Node, Server: m.Server, Voter: m.Voter, Leader: m.Leader, Match: m.Match, Intended: m.Intended}
		if state, ok := live[m.Node]; ok {
			w.State = state.Status.String()
		} else if m.Node == s.id.Node {
			w.State = "here"
		}
		resp.Members = append(resp.Members, w)
	}
	s.addSeats(&resp.Status, d)
	return resp, nil
}

// addSeats adds to a shard's status what its members show.
func (s *Server) addSeats(st *wire.ShardStatus, d shard.Detail) {
	st.Want = len(d.Intended)
	for _, m := range d.Members {
		switch {
		case !m.Voter:
			st.NonVoters = append(st.NonVoters, m.Node)
		case d.Leader == s.id.Node && m.Match < d.LastIndex:
			st.Trails = max(st.Trails, d.LastIndex-m.Match)
		}
	}
}

// eventsAbout are the last events of a shard's own in this node's journal, oldest first. What happened to its topics is
// not about the shard.
func (s *Server) eventsAbout(id base.ShardID) []wire.Event {
	var list []wire.Event
	subject := shardSubject(id)
	s.journal.Last(func(e telemetry.Event) bool {
		if e.Subject == subject {
			list = append(list, wireEvent(e))
		}
		return len(list) < shardEvents
	})
	slices.Reverse(list)
	return list
}

// mustBeShard refuses a shard that the cluster does not have.
func (s *Server) mustBeShard(op string, id base.ShardID) error {
	if n := s.host.Shards(); id.PathLen != 0 || int(id.Root) >= n {
		return base.Errorf(base.CodeShardNotFound, op, "shard %s not found, the cluster has shards 0 to %d", id, n-1)
	}
	return nil
}

// replicasOf lists where a shard may have a replica, the most telling first: who leads it, this node, its voters as far
// as they are known, and those that the ring names.
func (s *Server) replicasOf(id base.ShardID) []base.NodeID {
	var list []base.NodeID
	add := func(nodes ...base.NodeID) {
		for _, n := range nodes {
			if n != "" && !slices.Contains(list, n) {
				list = append(list, n)
			}
		}
	}
	add(s.shardLeader(id))
	if s.host.Hosts(id) {
		add(s.id.Node)
		add(s.host.Voters(id)...)
	}
	add(s.intendedVoters(id)...)
	return list
}
