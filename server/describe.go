package server

import (
	"slices"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/wire"
)

// What metadata says, in the protocol's words. What only a segment's leader knows (commit, bytes) is asked of the
// store, for the segments that are here.

func (s *Server) topicRoute(t *meta.Topic, shard base.ShardID) wire.TopicRoute {
	route := wire.TopicRoute{
		ID: t.ID, Name: t.Name, Version: t.Version, Config: t.Config, Shard: shard, ShardLeader: s.shardLeader(shard),
	}
	var named nodeSet
	named.addNode(route.ShardLeader)
	for _, r := range t.Ranges {
		rr := wire.RangeRoute{
			ID: r.ID, Span: r.Span, State: r.State, Parents: r.Parents, Children: r.Children, Earliest: r.TrimmedTo,
		}
		if a := r.Active(); a != nil {
			rr.Active = segmentRoute(a)
		} else if n := len(r.Segments); n > 0 {
			rr.End = r.Segments[n-1].End
		}
		for _, seg := range r.Segments {
			named.add(seg.Replicas)
		}
		route.Ranges = append(route.Ranges, rr)
	}
	route.Nodes = s.addresses(named)
	return route
}

func segmentRoute(seg *meta.Segment) *wire.SegmentRoute {
	r := &wire.SegmentRoute{ID: seg.ID, Epoch: seg.Epoch, Base: seg.Base, End: max(seg.End, 0), State: seg.State}
	for _, rep := range seg.Replicas {
		r.Replicas = append(r.Replicas, rep.Node)
	}
	return r
}

// nodeSet collects the nodes that an answer names.
type nodeSet []base.NodeID

func (n *nodeSet) add(replicas []base.Replica) {
	for _, r := range replicas {
		n.addNode(r.Node)
	}
}

func (n *nodeSet) addNode(id base.NodeID) {
	if id != "" && !slices.Contains(*n, id) {
		*n = append(*n, id)
	}
}

func (s *Server) addresses(nodes nodeSet) []wire.NodeAddress {
	view := s.view()
	list := make([]wire.NodeAddress, 0, len(nodes))
	for _, id := range nodes {
		a := wire.NodeAddress{ID: id}
		if n, ok := view.Node(id); ok {
			a.Address, a.Rack = n.Address, n.Rack
		}
		list = append(list, a)
	}
	return list
}

func (s *Server) topicDetail(t *meta.Topic, shard base.ShardID) wire.TopicDetail {
	d := wire.TopicDetail{Config: t.Config, Settings: s.settings(t.Config)}
	var named nodeSet
	for _, r := range t.Ranges {
		rd := s.rangeDetail(t, r)
		for _, seg := range r.Segments {
			named.add(seg.Replicas)
		}
		d.Ranges = append(d.Ranges, rd)
	}
	d.Summary = s.topicSummary(t, shard, s.shardLeader(shard))
	named.addNode(d.Summary.ShardLeader)
	d.Nodes = s.addresses(named)
	return d
}

// settings lists a topic's effective settings and where each comes from.
func (s *Server) settings(c base.TopicConfig) []wire.Setting {
	var defaults base.TopicConfig
	var list []wire.Setting
	for _, row := range base.TopicSettings() {
		v, _ := c.Get(row.Key)
		d, _ := defaults.Get(row.Key)
		w := wire.Setting{Key: row.Key, Value: v, Default: d, Source: "topic", Help: row.Help}
		if v == d {
			w.Source = "default"
		}
		list = append(list, w)
	}
	for _, label := range sortedKeys(c.Labels) {
		list = append(list, wire.Setting{Key: base.LabelPrefix + label, Value: c.Labels[label], Source: "topic"})
	}
	return list
}

func (s *Server) topicSummary(t *meta.Topic, shard base.ShardID, leader base.NodeID) wire.TopicSummary {
	sum := wire.TopicSummary{
		ID: t.ID, Name: t.Name, Version: t.Version, State: base.StateActive,
		ReplicationFactor: t.Config.ReplicationFactor, Strategy: t.Config.Strategy,
		RetentionMs: t.Config.Retention.Milliseconds(), RetentionBytes: t.Config.RetentionBytes,
		Compression: t.Config.Compression, Labels: t.Config.Labels, CreatedMs: t.CreatedMs,
		Shard: shard, ShardLeader: leader,
	}
	for _, r := range t.Ranges {
		if r.State == base.StateActive {
			sum.Ranges++
		}
		for _, seg := range r.Segments {
			_, records, bytes := s.extent(seg)
			sum.Segments++
			sum.Records += records
			sum.Bytes += bytes
		}
	}
	return sum
}

func (s *Server) rangeDetail(t *meta.Topic, r *meta.Range) wire.RangeDetail {
	d := wire.RangeDetail{
		ID: r.ID, Span: r.Span, State: r.State, Parents: r.Parents, Children: r.Children, Earliest: r.TrimmedTo,
		Load: "unknown", CreatedMs: t.CreatedMs,
	}
	for _, seg := range r.Segments {
		sd := s.segmentDetail(seg)
		d.Segments = append(d.Segments, sd)
		d.Records += sd.Records
		d.Bytes += sd.Bytes
		d.End = sd.End
		if seg.State == base.StateActive {
			d.Leader = seg.Leader().Node
		} else if r.State == base.StateSealed {
			d.Cause, d.SealedMs = seg.Cause, seg.SealedMs
		}
	}
	return d
}

func (s *Server) segmentDetail(seg *meta.Segment) wire.SegmentDetail {
	end, records, bytes := s.extent(seg)
	d := wire.SegmentDetail{
		ID: seg.ID, Epoch: seg.Epoch, State: seg.State, Cause: seg.Cause, Base: seg.Base, End: end,
		Records: records, Bytes: bytes, CreatedMs: seg.CreatedMs, SealedMs: seg.SealedMs,
		LastAppendMs: seg.LastAppendMs, GapMs: seg.GapMs,
	}
	info, here := s.store.Info(seg.ID)
	if here && d.LastAppendMs == 0 {
		d.LastAppendMs = info.LastAppendMs
	}
	for i, rep := range seg.Replicas {
		rd := wire.ReplicaDetail{Node: rep.Node, Disk: rep.Disk, State: "in_sync", DurableEnd: end}
		switch {
		case i == 0 && seg.State == base.StateActive:
			rd.State = "leader"
		case rep.Node == s.id.Node && !here && seg.Base != seg.End:
			rd.State, rd.DurableEnd = "missing", 0
		}
		if rep.Node == s.id.Node && here {
			rd.DurableEnd = info.DurableEnd
		}
		d.Replicas = append(d.Replicas, rd)
	}
	return d
}

// extent is how far a segment goes: as committed once it is sealed, as its leader's store knows it while active.
func (s *Server) extent(seg *meta.Segment) (end, records, bytes int64) {
	if seg.State == base.StateSealed {
		return seg.End, seg.End - seg.Base, seg.Bytes
	}
	info, ok := s.store.Info(seg.ID)
	if !ok {
		return seg.Base, 0, 0
	}
	return info.Commit, info.Commit - seg.Base, info.Bytes
}
