package server

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/telemetry"
	"github.com/eastguard/eastguard/internal/topology"
	"github.com/eastguard/eastguard/internal/wire"
)

// lastEvents is how many events fit below a status.
const lastEvents = 10

// clusterStatus puts the cluster on one page, as this node sees it.
func (s *Server) clusterStatus(ctx context.Context, _ wire.ClusterStatusRequest) (wire.ClusterStatusResponse, error) {
	now := time.Now()
	rate := s.rates.now(now)
	resp := wire.ClusterStatusResponse{
		Cluster: s.id.Cluster, Observer: s.id.Node, ObservedMs: now.UnixMilli(),
		InBytesPerSec: rate.inBytes, OutBytesPerSec: rate.outBytes, InRecordsPerSec: rate.inRecords, OutRecordsPerSec: rate.outRecords,
		Shards: s.shardStatus(), Events: s.events(lastEvents),
	}
	for _, n := range s.view().Nodes {
		resp.Nodes = append(resp.Nodes, s.nodeStatus(n, rate))
	}
	fit := len(resp.Nodes)
	for _, sh := range resp.Shards {
		if sh.Leader == "" {
			resp.Leaderless++
		}
		err := s.host.View(ctx, sh.ID, func(st *meta.State) error {
			for t := range st.All() {
				s.count(&resp, t, fit)
			}
			return nil
		})
		if err != nil {
			resp.Missing = append(resp.Missing, sh.ID)
		}
	}
	return resp, nil
}

// count adds one topic to the totals.
func (s *Server) count(resp *wire.ClusterStatusResponse, t *meta.Topic, nodes int) {
	resp.Topics++
	for _, r := range t.Ranges {
		if r.State == base.StateActive {
			resp.Ranges++
		}
		for _, seg := range r.Segments {
			_, records, bytes := s.extent(seg)
			resp.Segments++
			resp.Records += records
			resp.Bytes += bytes
			if len(seg.Replicas) < t.Config.ReplicationFactor {
				resp.UnderReplicated++
			}
		}
	}
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

func (s *Server) shardStatus() []wire.ShardStatus {
	var list []wire.ShardStatus
	for _, st := range s.host.Status() {
		w := wire.ShardStatus{
			ID: st.ID, State: "ok", Leader: st.Leader, Term: st.Term, Commit: st.Commit, Applied: st.Applied,
			Voters: st.Voters, Topics: st.Topics,
		}
		if st.Leader == "" {
			w.State = "no_leader"
		}
		list = append(list, w)
	}
	return list
}

// shardLeader is who leads a shard, as far as this node knows.
func (s *Server) shardLeader(id base.ShardID) base.NodeID {
	node, _ := s.host.Leader(id)
	return node
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
	w := wire.Event{Seq: e.Seq, TimeMs: e.TimeMs, Node: e.Node, Type: e.Type, Subject: e.Subject, Cause: e.Cause.String(), GapMs: e.GapMs}
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
