package sdk

import (
	"context"
	"errors"
	"time"

	"github.com/eastguard/eastguard/internal/base"
)

// consumerTopic is one topic of a consumer: the ranges it reads and how they descend from each other.
type consumerTopic struct {
	k     *Consumer
	topic *topic
	name  string

	// Under Consumer.mu.
	route     *route // that the cursors were made from
	started   bool   // the start of every range of the first route is known
	startErr  error  // of the last attempt to find it, for Poll to return; one, however many attempts nobody asks about
	failed    bool   // the topic is gone
	renewing  bool
	wanted    bool // a newer route is needed: a range has ended, or a broker said that it moved
	failures  int
	notBefore time.Time
}

// begin finds the topic and the start of each range; it runs once, on a goroutine of its own.
func (t *consumerTopic) begin(ctx context.Context) error {
	r, err := t.topic.fresh(ctx)
	if err != nil {
		return err
	}
	ids := t.selected(r)
	found := make(map[base.RangeID]bounds, len(ids))
	if err := t.k.c.listOffsets(ctx, r, ids, t.k.cfg.start, func(id base.RangeID, b bounds) { found[id] = b }); err != nil {
		return err
	}
	t.k.mu.Lock()
	defer t.k.mu.Unlock()
	t.route = r
	for _, id := range ids {
		if b, ok := found[id]; ok { // else it was trimmed away since the route was made
			t.firstCursorLocked(id, b)
		}
	}
	t.started = true
	t.releaseLocked()
	return nil
}

// findEnds looks up where the ranges end now, which is where a consumer with StopAtEnd stops. Only the leaders know it:
// reading does not wait for that, since what has been read by the time a leader answers lies below its answer.
func (t *consumerTopic) findEnds(ctx context.Context) error {
	t.k.mu.Lock()
	r := t.route
	var open []base.RangeID
	for _, cur := range t.k.cursors {
		if cur.t == t && cur.stopAt < 0 && cur.end < 0 && cur.state != cursorFinished {
			open = append(open, cur.ref.Range)
		}
	}
	t.k.mu.Unlock()
	return t.k.c.listOffsets(ctx, r, open, startSpec{kind: startLatest}, func(id base.RangeID, b bounds) {
		t.k.mu.Lock()
		defer t.k.mu.Unlock()
		if cur := t.k.find(t.name, id); cur != nil {
			cur.stopAt = b.Offset
			cur.checkEndLocked()
			t.k.nudge()
		}
	})
}

