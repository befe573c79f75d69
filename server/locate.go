package server

import (
	"context"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/wire"
)

// locate says who holds the segment with one offset of a range.
func (s *Server) locate(ctx context.Context, shard base.ShardID, req wire.LocateRequest) (wire.LocateResponse, error) {
	const op = "locate"
	f, err := s.topic(ctx, op, shard, "", req.Ref.Topic)
	if err != nil {
		return wire.LocateResponse{}, err
	}
	r := f.Range(req.Ref.Range)
	if r == nil {
		return wire.LocateResponse{}, base.Errorf(base.CodeRangeNotFound, op, "topic %s has no range %s", f.Name, req.Ref.Range)
	}
	seg := r.SegmentAt(req.Offset)
	if seg == nil {
		return wire.LocateResponse{}, base.Errorf(base.CodeOffsetOutOfRange, op, "range %s of topic %s begins at %d", r.ID, f.Name, r.TrimmedTo)
	}
	if seg.State == base.StateActive {
		s.wantLeaders(found{f.Topic, f.shard})
	}
	var named nodeSet
	named.add(seg.Replicas)
	return wire.LocateResponse{Segment: *segmentRoute(seg), Nodes: s.addresses(named)}, nil
}
