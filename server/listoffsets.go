package server

import (
	"context"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
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

// offset finds one position. Where a range begins, everybody knows who knows the metadata; where it ends, its leader.
func (s *Server) offset(ctx context.Context, q wire.OffsetQuery) (wire.OffsetAnswer, error) {
	const op = "list offsets"
	if s.plane.Deleted(q.Ref.Topic) {
		return wire.OffsetAnswer{}, base.Errorf(base.CodeTopicNotFound, op, "topic %s was deleted", q.Ref.Topic)
	}
	switch q.At {
	case wire.OffsetEarliest:
		return s.earliestOffset(ctx, q.Ref)
	case wire.OffsetLatest:
		return s.latestOffset(ctx, q.Ref)
	case wire.OffsetAtTime:
		return s.offsetAtTime(ctx, q.Ref, q.TimeMs)
	}
	return wire.OffsetAnswer{}, base.Errorf(base.CodeInvalidArgument, op, "position %d is not known", q.At)
}

// earliestOffset needs nobody who holds the range: it is there to be read as long as one copy of its beginning is.
func (s *Server) earliestOffset(ctx context.Context, ref base.RangeRef) (wire.OffsetAnswer, error) {
	if b, led := s.bounds(ctx, ref); led {
		return wire.OffsetAnswer{Offset: b.earliest, Earliest: b.earliest, Commit: b.commit}, nil
	}
	r, err := s.rangeCopy(ctx, "list offsets", ref)
	if err == nil {
		return wire.OffsetAnswer{Offset: r.TrimmedTo, Earliest: r.TrimmedTo}, nil
	}
	// Without a shard's word what this node was told when it got its copy will do: a reader who comes below what was
	// trimmed since is told where to go on.
	if told, ok := s.plane.Earliest(ref); ok && base.CodeOf(err) != base.CodeTopicNotFound && base.CodeOf(err) != base.CodeRangeNotFound {
		return wire.OffsetAnswer{Offset: told, Earliest: told}, nil
	}
	return wire.OffsetAnswer{}, err
}

// latestOffset is the leader's to tell, and not before it knows: a commit of an earlier start may be higher than what it
// can prove.
func (s *Server) latestOffset(ctx context.Context, ref base.RangeRef) (wire.OffsetAnswer, error) {
	const op = "list offsets"
	b, led := s.bounds(ctx, ref)
	if !led {
		s.want(ref)
		if _, held := s.lastSegmentHere(ref); !held {
			return wire.OffsetAnswer{}, base.Errorf(base.CodeNotReplica, op, "range %s is not on this node", ref)
		}
		return wire.OffsetAnswer{}, base.Errorf(base.CodeNotLeader, op, "range %s is not led by this node", ref)
	}
	a := wire.OffsetAnswer{Earliest: b.earliest, Commit: b.commit}
	if !b.proven {
		s.plane.Want(ref)
		return a, base.Errorf(base.CodeBehind, op, "the end of range %s is not known yet", ref)
	}
	a.Offset = b.commit
	return a, nil
}

// offsetAtTime asks whoever holds the range's segments. Where no record is so late, the answer is the range's end as it was
// before they looked: what is appended meanwhile lies behind that, and nobody who begins there misses it.
func (s *Server) offsetAtTime(ctx context.Context, ref base.RangeRef, ms int64) (wire.OffsetAnswer, error) {
	end, unknown := s.latestOffset(ctx, ref)
	at, err := s.offsetByTime(ctx, ref, ms)
	if err != nil {
		return wire.OffsetAnswer{}, err
	}
	return at.orEnd(end, unknown)
}

// orEnd is the answer by what the search has found and, if that is nothing, by where the range ends, if that is known.
func (a offsetsAnswer) orEnd(end wire.OffsetAnswer, unknown error) (wire.OffsetAnswer, error) {
	if a.Found {
		end.Offset, end.TimeMs = a.Offset, a.TimeMs
		return end, nil
	}
	return end, unknown
}

// rangeCopy is a range as its shard had committed it a moment ago.
func (s *Server) rangeCopy(ctx context.Context, op string, ref base.RangeRef) (*meta.Range, error) {
	t, err := s.topicCopy(ctx, op, ref.Topic)
	if err != nil {
		return nil, err
	}
	r := t.Range(ref.Range)
	if r == nil {
		return nil, base.Errorf(base.CodeRangeNotFound, op, "topic %s has no range %s", t.Name, ref.Range)
	}
	return r, nil
}

// want lets the coordinator of a range know that somebody waits for it, if that is on this node. Where it is elsewhere,
// it hears of it when the client renews its route.
func (s *Server) want(ref base.RangeRef) {
	if c := s.coord.Load(); c != nil {
		c.Want(ref)
	}
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
