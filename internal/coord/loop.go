package coord

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/planner"
)

// again is how long the loop waits before it repeats what could not be done.
const again = time.Second

// loop is the coordinator of one shard. All fields but the inbox belong to its goroutine.
type loop struct {
	coord  *Coord
	shard  base.ShardID
	ctx    context.Context
	cancel context.CancelCauseFunc
	inbox  *inbox

	outboxes map[base.Replica]*outbox
	known    map[base.NodeID]life    // the nodes, as they were when the loop looked last
	unopened map[base.SegmentID]bool // active segments that no replica has confirmed yet
	silent   map[base.NodeID]bool    // those that are not heard, and not known to be gone
	actives  actives
	agenda   agenda
	recover  recoveries
	unplaced unplaced
	wishes   wishes
	wants    map[base.RangeRef]time.Time // ranges that somebody asked for lately
	asks     map[base.SegmentID][]*ask   // answered when the segment is sealed, or when it turns out that it cannot be yet
	openings map[*opening]struct{}       // who waits for a topic to open
	behind   bool                        // what came last could not be read; it will be
	gone     []meta.TopicGone            // confirmed removals that are not committed yet
	wakeAt   time.Time                   // when to look again, whatever comes
}

func newLoop(c *Coord, shard base.ShardID) *loop {
	l := &loop{
		coord: c, shard: shard, outboxes: make(map[base.Replica]*outbox), unopened: make(map[base.SegmentID]bool),
		asks: make(map[base.SegmentID][]*ask), openings: make(map[*opening]struct{}), agenda: newAgenda(), known: make(map[base.NodeID]life),
		silent: make(map[base.NodeID]bool), actives: newActives(), wants: make(map[base.RangeRef]time.Time), unplaced: make(unplaced),
	}
	l.ctx, l.cancel = context.WithCancelCause(c.ctx)
	l.inbox = newInbox(l.ctx)
	l.recover = newRecoveries(c.idle)
	l.wishes.perSecond = c.o.WishPerSecond
	l.inbox.letters.rescan = true
	l.inbox.nudge()
	return l
}

// run is the loop: observe, plan, propose, tell.
func (l *loop) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for l.ctx.Err() == nil {
		select {
		case <-l.inbox.wake:
		case <-timer.C:
		case <-l.ctx.Done():
			return
		}
		now := time.Now()
		l.wakeAt = time.Time{}
		l.observe(l.inbox.take(), now)
		if !l.behind {
			l.settleOpenings()
		}
		l.judgeSilent(now)
		l.settleFences(now)
		l.plan(now)
		l.forget(now)
		l.fence(now)
		l.wish(now)
		l.tell(now)
		l.publish(now)
		timer.Reset(l.sleep(now))
	}
}

// shortestSleep keeps what is due already, and cannot be done yet, from turning the loop without end.
const shortestSleep = time.Millisecond

