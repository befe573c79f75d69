package coord

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
)

// fencing is how far the fences of one segment have come.
type fencing struct {
	round   uint64
	open    int       // replicas that have not answered
	awaited int       // of them those that are connected
	until   time.Time // for which those are waited for, once another one has answered
	end     time.Time // for which any answer at all is waited for
}

// settled reports whether the segment can be judged now: whoever is connected has answered, or has had time to.
func (f *fencing) settled(answers int, now time.Time) bool {
	switch {
	case f.open == 0, !now.Before(f.end):
		return true
	case answers == 0:
		return false
	}
	return f.awaited == 0 || !now.Before(f.until)
}

// fenced is one replica's answer to a round.
type fenced struct {
	round    uint64
	awaited  bool
	segments []base.SegmentID
	answers  []meta.FenceAnswer
}

// onFenced files what a replica answered. It counts however late it comes: a fence is for ever.
func (rs *recoveries) onFenced(f fenced) {
	for _, id := range f.segments {
		r := rs.all[id]
		if r == nil || r.state != fencesOut || r.fencing.round != f.round {
			continue
		}
		r.open--
		if f.awaited {
			r.awaited--
		}
	}
	for _, a := range f.answers {
		if r := rs.all[a.Segment]; r != nil && r.state == fencesOut {
			r.Answers = append(r.Answers, a)
		}
	}
}

// settleFences marks the segments whose answers suffice.
func (l *loop) settleFences(now time.Time) {
	l.recover.fresh = 0
	for _, r := range l.recover.flying {
		switch {
		case r.state != fencesOut:
		case r.settled(len(r.Answers), now):
			r.state = answered
		case now.Before(r.until):
			l.recover.fresh++
			l.lookAgain(r.until)
		default:
			l.lookAgain(r.end)
		}
	}
}

// fence starts the next round: one message to each replica, for all segments it holds. It waits until all that the last
// one can wait for has come: what is filed meanwhile shares its messages and fsyncs. No extent is ever used without its
// fence.
func (l *loop) fence(now time.Time) {
	if l.recover.len() == 0 || l.recover.fresh > 0 {
		return
	}
	list, wait := l.recover.next(now)
	if !wait.IsZero() {
		l.lookAgain(wait)
	}
	list = slices.DeleteFunc(list, func(r *recovery) bool { return l.unreachable(r, now) })
	if len(list) == 0 {
		return
	}
	requests, err := l.fenceRequests(list)
	if err != nil {
		l.recover.sorted = false
		l.lookAgain(now.Add(again))
		return
	}
	l.sendFences(list, requests, now)
}

// aWhile is how long to wait for what only news of the nodes can change, should the news not come.
const aWhile = time.Minute

// unreachable puts a segment aside none of whose replicas can be asked.
func (l *loop) unreachable(r *recovery, now time.Time) bool {
	a := l.actives.get(r.Ref)
	if a == nil || a.ID != r.Segment || slices.ContainsFunc(a.Replicas, func(o base.Replica) bool { return l.known[o.Node].lost != gone }) {
		return false
	}
	why := base.Errorf(base.CodeUnreachable, "recover segment", "none of its %d replicas is there", len(a.Replicas))
	if len(a.Replicas) == 1 {
		why = base.Errorf(base.CodeUnreachable, "recover segment", "its only replica is not there")
	}
	l.recover.undecided(r.Segment, why, now)
	l.answer(r.Segment, rollAnswer{err: busy(why)})
	r.retryAt = now.Add(aWhile)
	return true
}

// fenceRequests names, by disk, what is to be fenced.
func (l *loop) fenceRequests(list []*recovery) (map[base.Replica][]meta.FenceRequest, error) {
	requests := make(map[base.Replica][]meta.FenceRequest)
	err := l.view(func(s *meta.State) error {
		for _, r := range list {
			seg := find(s, r.Ref, r.Segment)
			if seg == nil || seg.State != base.StateActive {
				continue // there is nothing to fence: the plan finds that it has ended
			}
			for _, replica := range seg.Replicas {
				requests[replica] = append(requests[replica], seg.Fence(r.Ref, replica))
			}
		}
		return nil
	})
	return requests, err
}

func (l *loop) sendFences(list []*recovery, requests map[base.Replica][]meta.FenceRequest, now time.Time) {
	rs := &l.recover
	rs.round++
	for _, r := range list {
		r.state, r.Answers = fencesOut, nil
		rs.flying[r.Segment] = r
		r.fencing = fencing{round: rs.round, until: now.Add(l.coord.o.FenceTimeout), end: now.Add(l.coord.o.TellTimeout)}
	}
	for to, fences := range requests {
		f := fenced{round: rs.round, awaited: l.known[to.Node].lost == notLost}
		for i := range fences {
			f.segments = append(f.segments, fences[i].Segment)
			r := rs.all[fences[i].Segment]
			r.open++
			if f.awaited {
				r.awaited++
			}
		}
		l.coord.running.Go(func() {
			ctx, cancel := context.WithTimeout(l.ctx, l.coord.o.TellTimeout)
			defer cancel()
			f.answers = l.coord.fence(ctx, to, fences, f.awaited)
			l.inbox.deliver(func(in *letters) { in.fenced = append(in.fenced, f) })
		})
	}
	for _, r := range list {
		if r.open == 0 {
			l.lookAgain(now) // it has ended already
		}
	}
	l.lookAgain(now.Add(l.coord.o.FenceTimeout))
}

// fence asks one replica for all of its segments. That one which is not connected does not answer is no surprise.
func (c *Coord) fence(ctx context.Context, to base.Replica, fences []meta.FenceRequest, connected bool) []meta.FenceAnswer {
	answers, err := c.o.Nodes.Fence(ctx, to, fences)
	if err != nil {
		level := slog.LevelDebug
		if connected {
			level = slog.LevelWarn
		}
		c.o.Logger.Log(ctx, level, "replica has not answered all fences", "node", string(to.Node), "answers", len(answers), "asked", len(fences), "error", err)
	}
	return answers
}
