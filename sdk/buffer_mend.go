package sdk

import (
	"context"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/task"
)

const (
	// dialPatience is how long the leader's connection may take before the route is looked at.
	dialPatience = dialSlow
	// routePatience is how long one look at the route may take before the leader that is known is tried once more.
	routePatience = time.Second
)

// mendLocked starts the goroutine that gets the buffer going again. cause is why it stands still; nil when there
// was no connection yet.
func (b *buffer) mendLocked(cause error) {
	if b.mending {
		return
	}
	b.mending = b.p.c.group.Go("mend", func(ctx context.Context) error {
		b.mend(ctx, cause)
		return nil
	})
}

// mend finds the range's leader, connects, gets a newer identity if the old one has ended, and lets the pump run again.
// It goes on until that works or nothing is left to send; the watch sees to it that the latter comes.
//
// The first round begins at once: a leader that moved says where to, and of one that died the others know soon. Only
// rounds that led to no ack are spaced out, those of earlier mends among them.
func (b *buffer) mend(ctx context.Context, cause error) {
	for {
		b.mu.Lock()
		pace, left, leader := b.paceLocked(cause), len(b.queue) > 0 && !b.gone, b.leader
		b.rounds++
		b.mu.Unlock()
		if !left || !task.Pause(ctx, pace) {
			break
		}
		leader, err := b.pt.reach(ctx, b.ref, leader, cause)
		if err == nil {
			err = b.reidentify(ctx)
		}
		b.mu.Lock()
		if err == nil {
			b.leader = leader
			b.mu.Unlock()
			break
		}
		b.failures++
		b.lastErr, cause = err, err
		b.leader = nil
		b.mu.Unlock()
		if base.CodeOf(err) == base.CodeTopicNotFound {
			b.pt.removed(err)
		}
	}
	b.mu.Lock()
	b.mending = false
	if ctx.Err() != nil {
		b.mu.Unlock() // the client is closing and fails what is left
		return
	}
	b.pump(time.Now())
}

// paceLocked is how long the next round waits. A broker that asked for time gets it before the first round too.
func (b *buffer) paceLocked(cause error) time.Duration {
	if cause != nil && b.remedy(cause) == waitHere {
		return requestBackoff.wait(b.rounds + 1)
	}
	return moveBackoff.wait(b.rounds)
}

// reidentify asks for a named producer's next epoch when the old one has ended.
func (b *buffer) reidentify(ctx context.Context) error {
	b.mu.Lock()
	need, old := b.regress && b.flying == 0 && b.pt.ids.name != "", b.identity
	b.mu.Unlock()
	if !need {
		return nil
	}
	who, err := b.pt.ids.after(ctx, b.pt.topic, b.pt.route(), old)
	if err != nil {
		return err
	}
	b.mu.Lock()
	b.renewIdentityLocked(who)
	b.mu.Unlock()
	return nil
}

// reach connects to the leader of a range. cause is why that has to be looked into: a redirect is followed, and a leader
// that is known is dialled once more, for usually it is the connection that broke. Else the route is renewed.
func (pt *producerTopic) reach(ctx context.Context, ref base.RangeRef, known *broker, cause error) (*broker, error) {
	bs := pt.p.c.brokers
	if to := bs.follow(redirect(cause)); to != nil {
		to.expected()
		if _, err := to.connectWithin(ctx, dialPatience); err == nil {
			return to, nil
		}
	} else if known != nil {
		err := known.reached(ctx)
		if err == nil {
			return known, nil
		}
		cause = err
	}
	leader, err := pt.leader(ctx, ref, cause)
	if err != nil {
		return nil, err
	}
	return leader, leader.reached(ctx)
}

// reached connects to a broker, unless it could not be reached just now: the route may name another sooner.
func (b *broker) reached(ctx context.Context) error {
	if b.resting() {
		return b.c.brokers.named(b.addr, base.Errorf(base.CodeUnreachable, "connect to "+b.addr, "it could not be reached just now"))
	}
	_, err := b.connectWithin(ctx, dialPatience)
	return err
}

// leader is who leads a range by the route, which is renewed first if there is a cause to.
func (pt *producerTopic) leader(ctx context.Context, ref base.RangeRef, cause error) (*broker, error) {
	r := pt.route()
	if cause != nil || r == nil {
		soon, cancel := context.WithTimeout(ctx, routePatience)
		defer cancel()
		newer, err := pt.renew(soon, r)
		switch {
		case err == nil:
			if b := pt.p.c.leaderOf(newer, ref.Range); b != nil && newer.newerThan(r) {
				b.expected()
			}
			r = newer
		case soon.Err() == nil || ctx.Err() != nil || r == nil:
			return nil, err
		}
	}
	if b := pt.p.c.leaderOf(r, ref.Range); b != nil {
		return b, nil
	}
	return nil, base.Errorf(base.CodeNoLeader, "send", "range %s of topic %s has no leader that can be reached", ref.Range, r.Name)
}
