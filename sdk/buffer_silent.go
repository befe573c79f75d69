package sdk

import (
	"context"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/mux"
)

// A leader whose process is gone says so: its connection breaks, and a new one is refused. One that was stopped, or cut
// off, says nothing, and its connection looks well for minutes. The broker's own judges take about two seconds to be sure
// and to name another; what is done here is to notice it then, and not at the end of an attempt's timeout.
const (
	// quietAfter is how long a leader may say nothing at all while a batch waits for its answer, before it is pinged.
	quietAfter = 500 * time.Millisecond
	// lookEvery is how often the others are asked who leads, while the ping is out as well.
	lookEvery = 250 * time.Millisecond
)

// silentLocked looks after a leader that says nothing. It never waits.
func (b *buffer) silentLocked(now time.Time) {
	conn := b.waitedForLocked(now)
	if conn == nil || b.leader == nil {
		return
	}
	if b.leader.live() == conn && !b.leader.suspected.Load() {
		b.leader.suspect(conn) // by the next look it has answered, and been heard
		return
	}
	if b.takeOverLocked(conn) || b.looking {
		return
	}
	b.looking = b.p.c.group.Go("look", func(ctx context.Context) error {
		b.look(ctx, conn)
		return nil
	})
}

// waitedForLocked is the connection on which a batch has been waiting for its answer, without any sign of life, for long
// enough; nil when there is none.
func (b *buffer) waitedForLocked(now time.Time) *mux.Conn {
	for _, bt := range b.queue {
		if bt.state != batchFlying || bt.sending {
			continue
		}
		last := bt.sentAt
		if heard := bt.conn.Heard(); heard.After(last) {
			last = heard
		}
		if now.Sub(last) >= quietAfter {
			return bt.conn
		}
		return nil // those behind it have waited no longer
	}
	return nil
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
	if leader == nil || leader == b.leader {
		return false
	}
	silence := base.Errorf(base.CodeUnreachable, "send", "node %s has not said a word for %v, and does not lead the range any more",
		conn.Hello().Node, time.Since(conn.Heard()).Round(time.Millisecond)).WithOutcome(base.Unknown)
	b.p.c.cfg.logger.Warn("the leader of a range says nothing; going on at its successor", "range", b.ref.String(), "address", leader.addr)
	leader.expected()
	b.leader = leader
	for _, bt := range append([]*batch(nil), b.queue...) {
		if bt.state != batchFlying || bt.conn != conn || bt.sending {
			continue
		}
		bt.state, bt.ambiguous = batchWaiting, true
		b.flying--
		b.failLocked(bt, silence)
	}
	return true
}
