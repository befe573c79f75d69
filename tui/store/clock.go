package store

import (
	"fmt"
	"time"
)

// clockTrust is how far a clock may be off, and still say when something has happened: that of a node from ours, and ours
// from what it said before.
const clockTrust = time.Minute

// when is a moment that a node tells, by our clock as far as the node's is known to be wrong. It is not after it was told:
// what is to come would stand in the way of all that comes until then.
func when(told time.Time, n *Node, ms int64) time.Time {
	t := at(ms)
	if n != nil && !n.countedAt.IsZero() {
		if skew := time.Duration(n.SkewMs) * time.Millisecond; skew.Abs() > clockTrust {
			t = at(ms - n.SkewMs)
		}
	}
	if ms == 0 || t.After(told.Add(clockTrust)) {
		return told
	}
	return t
}

// setBack notices that the clock here was set back, and goes on from there: nothing that is known is of a time to come, and
// of what would be, nothing is kept to look back at. The time of day is what counts: it is what is shown and recorded.
func (s *Store) setBack(now time.Time) {
	by := s.time.Round(0).Sub(now.Round(0))
	if s.time.IsZero() || by <= clockTrust {
		return
	}
	s.time, s.samples.End = now, now.Truncate(time.Second)
	for id, slot := range s.nodes.slots {
		if slot.row.Heard.Round(0).After(now) || slot.row.countedAt.Round(0).After(now) {
			row := s.nodes.edit(id)
			row.Heard, row.countedAt = earlier(row.Heard, now), earlier(row.countedAt, now)
		}
	}
	s.cluster.Link.LastData, s.headChanged = earlier(s.cluster.Link.LastData, now), true
	s.events.amend(func(e *Event) (*Event, bool) {
		moved := *e
		moved.At = earlier(e.At, now)
		return &moved, !moved.At.Equal(e.At)
	})
	s.seals.amend(func(e *Seal) (*Seal, bool) {
		moved := *e
		moved.Time = earlier(e.Time, now)
		return &moved, !moved.Time.Equal(e.Time)
	})
	s.past = past{}
	s.local(now, "CLIENT_CLOCK", "", fmt.Sprintf("the clock here was set back by %s", by.Round(time.Second)))
}

// earlier is the earlier of two times of day.
func earlier(a, b time.Time) time.Time {
	if a.Round(0).After(b.Round(0)) {
		return b
	}
	return a
}

// amend puts others in the place of entries, where change has one.
func (l *lines[E]) amend(change func(E) (E, bool)) {
	l.copy()
	for i, was := range l.buf {
		if e, ok := change(was); ok {
			l.buf[i], l.changed = e, true
		}
	}
}
