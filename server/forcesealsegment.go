package server

import (
	"context"
	"slices"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/coord"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/wire"
)

// forceSealSegment ends a segment whose end nobody can prove, at the longest copy that answers. What was acked above it
// is lost, which the operator has to accept in so many words; that it was done is recorded for ever.
func (s *Server) forceSealSegment(ctx context.Context, shard base.ShardID, req wire.ForceSealSegmentRequest) (wire.SealSegmentResponse, error) {
	const op = "force-seal segment"
	switch {
	case !req.AcceptDataLoss && !req.DryRun:
		return wire.SealSegmentResponse{}, base.Errorf(base.CodeInvalidArgument, op, "acked records above the longest copy that answers will be lost").
			WithHint("look first: eg-cli segment force-seal %s --dry-run; then repeat with --accept-data-loss", req.Segment)
	case len(req.Reason) > meta.MaxReason:
		return wire.SealSegmentResponse{}, base.Errorf(base.CodeInvalidArgument, op, "the reason has %d bytes, at most %d are kept", len(req.Reason), meta.MaxReason)
	}
	p, done, err := s.sealable(ctx, op, shard, req.Segment)
	if done != nil || err != nil {
		return answerOr(done, err)
	}
	c, err := s.coordinator(op, shard)
	if err != nil {
		return wire.SealSegmentResponse{}, err
	}
	forced, err := c.ForceSeal(ctx, coord.ForceRequest{Shard: shard, Ref: p.ref(), Segment: p.ID, Reason: req.Reason, DryRun: req.DryRun})
	if err != nil {
		return wire.SealSegmentResponse{}, err
	}
	resp := sealAnswer(p, forced.Sealed)
	resp.DryRun, resp.Silent, resp.Lossy = req.DryRun, nodesOf(forced.Silent), forced.Lossy
	for i, rep := range p.Replicas {
		if at := slices.IndexFunc(forced.Known, func(a meta.FenceAnswer) bool { return a.Replica == rep }); at >= 0 {
			resp.Known = append(resp.Known, knownCopy(i, forced.Known[at]))
		}
	}
	return resp, nil
}

// knownCopy is what a replica said of its copy when it was fenced.
func knownCopy(i int, a meta.FenceAnswer) wire.SegmentCopy {
	c := wire.SegmentCopy{
		Replica: wire.ReplicaDetail{Node: a.Replica.Node, Disk: a.Replica.Disk, DurableEnd: a.End, State: wire.ReplicaInSync},
		Bytes:   a.Bytes, Error: a.Err,
	}
	switch {
	case a.Kind == meta.NotMine:
		c.Replica.State = wire.ReplicaMissing
	case a.Kind == meta.Damaged:
		c.Replica.State = wire.ReplicaDamaged
	case !a.Unbroken:
		c.Replica.State = wire.ReplicaRestarted
	case i == 0:
		c.Replica.State = wire.ReplicaLeader
	}
	return c
}
