package coord

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/planner"
	"github.com/eastguard/eastguard/internal/topology"
)

// ForceRequest is an operator's order to end an active segment at the longest copy that answers, whatever may have been
// acked above it.
type ForceRequest struct {
	Shard   base.ShardID // which this node leads
	Ref     base.RangeRef
	Segment base.SegmentID
	Reason  string
	DryRun  bool // fence and commit nothing, only look
}

// Forced is what a forced seal did or, dry, would do.
type Forced struct {
	Sealed

	Known  []meta.FenceAnswer // what the replicas that answered hold
	Silent []base.Replica     // which did not answer, or not with an intact copy
	Lossy  bool               // the end is not certain: acked records above it may be lost
}

const opForce = "force-seal segment"

// ForceSeal ends a segment whose end nobody can prove. Who answers is fenced; the longest of their copies is the end, of
// a damaged one what is intact, and the segment's base if there is none. It is recorded for ever. Where the answers do
// prove an end there is nothing to force, and the error is CodePreconditionFailed.
//
// It has no part in the shard's loop: what it commits names the segment that it is about, and one of the two is late.
func (c *Coord) ForceSeal(ctx context.Context, req ForceRequest) (Forced, error) {
	l, err := c.loop(opForce, req.Shard)
	if err != nil {
		return Forced{}, err
	}
	began := time.Now()
	var topic *meta.Topic
	var seg *meta.Segment
	err = l.view(func(s *meta.State) error {
		topic, seg = s.Topic(req.Ref.Topic), find(s, req.Ref, req.Segment)
		return nil
	})
	switch {
	case err != nil:
		return Forced{}, err
	case seg == nil || seg.State != base.StateActive:
		return Forced{}, base.Errorf(base.CodePreconditionFailed, opForce, "%s is not the active segment of range %s", req.Segment, req.Ref).WithOutcome(base.NotApplied)
	}
	ask := c.fenceOne
	if req.DryRun {
		ask = c.lookAt
	}
	answers := c.askReplicas(ctx, req.Ref, seg, ask)
	in := planner.Input{
		NowMs: time.Now().UnixMilli(), View: c.o.View(), Rand: newRand(), Topic: func(base.TopicID) *meta.Topic { return topic },
	}
	rec := planner.Recovery{Ref: req.Ref, Segment: seg.ID, Epoch: seg.Epoch, Cause: base.CauseOperator, SinceMs: began.UnixMilli(), Answers: answers}
	cmd, placement, err := planner.ForceSeal(in, rec, req.Reason)
	if err != nil {
		return Forced{Known: answers}, err
	}
	f := Forced{
		Sealed: Sealed{Old: seg.ID, End: cmd.End, Replicas: placement.Replicas, Cause: base.CauseOperator, GapMs: cmd.GapMs},
		Known:  answers, Silent: cmd.Silent, Lossy: true,
	}
	if req.DryRun {
		return f, nil
	}
	return c.commitForced(ctx, req.Shard, cmd, f)
}

func (c *Coord) commitForced(ctx context.Context, shard base.ShardID, cmd meta.ForceSealSegment, f Forced) (Forced, error) {
	ctx, cancel := context.WithTimeout(ctx, c.o.ProposeTimeout)
	defer cancel()
	result, err := c.o.Shards.Propose(ctx, shard, meta.Command{TimeMs: time.Now().UnixMilli(), ForceSeal: &cmd})
	if err == nil {
		err = result.Err(opForce)
	}
	switch {
	case err != nil:
		return Forced{}, err
	case len(result.Rolls) != 1 || result.Rolls[0].Code != base.CodeOK || result.Rolls[0].Active == nil:
		return Forced{}, base.Errorf(base.CodePreconditionFailed, opForce, "%s has ended otherwise meanwhile", cmd.Segment).WithOutcome(base.NotApplied)
	}
	active := result.Rolls[0].Active
	f.New, f.Replicas = active.ID, active.Replicas
	c.o.Logger.Warn("segment was sealed by force: acked records above its end may be lost",
		"segment", cmd.Segment.String(), "end", cmd.End, "silent", len(cmd.Silent), "reason", cmd.Reason)
	return f, nil
}

// askReplicas asks every replica of a segment for its word on it. Those that are not connected are not waited for long.
func (c *Coord) askReplicas(
	ctx context.Context, ref base.RangeRef, seg *meta.Segment,
	ask func(context.Context, base.Replica, meta.FenceRequest) *meta.FenceAnswer,
) []meta.FenceAnswer {
	contacts := c.o.Contacts()
	answers := make([]*meta.FenceAnswer, len(seg.Replicas))
	var asking sync.WaitGroup
	for i, r := range seg.Replicas {
		patience := c.o.TellTimeout
		if at := contacts[r.Node]; at.Kept && !at.heard() {
			patience = c.o.FenceTimeout
		}
		asking.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			answers[i] = ask(ctx, r, seg.Fence(ref, r))
		})
	}
	asking.Wait()
	var list []meta.FenceAnswer
	for _, a := range answers {
		if a != nil {
			list = append(list, *a)
		}
	}
	return list
}

func (c *Coord) fenceOne(ctx context.Context, r base.Replica, request meta.FenceRequest) *meta.FenceAnswer {
	for _, a := range c.fence(ctx, r, []meta.FenceRequest{request}, true) {
		return &a
	}
	return nil
}

// lookAt is what a fence would answer now, as far as can be told without one.
func (c *Coord) lookAt(ctx context.Context, r base.Replica, request meta.FenceRequest) *meta.FenceAnswer {
	page, err := c.o.Nodes.Inventory(ctx, r.Node, request.Ref, 1)
	if err != nil {
		return nil
	}
	a := &meta.FenceAnswer{Segment: request.Segment, Replica: base.Replica{Node: r.Node, Disk: page.Disk}, Kind: meta.Extent, End: request.Base}
	if a.Replica != r {
		a.Kind = meta.NotMine
		return a
	}
	if n, ok := c.o.View().Node(r.Node); ok {
		a.Unbroken = request.Boot != 0 && n.Boot == request.Boot && n.Liveness == topology.Alive
	}
	here := heldIn(page, request)
	switch {
	case here == nil:
		a.Unlisted = true
		if page.Lossy { // the record that listed it may be among those that were lost
			a.Kind = meta.Damaged
		}
	case here.Damaged:
		a.Kind, a.End = meta.Damaged, here.Intact
	default:
		a.End = here.End
	}
	return a
}

// heldIn is the segment of a request as a disk lists it, nil if it does not.
func heldIn(page meta.Inventory, request meta.FenceRequest) *meta.HeldSegment {
	for _, held := range page.Ranges {
		i := slices.IndexFunc(held.Segments, func(s meta.HeldSegment) bool { return s.Segment == request.Segment })
		if held.Ref == request.Ref && i >= 0 {
			return &held.Segments[i]
		}
	}
	return nil
}
