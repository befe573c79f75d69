package coord

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
)

// lane is one of the streams of orders to a node.
type lane int

// What just happened goes urgent; what is told because the loop is new goes in the background. Trims and deletes are
// confirmed when the files are gone, which may take a disk its time: no segment waits for that to be opened. Segments that
// should end have leaders that may have much to do first. Single orders that a node could not carry out are told again by
// themselves, so that they hold nothing else up.
const (
	urgent lane = iota
	background
	removals
	endings
	repeats
	lanes
)

// maxRest is the longest pause between two messages of the background.
const maxRest = 100 * time.Millisecond

// maxOrders is how many orders one message carries.
const maxOrders = 512

// outbox is what one disk of a node has not confirmed. Orders are kept by name only and made when they are sent.
type outbox struct {
	to    base.Replica
	lanes [lanes]pile
}

// pile is one lane: what waits, and what is under way (at most one message).
type pile struct {
	waiting orderSet
	flying  orderSet
	busy    bool
	retryAt time.Time // after a failure; what waits is held back until then
	fails   int
}

// orderSet names orders.
type orderSet struct {
	segments map[base.SegmentID]base.RangeRef
	trims    map[base.RangeRef]bool
	deletes  map[base.TopicID]base.Replica
	rolls    map[base.SegmentID]ending
}

// ending is why a segment should end.
type ending struct {
	ref   base.RangeRef
	cause base.Cause
}

func (s *orderSet) len() int { return len(s.segments) + len(s.trims) + len(s.deletes) + len(s.rolls) }

func (b *outbox) len() int {
	n := 0
	for i := range b.lanes {
		n += b.lanes[i].waiting.len() + b.lanes[i].flying.len()
	}
	return n
}

func (l *loop) outbox(to base.Replica) *outbox {
	b := l.outboxes[to]
	if b == nil {
		b = &outbox{to: to}
		l.outboxes[to] = b
	}
	return b
}

// file puts a segment into the outboxes of its replicas. An active one that is fresh (opened just now, or new to this
// loop) counts as open once one of them has confirmed it.
func (l *loop) file(ref base.RangeRef, seg *meta.Segment, fresh bool, on lane) {
	if fresh && seg.State == base.StateActive {
		l.unopened[seg.ID] = true
	}
	for _, r := range seg.Replicas {
		put(&l.outbox(r).lanes[on].waiting.segments, seg.ID, ref)
	}
}

func (l *loop) fileTrim(ref base.RangeRef, holders []base.Replica) {
	for _, r := range holders {
		put(&l.outbox(r).lanes[removals].waiting.trims, ref, true)
	}
}

func (l *loop) fileDelete(tomb *meta.Tombstone) {
	for _, r := range tomb.Waiting {
		put(&l.outbox(r).lanes[removals].waiting.deletes, tomb.Topic, r)
	}
}

// tell sends what waits: at most one message a lane and node at a time, so that two of the same lane cannot overtake
// each other.
func (l *loop) tell(now time.Time) {
	for _, b := range l.outboxes {
		for i := range b.lanes {
			p := &b.lanes[i]
			if p.busy || p.waiting.len() == 0 {
				if !p.busy {
					p.fails = 0
				}
				continue
			}
			if now.Before(p.retryAt) {
				l.lookAgain(p.retryAt)
				continue
			}
			l.send(b, lane(i), now)
		}
	}
}

// send makes a message of what waits, as it is committed now, and sends it on a goroutine of its own.
func (l *loop) send(b *outbox, on lane, now time.Time) {
	p := &b.lanes[on]
	p.load(maxOrders)
	orders, err := l.orders(b, &p.flying)
	if err != nil {
		p.giveBack(now)
		l.lookAgain(p.retryAt)
		return
	}
	if orders.Len() == 0 {
		return
	}
	p.busy = true
	l.coord.running.Go(func() {
		ctx, cancel := context.WithTimeout(l.ctx, l.coord.o.TellTimeout)
		defer cancel()
		confirmed, err := l.coord.o.Nodes.Tell(ctx, b.to, orders)
		l.inbox.deliver(func(in *letters) {
			in.told = append(in.told, told{to: b.to, lane: on, sent: now, orders: orders, confirmed: confirmed, err: err})
		})
	})
}

