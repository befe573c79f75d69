package server

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/shard"
	"github.com/eastguard/eastguard/internal/telemetry"
	"github.com/eastguard/eastguard/internal/wire"
)

// lastEvents is how many events fit below a status.
const lastEvents = 10

// clusterStatus puts the cluster on one page: each node by its own word, each shard as its leader has it.
func (s *Server) clusterStatus(ctx context.Context, _ wire.ClusterStatusRequest) (wire.ClusterStatusResponse, error) {
	resp := wire.ClusterStatusResponse{
		Cluster: s.id.Cluster, Observer: s.id.Node, ObservedMs: time.Now().UnixMilli(), Events: s.events(lastEvents),
	}
	var asking sync.WaitGroup
	asking.Go(func() { resp.Nodes, _ = s.collect(ctx) })
	sums, missing := s.sums(ctx, true)
	asking.Wait()
	for _, n := range resp.Nodes {
		resp.InBytesPerSec += n.InBytesPerSec
		resp.OutBytesPerSec += n.OutBytesPerSec
		resp.InRecordsPerSec += n.InRecordsPerSec
		resp.OutRecordsPerSec += n.OutRecordsPerSec
	}
	for _, sum := range sums {
		resp.Shards = append(resp.Shards, sum.Status)
		resp.Topics += sum.Topics
		resp.Ranges += sum.Ranges
		resp.Segments += sum.Segments
		resp.Records += sum.Records
		resp.Bytes += sum.Bytes
		resp.UnderReplicated += sum.Short.Under
	}
	for _, shard := range missing {
		st := s.strayStatus(shard)
		resp.Shards = append(resp.Shards, st)
		if st.Leader == "" {
			resp.Leaderless++
		}
	}
	resp.Missing = missing
	slices.SortFunc(resp.Shards, func(a, b wire.ShardStatus) int { return a.ID.Compare(b.ID) })
	return resp, nil
}

// sums asks the leaders of all shards for their figures; with data, also for how much the topics hold, for which the
// leaders of the segments are asked in turn.
func (s *Server) sums(ctx context.Context, data bool) (sums []shardSum, missing []base.ShardID) {
	missing = s.gather(ctx, gatherRequest{Sums: true, Data: data}, func(a gatherAnswer) { sums = append(sums, a.Sums...) })
	slices.SortFunc(missing, base.ShardID.Compare)
	slices.SortFunc(sums, func(a, b shardSum) int { return a.Status.ID.Compare(b.Status.ID) })
	for i := range sums {
		sums[i].Status.Hosted = s.host.Hosts(sums[i].Status.ID)
	}
	return sums, missing
}

// detailStatus is a shard as the replica here has it.
func (s *Server) detailStatus(d shard.Detail) wire.ShardStatus {
	w := hostedStatus(d.Status)
	w.SinceMs = s.leadSince(w.ID, w.Leader)
	s.addSeats(&w, d)
	return w
}

func hostedStatus(st shard.Status) wire.ShardStatus {
	w := wire.ShardStatus{
		ID: st.ID, State: "ok", Leader: st.Leader, Term: st.Term, Commit: st.Commit, Applied: st.Applied,
		Voters: st.Voters, Topics: st.Topics, Hosted: true, Generation: st.Generation,
	}
	if st.Leader == "" {
		w.State = "no_leader"
	}
	return w
}

// strayStatus is a shard whose leader did not answer, as far as this node knows it.
func (s *Server) strayStatus(id base.ShardID) wire.ShardStatus {
	w := wire.ShardStatus{ID: id, State: "no_leader"}
	if d, err := s.host.Detail(id); err == nil {
		w = s.detailStatus(d)
	}
	if c, ok := s.router.Leader(id); ok {
		w.State, w.Leader, w.Term = "ok", c.Leader, c.Term
	}
	return w
}

// shardLeader is who leads a shard, as far as this node knows.
func (s *Server) shardLeader(id base.ShardID) base.NodeID {
	c, _ := s.router.Leader(id)
	return c.Leader
}

// events lists the journal's last events, oldest first.
func (s *Server) events(n int) []wire.Event {
	end := s.journal.End()
	from := uint64(1)
	if end > uint64(n) {
		from = end - uint64(n)
	}
	page := s.journal.Since(from, n)
	list := make([]wire.Event, 0, len(page.Events))
	for _, e := range page.Events {
		list = append(list, wireEvent(e))
	}
	return list
}

func wireEvent(e telemetry.Event) wire.Event {
	w := wire.Event{Seq: e.Seq, TimeMs: e.TimeMs, Node: e.Node, Type: e.Type, Subject: e.Subject, Cause: e.Cause.String(), GapMs: e.GapMs, Before: e.Before, After: e.After, Actor: e.Actor}
	for _, k := range sortedKeys(e.Detail) {
		if w.Detail != "" {
			w.Detail += " "
		}
		w.Detail += k + "=" + quoteIfNeeded(e.Detail[k])
	}
	return w
}

func quoteIfNeeded(v string) string {
	if q := strconv.Quote(v); len(q) != len(v)+2 || v == "" || slices.Contains([]byte(v), ' ') {
		return q
	}
	return v
}
