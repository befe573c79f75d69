package sdk

import "time"

// watchMerge puts what several nodes tell into the order of time. Each node tells in order and says until when it has
// told everything; an event is due when every node has told everything older, or has been waited for long enough. What a
// node is and counts now has no place in that order: it only follows what the same node told before. It is a value: no
// goroutine, no clock.
type watchMerge struct {
	hold   time.Duration // how long an event waits for one that has answered before
	queues map[NodeID]*watchQueue
	count  int
}

// watchQueue is what one node has told and nobody has been given yet.
type watchQueue struct {
	items    []heldEvent
	until    time.Time // nothing older will come
	answered bool
	missed   bool // it does not answer: nobody waits for it until it does
	gone     bool // nothing will come any more
}

type heldEvent struct {
	WatchEvent
	arrived time.Time
}

// ordered reports whether it has to wait for what other nodes tell.
func (e *heldEvent) ordered() bool { return e.Event != nil || e.Gap != nil }

func (e *heldEvent) before(other *heldEvent) bool {
	if e.ordered() != other.ordered() {
		return other.ordered()
	}
	return e.Time.Before(other.Time)
}

func newWatchMerge(hold time.Duration) *watchMerge {
	return &watchMerge{hold: hold, queues: make(map[NodeID]*watchQueue)}
}

func (m *watchMerge) len() int { return m.count }

// expect makes the others wait for a node that has said nothing yet.
func (m *watchMerge) expect(id NodeID) {
	q := m.queue(id)
	q.answered, q.gone = false, false
}

func (m *watchMerge) queue(id NodeID) *watchQueue {
	q := m.queues[id]
	if q == nil {
		q = &watchQueue{}
		m.queues[id] = q
	}
	return q
}

// add takes what a node told.
func (m *watchMerge) add(id NodeID, events []WatchEvent, until, now time.Time) {
	q := m.queue(id)
	q.until, q.answered, q.missed = until, true, false
	for _, ev := range events {
		q.items = append(q.items, heldEvent{ev, now})
	}
	m.count += len(events)
}

// miss stops waiting for a node until it answers again: what goes on while one is away is what the others tell, and it is
// waited for most eagerly then.
func (m *watchMerge) miss(id NodeID) { m.queue(id).missed = true }

// drop stops waiting for a node. What it has told is still given out.
func (m *watchMerge) drop(id NodeID) {
	if q := m.queues[id]; q != nil {
		q.gone = true
		if len(q.items) == 0 {
			delete(m.queues, id)
		}
	}
}

// next is the event that is due. When none is, wait says when to look again, unless something is added before.
func (m *watchMerge) next(now time.Time) (ev WatchEvent, ok bool, wait time.Duration) {
	const idle = time.Hour
	oldest, id := m.oldest()
	if oldest == nil {
		return WatchEvent{}, false, idle
	}
	head := oldest.items[0]
	if wait = m.holdUp(head, now); head.ordered() && wait > 0 && m.count < watchLimit {
		return WatchEvent{}, false, wait
	}
	oldest.items[0] = heldEvent{}
	oldest.items = oldest.items[1:]
	m.count--
	if len(oldest.items) == 0 {
		oldest.items = nil
		if oldest.gone {
			delete(m.queues, id)
		}
	}
	return head.WatchEvent, true, 0
}

// oldest is the queue whose first event is the oldest; of equals the node with the lowest name. Those that wait for nobody
// come before the others.
func (m *watchMerge) oldest() (best *watchQueue, at NodeID) {
	for id, q := range m.queues {
		if len(q.items) == 0 {
			continue
		}
		if best == nil {
			best, at = q, id
			continue
		}
		if q.items[0].before(&best.items[0]) || id < at && !best.items[0].before(&q.items[0]) {
			best, at = q, id
		}
	}
	return best, at
}

// holdUp is how long the event has to wait for nodes that may still have something older to tell.
func (m *watchMerge) holdUp(head heldEvent, now time.Time) (wait time.Duration) {
	for _, q := range m.queues {
		if len(q.items) > 0 || q.gone || q.missed || q.answered && !q.until.Before(head.Time) {
			continue
		}
		hold := m.hold
		if !q.answered {
			hold = watchFirstHold
		}
		wait = max(wait, head.arrived.Add(hold).Sub(now))
	}
	return wait
}