// selected are the ranges to read.
func (t *consumerTopic) selected(r *route) []base.RangeID {
	only := t.k.cfg.ranges[t.name]
	var ids []base.RangeID
	for _, id := range rangesOf(r) {
		if len(only) == 0 || contains(only, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// firstCursorLocked makes the cursor of a range that was there at the start.
func (t *consumerTopic) firstCursorLocked(id base.RangeID, b bounds) {
	cur := t.newCursorLocked(id)
	cfg := &t.k.cfg
	cur.commit = b.Commit
	if b.Sealed {
		cur.end = b.Commit
	}
	if cfg.stop == stopAtEnd && (b.Sealed || cfg.start.kind == startLatest) {
		cur.stopAt = b.Commit
		if cfg.start.kind == startLatest {
			cur.stopAt = b.Offset
		}
	}
	cur.pos, cur.next = b.Offset, b.Offset
	switch offset, named := cfg.start.position(t.name, id); {
	case named:
		cur.pos, cur.next = offset, offset
	case cfg.start.kind == startLatest && b.Sealed:
		cur.state = cursorFinished
	case cfg.start.kind == startPositions && t.descendantNamed(id):
		cur.state = cursorFinished
	}
}

// descendantNamed reports whether the start names a range that came out of id: whoever had got so far has read id.
func (t *consumerTopic) descendantNamed(id base.RangeID) bool {
	rr := t.route.byRange[id]
	if rr == nil {
		return false
	}
	for _, child := range rr.Children {
		if _, named := t.k.cfg.start.position(t.name, child); named || t.descendantNamed(child) {
			return true
		}
	}
	return false
}

func (t *consumerTopic) newCursorLocked(id base.RangeID) *cursor {
	cur := &cursor{k: t.k, t: t, ref: base.RangeRef{Topic: t.route.ID, Range: id}, end: -1, stopAt: -1}
	t.k.cursors = append(t.k.cursors, cur)
	return cur
}

// releaseLocked lets every range begin whose parents are finished. A parent that is not read here (trimmed away, or
// not selected) holds nobody up.
func (t *consumerTopic) releaseLocked() {
	for _, cur := range t.k.cursors {
		if cur.t == t && cur.state == cursorWaiting && !t.heldUpLocked(cur) {
			cur.startLocked(cur.pos)
		}
	}
	t.k.nudge()
}

func (t *consumerTopic) heldUpLocked(cur *cursor) bool {
	rr := t.route.byRange[cur.ref.Range]
	if rr == nil {
		return false
	}
	for _, parent := range rr.Parents {
		if p := t.k.find(t.name, parent); p != nil && p.state != cursorFinished {
			return true
		}
	}
	return false
}

// finishedLocked is called when a sealed range has been read to its end: its successors may begin.
func (t *consumerTopic) finishedLocked(cur *cursor) {
	rr := t.route.byRange[cur.ref.Range]
	if rr == nil || rr.State == base.StateActive || !t.knowsLocked(rr.Children) {
		t.wanted = true // the route is from before the split
		t.k.nudge()
		return
	}
	t.releaseLocked()
}

func (t *consumerTopic) knowsLocked(ids []base.RangeID) bool {
	for _, id := range ids {
		if t.route.byRange[id] == nil {
			return false
		}
	}
	return true
}

// renew fetches a newer route and makes cursors for the ranges that are new in it, which begin at their first
// record. It runs on a goroutine of its own.
func (t *consumerTopic) renew(ctx context.Context) {
	t.k.mu.Lock()
	old := t.route
	t.k.mu.Unlock()
	r, err := t.topic.renew(ctx, old)
	now := time.Now()
	t.k.mu.Lock()
	defer t.k.mu.Unlock()
	t.renewing = false
	defer t.k.nudge()
	switch {
	case err != nil:
		t.failures++
		t.notBefore = now.Add(requestBackoff.wait(t.failures))
		if base.CodeOf(err) == base.CodeTopicNotFound {
			t.goneLocked(err)
		}
		return
	case r.ID != old.ID:
		t.goneLocked(base.Errorf(base.CodeTopicNotFound, "read", "topic %s was deleted and made anew", t.name).
			WithHint("offsets of the old topic mean nothing in the new one: begin with a new consumer"))
		return
	}
	t.failures, t.wanted = 0, false
	t.route = r
	t.adoptLocked(r)
	t.releaseLocked()
}

// adoptLocked makes cursors for ranges that are new in the route, unless the consumer stops at the ends as they
// were when it began, or reads only some ranges.
func (t *consumerTopic) adoptLocked(r *route) {
	if len(t.k.cfg.ranges[t.name]) > 0 || t.k.cfg.stop == stopAtEnd {
		return
	}
	for _, id := range rangesOf(r) {
		if t.k.find(t.name, id) == nil {
			cur := t.newCursorLocked(id)
			cur.pos, cur.next = r.byRange[id].Earliest, r.byRange[id].Earliest
		}
	}
}

// goneLocked ends the topic.
func (t *consumerTopic) goneLocked(err error) {
	if t.failed {
		return
	}
	t.failed, t.wanted = true, false
	for _, cur := range t.k.cursors {
		if cur.t == t && cur.state != cursorFinished {
			cur.gen++
			cur.fetching = false
			t.k.dropChunksLocked(cur)
			cur.state = cursorFailed
		}
	}
	t.k.reportLocked(err)
}

// atEnd reports whether Poll said that StopAtEnd is reached.
func atEnd(err error) bool { return errors.Is(err, errAtEnd) }
