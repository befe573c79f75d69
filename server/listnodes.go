package server

import (
	"context"
	"time"

	"github.com/eastguard/eastguard/internal/topology"
	"github.com/eastguard/eastguard/internal/wire"
)

// listNodes shows every node, each by its own word where it gives one in time.
func (s *Server) listNodes(ctx context.Context, _ wire.ListNodesRequest) (wire.ListNodesResponse, error) {
	resp := wire.ListNodesResponse{Cluster: s.id.Cluster, Observer: s.id.Node, ObservedMs: time.Now().UnixMilli()}
	resp.Nodes, resp.Missing = s.collect(ctx)
	return resp, nil
}

// believed is a node as this one has heard of it.
func (s *Server) believed(n topology.Node) wire.NodeStatus {
	st := wire.NodeStatus{
		ID: n.ID, Boot: n.Boot, Address: n.Address, Rack: n.Rack, Labels: n.Labels, Version: n.Version,
	}
	if n.Liveness < topology.Dead { // what the others last heard of a node that is gone is no figure of now
		st.DiskTotal, st.DiskUsed, st.Segments, st.Leaders = n.DiskTotal, n.DiskTotal-n.DiskFree, n.Segments, n.Leading
		st.InBytesPerSec = n.BytesInSec
	}
	s.judge(&st, n)
	return st
}

// judge puts this node's own belief and measurements into what another says of itself: whether it lives and where it
// stands is for the others to say.
func (s *Server) judge(st *wire.NodeStatus, n topology.Node) {
	st.State, st.Status, st.Admitted = livenessName(n.Liveness), n.Standing.String(), n.Admitted
	st.SinceMs = s.sinceMs(n.ID)
	r, _ := s.ringNow()
	st.OwnsPerMillion = perMillion(r.Share(n.ID))
	if st.OwnsPerMillion > 0 {
		st.Vnodes = s.cfg.VnodesPerNode
	}
	if n.ID != s.id.Node {
		st.RttUs = routedPeers{s}.Liveness()[n.ID].RTT.Microseconds()
	}
}

// ownStatus is what this node knows of itself, which is fresher than what it has spread.
func (s *Server) ownStatus() wire.NodeStatus {
	now := time.Now()
	self, _ := s.view().Node(s.id.Node)
	st := s.believed(self)
	stats, rate := s.store.Stats(), s.rates.now(now)
	st.UptimeMs = now.Sub(s.started).Milliseconds()
	st.DiskTotal, st.DiskUsed = stats.DiskTotal, stats.DiskTotal-stats.DiskFree
	st.InBytesPerSec, st.OutBytesPerSec = rate.inBytes, rate.outBytes
	st.InRecordsPerSec, st.OutRecordsPerSec = rate.inRecords, rate.outRecords
	st.Full, st.Damaged, st.Quarantined = stats.DiskFull, int(stats.DamagedSegments), int(stats.QuarantinedFiles)
	st.Connections = s.mux.Stats().Connections
	st.Segments, st.Leaders, st.Followers = stats.Segments, s.plane.Leads(), s.plane.Follows()
	st.Short = s.plane.Short()
	st.FsyncP99Us = s.metrics.fsyncLately.quantile(0.99, now).Microseconds()
	st.AckP99Us = s.metrics.ackLately.quantile(0.99, now).Microseconds()
	r, version := s.ringNow()
	st.RingHash, st.RingVersion = r.Hash(), version
	for _, sh := range s.host.Status() {
		st.Replicas++
		if sh.Leader == s.id.Node {
			st.ShardLeaders++
		}
	}
	return st
}
