package coord

import (
	"context"
	"slices"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/planner"
)

// maxDue is how many topics' retention one turn looks at, so that a roll does not wait for ten thousand trims.
const maxDue = 1024

// plan turns requests, answered recoveries and due dates into commands, and commits them.
func (l *loop) plan(now time.Time) {
	in := planner.Input{
		NowMs: now.UnixMilli(), Rand: newRand(),
		Opened: func(id base.SegmentID) bool { return !l.unopened[id] },
		Due:    l.agenda.due(now.UnixMilli(), maxDue), Recoveries: l.recover.ready(),
	}
	for _, asks := range l.asks {
		if i := slices.IndexFunc(asks, func(a *ask) bool { return a.req.End >= 0 }); i >= 0 {
			in.Rolls = append(in.Rolls, asks[i].req)
		}
	}
	if len(in.Rolls)+len(in.Recoveries)+len(in.Due) == 0 {
		return
	}
	in.View = l.coord.o.View()
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
		l.answer(w.Segment, rollAnswer{err: busy(w.Err)})
		l.recover.undecided(w.Segment, w.Err, now)
		l.unplaced.note(w, now)
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
	if err == nil && len(result.Rolls) < len(cmd.RollSegments) {
		err = base.Errorf(base.CodeInternal, "coordinate", "%d results for %d rolls", len(result.Rolls), len(cmd.RollSegments))
	}
	if err != nil {
		l.coord.o.Logger.Warn("coordinator's command not committed", "shard", l.shard.String(), "error", err)
		l.lookAgain(now.Add(again))
	}
	for i := range cmd.RollSegments {
		seg := cmd.RollSegments[i].Segment
		if err != nil {
			l.answer(seg, rollAnswer{err: err})
			l.recover.undecided(seg, nil, now)
			continue
		}
		l.answer(seg, l.rolled(cmd.RollSegments[i], result.Rolls[i]))
		l.recover.done(seg)
		delete(l.unplaced, seg)
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

// ended forgets what was to be done about a segment that has ended, whoever ended it, and answers those who wait for that.
func (l *loop) ended(t *meta.Topic, ref base.RangeRef, id base.SegmentID) {
	if active := t.Range(ref.Range).Active(); active != nil && active.ID == id {
		return
	}
	l.recover.done(id)
	delete(l.unplaced, id)
	if len(l.asks[id]) > 0 {
		l.answer(id, l.active(t, ref))
	}
}

// deleted does the same for a topic.
func (l *loop) deleted(topic base.TopicID) {
	for seg, asks := range l.asks {
		if ref := asks[0].req.Ref; ref.Topic == topic {
			l.answer(seg, l.active(nil, ref))
		}
	}
	l.unplaced.dropTopic(topic)
	for id := range l.actives.topics[topic] {
		l.recover.done(l.actives.topics[topic][id].ID)
	}
	l.actives.drop(topic)
}

// busy is why a roll has to wait, as whoever asked for it is told.
func busy(why *base.Error) error {
	const waits = "the range goes on by itself as soon as "
	hint := ""
	switch why.Code {
	case base.CodeNotEnoughNodes:
		hint = waits + "enough nodes can take its next segment: start those that are down, or add some"
	case base.CodeUnreachable:
		hint = waits + "a node that has a copy is back"
	default:
		return why
	}
	return base.Errorf(base.CodeBusy, why.Op, "%w", why).WithOutcome(base.NotApplied).WithHint("%s", hint)
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
		l.recover.undecided(in.Recoveries[i].Segment, nil, now)
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
