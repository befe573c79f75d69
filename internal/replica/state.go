package replica

import (
	"fmt"
	"slices"
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
	replica int           // ack, links: index in replicas
	end     int64         // ack: durable end; rewind: end of what the follower holds
	cause   base.Cause    // drain, freeze
	late    []base.NodeID // freeze: who is to blame, if anyone
	now     time.Time
}

type eventKind uint8

const (
	evAck eventKind = iota + 1
	evDown
	evUp
	evLost
	evRewind
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
	if i := l.follower(node); i > 0 && end <= l.replicas[i].sent {
		l.step(event{kind: evAck, replica: i, end: end, now: now})
	}
}

// FollowerDown reports that a follower's link is down. It is sent nothing, and is lost unless FollowerUp comes within
// Config.Redial.
func (l *Leader[T]) FollowerDown(node base.NodeID, now time.Time) {
	l.step(event{kind: evDown, replica: l.follower(node), now: now})
}

// FollowerUp reports a new session with the same process: all that it has not acked is sent again. Another process of
// the node is FollowerLost.
func (l *Leader[T]) FollowerUp(node base.NodeID, now time.Time) {
	l.step(event{kind: evUp, replica: l.follower(node), now: now})
}

// FollowerLost reports that a follower will never ack again in this segment: its process is gone, or said so itself. A
// leader with something in flight freezes; one without goes on leading, crippled, until FreezeIfLost.
func (l *Leader[T]) FollowerLost(node base.NodeID, now time.Time) {
	l.step(event{kind: evLost, replica: l.follower(node), now: now})
}

// FollowerRewind reports that a follower holds the segment up to end and misses what was sent to it above: it is sent
// again.
func (l *Leader[T]) FollowerRewind(node base.NodeID, end int64, now time.Time) {
	l.step(event{kind: evRewind, replica: l.follower(node), end: end, now: now})
}

// follower finds a follower; 0, which is the leader itself, when the node is none.
func (l *Leader[T]) follower(node base.NodeID) int {
	for i := 1; i < len(l.replicas); i++ {
		if l.replicas[i].node == node {
			return i
		}
	}
	return 0
}

// Drain begins a planned roll: no offsets from now on, and a freeze once all that is in flight is acked, or after Timeout.
// A replica that stood still in all of that becomes the cause.
func (l *Leader[T]) Drain(cause base.Cause, now time.Time) {
	l.step(event{kind: evDrain, cause: cause, now: now})
}

// Freeze ends the segment at its commit, at once. The shell decides so when replicas are late, or when an answer says
// that the segment was fenced.
func (l *Leader[T]) Freeze(cause base.Cause, late []base.NodeID, now time.Time) {
	l.step(event{kind: evFreeze, cause: cause, late: late, now: now})
}

// FreezeIfLost freezes a leader that leads on without one of its followers, and reports whether it did. The shell asks
// before it appends: until then such a segment costs nobody anything.
func (l *Leader[T]) FreezeIfLost(now time.Time) bool {
	if l.state != Leading || !l.crippled() {
		return false
	}
	l.Freeze(base.CauseReplicaFailure, nil, now)
	return true
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
	case evDown, evUp, evLost, evRewind:
		l.onLink(e)
		l.freezeIfStuck(e.now)
	case evDrain:
		l.state, l.cause, l.drainFor = Draining, e.cause, 0
		l.freezeIfDrained(e.now)
		l.freezeIfStuck(e.now)
	case evFreeze:
		l.freeze(e.cause, e.late, e.now)
	case evTick:
		l.judge(e.now)
		l.freezeIfStuck(e.now)
	}
}

func (l *Leader[T]) onDraining(e event) {
	switch e.kind {
	case evAck:
		l.onAck(e)
		l.freezeIfDrained(e.now)
	case evDown, evUp, evLost, evRewind:
		l.onLink(e)
		l.freezeIfStuck(e.now)
	case evDrain:
		// The first cause stands.
	case evFreeze:
		l.freeze(e.cause, e.late, e.now)
	case evTick:
		l.drainFor += l.judge(e.now)
		l.freezeIfStuck(e.now)
		l.giveUpDrain(e.now)
	}
}

