package coord

import (
	"context"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/planner"
)

// recovery is one segment whose leader cannot go on: its replicas are fenced, then it is sealed by their answers.
type recovery struct {
	planner.Recovery
	state   recoveryState
	empty   bool // holds no record and nobody waits: there is no hurry
	retryAt time.Time
}

// recoveryState: to be fenced; fences are under way; the answers are here.
type recoveryState int

const (
	toFence recoveryState = iota
	fencing
	answered
)

// maxFences is how many segments one round of fences covers; one round is under way at a time.
const maxFences = planner.BatchSize

// recoveries are the segments of one shard that wait for a seal. Those with records, or somebody waiting, come first;
// the others are sealed in the background, so many a second.
type recoveries struct {
	all       map[base.SegmentID]*recovery
	round     bool // one is under way
	perSecond int
	tokens    float64 // of the background
	refilled  time.Time
}

func newRecoveries(perSecond int) recoveries {
	return recoveries{all: make(map[base.SegmentID]*recovery), perSecond: perSecond}
}

func (rs *recoveries) len() int { return len(rs.all) }

// found files a segment that a node says it cannot lead any more.
func (rs *recoveries) found(a *meta.Assignment, empty bool, now time.Time) {
	if r := rs.all[a.Segment]; r != nil {
		r.empty = r.empty && empty
		return
	}
	rs.all[a.Segment] = &recovery{empty: empty, Recovery: planner.Recovery{
		Ref: a.Ref, Segment: a.Segment, Epoch: a.Epoch, Cause: base.CauseRecovery, SinceMs: now.UnixMilli(),
	}}
}

// stateless files a segment that its leader cannot open, since it reaches nobody who knows what the range remembers: the
// successor goes to one of those who do.
func (rs *recoveries) stateless(a *meta.Assignment, now time.Time) {
	if rs.all[a.Segment] == nil {
		rs.all[a.Segment] = &recovery{Recovery: planner.Recovery{
			Ref: a.Ref, Segment: a.Segment, Epoch: a.Epoch, Cause: base.CauseRecovery, SinceMs: now.UnixMilli(), On: a.From.Replicas,
		}}
	}
}

// opened drops the recovery of a segment that could be opened after all.
func (rs *recoveries) opened(seg base.SegmentID) {
	if r := rs.all[seg]; r != nil && len(r.On) > 0 && r.state == toFence {
		delete(rs.all, seg)
	}
}

// want files a segment that somebody waits for.
func (rs *recoveries) want(req RollRequest, now time.Time) {
	r := rs.all[req.Segment]
	if r == nil {
		r = &recovery{Recovery: planner.Recovery{Ref: req.Ref, Segment: req.Segment, Epoch: req.Epoch, Cause: base.CauseRecovery, SinceMs: now.UnixMilli()}}
		rs.all[req.Segment] = r
	}
	if r.empty { // the gap is what somebody felt of it
		r.empty, r.SinceMs = false, now.UnixMilli()
	}
}

// ready lists those whose answers are here.
func (rs *recoveries) ready() []planner.Recovery {
	var list []planner.Recovery
	for _, r := range rs.all {
		if r.state == answered {
			list = append(list, r.Recovery)
		}
	}
	return list
}

func (rs *recoveries) done(seg base.SegmentID) { delete(rs.all, seg) }

// undecided starts a recovery over, later: the answers did not suffice, or the seal was not committed.
func (rs *recoveries) undecided(seg base.SegmentID, now time.Time) {
	if r := rs.all[seg]; r != nil {
		r.state, r.Answers, r.retryAt = toFence, nil, now.Add(again)
	}
}

