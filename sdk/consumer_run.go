package sdk

import (
	"context"
	"slices"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/task"
	"github.com/eastguard/eastguard/internal/wire"
)

// maxFetches is how many fetches may be on the way to one broker. A range is in one of them at most; a second one
// exists so that a range that becomes ready while the others wait for news need not wait with them.
const maxFetches = 4

// startRetry paces attempts to find a topic that is not there.
const startRetry = time.Second

// run is the consumer's goroutine: it decides what to fetch, and starts what may take time on goroutines of their
// own, so that no broker and no topic waits for another.
func (k *Consumer) run(ctx context.Context) {
	defer close(k.done)
	for _, t := range k.topics {
		k.start(ctx, t)
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(k.step(time.Now()))
		select {
		case <-k.wake:
		case <-timer.C:
		case <-ctx.Done():
			signal(k.news) // for a Poll that waits
			return
		}
	}
}

// start finds the start of a topic, however long it takes.
func (k *Consumer) start(ctx context.Context, t *consumerTopic) {
	k.c.group.Go("consumer start", func(context.Context) error {
		for failures := 0; ; failures++ {
			err := t.begin(ctx)
			if ctx.Err() != nil {
				break
			}
			k.mu.Lock()
			t.startErr = err
			k.mu.Unlock()
			if err == nil {
				break
			}
			signal(k.news)
			signal(k.trouble)
			if !task.Pause(ctx, max(startRetry, requestBackoff.wait(failures))) {
				break
			}
		}
		k.mu.Lock()
		k.startedLocked()
		k.nudge()
		k.mu.Unlock()
		signal(k.news)
		for k.cfg.stop == stopAtEnd && ctx.Err() == nil && t.findEnds(ctx) != nil {
			if !task.Pause(ctx, startRetry) {
				break
			}
		}
		return nil
	})
}

// startedLocked closes ready when every topic has started.
func (k *Consumer) startedLocked() {
	for _, t := range k.topics {
		if !t.started {
			return
		}
	}
	if !k.started {
		k.started = true
		close(k.ready)
	}
}

// step starts everything that can be started now and returns how long nothing more will change by itself.
func (k *Consumer) step(now time.Time) time.Duration {
	k.mu.Lock()
	s := stepping{k: k, now: now, until: now.Add(time.Hour)}
	s.renewRoutes()
	s.planFetches()
	s.leaveSilent()
	s.breakDead()
	k.mu.Unlock()
	for _, f := range s.out {
		f.send()
	}
	return max(s.until.Sub(now), 0)
}

// stepping is one step under way.
type stepping struct {
	k     *Consumer
	now   time.Time
	until time.Time
	out   []*fetch
}

// later makes the next step come no later than at.
func (s *stepping) later(at time.Time) {
	if at.Before(s.until) {
		s.until = at
	}
}

func (s *stepping) renewRoutes() {
	for _, t := range s.k.topics {
		if !t.wanted || t.renewing || !t.started || t.failed {
			continue
		}
		if t.notBefore.After(s.now) {
			s.later(t.notBefore)
			continue
		}
		t.renewing = s.k.c.group.Go("route", func(ctx context.Context) error { t.renew(ctx); return nil })
	}
}

// planFetches groups the ranges that want data by broker and asks each broker once.
func (s *stepping) planFetches() {
	k := s.k
	if k.queued >= k.cfg.prefetchBytes || k.closed {
		return
	}
	reading := int64(1)
	for _, cur := range k.cursors {
		if cur.state == cursorReading {
			reading++
		}
	}
	share := max(k.cfg.prefetchBytes/reading, 1)
	byBroker := make(map[*broker][]*cursor)
	var order []*broker
	for _, cur := range k.cursors {
		if !cur.wantsFetchLocked(share) {
			continue
		}
		if cur.notBefore.After(s.now) {
			s.later(cur.notBefore)
			continue
		}
		if cur.broker == nil || cur.broker.live() == nil {
			s.locate(cur)
			continue
		}
		s.reconsider(cur)
		if len(byBroker[cur.broker]) == 0 {
			order = append(order, cur.broker)
		}
		if len(byBroker[cur.broker]) < wire.MaxFetchRanges {
			byBroker[cur.broker] = append(byBroker[cur.broker], cur)
		}
	}
	for _, b := range order {
		conn := b.live()
		if conn == nil || s.onTheWay(b) >= maxFetches {
			continue // the end of one of those, or of the connection, brings the next step
		}
		s.out = append(s.out, k.newFetchLocked(b, conn, byBroker[b], s.now))
	}
}

func (s *stepping) onTheWay(b *broker) (n int) {
	for _, f := range s.k.fetches {
		if f.broker == b {
			n++
		}
	}
	return n
}

// leaveSilent leaves replicas that say nothing: a fetch is answered within its wait, if only to say that there is nothing
// new. One that is late is pinged, and if that is not answered either, its ranges go on elsewhere; the connection is given
// up by whoever pinged it.
func (s *stepping) leaveSilent() {
	for _, f := range slices.Clone(s.k.fetches) {
		last := f.sentAt
		if heard := f.conn.Heard(); heard.After(last) {
			last = heard
		}
		late := last.Add(s.k.cfg.maxWait + fetchLate)
		switch {
		case late.After(s.now):
			s.later(late)
		case f.pinged.Before(last): // it has said something since, or was never pinged
			f.pinged = s.now
			f.broker.suspect(f.conn)
			s.later(s.now.Add(fetchLate))
		case f.pinged.Add(fetchLate).After(s.now):
			s.later(f.pinged.Add(fetchLate))
		default:
			f.abandonLocked(s.now)
		}
	}
}

// breakDead closes connections on which a fetch has been waiting for longer than any broker lets it.
func (s *stepping) breakDead() {
	for _, f := range s.k.fetches {
		due := f.sentAt.Add(s.k.cfg.maxWait + fetchSlack)
		if due.After(s.now) {
			s.later(due)
			continue
		}
		s.k.c.cfg.logger.Warn("no answer to a fetch; closing the connection", "address", f.broker.addr, "waited", s.now.Sub(f.sentAt))
		conn := f.conn
		s.k.c.group.Go("hang up", func(context.Context) error { return ignore(conn.Close()) })
		s.later(s.now.Add(fetchSlack))
	}
}

// node is who answers at the broker's address; empty when unknown.
func (b *broker) node() base.NodeID {
	if b == nil {
		return ""
	}
	if conn := b.conn.Load(); conn != nil {
		return conn.Hello().Node
	}
	return ""
}
