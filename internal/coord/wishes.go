package coord

import (
	"cmp"
	"slices"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/planner"
	"github.com/eastguard/eastguard/internal/topology"
)

// wishes are the active segments that should end for the sake of their replicas: too few, gone, or on a node that is to
// be emptied. Their leaders are asked to end them, so many a second, those first that were appended to last.
type wishes struct {
	stale     bool // nodes or segments have changed since the list was made
	listed    time.Time
	list      []planner.Renewal
	frail     int // topics that were looked at for it
	perSecond int
	told      time.Time // when the last few of them were told
	farewell  []*active // that are led by a node which is stopping, or out: they are told at once
	again     time.Time // when to make the list anew, whatever comes: a node is settled then, or an order may have been lost
}

const (
	listEvery  = time.Second            // that the list is made anew at most
	wishRound  = 500 * time.Millisecond // so that the segments of a round share messages and entries
	askedAgain = 30 * time.Second       // a leader that began to end a segment and did not get far is asked again
)

// wish files the orders that are due.
func (l *loop) wish(now time.Time) {
	w := &l.wishes
	l.tellLeaving(now)
	if !w.again.IsZero() && !now.Before(w.again) {
		w.stale = true
	}
	if w.stale {
		if due := w.listed.Add(listEvery); now.Before(due) {
			l.lookAgain(due)
		} else {
			l.list(now)
		}
	}
	if now.Before(w.again) { // else it is due, and waits for the next list: to look again now would be to spin until then
		l.lookAgain(w.again)
	}
	if len(w.list) == 0 {
		return
	}
	if due := w.told.Add(wishRound); now.Before(due) {
		l.lookAgain(due)
		return
	}
	l.tellWishes(now)
}

// list finds what should end, as far as it can be better afterwards.
func (l *loop) list(now time.Time) {
	w := &l.wishes
	w.stale, w.listed, w.list, w.again = false, now, nil, time.Time{}
	view := l.coord.o.View()
	topics := l.frail(view, now)
	if w.frail = len(topics); w.frail == 0 {
		return
	}
	err := l.view(func(s *meta.State) error {
		for id := range topics {
			if t := s.Topic(id); t != nil {
				w.list = append(w.list, planner.Renewals(t, view, now.UnixMilli())...)
			}
		}
		return nil
	})
	if err != nil {
		w.stale = true
		l.lookAgain(now.Add(listEvery))
		return
	}
	slices.SortFunc(w.list, func(a, b planner.Renewal) int {
		return cmp.Or(cmp.Compare(l.appended(b.Ref), l.appended(a.Ref)), cmp.Compare(a.Segment, b.Segment))
	})
}

func (l *loop) appended(ref base.RangeRef) int64 {
	if a := l.actives.get(ref); a != nil {
		return a.LastAppendMs
	}
	return 0
}

// frail are the topics with a segment that has fewer replicas than it should, or one that is gone or is to go, and a
// node that could be one. The planner says the rest.
func (l *loop) frail(view topology.View, now time.Time) map[base.TopicID]bool {
	var fit []base.NodeID
	for i := range view.Nodes {
		if view.Nodes[i].Unfit() == "" {
			fit = append(fit, view.Nodes[i].ID)
		}
	}
	topics := make(map[base.TopicID]bool)
	for id, ranges := range l.actives.topics {
		for _, a := range ranges {
			if now.Sub(a.ordered) >= askedAgain && l.helped(a, fit) {
				topics[id] = true
				break
			}
		}
	}
	return topics
}

// helped reports whether the segment may be better off on the nodes that are fit: it is so for every segment that
// planner.Renewals would list.
func (l *loop) helped(a *active, fit []base.NodeID) bool {
	well := 0
	for i, r := range a.Replicas {
		is, placed := l.known[r.Node], a.BootOf(r)
		switch {
		case is.retreats, is.leaving && i == 0:
			return true
		case is.lost == notLost && (placed == 0 || is.boot == placed):
			well++
		}
	}
	if well >= a.config.ReplicationFactor {
		return false
	}
	return slices.ContainsFunc(fit, func(id base.NodeID) bool {
		i := slices.IndexFunc(a.Replicas, func(r base.Replica) bool { return r.Node == id })
		return i < 0 || l.known[id].boot > a.BootOf(a.Replicas[i])
	})
}

// tellWishes files as many orders as the time since the last round allows.
func (l *loop) tellWishes(now time.Time) {
	w := &l.wishes
	left := max(1, int(wishRound.Seconds()*float64(w.perSecond)))
	w.told = now
	var later []planner.Renewal
	for _, r := range w.list {
		a := l.actives.get(r.Ref)
		switch due := time.UnixMilli(r.DueMs); {
		case a == nil || a.ID != r.Segment || now.Sub(a.ordered) < askedAgain:
		case now.Before(due):
			w.again = earlierOf(w.again, due)
			l.lookAgain(due)
		case left == 0:
			later = append(later, r)
			l.lookAgain(now.Add(wishRound))
		default:
			left--
			l.order(a, r.Cause, now)
			w.again = earlierOf(w.again, now.Add(askedAgain))
		}
	}
	w.list = later
}

// tellLeaving asks leaders that are about to stop to end their segments first, where others can go on: that costs
// producers less than to find out that the leader is gone. One that is out should lead nothing while it lives.
func (l *loop) tellLeaving(now time.Time) {
	led := l.wishes.farewell
	if l.wishes.farewell = nil; len(led) == 0 {
		return
	}
	view := l.coord.o.View()
	for _, a := range led {
		leader := a.Leader().Node
		current := l.actives.get(a.ref) == a
		if current && now.Sub(a.ordered) >= askedAgain && planner.Replaceable(a.config, nil, []base.NodeID{leader}, view) {
			l.order(a, base.CauseDrain, now)
		}
	}
}

// order asks a segment's leader to end it.
func (l *loop) order(a *active, cause base.Cause, now time.Time) {
	a.ordered = now
	put(&l.outbox(a.Leader()).lanes[endings].waiting.rolls, a.ID, ending{ref: a.ref, cause: cause})
}
