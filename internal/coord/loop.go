package coord

import (
	"context"
	"errors"
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
	agenda   agenda
	recover  recoveries
	asks     map[base.SegmentID][]*ask // answered when the segment is sealed, or when it turns out that it cannot be yet
	openings map[*opening]struct{}     // who waits for a topic to open
	behind   bool                      // what came last could not be read; it will be
	gone     []meta.TopicGone          // confirmed removals that are not committed yet
	wakeAt   time.Time                 // when to look again, whatever comes
}

func newLoop(c *Coord, shard base.ShardID) *loop {
	l := &loop{
		coord: c, shard: shard, outboxes: make(map[base.Replica]*outbox), unopened: make(map[base.SegmentID]bool),
		asks: make(map[base.SegmentID][]*ask), openings: make(map[*opening]struct{}), agenda: newAgenda(), known: make(map[base.NodeID]life),
	}
	l.ctx, l.cancel = context.WithCancelCause(c.ctx)
	l.inbox = newInbox(l.ctx)
	l.recover = newRecoveries(c.o.EmptyPerSecond)
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
		l.plan(now)
		l.forget(now)
		l.fence(now)
		l.tell(now)
		l.publish()
		timer.Reset(l.sleep(now))
	}
}

// sleep is the time to the next thing that is due without anybody saying so.
func (l *loop) sleep(now time.Time) time.Duration {
	next := now.Add(time.Hour)
	if due, ok := l.agenda.next(); ok {
		next = earlier(next, time.UnixMilli(due))
	}
	if !l.wakeAt.IsZero() {
		next = earlier(next, l.wakeAt)
	}
	return max(0, next.Sub(now))
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
		l.recover.answered(f)
	}
	for _, a := range in.asks {
		l.asks[a.req.Segment] = append(l.asks[a.req.Segment], a)
		if a.req.End < 0 {
			l.recover.want(a.req, now)
		}
	}
	var returned []base.NodeID
	if in.nodes || in.rescan {
		returned = l.lookAtNodes(l.coord.o.View())
	}
	if !in.rescan && len(in.segments)+len(in.trims)+len(in.deletes)+len(in.topics)+len(in.touched)+len(in.held)+len(returned) == 0 {
		return
	}
	var topics []base.TopicID
	err := l.view(func(s *meta.State) error {
		l.compare(s, in.held)
		if in.rescan {
			topics = l.scan(s)
			return nil
		}
		l.changed(s, in)
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

// scan files everything the shard holds: at the beginning, and when a snapshot replaced the state.
func (l *loop) scan(s *meta.State) []base.TopicID {
	topics := make([]base.TopicID, 0, s.Len())
	for t := range s.All() {
		topics = append(topics, t.ID)
		l.schedule(t)
		for _, r := range t.Ranges {
			ref := base.RangeRef{Topic: t.ID, Range: r.ID}
			for _, seg := range r.Segments {
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
	return topics
}

// changed files what the letters name, as it is now.
func (l *loop) changed(s *meta.State, in letters) {
	for id, ref := range in.segments {
		if seg := find(s, ref, id); seg != nil {
			l.file(ref, seg, true, urgent)
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
				l.file(base.RangeRef{Topic: id, Range: r.ID}, seg, created, urgent)
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
		if tomb := s.Tombstone(id); tomb != nil {
			l.fileDelete(tomb)
		}
	}
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

// maxDue is how many topics' retention one turn looks at, so that a roll does not wait for ten thousand trims.
const maxDue = 1024

// plan turns requests, answered recoveries and due dates into commands, and commits them.
func (l *loop) plan(now time.Time) {
	in := planner.Input{
		NowMs: now.UnixMilli(), View: l.coord.o.View(), Rand: newRand(),
		Opened: func(id base.SegmentID) bool { return !l.unopened[id] },
		Due:    l.agenda.due(now.UnixMilli(), maxDue),
	}
	for _, asks := range l.asks {
		if req := asks[0].req; req.End >= 0 {
			in.Rolls = append(in.Rolls, req)
		}
	}
	in.Recoveries = l.recover.ready()
	if len(in.Rolls)+len(in.Recoveries)+len(in.Due) == 0 {
		return
	}
	topics := make(map[base.TopicID]*meta.Topic)
	err := l.view(func(s *meta.State) error {
		for i := range in.Rolls {
			topics[in.Rolls[i].Ref.Topic] = s.Topic(in.Rolls[i].Ref.Topic)
		}
		for i := range in.Recoveries {
			topics[in.Recoveries[i].Ref.Topic] = s.Topic(in.Recoveries[i].Ref.Topic)
		}
		for _, id := range in.Due {
			topics[id] = s.Topic(id)
		}
		return nil
	})
	if err != nil {
		l.refuseAll(in, err, now)
		return
	}
	in.Topic = func(id base.TopicID) *meta.Topic { return topics[id] }
	plan := planner.Make(in)
	for _, note := range plan.Notes {
		l.coord.o.Logger.Debug("coordinator decided", "shard", l.shard.String(), "note", note)
	}
	for _, w := range plan.Waiting {
		l.answer(w.Segment, rollAnswer{err: w.Err})
		l.recover.undecided(w.Segment, now)
		l.lookAgain(now.Add(again))
	}
	l.settleSealed(in, plan)
	for _, cmd := range plan.Commands(in.NowMs) {
		l.commit(cmd, now)
	}
	l.reschedule(in.Due, topics, now)
}

// commit proposes one entry and answers those who wait for it.
func (l *loop) commit(cmd meta.Command, now time.Time) {
	ctx, cancel := context.WithTimeout(l.ctx, l.coord.o.ProposeTimeout)
	defer cancel()
	result, err := l.coord.o.Shards.Propose(ctx, l.shard, cmd)
	if err == nil {
		err = result.Err("coordinate")
	}
	if err != nil {
		l.coord.o.Logger.Warn("coordinator's command not committed", "shard", l.shard.String(), "error", err)
		l.lookAgain(now.Add(again))
	}
	for i := range cmd.RollSegments {
		seg := cmd.RollSegments[i].Segment
		if err != nil || i >= len(result.Rolls) {
			l.answer(seg, rollAnswer{err: err})
			l.recover.undecided(seg, now)
			continue
		}
		l.answer(seg, l.rolled(cmd.RollSegments[i], result.Rolls[i]))
		l.recover.done(seg)
		delete(l.unopened, seg)
	}
}

// rolled is what a leader is told of its roll: the active segment of the range, whoever's roll opened it.
func (l *loop) rolled(cmd meta.RollSegment, r meta.RollResult) rollAnswer {
	const op = "roll segment"
	if err := r.Err(op); err != nil {
		return rollAnswer{err: err}
	}
	if r.Topic == nil || r.Active == nil {
		return rollAnswer{err: base.Errorf(base.CodeRangeMoved, op, "range %s has no active segment", cmd.Range)}
	}
	return rollAnswer{assignment: r.Topic.Assignment(r.Topic.Range(cmd.Range), r.Active, l.coord.o.Limits)}
}

// settleSealed answers those whose recovery needs no roll any more: the segment was sealed, or went with its topic.
func (l *loop) settleSealed(in planner.Input, plan planner.Plan) {
	planned := make(map[base.SegmentID]bool, len(plan.Rolls)+len(plan.Waiting))
	for i := range plan.Rolls {
		planned[plan.Rolls[i].Segment] = true
	}
	for i := range plan.Waiting {
		planned[plan.Waiting[i].Segment] = true
	}
	for _, rec := range in.Recoveries {
		if planned[rec.Segment] {
			continue
		}
		l.recover.done(rec.Segment)
		l.answer(rec.Segment, l.active(in.Topic(rec.Ref.Topic), rec.Ref))
	}
}

// active is the answer that names the range's active segment as it is.
func (l *loop) active(t *meta.Topic, ref base.RangeRef) rollAnswer {
	const op = "roll segment"
	if t == nil {
		return rollAnswer{err: base.Errorf(base.CodeTopicNotFound, op, "topic %s not found", ref.Topic)}
	}
	r := t.Range(ref.Range)
	if r == nil || r.Active() == nil {
		return rollAnswer{err: base.Errorf(base.CodeRangeMoved, op, "range %s has no active segment", ref.Range)}
	}
	return rollAnswer{assignment: t.Assignment(r, r.Active(), l.coord.o.Limits)}
}

// answer gives everybody who asked about a segment the same answer.
func (l *loop) answer(seg base.SegmentID, r rollAnswer) {
	for _, a := range l.asks[seg] {
		a.answer <- r
	}
	delete(l.asks, seg)
}

// refuseAll answers everybody with the error that kept the loop from planning.
func (l *loop) refuseAll(in planner.Input, err error, now time.Time) {
	for i := range in.Rolls {
		l.answer(in.Rolls[i].Segment, rollAnswer{err: err})
	}
	for i := range in.Recoveries {
		l.answer(in.Recoveries[i].Segment, rollAnswer{err: err})
		l.recover.undecided(in.Recoveries[i].Segment, now)
	}
	for _, id := range in.Due {
		l.agenda.set(id, now.Add(again).UnixMilli())
	}
	l.lookAgain(now.Add(again))
}

// reschedule gives the topics that were due their next date. A trim that was committed sets it again, by its event.
func (l *loop) reschedule(due []base.TopicID, topics map[base.TopicID]*meta.Topic, now time.Time) {
	for _, id := range due {
		if t := topics[id]; t != nil {
			l.agenda.set(id, max(planner.TrimDue(t), now.Add(again).UnixMilli()))
		}
	}
}

// forget commits the removals that nodes have confirmed.
func (l *loop) forget(now time.Time) {
	for len(l.gone) > 0 {
		n := min(len(l.gone), planner.BatchSize)
		ctx, cancel := context.WithTimeout(l.ctx, l.coord.o.ProposeTimeout)
		_, err := l.coord.o.Shards.Propose(ctx, l.shard, meta.Command{TimeMs: now.UnixMilli(), TopicsGone: l.gone[:n:n]})
		cancel()
		if err != nil {
			l.lookAgain(now.Add(again))
			return
		}
		l.gone = l.gone[n:]
	}
	l.gone = nil
}

func (l *loop) view(fn func(*meta.State) error) error {
	err := l.coord.o.Shards.ViewStale(l.shard, fn)
	if err != nil && !errors.Is(err, context.Canceled) && l.ctx.Err() == nil {
		l.coord.o.Logger.Warn("coordinator cannot read its shard", "shard", l.shard.String(), "error", err)
	}
	return err
}

func (l *loop) publish() {
	s := Status{Recoveries: l.recover.len(), Due: l.agenda.len()}
	for _, b := range l.outboxes {
		s.Untold += b.len()
	}
	l.inbox.publish(s)
}