// giveUpDrain freezes a leader whose drain takes as long as a replica may stand still. Where some did, it is for them that
// the segment ends with a tail, whatever it was to end for: as it would if they had stood still before the drain.
func (l *Leader[T]) giveUpDrain(now time.Time) {
	if l.state != Draining || l.drainFor < l.cfg.Timeout {
		return
	}
	cause := l.cause
	if len(l.ready.Late) > 0 {
		cause = base.CauseReplicaFailure
	}
	l.freeze(cause, l.ready.Late, now)
}

func (l *Leader[T]) onFrozen(e event) {
	switch e.kind {
	case evAck, evRewind, evDrain, evFreeze:
		// A freeze never thaws: the end that was asked for must stay the end.
	case evDown, evUp, evLost:
		l.onLink(e) // the next ask names whoever is lost by then
	case evTick:
		l.loseDown(e.now)
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

// onLink changes what can be expected of a follower. Lost is for ever: what came back has missed appends, or is
// another process.
func (l *Leader[T]) onLink(e event) {
	if e.replica == 0 || l.replicas[e.replica].link == linkLost {
		return
	}
	p := &l.replicas[e.replica]
	switch e.kind {
	case evDown:
		if p.link == linkUp {
			p.down(e.now)
		}
	case evUp:
		p.up()
	case evLost:
		p.link = linkLost
	case evRewind:
		p.rewind(e.end)
	case evAck, evDrain, evFreeze, evTick:
		// No business of links.
	}
}

// freezeIfStuck ends a segment in which something is in flight that can never be committed.
func (l *Leader[T]) freezeIfStuck(now time.Time) {
	if l.state <= Draining && l.commit < l.next && l.crippled() {
		l.freeze(base.CauseReplicaFailure, nil, now)
	}
}

func (l *Leader[T]) freezeIfDrained(now time.Time) {
	if l.commit == l.next {
		l.freeze(l.cause, nil, now)
	}
}

// freeze fixes the end at the commit and asks for the seal. Acks stop counting before the request leaves.
func (l *Leader[T]) freeze(cause base.Cause, late []base.NodeID, now time.Time) {
	l.state, l.end, l.cause, l.late = Frozen, l.commit, cause, slices.Clone(late)
	l.ask(now)
}

func (l *Leader[T]) ask(now time.Time) {
	l.askedAt = now
	l.ready.AskRoll = true
	l.ready.Roll = Roll{End: l.end, Cause: l.cause, Late: l.late, Lost: l.Lost()}
}

// judge lets time pass for each replica: those whose link stays down become lost, those that stand still are reported
// late. It returns how much of the time counts as waiting.
func (l *Leader[T]) judge(now time.Time) time.Duration {
	l.loseDown(now)
	step := l.elapsed(now)
	l.ready.Late = l.ready.Late[:0]
	if len(l.replicas) == 1 {
		return step // a leader alone judges nobody: a roll would put the successor on the same disk
	}
	for i := range l.replicas {
		p := &l.replicas[i]
		if p.link != linkUp || p.acked == l.next {
			p.still = 0
			continue
		}
		// Progress is what counts, not how long one batch took: full speed never looks like a slow replica.
		if p.still += step; p.still >= l.cfg.Timeout {
			l.ready.Late = append(l.ready.Late, p.node)
		}
	}
	return step
}

// loseDown gives up followers whose link has been down for too long. After a stall of this process, which could not
// redial either, they get that time again.
func (l *Leader[T]) loseDown(now time.Time) {
	for i := range l.replicas {
		p := &l.replicas[i]
		switch {
		case p.link != linkDown:
		case l.stalled(p.downAt, now):
			p.downAt = now
		case now.Sub(p.downAt) >= l.cfg.Redial:
			p.link = linkLost
		}
	}
}

// stalled reports whether between two ticks, both of them after since, more time has passed than a running shell lets
// pass.
func (l *Leader[T]) stalled(since, now time.Time) bool {
	return !l.lastTick.Before(since) && now.Sub(l.lastTick) > l.cfg.Timeout/4
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
