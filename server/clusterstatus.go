package server

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/shard"
	"github.com/eastguard/eastguard/internal/telemetry"
	"github.com/eastguard/eastguard/internal/topology"
	"github.com/eastguard/eastguard/internal/wire"
)

// lastEvents is how many events fit below a status.
const lastEvents = 10

// clusterStatus puts the cluster on one page: membership as this node sees it, each shard as its leader does.
func (s *Server) clusterStatus(ctx context.Context, _ wire.ClusterStatusRequest) (wire.ClusterStatusResponse, error) {
	now := time.Now()
	rate := s.rates.now(now)
	resp := wire.ClusterStatusResponse{
		Cluster: s.id.Cluster, Observer: s.id.Node, ObservedMs: now.UnixMilli(),
		InBytesPerSec: rate.inBytes, OutBytesPerSec: rate.outBytes, InRecordsPerSec: rate.inRecords, OutRecordsPerSec: rate.outRecords,
		Events: s.events(lastEvents),
	}
	for _, n := range s.view().Nodes {
		resp.Nodes = append(resp.Nodes, s.nodeStatus(n, rate))
	}
	sums, missing := s.sums(ctx)
	for _, sum := range sums {
		resp.Shards = append(resp.Shards, sum.Status)
		resp.Topics += sum.Topics
		resp.Ranges += sum.Ranges
		resp.Segments += sum.Segments
		resp.Records += sum.Records
		resp.Bytes += sum.Bytes
		resp.UnderReplicated += sum.Under
	}
	for _, shard := range missing {
		st := s.strayStatus(shard)
		resp.Shards = append(resp.Shards, st)
		if st.Leader == "" {
			resp.Leaderless++
		}
	}
	resp.Missing = missing
	slices.SortFunc(resp.Shards, func(a, b wire.ShardStatus) int { return compareShards(a.ID, b.ID) })
	return resp, nil
}

// sums asks the leaders of all shards for their figures.
func (s *Server) sums(ctx context.Context) (sums []shardSum, missing []base.ShardID) {
	missing = s.gather(ctx, gatherRequest{Sums: true}, func(a gatherAnswer) { sums = append(sums, a.Sums...) })
	slices.SortFunc(missing, compareShards)
	slices.SortFunc(sums, func(a, b shardSum) int { return compareShards(a.Status.ID, b.Status.ID) })
	for i := range sums {
		sums[i].Status.Hosted = s.host.Hosts(sums[i].Status.ID)
	}
	return sums, missing
}

func (s *Server) nodeStatus(n topology.Node, rate perSecond) wire.NodeStatus {
	st := wire.NodeStatus{
		ID: n.ID, Boot: n.Boot, Address: n.Address, State: n.Liveness.String(), Status: n.Standing.String(),
		Rack: n.Rack, Labels: n.Labels, Version: n.Version, DiskTotal: n.DiskTotal, DiskUsed: n.DiskTotal - n.DiskFree,
		Segments: n.Segments, Leaders: n.Leading,
	}
	if n.ID != s.id.Node {
		return st
	}
	// What a node knows of itself is fresher than what it has spread.
	stats := s.store.Stats()
	st.UptimeMs = time.Since(s.started).Milliseconds()
	st.DiskTotal, st.DiskUsed = stats.DiskTotal, stats.DiskTotal-stats.DiskFree
	st.InBytesPerSec, st.OutBytesPerSec = rate.inBytes, rate.outBytes
	st.InRecordsPerSec, st.OutRecordsPerSec = rate.inRecords, rate.outRecords
	st.Connections = s.mux.Stats().Connections
	st.Segments, st.Leaders = stats.Segments, s.plane.Leads()
	st.Vnodes, st.OwnsPerMillion = s.cfg.VnodesPerNode, 1_000_000
	st.FsyncP99Us = s.metrics.fsync.Snapshot().Quantile(0.99).Microseconds()
	st.AckP99Us = s.metrics.ack.Snapshot().Quantile(0.99).Microseconds()
	for _, sh := range s.host.Status() {
		if sh.Leader == s.id.Node {
			st.ShardLeaders++
		}
	}
	return st
}

// ledStatus is a shard as its leader, which is this node, has it.
func (s *Server) ledStatus(shard base.ShardID) wire.ShardStatus {
	for _, st := range s.host.Status() {
		if st.ID == shard {
			return hostedStatus(st)
		}
	}
	return wire.ShardStatus{ID: shard, State: "no_leader"}
}

func hostedStatus(st shard.Status) wire.ShardStatus {
	w := wire.ShardStatus{
		ID: st.ID, State: "ok", Leader: st.Leader, Term: st.Term, Commit: st.Commit, Applied: st.Applied,
		Voters: st.Voters, Topics: st.Topics, Hosted: true,
	}
	if st.Leader == "" {
		w.State = "no_leader"
	}
	return w
}

// strayStatus is a shard whose leader did not answer, as far as this node knows it.
func (s *Server) strayStatus(shard base.ShardID) wire.ShardStatus {
	w := wire.ShardStatus{ID: shard, State: "no_leader"}
	if s.host.Hosts(shard) {
		w = s.ledStatus(shard)
	}
	if c, ok := s.router.Leader(shard); ok {
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
