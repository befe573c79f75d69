package server

import (
	"context"
	"sync"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/coord"
	"github.com/eastguard/eastguard/internal/wire"
)

// sealSegment ends an active segment at an operator's wish, by the same way as a leader's: its leader drains it and its
// coordinator opens the successor on a fresh set of replicas. Asking for what has been done is answered as it was done.
func (s *Server) sealSegment(ctx context.Context, shard base.ShardID, req wire.SealSegmentRequest) (wire.SealSegmentResponse, error) {
	const op = "seal segment"
	p, done, err := s.sealable(ctx, op, shard, req.Segment)
	if done != nil || err != nil {
		return answerOr(done, err)
	}
	if req.DryRun {
		return s.drySeal(ctx, p), nil
	}
	c, err := s.coordinator(op, shard)
	if err != nil {
		return wire.SealSegmentResponse{}, err
	}
	s.words.keep(p.ID, req.Reason)
	sealed, err := c.Seal(ctx, coord.SealRequest{Shard: shard, Ref: p.ref(), Segment: p.ID, Reason: req.Reason})
	if err != nil {
		return wire.SealSegmentResponse{}, err
	}
	return sealAnswer(p, sealed), nil
}

// sealable finds a segment that may be sealed. One that an operator has sealed already is an answer: the request may be
// a second try of the one that did it.
func (s *Server) sealable(ctx context.Context, op string, shard base.ShardID, id base.SegmentID) (p placed, done *wire.SealSegmentResponse, err error) {
	p, err = s.segment(ctx, op, shard, id)
	switch {
	case err != nil:
		return p, nil, err
	case p.topic.Internal:
		return p, nil, base.Errorf(base.CodeDenied, op, "topic %s is internal", p.topic.Name).WithHint("internal topics are managed by the brokers")
	case p.State == base.StateActive:
		return p, nil, nil
	case p.Cause == base.CauseOperator:
		return p, sealedBefore(p), nil
	}
	e := base.Errorf(base.CodePreconditionFailed, op, "segment %s of %s was sealed at %d already (%s)", id, p.where(), p.End, p.Cause)
	if active := p.rng.Active(); active != nil {
		e = e.WithHint("the range goes on in segment %s", active.ID)
	}
	return p, nil, e
}

func answerOr(done *wire.SealSegmentResponse, err error) (wire.SealSegmentResponse, error) {
	if err != nil {
		return wire.SealSegmentResponse{}, err
	}
	return *done, nil
}

// sealedBefore is a sealed segment as the answer to the request that sealed it.
func sealedBefore(p placed) *wire.SealSegmentResponse {
	resp := &wire.SealSegmentResponse{
		Topic: p.topic.Name, Range: p.rng.ID, Old: p.ID, Boundary: p.End, GapMs: p.GapMs, Cause: p.Cause, Lossy: p.Forced != nil,
	}
	if p.Forced != nil {
		resp.Silent = nodesOf(p.Forced.Silent)
	}
	if next := successor(p); next != nil {
		resp.New, resp.Replicas = next.ID, nodesOf(next.Replicas)
	}
	return resp
}

// drySeal says where the segment would end if nothing were appended meanwhile.
func (s *Server) drySeal(ctx context.Context, p placed) wire.SealSegmentResponse {
	q := s.newExtentQuestion()
	q.addSpokesman(p.Segment)
	e := q.ask(ctx).of(p.Segment)
	return wire.SealSegmentResponse{
		Topic: p.topic.Name, Range: p.rng.ID, Old: p.ID, Boundary: e.end, Cause: base.CauseOperator, DryRun: true,
	}
}

// coordinator is this node's, of a shard that it leads.
func (s *Server) coordinator(op string, shard base.ShardID) (*coord.Coord, error) {
	c := s.coord.Load()
	if c == nil {
		return nil, base.Errorf(base.CodeNoLeader, op, "shard %s is not coordinated here yet", shard).WithOutcome(base.NotApplied)
	}
	return c, nil
}

func sealAnswer(p placed, sealed coord.Sealed) wire.SealSegmentResponse {
	return wire.SealSegmentResponse{
		Topic: p.topic.Name, Range: p.rng.ID, Old: sealed.Old, New: sealed.New, Boundary: sealed.End,
		Replicas: nodesOf(sealed.Replicas), GapMs: sealed.GapMs, Cause: sealed.Cause,
	}
}

func nodesOf(replicas []base.Replica) (nodes []base.NodeID) {
	for _, r := range replicas {
		nodes = append(nodes, r.Node)
	}
	return nodes
}

func (p placed) ref() base.RangeRef { return base.RangeRef{Topic: p.topic.ID, Range: p.rng.ID} }

// sealWords are the operators' reasons for seals that are under way, until the journal tells of those. Of a forced seal
// the metadata keeps the reason for ever; of one that loses nothing this is enough.
type sealWords struct {
	mu sync.Mutex
	m  map[base.SegmentID]string
}

// maxSealWords bounds those whose seals never came.
const maxSealWords = 1024

func (w *sealWords) keep(id base.SegmentID, reason string) {
	if reason == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.m == nil || len(w.m) >= maxSealWords {
		w.m = make(map[base.SegmentID]string)
	}
	w.m[id] = reason
}

// take returns the reason given for a segment and forgets it.
func (w *sealWords) take(id base.SegmentID) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	reason := w.m[id]
	delete(w.m, id)
	return reason
}
