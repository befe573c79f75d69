package server

import (
	"slices"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/wire"
)

// What metadata says, in the protocol's words. What only a segment's replicas know is asked of them; see extents.go.

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

// topicDetail tells everything about a topic; x is what the holders of its segments say.
func (s *Server) topicDetail(t *meta.Topic, shard base.ShardID, x extents) wire.TopicDetail {
	d := wire.TopicDetail{Config: t.Config, Settings: s.settings(t.Config), Copies: copiesOf(t)}
	var named nodeSet
	stuck := s.stuck()
	for _, r := range t.Ranges {
		rd := rangeDetail(t, r, x)
		if n := len(rd.Segments); n > 0 { // the active one is the last
			rd.Segments[n-1].Waits = stuck[rd.Segments[n-1].ID].Reason
		}
		for _, seg := range r.Segments {
			named.add(seg.Replicas)
		}
		d.Ranges = append(d.Ranges, rd)
	}
	if t.Losses != nil {
		d.Losses = t.Losses.Count
		for _, l := range t.Losses.Recent {
			d.Lost = append(d.Lost, wire.SegmentLoss{Range: l.Range, Segment: l.Segment, End: l.End, TimeMs: l.TimeMs, Forced: forcedSeal(l.Forced)})
		}
	}
	d.Summary = s.topicSummary(t, shard, s.shardLeader(shard), x)
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

func (s *Server) topicSummary(t *meta.Topic, shard base.ShardID, leader base.NodeID, x extents) wire.TopicSummary {
	sum := wire.TopicSummary{
		ID: t.ID, Name: t.Name, Version: t.Version, State: base.StateActive,
		ReplicationFactor: t.Config.ReplicationFactor, Strategy: t.Config.Strategy,
		RetentionMs: t.Config.Retention.Milliseconds(), RetentionBytes: t.Config.RetentionBytes,
		Compression: t.Config.Compression, Labels: t.Config.Labels, CreatedMs: t.CreatedMs,
		Shard: shard, ShardLeader: leader,
	}
	alive := livingDisks(s.view())
	for _, r := range t.Ranges {
		if r.State == base.StateActive {
			sum.Ranges++
		}
		for _, seg := range r.Segments {
			e := x.of(seg)
			if alive.lacks(t, seg) > 0 {
				sum.UnderReplicated++
			}
			sum.Segments++
			sum.Records += e.records(seg)
			sum.Bytes += e.bytes
			sum.InBytesPerSec += e.inflow.Bytes
			sum.InRecordsPerSec += e.inflow.Records
			sum.Partial = sum.Partial || !e.known
		}
	}
	return sum
}

func rangeDetail(t *meta.Topic, r *meta.Range, x extents) wire.RangeDetail {
	d := wire.RangeDetail{
		ID: r.ID, Span: r.Span, State: r.State, Parents: r.Parents, Children: r.Children, Earliest: r.TrimmedTo,
		Load: "unknown", CreatedMs: t.CreatedMs,
	}
	for _, seg := range r.Segments {
		sd := segmentDetail(seg, x)
		d.Segments = append(d.Segments, sd)
		d.Records += sd.Records
		d.Bytes += sd.Bytes
		d.End = sd.End
		if seg.State == base.StateActive {
			d.Leader = seg.Leader().Node
			in := x.of(seg).inflow
			d.InBytesPerSec, d.InRecordsPerSec = in.Bytes, in.Records
		} else if r.State == base.StateSealed {
			d.Cause, d.SealedMs = seg.Cause, seg.SealedMs
		}
	}
	return d
}

// segmentDetail is a segment as metadata and its holders have it.
func segmentDetail(seg *meta.Segment, x extents) wire.SegmentDetail {
	e := x.of(seg)
	d := wire.SegmentDetail{
		ID: seg.ID, Epoch: seg.Epoch, State: seg.State, Cause: seg.Cause, Base: seg.Base, End: e.end,
		Records: e.records(seg), Bytes: e.bytes, Unknown: !e.known, CreatedMs: seg.CreatedMs, SealedMs: seg.SealedMs,
		LastAppendMs: seg.LastAppendMs, GapMs: seg.GapMs, Forced: seg.Forced != nil,
	}
	if d.LastAppendMs == 0 {
		d.LastAppendMs = e.lastMs
	}
	for i, rep := range seg.Replicas {
		h, answered := x[copyKey{seg.ID, rep.Node}]
		d.Replicas = append(d.Replicas, replicaDetail(seg, i, h, answered))
	}
	d.Copies = wholeCopies(d.Replicas)
	return d
}
