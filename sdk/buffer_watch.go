package sdk

import (
	"context"
	"time"

	"github.com/eastguard/eastguard/internal/base"
)

// lingerLocked wakes the pump in d, when the open batch has waited long enough. The timer is set once and, when
// it rings, set again for what is open then: a producer at full speed fills batches in less than the linger and
// would otherwise move the timer thousands of times a second for nothing.
func (b *buffer) lingerLocked(d time.Duration) {
	if !b.lingering {
		b.lingering = true
		b.lingerTimer.Reset(d)
	}
}

func (b *buffer) lingered() {
	b.mu.Lock()
	b.lingering = false
	b.pump(time.Now())
}

// watchLocked sets the timer that enforces deadlines and notices silence, while there is anything to wait for.
func (b *buffer) watchLocked(now time.Time) {
	if b.watching || len(b.queue) == 0 {
		return
	}
	b.watching = true
	b.watchTimer.Reset(max(min(b.queue[0].deadline.Sub(now), lookEvery), 0))
}

// watch fails what has run out of time and breaks connections that do not answer.
func (b *buffer) watch() {
	now := time.Now()
	b.mu.Lock()
	b.watching = false
	b.expireLocked(now)
	b.overdueLocked(now)
	for _, bt := range b.queue {
		if bt.state == batchFlying && now.Sub(bt.sentAt) >= attemptTimeout+attemptGrace {
			// The broker has answered in less, if only to say that it could not: the connection is dead. Closing
			// it waits for its reader, which may be waiting for our lock.
			conn := bt.conn
			b.p.c.cfg.logger.Warn("no answer to a produce request; closing the connection", "range", b.ref.String(), "waited", now.Sub(bt.sentAt))
			b.p.c.group.Go("hang up", func(context.Context) error { return ignore(conn.Close()) })
			break
		}
	}
	b.watchLocked(now)
	b.pump(now)
}

// expireLocked fails the batches whose delivery timeout has passed; deadlines grow along the queue.
func (b *buffer) expireLocked(now time.Time) {
	for len(b.queue) > 0 && !b.queue[0].deadline.After(now) {
		bt := b.queue[0]
		if bt.state == batchFlying {
			b.lookLocked(bt.conn) // whoever takes so long may not lead the range any more
		}
		if bt.stamped {
			// Its fate, or the gap it leaves in the sequence, ends the identity.
			b.rewind, b.regress = true, true
		}
		b.dropLocked(bt, b.timeoutLocked(bt))
	}
}

// timeoutLocked is why bt was not delivered in time. A batch that is known not to be stored fails with what kept
// it from being sent, which says more than that time has passed.
func (b *buffer) timeoutLocked(bt *batch) error {
	timeout := b.p.cfg.deliveryTimeout
	if bt.outcome() == base.Unknown {
		err := base.Errorf(base.CodeTimeout, "send", "no answer within the delivery timeout of %v", timeout)
		if b.lastErr != nil { // a try on its way is no reason to keep quiet about what stopped those before it
			err.Msg += "; before that: " + about("", b.lastErr).Error() + " [" + base.CodeOf(b.lastErr).String() + "]"
		}
		return err
	}
	if b.lastErr != nil {
		return about("send", b.lastErr).WithHint("it was tried for the delivery timeout of %v: %s", timeout, hintOf(b.lastErr))
	}
	return base.Errorf(base.CodeTimeout, "send", "not sent within the delivery timeout of %v", timeout)
}

// abort fails everything that is left. The range takes no more records.
func (b *buffer) abort(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gone = true
	b.lingerTimer.Stop()
	b.watchTimer.Stop()
	defer b.landLocked()
	for len(b.queue) > 0 {
		b.dropLocked(b.queue[0], err)
	}
}