// load moves up to n orders from waiting to flying.
func (p *pile) load(n int) {
	move(&p.flying.segments, p.waiting.segments, &n)
	move(&p.flying.trims, p.waiting.trims, &n)
	move(&p.flying.deletes, p.waiting.deletes, &n)
	move(&p.flying.rolls, p.waiting.rolls, &n)
	if p.waiting.len() == 0 {
		p.waiting = orderSet{} // gives the memory of a large start back
	}
}

func move[K comparable, V any](to *map[K]V, from map[K]V, n *int) {
	for k, v := range from {
		if *n == 0 {
			return
		}
		*n--
		put(to, k, v)
		delete(from, k)
	}
}

// giveBack returns what was under way to what waits, to be sent again later.
func (p *pile) giveBack(now time.Time) { p.defect(p, now) }

// defect moves what was under way to the pile to, which rests before it is sent.
func (p *pile) defect(to *pile, now time.Time) {
	n := p.flying.len()
	move(&to.waiting.segments, p.flying.segments, &n)
	move(&to.waiting.trims, p.flying.trims, &n)
	move(&to.waiting.deletes, p.flying.deletes, &n)
	move(&to.waiting.rolls, p.flying.rolls, &n)
	p.flying = orderSet{}
	to.fails = min(to.fails+1, 6)
	to.retryAt = now.Add(100 * time.Millisecond << (to.fails - 1)) // 100 ms to 3.2 s
}

// orders derives the message from the committed state. What the state does not hold any more needs no telling.
func (l *loop) orders(b *outbox, set *orderSet) (meta.Orders, error) {
	var o meta.Orders
	var vanished []base.SegmentID
	err := l.view(func(s *meta.State) error {
		for id, ref := range set.segments {
			t := s.Topic(ref.Topic)
			seg := find(s, ref, id)
			if seg == nil {
				delete(l.unopened, id)
			}
			if seg == nil || !slices.Contains(seg.Replicas, b.to) {
				vanished = append(vanished, id)
				continue
			}
			o.Assignments = append(o.Assignments, t.Assignment(t.Range(ref.Range), seg, l.coord.o.Limits))
		}
		for ref := range set.trims {
			t := s.Topic(ref.Topic)
			if t == nil || t.Range(ref.Range) == nil {
				delete(set.trims, ref)
				continue
			}
			r := t.Range(ref.Range)
			o.Trims = append(o.Trims, meta.Trim{Ref: ref, Earliest: r.TrimmedTo, Version: r.TrimVersion})
		}
		for id := range set.deletes {
			if s.Tombstone(id) == nil {
				delete(set.deletes, id)
				continue
			}
			o.Deletes = append(o.Deletes, id)
		}
		for id, e := range set.rolls {
			seg := find(s, e.ref, id)
			if seg == nil || seg.State != base.StateActive {
				delete(set.rolls, id)
				continue
			}
			o.Rolls = append(o.Rolls, meta.RollOrder{Ref: e.ref, Segment: id, Epoch: seg.Epoch, Cause: e.cause})
		}
		return nil
	})
	if err != nil {
		return meta.Orders{}, err
	}
	for _, id := range vanished {
		delete(set.segments, id)
	}
	slices.SortFunc(o.Assignments, byOpening)
	return o, nil
}

// byOpening is the order in which a topic's segments were opened: a node seals what came before an active segment when it
// is told of that.
func byOpening(a, b meta.Assignment) int {
	return cmp.Or(slices.Compare(a.Ref.Topic[:], b.Ref.Topic[:]), cmp.Compare(a.Epoch, b.Epoch))
}

// told is a node's answer to one message.
type told struct {
	to        base.Replica
	lane      lane
	sent      time.Time
	orders    meta.Orders
	confirmed []meta.Confirmation
	err       error
}

