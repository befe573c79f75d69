package dataplane

import (
	"context"
	"errors"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/replica"
)

const opRoll = "roll segment"

// RollRequest asks the coordinator to seal a segment and open its successor.
type RollRequest struct {
	Ref          base.RangeRef
	Topic        string // its name, by which the shard is found
	Segment      base.SegmentID
	Epoch        base.Epoch
	End          int64 // frozen: nothing above was or will be acked
	Cause        base.Cause
	Late         []base.NodeID // replicas that made no progress in time
	Lost         []base.NodeID // followers that will never ack again: gone, restarted, or fenced
	Bytes        int64
	LastAppendMs int64
	FrozenMs     int64 // when appends began to wait for the successor
	WaitedMs     int64 // for how long one had waited then that was never acked
}

// orderRoll ends a segment that is led here because the coordinator wishes so: as a planned roll, which drains and asks.
// That it has begun is all that is confirmed.
func (p *Plane) orderRoll(o meta.RollOrder, reply func(meta.Confirmation)) {
	c := confirm{reply: reply, answer: meta.Confirmation{Kind: meta.ConfirmRoll, Ref: o.Ref, Segment: o.Segment}}
	a := p.find(o.Ref)
	if a == nil {
		c.failed(base.Errorf(base.CodeNotReplica, opRoll, "range %s is not on this node", o.Ref))
		return
	}
	a.do(func(now time.Time) { a.rollOrdered(o, &c, now) })
}

func (a *actor) rollOrdered(o meta.RollOrder, c *confirm, now time.Time) {
	switch {
	case a.current.Epoch > o.Epoch:
		c.held() // it has ended, and the range has gone on
	case a.phase != leading || a.current.Segment != o.Segment || a.current.Epoch != o.Epoch:
		c.failed(base.Errorf(base.CodeNotLeader, opRoll, "segment %s is not led here", o.Segment))
	case a.plane.closing.Load():
		c.failed(base.Errorf(base.CodeShuttingDown, opRoll, "the broker is stopping"))
	case a.lead == nil && !a.resume(now):
		c.failed(base.Errorf(base.CodeCorruptData, opRoll, "the state of range %s cannot be read", a.ref))
	default:
		a.startRoll(o.Cause, now)
		c.held()
	}
}

// startRoll begins a planned roll: drain, freeze, ask. Appends wait from here until the successor is open.
func (a *actor) startRoll(cause base.Cause, now time.Time) {
	if a.lead.replica.State() != replica.Leading {
		return
	}
	if a.rolledAt.IsZero() {
		a.rolledAt = now
	}
	a.lead.replica.Drain(cause, now)
	a.watch()
	a.settle(now)
}

// askRoll sends the request once; the leader asks again on its own until the answer is here.
func (a *actor) askRoll(r replica.Roll, now time.Time) {
	l := a.lead
	if a.rolledAt.IsZero() {
		a.rolledAt = now
	}
	if a.waited == 0 {
		l.replica.Each(func(b *batch) bool {
			a.waited = a.rolledAt.Sub(b.arrived)
			return false
		})
	}
	a.ask(RollRequest{
		Ref: a.ref, Topic: a.current.Name, Segment: l.seg, Epoch: l.epoch, End: r.End, Cause: r.Cause, Late: a.suspects(r, now), Lost: r.Lost,
		Bytes: l.bytes, LastAppendMs: l.lastMs, FrozenMs: a.rolledAt.UnixMilli(), WaitedMs: max(0, a.waited.Milliseconds()),
	})
}

// askRecovery asks for the seal of a segment that this node led in an earlier boot. Its end is not known here: the
// coordinator fences the replicas and decides.
func (a *actor) askRecovery(now time.Time) {
	if now.Before(a.askAgain) {
		return
	}
	a.askAgain = now.Add(reAsk)
	if a.rolledAt.IsZero() {
		a.rolledAt = now
	}
	a.ask(RollRequest{
		Ref: a.ref, Topic: a.current.Name, Segment: a.current.Segment, Epoch: a.current.Epoch, End: -1,
		Cause: base.CauseRecovery, FrozenMs: a.rolledAt.UnixMilli(),
	})
}

// warnEvery keeps a coordinator that cannot be reached from filling the log.
const warnEvery = 10 * time.Second

// reAsk is how often an unanswered request for a recovery seal is repeated.
const reAsk = 200 * time.Millisecond

// ask runs one request on a goroutine of the plane's bounded pool. When the pool is full nothing is queued: the
// leader asks again within 200 ms.
func (a *actor) ask(req RollRequest) {
	if a.asking {
		return
	}
	a.asking = a.plane.roller(func(ctx context.Context) {
		answer, err := a.plane.o.RequestRoll(ctx, req)
		a.do(func(now time.Time) {
			a.asking = false
			a.onRollAnswer(req, answer, err, now)
		})
	})
}

func (a *actor) onRollAnswer(req RollRequest, answer meta.Assignment, err error, now time.Time) {
	if !a.rolledAt.IsZero() {
		a.refusal = err
	}
	switch {
	case err == nil && answer.Segment != 0:
		a.assigned(answer, nil, now)
	case errors.Is(err, base.CodeTopicNotFound), errors.Is(err, base.CodeTopicDeleting):
		// The drop that follows ends the wait; a deadline does if it does not come.
	case err != nil && now.Sub(a.rolledAt) > time.Second && now.Sub(a.warnedAt) > warnEvery && !a.plane.closing.Load():
		a.warnedAt = now
		a.plane.o.Logger.Warn("roll not answered, asking again", "range", a.ref.String(), "segment", req.Segment.String(), "error", err)
	}
}

// because adds to what an append is told that waits for a successor why there is none yet.
func (a *actor) because(err *base.Error) *base.Error {
	if a.refusal == nil {
		return err
	}
	why := a.refusal.Error()
	if e := new(base.Error); errors.As(a.refusal, &e) && e.Msg != "" {
		why = e.Msg
	}
	err.Msg += ": " + why
	return err
}