// sleep is the time to the next thing that is due without anybody saying so.
func (l *loop) sleep(now time.Time) time.Duration {
	next := now.Add(time.Hour)
	if due, ok := l.agenda.next(); ok {
		next = earlier(next, time.UnixMilli(due))
	}
	if !l.wakeAt.IsZero() {
		next = earlier(next, l.wakeAt)
	}
	return max(shortestSleep, next.Sub(now))
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// lookAgain makes the loop turn at t at the latest.
func (l *loop) lookAgain(t time.Time) {
	if l.wakeAt.IsZero() || t.Before(l.wakeAt) {
		l.wakeAt = t
	}
}

// observe takes in what came. The committed state is read once for all of it.
func (l *loop) observe(in letters, now time.Time) {
	l.expect(in)
	for _, t := range in.told {
		l.onTold(t, now)
	}
	for _, f := range in.fenced {
		l.recover.onFenced(f)
	}
	var returned []base.NodeID
	if in.nodes || in.rescan {
		returned = l.lookAtNodes(l.coord.o.View(), now)
		l.wishes.stale = l.wishes.stale || l.wishes.frail > 0
	}
	l.want(in.wants, now)
	orders := l.takeAsks(in.asks, now)
	defer func() { l.askLeaders(orders, now) }() // once it is known what has become of their segments
	if !in.rescan && len(in.segments)+len(in.trims)+len(in.deletes)+len(in.topics)+len(in.touched)+len(in.held)+len(returned) == 0 {
		return
	}
	var topics []base.TopicID
	err := l.view(func(s *meta.State) error {
		l.compare(s, in.held)
		if in.rescan {
			topics = l.scan(s, now)
			return nil
		}
		l.changed(s, in, now)
		l.remind(s, returned)
		return nil
	})
	l.coord.count(returned)
	l.behind = err != nil
	if err != nil {
		// The letters are lost with the leadership, or else are read out of the whole state again; but for what nodes have,
		// which no state says.
		l.inbox.keep(func(b *letters) { b.rescan, b.held = true, append(b.held, in.held...) })
		l.lookAgain(now.Add(again))
		return
	}
	if topics != nil {
		l.coord.adopt(l, topics)
	}
}

// takeAsks files who waits for the end of a segment, and returns those whose segment's leader is to be asked.
func (l *loop) takeAsks(asks []*ask, now time.Time) (orders []*ask) {
	for _, a := range asks {
		seg := a.req.Segment
		l.asks[seg] = append(slices.DeleteFunc(l.asks[seg], func(o *ask) bool { return o.ctx.Err() != nil }), a)
		switch {
		case a.order:
			orders = append(orders, a)
		case a.req.End < 0:
			l.recover.want(&a.req, now)
		}
	}
	return orders
}

// scan files everything the shard holds: at the beginning, and when a snapshot replaced the state.
func (l *loop) scan(s *meta.State, now time.Time) []base.TopicID {
	topics := make([]base.TopicID, 0, s.Len())
	l.actives, l.wishes.stale = newActives(), true
	for t := range s.All() {
		topics = append(topics, t.ID)
		l.schedule(t)
		for _, r := range t.Ranges {
			ref := base.RangeRef{Topic: t.ID, Range: r.ID}
			l.noteActive(ref, r.Active(), t.Config, now)
			for _, seg := range r.Placed() {
				l.file(ref, seg, true, background)
			}
			if r.TrimmedTo > 0 && len(r.Segments) > 0 {
				l.fileTrim(ref, r.Segments[len(r.Segments)-1].Replicas)
			}
		}
	}
	for tomb := range s.Tombstones() {
		l.fileDelete(tomb)
	}
	for seg, asks := range l.asks {
		if ref := asks[0].req.Ref; l.actives.get(ref) == nil || l.actives.get(ref).ID != seg {
			l.answer(seg, l.active(s.Topic(ref.Topic), ref))
		}
	}
	return topics
}

// changed files what the letters name, as it is now.
func (l *loop) changed(s *meta.State, in letters, now time.Time) {
	for id, ref := range in.segments {
		if seg := find(s, ref, id); seg != nil {
			l.file(ref, seg, true, urgent)
		}
		if t := s.Topic(ref.Topic); t != nil && t.Range(ref.Range) != nil {
			l.noteActive(ref, t.Range(ref.Range).Active(), t.Config, now)
			l.ended(t, ref, id)
		}
	}
	for id, created := range in.topics {
		t := s.Topic(id)
		if t == nil {
			continue
		}
		l.schedule(t)
		for _, r := range t.Ranges {
			if seg := r.Active(); seg != nil {
				ref := base.RangeRef{Topic: id, Range: r.ID}
				l.noteActive(ref, seg, t.Config, now)
				l.file(ref, seg, created, urgent)
			}
		}
	}
	for ref, holders := range in.trims {
		// The range's leader too, which answers where the range begins.
		if t := s.Topic(ref.Topic); t != nil && t.Range(ref.Range) != nil && t.Range(ref.Range).Active() != nil {
			holders = union(holders, t.Range(ref.Range).Active().Replicas)
		}
		l.fileTrim(ref, holders)
	}
	for id := range in.touched {
		if t := s.Topic(id); t != nil {
			l.schedule(t)
		}
	}
	for id := range in.deletes {
		l.agenda.set(id, planner.Never)
		l.deleted(id)
		if tomb := s.Tombstone(id); tomb != nil {
			l.fileDelete(tomb)
		}
	}
}

// noteActive keeps the index of the active segments. A new one may have been placed on a node that is gone by now.
func (l *loop) noteActive(ref base.RangeRef, seg *meta.Segment, config base.TopicConfig, now time.Time) {
	a := l.actives.set(ref, seg, config)
	if a == nil {
		return
	}
	delete(l.wants, ref)
	l.judge(a, now)
	l.wishes.stale = l.wishes.stale || len(a.Replicas) < a.config.ReplicationFactor
}

func (l *loop) schedule(t *meta.Topic) { l.agenda.set(t.ID, planner.TrimDue(t)) }

func find(s *meta.State, ref base.RangeRef, id base.SegmentID) *meta.Segment {
	t := s.Topic(ref.Topic)
	if t == nil {
		return nil
	}
	r := t.Range(ref.Range)
	if r == nil {
		return nil
	}
	return r.Segment(id)
}

func (l *loop) view(fn func(*meta.State) error) error {
	err := l.coord.o.Shards.ViewStale(l.shard, fn)
	if err != nil && !errors.Is(err, context.Canceled) && l.ctx.Err() == nil {
		l.coord.o.Logger.Warn("coordinator cannot read its shard", "shard", l.shard.String(), "error", err)
	}
	return err
}

func (l *loop) publish(now time.Time) {
	s := Status{Recoveries: l.recover.len(), Undecided: l.recover.unknown, Wishes: len(l.wishes.list), Due: l.agenda.len()}
	for _, b := range l.outboxes {
		s.Untold += b.len()
	}
	stuck := append(l.recover.stuck(), l.unplaced.list(now)...)
	if len(l.unplaced) > 0 {
		l.lookAgain(now.Add(unplacedFor))
	}
	l.inbox.publish(s, stuck)
}
