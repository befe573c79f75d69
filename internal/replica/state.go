package replica

import (
	"fmt"
	"time"

	"github.com/eastguard/eastguard/internal/base"
)

// State is where in its life a leader is; see the package comment.
type State uint8

// The states, in the order a leader can pass through them.
const (
	Leading  State = iota + 1 // gives out offsets, acks count
	Draining                  // gives out no offsets, acks count: a planned roll waits for what is in flight
	Frozen                    // acks no longer count; asks for the seal until it is answered
	Sealed                    // the committed end is known
)

// String prints leading, draining, frozen or sealed.
func (s State) String() string {
	switch s {
	case Leading:
		return "leading"
	case Draining:
		return "draining"
	case Frozen:
		return "frozen"
	case Sealed:
		return "sealed"
	}
	return fmt.Sprintf("state_%d", uint8(s))
}

// event is one input of the state machine.
type event struct {
	kind    eventKind
	replica int         // ack: index in replicas
	end     int64       // ack: durable end
	cause   base.Cause  // drain, freeze
	late    base.NodeID // freeze: who is to blame, if anyone
	now     time.Time
}

type eventKind uint8

const (
	evAck eventKind = iota + 1
	evDrain
	evFreeze
	evTick
)

// LocalDurable reports the end that the leader's own disk holds.
func (l *Leader[T]) LocalDurable(end int64, now time.Time) {
	l.step(event{kind: evAck, replica: 0, end: end, now: now})
}

// FollowerAck reports the cumulative durable end of one follower. An ack from a node that is no replica, or for
// more than was sent to it, says nothing that can be believed and is ignored.
func (l *Leader[T]) FollowerAck(node base.NodeID, end int64, now time.Time) {
	for i := 1; i < len(l.replicas); i++ {
		if l.replicas[i].node == node && end <= l.replicas[i].sent {
			l.step(event{kind: evAck, replica: i, end: end, now: now})
		}
	}
}

// Drain begins a planned roll: no offsets from now on, and a freeze once all that is in flight is acked.
func (l *Leader[T]) Drain(cause base.Cause, now time.Time) {
	l.step(event{kind: evDrain, cause: cause, now: now})
}

// Freeze ends the segment at its commit, at once: a follower is gone, or answered that it has been fenced.
func (l *Leader[T]) Freeze(cause base.Cause, blame base.NodeID, now time.Time) {
	l.step(event{kind: evFreeze, cause: cause, late: blame, now: now})
}

// Tick lets time pass. The shell calls it a few times within Timeout while the leader is not Idle; time between
// two ticks that is longer than that was not spent waiting for a replica but stalled here, and is not held
// against anyone.
func (l *Leader[T]) Tick(now time.Time) { l.step(event{kind: evTick, now: now}) }

func (l *Leader[T]) step(e event) {
	switch l.state {
	case Leading:
		l.onLeading(e)
	case Draining:
		l.onDraining(e)
	case Frozen:
		l.onFrozen(e)
	case Sealed:
		// Whatever comes now comes too late to matter.
	}
}

func (l *Leader[T]) onLeading(e event) {
	switch e.kind {
	case evAck:
		l.onAck(e)
	case evDrain:
		l.state, l.cause, l.drainFor = Draining, e.cause, 0
		l.freezeIfDrained(e.now)
	case evFreeze:
		l.freeze(e.cause, e.late, e.now)
	case evTick:
		l.judge(l.elapsed(e.now), e.now)
	}
}

func (l *Leader[T]) onDraining(e event) {
	switch e.kind {
	case evAck:
		l.onAck(e)
		l.freezeIfDrained(e.now)
	case evDrain:
		// The first cause stands.
	case evFreeze:
		l.freeze(e.cause, e.late, e.now)
	case evTick:
		step := l.elapsed(e.now)
		if l.judge(step, e.now); l.state == Frozen {
			return
		}
		if l.drainFor += step; l.drainFor >= l.cfg.Timeout {
			l.freeze(l.cause, "", e.now)
		}
	}
}

func (l *Leader[T]) onFrozen(e event) {
	switch e.kind {
	case evAck, evDrain, evFreeze:
		// A freeze never thaws: the end that was asked for must stay the end.
	case evTick:
		if e.now.Sub(l.askedAt) >= l.cfg.ReAsk {
			l.ask(e.now)
		}
	}
}

// Sealed tells the leader the committed end, whoever asked for it. Batches below it become Done, even those the
// leader had not committed itself: the coordinator found them on a fenced survivor. Those above stay in Tail.
//
// An end below what was acked means that acked records are lost, one above what was ever assigned that metadata is
// about another segment. Both are errors that no caller may go on after.
func (l *Leader[T]) Sealed(end int64) error {
	const op = "seal segment"
	if l.state == Sealed {
		if end != l.end {
			return base.Errorf(base.CodeInternal, op, "the committed end changed from %d to %d", l.end, end)
		}
		return nil
	}
	if end < l.commit {
		return base.Errorf(base.CodeInternal, op, "the committed end %d is below %d, which was acked", end, l.commit)
	}
	if end > l.next {
		return base.Errorf(base.CodeInternal, op, "the committed end %d is above %d, the last offset given out", end, l.next)
	}
	l.state, l.end = Sealed, end
	l.ready.AskRoll = false
	l.advance(end)
	return nil
}

func (l *Leader[T]) onAck(e event) {
	p := &l.replicas[e.replica]
	if e.end <= p.acked || e.end > l.next {
		return
	}
	p.acked, p.still = e.end, 0
	l.advance(l.minAcked())
}

func (l *Leader[T]) freezeIfDrained(now time.Time) {
	if l.commit == l.next {
		l.freeze(l.cause, "", now)
	}
}

// freeze fixes the end at the commit and asks for the seal. Acks stop counting before the request leaves.
func (l *Leader[T]) freeze(cause base.Cause, blame base.NodeID, now time.Time) {
	l.state, l.end, l.cause = Frozen, l.commit, cause
	if blame != "" {
		l.late = append(l.late, blame)
	}
	l.ask(now)
}

func (l *Leader[T]) ask(now time.Time) {
	l.askedAt = now
	l.ready.AskRoll = true
	l.ready.Roll = Roll{End: l.end, Cause: l.cause, Late: l.late}
}

// elapsed is the time since the last tick that counts as waiting: at most a quarter of the timeout, because after
// a stall of this process the acks may lie unread in its own sockets.
func (l *Leader[T]) elapsed(now time.Time) time.Duration {
	last := l.lastTick
	l.lastTick = now
	if last.IsZero() {
		return 0
	}
	return max(0, min(now.Sub(last), l.cfg.Timeout/4))
}

// judge freezes the segment when a replica has stood still for the timeout with work before it. Progress is what
// counts, not how long one batch took: full speed never looks like a slow replica. A leader alone judges nobody:
// a roll would put the successor on the same disk.
func (l *Leader[T]) judge(step time.Duration, now time.Time) {
	if len(l.replicas) == 1 {
		return
	}
	var late []base.NodeID
	for i := range l.replicas {
		p := &l.replicas[i]
		if p.acked == l.next {
			p.still = 0
			continue
		}
		if p.still += step; p.still >= l.cfg.Timeout {
			late = append(late, p.node)
		}
	}
	if late != nil {
		l.late = late
		l.freeze(base.CauseReplicaFailure, "", now)
	}
}
