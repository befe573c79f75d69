package dataplane

import (
	"errors"
	"slices"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/replica"
)

// A follower is told of the segment once for each connection to it, and sent batches right behind that: what the answer
// would change, it changes when it comes. Nothing that is sent is known to arrive. What a connection lost, what the
// other side had no room for and what the queue here had no room for comes to the same: the follower stands still, is
// asked, says what it has, and is sent the rest.

// askAgain is how long a follower may leave unanswered what it was told, or stand still, before it is asked. It doubles
// with each question that is not answered, up to maxNudges times: who has thousands of segments to open is not helped by
// being told of each again and again.
func (p *Plane) askAgain() time.Duration { return p.o.ReplicaTimeout / 4 }

const maxNudges = 5

// onLinks looks at the links to all followers again.
func (a *actor) onLinks(now time.Time) {
	l := a.lead
	if l == nil {
		return
	}
	for i := range l.followers {
		if f := &l.followers[i]; !f.lost {
			a.linked(f, a.plane.o.Links.DataLink(f.node), now)
		}
	}
	a.settle(now)
	a.watch()
}

// linked hears how the connection to a follower is.
func (a *actor) linked(f *follower, link peer.Link, now time.Time) {
	l := a.lead
	switch {
	case link.Up && f.boot != 0 && link.Boot != f.boot:
		if link.Boot > f.boot {
			a.lose(f, "restarted", now)
		}
		// Else this is still the process before the one that was placed: it is about to be replaced.
	case link.Up && link.Session == f.session:
	case link.Up:
		if f.session != 0 {
			a.plane.metrics.resumes.Inc()
		}
		f.boot, f.session, f.down = link.Boot, link.Session, false
		f.sent, f.stuck, f.timed, f.nudges = f.acked, -1, 0, 0
		l.replica.FollowerUp(f.node, now)
		a.sendOpen(f, now)
	case f.session == 0:
		a.awaitFirst(f, link, now)
	case link.Refused:
		a.lose(f, "gone", now)
	default:
		f.down = true
		l.replica.FollowerDown(f.node, now)
	}
}

// loseDown notes whom the leader gave up because no connection came back in time.
func (a *actor) loseDown(now time.Time) {
	l := a.lead
	if !slices.ContainsFunc(l.followers, func(f follower) bool { return f.down && !f.lost }) {
		return
	}
	for _, node := range l.replica.Lost() {
		if f := l.follower(node); !f.lost {
			f.silent = true
			a.lose(f, "disconnected", now)
		}
	}
}

// awaitFirst waits for a follower that was placed: it is connected to the coordinator, but perhaps not to its leader yet.
// So it gets more time than one whose connection breaks. One that refuses gets some too: else a coordinator that goes on
// placing it would cost a roll for each of its answers.
func (a *actor) awaitFirst(f *follower, link peer.Link, now time.Time) {
	patience, refused := a.plane.o.ReplicaTimeout, link.Refused && link.Boot >= f.boot
	if refused {
		patience = a.plane.askAgain()
	}
	if now.Sub(a.lead.beganAt) >= patience {
		f.silent = !refused
		a.lose(f, "never connected", now)
	}
}

// lose gives a follower up for the rest of the segment.
func (a *actor) lose(f *follower, why string, now time.Time) {
	if f.lost {
		return
	}
	f.lost, f.stuck = true, -1
	a.plane.metrics.lost.Inc()
	a.plane.o.Logger.Debug("follower lost", "range", a.ref.String(), "segment", a.lead.seg.String(), "node", string(f.node), "reason", why)
	a.lead.replica.FollowerLost(f.node, now)
}

// sendOpen tells a follower that the segment is led here.
func (a *actor) sendOpen(f *follower, now time.Time) {
	l := a.lead
	m := openMessage{
		segmentHead: a.head(), base: a.current.Base, openedMs: a.current.OpenedMs, checksum: l.checksum,
		keyed: a.current.Config.Keyed, memory: l.memory, hasState: f.asks,
	}
	f.heard, f.nudgedAt = false, now
	if f.asks {
		_ = a.plane.o.Links.SendParts(f.node, kindOpen, false, m.encode(), l.beginning.state)
		return
	}
	_ = a.plane.o.Links.SendParts(f.node, kindOpen, false, m.encode()) // one that is not sent is not answered either
}

func (a *actor) head() segmentHead {
	return segmentHead{ref: a.ref, epoch: a.lead.epoch, segment: a.lead.seg}
}

// replicate carries out what the leader wants sent.
func (a *actor) replicate(sends []replica.Send[*batch], now time.Time) {
	for i := range sends {
		s := &sends[i]
		f := a.lead.follower(s.Node)
		if f.stuck >= 0 {
			continue // comes again from there
		}
		if len(s.Items) == 0 && s.Commit == a.lead.replica.Next() {
			a.sendCommit(f, s.Commit) // else the next append, or the commit of what is in flight, says it soon enough
		}
		for _, b := range s.Items {
			if !a.sendBatch(f, b, s.Commit, now) {
				break
			}
		}
	}
}

// outgoing is one batch on its way to followers: the head in front of it, and both as what a connection is given.
type outgoing struct {
	head   [appendHeadSize]byte
	parts  [2][]byte
	commit int64
}