func (l *loop) onTold(t told, now time.Time) {
	b := l.outbox(t.to)
	p := &b.lanes[t.lane]
	p.busy = false
	epochs := make(map[base.SegmentID]*meta.Assignment, len(t.orders.Assignments))
	for i := range t.orders.Assignments {
		epochs[t.orders.Assignments[i].Segment] = &t.orders.Assignments[i]
	}
	for i := range t.confirmed {
		l.onConfirmation(b, p, &t.confirmed[i], epochs[t.confirmed[i].Segment], now)
	}
	if t.err == nil {
		l.coord.silence.ends(base.Replica{Node: t.to.Node})
		l.coord.silence.ends(t.to)
	}
	switch {
	case errors.Is(t.err, base.CodeNotReplica):
		l.diskGone(b, p)
		return
	case t.err != nil:
		l.coord.o.Logger.Log(l.ctx, l.coord.silence.level(base.Replica{Node: t.to.Node}), "node has not confirmed its orders", "by", string(t.to.Node),
			"segments", len(p.flying.segments), "trims", len(p.flying.trims), "deletes", len(p.flying.deletes), "error", t.err)
		p.giveBack(now)
		return
	case t.lane == urgent, t.lane == removals, t.lane == endings:
		p.fails, p.retryAt = 0, time.Time{}
	case t.lane == background: // a new coordinator's first round takes at most half of a node's time, and of this loop's
		p.fails, p.retryAt = 0, now.Add(min(now.Sub(t.sent), maxRest))
	}
	if p.flying.len() > 0 {
		p.defect(&b.lanes[repeats], now)
	}
}

// diskGone drops what was under way to a disk that its node does not have any more: there is nothing left on it to trim
// or delete, and nobody to lead or seal there.
func (l *loop) diskGone(b *outbox, p *pile) {
	l.coord.o.Logger.Log(l.ctx, l.coord.silence.level(b.to), "orders are for a disk that the node has not", "by", string(b.to.Node), "disk", b.to.Disk.String(), "orders", p.flying.len())
	for topic, replica := range p.flying.deletes {
		l.gone = append(l.gone, meta.TopicGone{Topic: topic, Replica: replica})
	}
	p.flying = orderSet{}
}

func (l *loop) onConfirmation(b *outbox, p *pile, c *meta.Confirmation, asg *meta.Assignment, now time.Time) {
	if c.Status == meta.StatusStateless && asg != nil && asg.From != nil && l.anyFit(asg.From.Replicas) {
		l.recover.stateless(asg, now)
	}
	if c.Status == meta.StatusFailed || c.Status == meta.StatusStateless {
		l.coord.o.Logger.Debug("order not carried out", "node", string(b.to.Node), "range", c.Ref.String(), "segment", c.Segment.String(), "reason", c.Message)
		return // stays under way, and is given back
	}
	switch c.Kind {
	case meta.ConfirmSegment:
		if _, ok := p.flying.segments[c.Segment]; !ok || asg == nil || c.Version < asg.Version {
			return
		}
		delete(p.flying.segments, c.Segment)
		if c.Status == meta.StatusShort {
			l.coord.o.Logger.Debug("replica's copy is short", "node", string(b.to.Node), "range", c.Ref.String(), "segment", c.Segment.String())
		}
		if asg.Leader() == b.to { // a follower takes what its leader sends, and confirms before there is anything
			l.onLeader(c, asg, now)
		}
	case meta.ConfirmTrim:
		delete(p.flying.trims, c.Ref)
	case meta.ConfirmRoll:
		delete(p.flying.rolls, c.Segment)
	case meta.ConfirmDelete:
		if replica, ok := p.flying.deletes[c.Ref.Topic]; ok {
			delete(p.flying.deletes, c.Ref.Topic)
			l.gone = append(l.gone, meta.TopicGone{Topic: c.Ref.Topic, Replica: replica})
		}
	}
}

// onLeader takes a leader's word on its segment: it is open, or it cannot be led there any more.
func (l *loop) onLeader(c *meta.Confirmation, asg *meta.Assignment, now time.Time) {
	switch {
	case c.Status != meta.StatusFenced:
		delete(l.unopened, c.Segment)
		l.recover.opened(c.Segment)
	case l.awaited(c.Ref.Topic):
		l.recover.found(asg, asked, now) // and it is open when its successor is
	case c.Empty:
		delete(l.unopened, c.Segment)
		l.recover.found(asg, nobodys, now)
	default:
		delete(l.unopened, c.Segment)
		l.recover.found(asg, filled, now)
	}
}
