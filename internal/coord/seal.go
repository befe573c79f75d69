package coord

import (
	"context"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
)

// SealRequest is an operator's wish to end an active segment.
type SealRequest struct {
	Shard   base.ShardID // which this node leads
	Ref     base.RangeRef
	Segment base.SegmentID
	Reason  string // the operator's words, for the log
}

// Sealed is how a segment ended, and what goes on behind it.
type Sealed struct {
	Old, New base.SegmentID
	End      int64 // of the old, base of the new
	Replicas []base.Replica
	Cause    base.Cause
	GapMs    int64
}

const opSeal = "seal segment"

// Seal ends a segment and opens its successor on a fresh set of replicas. The segment's leader is asked to; if it is
// gone, its replicas are fenced instead. Asking again is safe: a segment that has ended is answered as it was sealed.
func (c *Coord) Seal(ctx context.Context, req SealRequest) (Sealed, error) {
	l, err := c.loop(opSeal, req.Shard)
	if err != nil {
		return Sealed{}, err
	}
	c.o.Logger.Info("segment is being sealed for an operator", "range", req.Ref.String(), "segment", req.Segment.String(), "reason", req.Reason)
	next, err := l.inbox.ask(ctx, &ask{order: true, req: RollRequest{Ref: req.Ref, Segment: req.Segment, End: -1, Cause: base.CauseOperator}})
	if err != nil {
		return Sealed{}, err
	}
	return l.sealed(req, next)
}

// loop is that of a shard which is led here.
func (c *Coord) loop(op string, shard base.ShardID) (*loop, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l := c.loops[shard]; l != nil {
		return l, nil
	}
	return nil, base.Errorf(base.CodeNotLeader, op, "shard %s is not coordinated here", shard).WithOutcome(base.NotApplied)
}

// sealed looks up how a segment ended. One without a record that was never opened is not kept.
func (l *loop) sealed(req SealRequest, next meta.Assignment) (Sealed, error) {
	s := Sealed{
		Old: req.Segment, New: next.Segment, End: next.Base, Replicas: next.Replicas, Cause: base.CauseOperator,
	}
	err := l.view(func(st *meta.State) error {
		if old := find(st, req.Ref, req.Segment); old != nil && old.State == base.StateSealed {
			s.End, s.Cause, s.GapMs = old.End, old.Cause, old.GapMs
		}
		return nil
	})
	return s, err
}

// askLeaders passes on what operators want: to the leaders of the segments or, where those are gone, to their replicas.
func (l *loop) askLeaders(orders []*ask, now time.Time) {
	for _, o := range orders {
		a := l.actives.get(o.req.Ref)
		switch {
		case a == nil || a.ID != o.req.Segment:
			l.answerAsItIs(o)
		case l.recover.all[a.ID] != nil || l.known[a.Leader().Node].lost == gone:
			req := o.req
			req.Epoch = a.Epoch
			l.recover.want(&req, now)
		default:
			l.order(a, base.CauseOperator, now)
		}
	}
}

// answerAsItIs answers a wish for the end of a segment that is not active.
func (l *loop) answerAsItIs(o *ask) {
	err := l.view(func(s *meta.State) error {
		r := l.active(s.Topic(o.req.Ref.Topic), o.req.Ref)
		if r.err == nil && r.assignment.Segment == o.req.Segment {
			return base.Errorf(base.CodeBusy, opSeal, "the coordinator of range %s is still reading its shard", o.req.Ref).WithOutcome(base.NotApplied)
		}
		l.answer(o.req.Segment, r)
		return nil
	})
	if err != nil {
		l.answer(o.req.Segment, rollAnswer{err: err})
	}
}