// sendBatch sends one batch, with the news of the commit.
func (a *actor) sendBatch(f *follower, b *batch, commit int64, now time.Time) (queued bool) {
	if b.out == nil || b.out.commit != commit { // one for all followers, as a rule
		m := appendMessage{
			segmentHead: a.head(), first: b.Base, appendMs: b.AppendMs, commit: commit,
			spanLo: b.SpanLo, spanHi: b.SpanHi, traced: b.trace != nil,
		}
		b.out = &outgoing{commit: commit}
		m.put(&b.out.head)
		b.out.parts = [2][]byte{b.out.head[:], b.Bytes}
	}
	if !a.send(f, b.Base, b.out.parts[:]) {
		return false
	}
	f.sent = b.header.End()
	if f.timed == 0 {
		f.timed, f.timedAt = f.sent, now
	}
	b.sentTo(f.node, now)
	return true
}

// sendCommit sends the news of the commit alone. A follower that ends below what was sent to it learns that as well.
func (a *actor) sendCommit(f *follower, commit int64) {
	m := appendMessage{segmentHead: a.head(), first: f.sent, commit: commit}
	var head [appendHeadSize]byte
	m.put(&head)
	a.send(f, f.sent, [][]byte{head[:]})
}

// send queues a message for a follower. When the queue is full, or gone, all from the offset on is sent again once
// there is room, or the connection is back.
func (a *actor) send(f *follower, first int64, parts [][]byte) (queued bool) {
	err := a.plane.o.Links.SendParts(f.node, kindAppend, false, parts...)
	if err == nil {
		return true
	}
	if errors.Is(err, base.CodeBusy) {
		a.plane.metrics.queueFull.Inc()
	}
	f.stuck = first
	a.watch()
	return false
}

// unstick sends on from where a follower's queue had no room.
func (a *actor) unstick(f *follower, now time.Time) {
	from := f.stuck
	f.stuck, f.sent = -1, from
	a.sendCommit(f, a.lead.replica.Commit())
	if f.stuck < 0 {
		a.lead.replica.FollowerRewind(f.node, from, now)
	}
}

// nudgeFollowers asks again whoever left something unanswered.
func (a *actor) nudgeFollowers(now time.Time) {
	for i := range a.lead.followers {
		if f := &a.lead.followers[i]; !f.lost {
			a.nudge(f, now)
		}
	}
}

func (a *actor) nudge(f *follower, now time.Time) {
	l := a.lead
	quiet := now.Sub(f.nudgedAt) >= a.plane.askAgain()<<f.nudges
	switch {
	case l.replica.State() >= replica.Frozen, f.down:
	case f.session == 0:
		a.linked(f, a.plane.o.Links.DataLink(f.node), now)
	case f.stuck >= 0:
		a.unstick(f, now)
	case !f.heard && quiet:
		f.nudges = min(f.nudges+1, maxNudges)
		a.sendOpen(f, now)
	case f.acked < f.sent && quiet:
		f.nudges, f.nudgedAt = min(f.nudges+1, maxNudges), now
		a.sendCommit(f, l.replica.Commit())
	}
}

// onAckFrom hears from a follower. What it made durable stays true whatever connection said so; what it misses is about
// one connection, and was made good when that ended.
func (a *actor) onAckFrom(m *ackArrival, now time.Time) {
	l := a.lead
	if l == nil || l.seg != m.segment || l.epoch != m.epoch {
		if m.status == ackDurable && a.hasEnded(&m.segmentHead) {
			a.sendEnded(m.from.Node, m.segmentHead)
		}
		return
	}
	f := l.follower(m.from.Node)
	if f == nil || f.lost || f.session == 0 || f.boot != m.from.Boot {
		return
	}
	switch m.status {
	case ackDurable:
		a.onHeld(f, m, now)
	case ackLost:
		a.lose(f, m.reason.String(), now)
	case ackWant, ackState:
		if m.session == f.session {
			a.onWants(f, m, now)
		}
	}
	a.settle(now)
	a.pump(now)
}

// onHeld hears how far a follower's copy goes.
func (a *actor) onHeld(f *follower, m *ackArrival, now time.Time) {
	l := a.lead
	if m.session == f.session {
		f.heard, f.asks = true, false
		l.allOpen()
	}
	f.nudgedAt, f.nudges = now, 0
	a.plane.heardMs.Store(a.plane.age(now))
	if m.end <= f.sent {
		f.acked = max(f.acked, m.end)
	}
	if f.timed > 0 && m.end >= f.timed {
		a.plane.metrics.replicate.Observe(now.Sub(f.timedAt))
		f.timed = 0
	}
	l.ackedBy(f.node, m, now)
	l.replica.FollowerAck(f.node, m.end, now)
	if f.stuck >= 0 { // what has left the queue has made room in it
		a.unstick(f, now)
	}
}

// allOpen forgets the state at the base once nobody can ask for it any more.
func (l *lead) allOpen() {
	for i := range l.followers {
		if f := &l.followers[i]; !f.heard && !f.lost {
			return
		}
	}
	l.beginning.state = nil
}

// onWants gives a follower what it misses.
func (a *actor) onWants(f *follower, m *ackArrival, now time.Time) {
	f.nudgedAt, f.nudges = now, 0
	if m.status == ackState {
		f.asks = true
		a.sendOpen(f, now)
		return
	}
	f.heard, f.stuck = true, -1
	f.sent = min(f.sent, max(m.end, f.acked))
	a.lead.replica.FollowerRewind(f.node, m.end, now)
	a.plane.metrics.rewinds.Inc()
}
