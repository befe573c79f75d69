package server

import (
	"context"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/wire"
)

// maxQueries bounds one request's positions.
const maxQueries = wire.MaxFetchRanges

// listOffsets finds one position in each of some ranges. One range's error is that range's answer.
func (s *Server) listOffsets(_ context.Context, req wire.ListOffsetsRequest) (wire.ListOffsetsResponse, error) {
	if len(req.Queries) > maxQueries {
		return wire.ListOffsetsResponse{}, base.Errorf(base.CodeInvalidArgument, "list offsets", "%d ranges in one request, at most %d are answered", len(req.Queries), maxQueries)
	}
	resp := wire.ListOffsetsResponse{Offsets: make([]wire.OffsetAnswer, len(req.Queries))}
	for i, q := range req.Queries {
		a, err := s.offset(q)
		if err != nil {
			m := wire.ErrorFrom(err)
			a.Error = &m
		}
		a.Ref = q.Ref
		resp.Offsets[i] = a
	}
	return resp, nil
}

func (s *Server) offset(q wire.OffsetQuery) (wire.OffsetAnswer, error) {
	const op = "list offsets"
	bounds, ok := s.bounds(q.Ref)
	if !ok {
		if s.plane.Deleted(q.Ref.Topic) {
			return wire.OffsetAnswer{}, base.Errorf(base.CodeTopicNotFound, op, "topic %s was deleted", q.Ref.Topic)
		}
		return wire.OffsetAnswer{}, base.Errorf(base.CodeNotReplica, op, "range %s is not on this node", q.Ref)
	}
	a := wire.OffsetAnswer{Earliest: bounds.earliest, Commit: bounds.commit}
	switch q.At {
	case wire.OffsetEarliest:
		a.Offset = bounds.earliest
	case wire.OffsetLatest:
		if !bounds.proven { // a commit of an earlier start may be higher than what can be proved now
			s.plane.Want(q.Ref)
			return a, base.Errorf(base.CodeBehind, op, "the end of range %s is being recovered", q.Ref)
		}
		a.Offset = bounds.commit
	case wire.OffsetAtTime:
		off, ts, found, err := s.store.OffsetByTime(q.Ref, q.TimeMs)
		if err != nil {
			return a, err
		}
		a.Offset, a.TimeMs = off, ts
		if !found {
			a.Offset, a.TimeMs = bounds.commit, 0
		}
	default:
		return a, base.Errorf(base.CodeInvalidArgument, op, "position %d is not known", q.At)
	}
	return a, nil
}

// bounds is the readable part of a range on this node.
type bounds struct {
	earliest, commit int64
	proven           bool // commit is the range's, not only what this node can prove after a restart
}

func (s *Server) bounds(ref base.RangeRef) (bounds, bool) {
	segments := s.store.Segments(ref)
	if len(segments) == 0 {
		return bounds{}, false
	}
	last := segments[len(segments)-1]
	return bounds{
		earliest: segments[0].Base, commit: last.Commit,
		proven: last.State != base.StateActive || last.Boot == s.id.Boot,
	}, true
}
