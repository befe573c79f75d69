package dataplane

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/eastguard/eastguard/internal/replica"
)

// A leader opens a segment when its assignment has reached it, which may be before the same has reached a follower.
// What comes so early waits here: appends for replica_timeout at most, for they can be sent again; opens for a few times
// that, after which the leader hears that nobody has told this node of the segment. A leader with appends in flight will
// have judged by then, and is restrained in that (late.go): a coordinator that tells many nodes of many segments at once
// must not lose a replica of each for being slow.

// earlyMessage is an open, or an append behind one, of a segment that is not assigned here yet.
type earlyMessage struct {
	in   inbound
	head *segmentHead
	from replica.Source
	open bool
	size int
	at   time.Time
}

// earlyOverhead is what a message that waits costs beside its bytes.
const earlyOverhead = 512

// earlyOpens is for how many times replica_timeout an open waits, from the first time that it came.
const earlyOpens = 4

func (a *actor) keepEarly(m *openArrival, now time.Time) {
	defer m.done() // from here on it is counted by held
	a.watch()
	e := earlyMessage{in: m, head: &m.segmentHead, from: m.from, open: true, size: len(m.state) + earlyOverhead, at: now}
	a.forgetEarly(func(old *earlyMessage) bool {
		again := old.open && old.from == m.from && old.head.segment == m.segment
		if again {
			e.at = old.at
		}
		return again
	})
	if !a.plane.held.take(e.size) {
		a.refuseFrom(m.from, &m.segmentHead, replica.ReasonUnassigned)
		return
	}
	a.early = append(a.early, e)
}

// keepEarlyAppend keeps an append only behind its open: without that it comes again, when its leader hears what is missing.
func (a *actor) keepEarlyAppend(m *appendArrival, now time.Time) {
	defer m.done()
	if m.ended {
		return
	}
	behind := slices.ContainsFunc(a.early, func(e earlyMessage) bool { return e.open && e.from == m.from && e.head.segment == m.segment })
	if behind && a.plane.held.take(m.size()) {
		a.early = append(a.early, earlyMessage{in: m, head: &m.segmentHead, from: m.from, size: m.size(), at: now})
	}
}

// deliverEarly gives what came early for the segment that is current now, and for those that never will be, a second turn.
func (a *actor) deliverEarly(now time.Time) {
	early := a.early
	a.early = nil
	for _, e := range early {
		if e.head.epoch > a.current.Epoch {
			a.early = append(a.early, e)
			continue
		}
		a.plane.held.give(e.size)
		e.in.deliver(a, now)
	}
}

// expireEarly tells leaders that nobody told this node of their segments.
func (a *actor) expireEarly(now time.Time) {
	a.forgetEarly(func(e *earlyMessage) bool {
		switch waited := now.Sub(e.at); {
		case waited < a.plane.o.ReplicaTimeout, e.open && waited < earlyOpens*a.plane.o.ReplicaTimeout:
			return false
		case e.open:
			a.refuseFrom(e.from, e.head, replica.ReasonUnassigned)
		}
		return true
	})
}

func (a *actor) forgetEarly(which func(*earlyMessage) bool) {
	a.early = slices.DeleteFunc(a.early, func(e earlyMessage) bool {
		if !which(&e) {
			return false
		}
		a.plane.held.give(e.size)
		return true
	})
	if len(a.early) == 0 {
		a.early = nil
	}
}

// held bounds what leaders have sent and nothing has taken yet, over the whole node.
type held struct {
	bytes atomic.Int64
	limit int64
}

// take counts so many bytes, or refuses them.
func (h *held) take(n int) bool {
	if h.bytes.Add(int64(n)) > h.limit {
		h.bytes.Add(-int64(n))
		return false
	}
	return true
}

// force counts them in any case.
func (h *held) force(n int) { h.bytes.Add(int64(n)) }

func (h *held) give(n int) { h.bytes.Add(-int64(n)) }

// hasRoom reports whether it is worth to ask for what was dropped.
func (h *held) hasRoom() bool { return h.bytes.Load() <= h.limit/2 }
