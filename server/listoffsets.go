package server

import (
	"context"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/wire"
)

// maxQueries bounds one request's positions.
const maxQueries = wire.MaxFetchRanges

// listOffsets finds one position in each of some ranges. One range's error is that range's answer.
func (s *Server) listOffsets(ctx context.Context, req wire.ListOffsetsRequest) (wire.ListOffsetsResponse, error) {
	if len(req.Queries) > maxQueries {
		return wire.ListOffsetsResponse{}, base.Errorf(base.CodeInvalidArgument, "list offsets", "%d ranges in one request, at most %d are answered", len(req.Queries), maxQueries)
	}
	resp := wire.ListOffsetsResponse{Offsets: make([]wire.OffsetAnswer, len(req.Queries))}
	for i, q := range req.Queries {
		a, err := s.offset(ctx, q)
		if err != nil {
			m := wire.ErrorFrom(s.directed(q.Ref, err))
			a.Error = &m
		}
		a.Ref = q.Ref
		resp.Offsets[i] = a
	}
	return resp, nil
}

// offset answers for a range that is led here; only its leader knows where it ends.
func (s *Server) offset(ctx context.Context, q wire.OffsetQuery) (wire.OffsetAnswer, error) {
	const op = "list offsets"
	bounds, ok := s.bounds(ctx, q.Ref)
	if !ok {
		if s.plane.Deleted(q.Ref.Topic) {
			return wire.OffsetAnswer{}, base.Errorf(base.CodeTopicNotFound, op, "topic %s was deleted", q.Ref.Topic)
		}
		return wire.OffsetAnswer{}, base.Errorf(base.CodeNotReplica, op, "range %s is not led by this node", q.Ref)
	}
	a := wire.OffsetAnswer{Earliest: bounds.earliest, Commit: bounds.commit}
	switch q.At {
	case wire.OffsetEarliest:
		a.Offset = bounds.earliest
	case wire.OffsetLatest:
		if !bounds.proven { // a commit of an earlier start may be higher than what can be proved now
			s.plane.Want(q.Ref)
			return a, base.Errorf(base.CodeBehind, op, "the end of range %s is not known yet", q.Ref)
		}
		a.Offset = bounds.commit
	case wire.OffsetAtTime:
		at, err := s.offsetByTime(ctx, q.Ref, q.TimeMs)
		if err != nil {
			return a, err
		}
		a.Offset, a.TimeMs = at.Offset, at.TimeMs
		if !at.Found {
			a.Offset, a.TimeMs = bounds.commit, 0
		}
	default:
		return a, base.Errorf(base.CodeInvalidArgument, op, "position %d is not known", q.At)
	}
	return a, nil
}

// bounds is what a range's leader knows of it.
type bounds struct {
	earliest, commit int64
	proven           bool // commit is the range's, not only what this node can prove after a restart, or before it has opened its segment
}

// bounds says where a range that is led here begins and ends. What it begins with may be on other nodes.
func (s *Server) bounds(ctx context.Context, ref base.RangeRef) (bounds, bool) {
	if !s.plane.LedHere(ref) {
		return bounds{}, false
	}
	earliest, _ := s.plane.Earliest(ref)
	b := bounds{earliest: earliest, commit: earliest}
	segments := s.store.Segments(ref)
	if len(segments) == 0 {
		return b, true // its first segment here is being opened
	}
	last := segments[len(segments)-1]
	b.commit = max(last.Commit, earliest)
	switch {
	case last.State == base.StateActive:
		b.proven = last.Boot == s.id.Boot
	default: // the successor is being opened: proven if it is this one's
		led, ok := s.plane.Range(ctx, ref)
		b.proven = ok && led.Base == last.SealedEnd
	}
	return b, true
}
