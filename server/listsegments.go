package server

import (
	"cmp"
	"context"
	"slices"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/coord"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/mux"
	"github.com/eastguard/eastguard/internal/wire"
)

const (
	segmentsPage    = 1000
	maxSegmentsPage = 5000
	segmentRowBytes = 500 // about what a row takes, with three replicas
)

func segmentLimit(asked int) int { return min(cmp.Or(max(asked, 0), segmentsPage), maxSegmentsPage) }

// The states by which segments are listed.
const (
	listActive = "active"
	listSealed = "sealed"
	listUnder  = "under-replicated"
)

// placed is a segment with where it belongs.
type placed struct {
	*meta.Segment
	topic *meta.Topic
	rng   *meta.Range
}

func (p placed) where() string { return p.topic.Name + "/" + p.rng.ID.String() }

// listSegments lists segments by id, a page at a time: those of one topic, which its shard knows, or those of all, from
// all shards. A shard that does not answer is named.
func (s *Server) listSegments(ctx context.Context, r *mux.Request) {
	var req wire.ListSegmentsRequest
	if err := wire.Decode(r.Message, &req); err != nil {
		r.Fail(err)
		return
	}
	if err := checkSegmentFilter(req); err != nil {
		r.Fail(err)
		return
	}
	if req.Topic != "" {
		s.routed(ctx, r, s.routes[wire.KindListSegments])
		return
	}
	pooled(s, s.metaPool, ctx, r, s.allSegments)
}

func checkSegmentFilter(req wire.ListSegmentsRequest) error {
	const op = "list segments"
	switch req.State {
	case "", listActive, listSealed, listUnder:
	default:
		return base.Errorf(base.CodeInvalidArgument, op, "%q is not a state to list segments by", req.State).
			WithHint("give %s, %s or %s", listActive, listSealed, listUnder)
	}
	if req.Range != 0 && req.Topic == "" {
		return base.Errorf(base.CodeInvalidArgument, op, "range %s of which topic?", req.Range).WithHint("a range id has a meaning within its topic only")
	}
	return nil
}

func (s *Server) allSegments(ctx context.Context, req wire.ListSegmentsRequest) (resp wire.ListSegmentsResponse, err error) {
	limit := segmentLimit(req.Limit)
	var parts []pagePart[wire.SegmentRow]
	resp.Missing = s.gather(ctx, gatherRequest{Segments: &req}, func(a gatherAnswer) {
		parts = append(parts, pagePart[wire.SegmentRow]{a.Segments, a.More})
	})
	resp.Segments, resp.More = mergePage(parts, limit,
		func(r *wire.SegmentRow) base.SegmentID { return r.Segment.ID }, func(*wire.SegmentRow) int { return segmentRowBytes })
	slices.SortFunc(resp.Missing, base.ShardID.Compare)
	return resp, nil
}

// topicSegments is the page of one topic, on its shard's leader.
func (s *Server) topicSegments(ctx context.Context, shard base.ShardID, req wire.ListSegmentsRequest) (resp wire.ListSegmentsResponse, err error) {
	const op = "list segments"
	if err := checkSegmentFilter(req); err != nil {
		return resp, err
	}
	f, err := s.topic(ctx, op, shard, req.Topic, base.TopicID{})
	if err != nil {
		return resp, err
	}
	if req.Range != 0 && f.Range(req.Range) == nil {
		return resp, base.Errorf(base.CodeRangeNotFound, op, "topic %s has no range %s", f.Name, req.Range)
	}
	limit := segmentLimit(req.Limit)
	part := s.filterSegments([]*meta.Topic{f.Topic}, req, limit)
	resp.Segments, resp.More = s.segmentPage(ctx, []pagePart[placed]{part}, limit)
	return resp, nil
}

// segmentsOf is what one shard has for a page of all topics.
func (s *Server) segmentsOf(ctx context.Context, shard base.ShardID, req wire.ListSegmentsRequest) (part pagePart[placed], err error) {
	var topics []*meta.Topic
	err = s.host.View(ctx, shard, func(st *meta.State) error {
		topics = make([]*meta.Topic, 0, st.Len())
		for t := range st.All() {
			if !t.Internal {
				topics = append(topics, t)
			}
		}
		return nil
	})
	if err != nil {
		return part, err
	}
	return s.filterSegments(topics, req, segmentLimit(req.Limit)), nil
}

// filterSegments takes the first segments that fit, by id. It is made outside the view of the shard: topics are
// immutable.
func (s *Server) filterSegments(topics []*meta.Topic, req wire.ListSegmentsRequest, limit int) (part pagePart[placed]) {
	alive := livingDisks(s.view())
	for _, t := range topics {
		for _, r := range t.Ranges {
			if req.Range != 0 && r.ID != req.Range {
				continue
			}
			for _, seg := range r.Segments {
				if p := (placed{seg, t, r}); seg.ID > req.After && p.fits(req, alive) {
					part.rows = append(part.rows, p)
				}
			}
		}
	}
	slices.SortFunc(part.rows, func(a, b placed) int { return cmp.Compare(a.ID, b.ID) })
	if len(part.rows) > limit {
		part.rows, part.more = part.rows[:limit:limit], true
	}
	return part
}

// fits applies the filters that are about the segment itself.
func (p placed) fits(req wire.ListSegmentsRequest, alive living) bool {
	if req.Node != "" && !slices.ContainsFunc(p.Replicas, func(r base.Replica) bool { return r.Node == req.Node }) {
		return false
	}
	switch req.State {
	case listActive:
		return p.State == base.StateActive
	case listSealed:
		return p.State == base.StateSealed
	case listUnder:
		return alive.lacks(p.topic, p.Segment) > 0
	}
	return true
}

// segmentPage makes a page's rows of what the shards led here have for it. Only for those that belong on the page the
// holders are asked.
func (s *Server) segmentPage(ctx context.Context, parts []pagePart[placed], limit int) ([]wire.SegmentRow, bool) {
	list, more := mergePage(parts, limit,
		func(p *placed) base.SegmentID { return p.ID }, func(*placed) int { return segmentRowBytes })
	segments := make([]*meta.Segment, len(list))
	for i, p := range list {
		segments[i] = p.Segment
	}
	x := s.copiesOfSegments(ctx, segments)
	stuck := s.stuck()
	rows := make([]wire.SegmentRow, len(list))
	for i, p := range list {
		rows[i] = segmentRow(p, x, stuck)
	}
	return rows, more
}

func segmentRow(p placed, x extents, stuck map[base.SegmentID]coord.Stuck) wire.SegmentRow {
	d := segmentDetail(p.Segment, x)
	d.Waits = stuck[p.ID].Reason
	return wire.SegmentRow{
		Topic: p.topic.Name, TopicID: p.topic.ID, Range: p.rng.ID, ReplicationFactor: p.topic.Config.ReplicationFactor,
		Copies: d.Copies, Segment: d,
	}
}