// next picks the segments of the next round: those in a hurry, then what the background may have. wait is when to
// look again for the rest.
func (rs *recoveries) next(now time.Time) (list []*recovery, wait time.Time) {
	if rs.refilled.IsZero() {
		rs.refilled = now
	}
	rs.tokens = min(rs.tokens+now.Sub(rs.refilled).Seconds()*float64(rs.perSecond), maxFences)
	rs.refilled = now
	var idle []*recovery
	for _, r := range rs.all {
		switch {
		case r.state != toFence:
		case now.Before(r.retryAt):
			if wait.IsZero() || r.retryAt.Before(wait) {
				wait = r.retryAt
			}
		case r.empty:
			idle = append(idle, r)
		case len(list) < maxFences:
			list = append(list, r)
		}
	}
	for len(idle) > 0 && len(list) < maxFences && rs.tokens >= 1 {
		rs.tokens--
		list = append(list, idle[0])
		idle = idle[1:]
	}
	if len(idle) > 0 {
		wait = now.Add(100 * time.Millisecond)
	}
	return list, wait
}

// fenced is what one round of fences brought.
type fenced struct {
	segments []base.SegmentID
	answers  []meta.FenceAnswer
}

// answered files a round's answers. Segments without any are judged too: the verdict says what is missing.
func (rs *recoveries) answered(f fenced) {
	rs.round = false
	for _, id := range f.segments {
		if r := rs.all[id]; r != nil && r.state == fencing {
			r.state = answered
		}
	}
	for _, a := range f.answers {
		if r := rs.all[a.Segment]; r != nil {
			r.Answers = append(r.Answers, a)
		}
	}
}

// fence starts the next round: one message to each replica, for all segments it holds, and at most FenceTimeout to
// answer unless it is alone. No extent is ever used without its fence.
func (l *loop) fence(now time.Time) {
	if l.recover.round || l.recover.len() == 0 {
		return
	}
	list, wait := l.recover.next(now)
	if !wait.IsZero() {
		l.lookAgain(wait)
	}
	if len(list) == 0 {
		return
	}
	requests, err := l.fenceRequests(list)
	if err != nil {
		l.lookAgain(now.Add(again))
		return
	}
	segments := make([]base.SegmentID, len(list))
	for i, r := range list {
		r.state, r.Answers = fencing, nil
		segments[i] = r.Segment
	}
	l.recover.round = true
	l.coord.running.Go(func() {
		answers := l.ask(requests)
		l.inbox.deliver(func(in *letters) { in.fenced = append(in.fenced, fenced{segments: segments, answers: answers}) })
	})
}

// fenceRequests names, by disk, what is to be fenced.
func (l *loop) fenceRequests(list []*recovery) (map[base.Replica][]meta.FenceRequest, error) {
	requests := make(map[base.Replica][]meta.FenceRequest)
	err := l.view(func(s *meta.State) error {
		for _, r := range list {
			seg := find(s, r.Ref, r.Segment)
			if seg == nil || seg.State != base.StateActive {
				continue
			}
			for _, replica := range seg.Replicas {
				requests[replica] = append(requests[replica], meta.FenceRequest{Ref: r.Ref, Epoch: seg.Epoch, Segment: seg.ID, Base: seg.Base})
			}
		}
		return nil
	})
	return requests, err
}

func (l *loop) ask(requests map[base.Replica][]meta.FenceRequest) []meta.FenceAnswer {
	patience := l.coord.o.FenceTimeout
	if len(requests) == 1 {
		patience = l.coord.o.TellTimeout // there is nobody else whose answer could do instead
	}
	ctx, cancel := context.WithTimeout(l.ctx, patience)
	defer cancel()
	var mu sync.Mutex
	var all []meta.FenceAnswer
	var asking sync.WaitGroup
	for to, list := range requests {
		asking.Go(func() {
			answers, err := l.coord.o.Nodes.Fence(ctx, to, list)
			if err != nil {
				l.coord.o.Logger.Warn("replica has not answered all fences", "node", string(to.Node), "answers", len(answers), "asked", len(list), "error", err)
			}
			mu.Lock()
			all = append(all, answers...)
			mu.Unlock()
		})
	}
	asking.Wait()
	return all
}
