package sdk

import (
	"context"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/mux"
)

// A leader whose process is gone says so: its connection breaks, and a new one is refused. One that was stopped, or cut
// off, says nothing, and its connection looks well for minutes; one that is cut off from the other nodes alone even answers
// pings. The brokers' own judges take about two seconds to be sure and to name another leader; what is done here is to
// notice it then, and not at the end of an attempt's timeout.
const (
	// quietAfter is how long a leader may say nothing at all while a batch waits for its answer, before it is pinged.
	quietAfter = 500 * time.Millisecond
	// stuckAfter is how long a batch may wait at a leader that is alive before others are asked who leads.
	stuckAfter = time.Second
	// lookEvery is how often they are asked.
	lookEvery = 250 * time.Millisecond
)

// overdueLocked looks after a leader that does not answer. It never waits.
func (b *buffer) overdueLocked(now time.Time) {
	bt := b.longestFlying()
	if bt == nil || b.leader == nil {
		return
	}
	last := bt.sentAt
	if heard := bt.conn.Heard(); heard.After(last) {
		last = heard
	}
	quiet := now.Sub(last) >= quietAfter
	switch {
	case quiet && b.leader.live() == bt.conn && !b.leader.suspected.Load():
		b.leader.suspect(bt.conn) // by the next look it has answered, and been heard
	case quiet || now.Sub(bt.sentAt) >= stuckAfter:
		b.lookLocked(bt.conn)
	}
}

// longestFlying is the batch that has been waiting for its answer the longest; nil when none is.
func (b *buffer) longestFlying() *batch {
	for _, bt := range b.queue {
		if bt.state == batchFlying && !bt.sending {
			return bt
		}
	}
	return nil
}

// lookLocked gives conn up if another leads the range by now, and else has others asked who does.
func (b *buffer) lookLocked(conn *mux.Conn) {
	if b.takeOverLocked(conn) || b.looking {
		return
	}
	if b.leader != nil && b.leader.live() == conn {
		b.leader.doubt()
	}
	b.looking = b.p.c.group.Go("look", func(ctx context.Context) error {
		b.look(ctx, conn)
		return nil
	})
}

// look asks another broker who leads the range.
func (b *buffer) look(ctx context.Context, conn *mux.Conn) {
	ctx, cancel := context.WithTimeout(ctx, routePatience)
	_, err := b.pt.renew(ctx, b.pt.route())
	cancel()
	if base.CodeOf(err) == base.CodeTopicNotFound {
		b.pt.removed(err)
	}
	b.mu.Lock()
	b.looking = false
	if b.takeOverLocked(conn) {
		b.pump(time.Now())
		return
	}
	b.mu.Unlock()
}

// takeOverLocked gives conn up if the route names another leader by now, and reports whether it does: what is on the way
// there goes again, to the new leader, under the same sequence numbers. If the old one got any of it onto all replicas,
// the new one has it and knows the numbers; if not, the old one will never get it there, since its segment is sealed.
func (b *buffer) takeOverLocked(conn *mux.Conn) bool {
	leader := b.p.c.leaderOf(b.pt.route(), b.ref.Range)
	if leader == nil || leader == b.leader || b.gone || b.leader != nil && b.leader.live() != nil && b.leader.live() != conn {
		return false // or it has been left already, for one that the route does not know yet
	}
	why := base.Errorf(base.CodeUnreachable, "send", "node %s does not answer, and does not lead the range any more", conn.Hello().Node).
		WithOutcome(base.Unknown)
	b.p.c.cfg.logger.Warn("the leader of a range does not answer; going on at its successor", "range", b.ref.String(), "address", leader.addr)
	leader.expected()
	b.leader = leader
	for _, bt := range append([]*batch(nil), b.queue...) {
		if bt.state != batchFlying || bt.conn != conn || bt.sending {
			continue
		}
		bt.state, bt.ambiguous = batchWaiting, true
		b.flying--
		b.failLocked(bt, why)
	}
	return true
}
