package dataplane

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/store"
)

// Tell carries out a coordinator's orders and returns one confirmation each, in any order, once what it confirms is
// durable. When ctx ends first the confirmations that are there are returned with its error; what is under way goes
// on, and the coordinator tells it again.
func (p *Plane) Tell(ctx context.Context, orders meta.Orders) ([]meta.Confirmation, error) {
	answers := make(chan meta.Confirmation, orders.Len()) // nobody blocks on it, also after Tell has returned
	for _, asg := range orders.Assignments {
		p.assign(asg, func(c meta.Confirmation) { answers <- c })
	}
	for _, t := range orders.Trims {
		p.trim(t, func(c meta.Confirmation) { answers <- c })
	}
	for _, t := range orders.Deletes {
		p.delete(t, func(c meta.Confirmation) { answers <- c })
	}
	for _, r := range orders.Rolls {
		p.orderRoll(r, func(c meta.Confirmation) { answers <- c })
	}
	confirmed := make([]meta.Confirmation, 0, orders.Len())
	for range orders.Len() {
		select {
		case c := <-answers:
			confirmed = append(confirmed, c)
		case <-ctx.Done():
			return confirmed, ctx.Err()
		}
	}
	return confirmed, nil
}

func (p *Plane) assign(asg meta.Assignment, reply func(meta.Confirmation)) {
	c := confirm{version: asg.Version, reply: reply, answer: meta.Confirmation{
		Kind: meta.ConfirmSegment, Ref: asg.Ref, Segment: asg.Segment, Version: asg.Version,
	}}
	a, err := p.actorFor(asg.Ref, false)
	if err != nil {
		c.failed(err)
		return
	}
	a.do(func(now time.Time) { a.assigned(asg, &c, now) })
}

// confirm is one coordinator's call that waits for a segment.
type confirm struct {
	version base.Version
	answer  meta.Confirmation
	reply   func(meta.Confirmation)
}

func (c *confirm) held() { c.give(meta.StatusHeld, "") }

func (c *confirm) failed(err error) { c.give(meta.StatusFailed, err.Error()) }

// short says that the segment's end is kept, and that the copy here does not reach it.
func (c *confirm) short(i store.SegmentInfo) {
	message := fmt.Sprintf("segment %s ends at %d here, %d was committed", i.Segment, i.DurableEnd, i.SealedEnd)
	if i.Damaged {
		message = fmt.Sprintf("segment %s is damaged above %d here", i.Segment, i.DamagedAbove)
	}
	c.give(meta.StatusShort, message)
}

// stateless says that the segment cannot be opened, for nobody was found who knows what the range remembers.
func (c *confirm) stateless(err error) { c.give(meta.StatusStateless, err.Error()) }

// fenced says that the segment is from an earlier boot and will not be led again.
func (c *confirm) fenced(empty bool) {
	if c != nil {
		c.answer.Empty = empty
	}
	c.give(meta.StatusFenced, "")
}

// give answers; on a nil confirm, of an assignment that came as a roll's answer, nobody listens.
func (c *confirm) give(s meta.ConfirmStatus, message string) {
	if c == nil {
		return
	}
	c.answer.Status, c.answer.Message = s, message
	c.reply(c.answer)
}

// trim drops every segment of a range that ends at or below what has been trimmed by a committed decision.
func (p *Plane) trim(t meta.Trim, reply func(meta.Confirmation)) {
	if a := p.find(t.Ref); a != nil {
		a.trimmed(t.Earliest)
	}
	c := confirm{reply: reply, answer: meta.Confirmation{Kind: meta.ConfirmTrim, Ref: t.Ref, Version: t.Version, Offset: t.Earliest}}
	var below []base.SegmentID
	for _, s := range p.log.Segments(t.Ref) {
		switch {
		case s.SealedEnd >= 0 && s.SealedEnd <= t.Earliest:
			below = append(below, s.Segment)
		case s.SealedEnd >= 0 || s.Base >= t.Earliest:
		case s.DurableEnd <= t.Earliest: // too short a copy to be sealed: there is nothing to wait for
			below = append(below, s.Segment)
		default: // its seal is still on its way
			c.failed(base.Errorf(base.CodePreconditionFailed, opAssign, "segment %s is not sealed here yet", s.Segment))
			return
		}
	}
	if len(below) == 0 {
		c.held()
		return
	}
	c.after(p.log.DropSegments, t.Ref, below)
}

// after confirms when the drop is durable.
func (c *confirm) after(drop func(base.RangeRef, []base.SegmentID, func(error)) error, ref base.RangeRef, segs []base.SegmentID) {
	err := drop(ref, segs, c.done)
	if err != nil {
		c.failed(err)
	}
}

func (c *confirm) done(err error) {
	if err != nil {
		c.failed(err)
		return
	}
	c.held()
}

// delete removes a topic: first its actors, then, once none of them can append any more, its files.
func (p *Plane) delete(topic base.TopicID, reply func(meta.Confirmation)) {
	c := confirm{reply: reply, answer: meta.Confirmation{Kind: meta.ConfirmDelete, Ref: base.RangeRef{Topic: topic}}}
	drop := func() {
		if err := p.log.DropTopic(topic, c.done); err != nil {
			c.failed(err)
		}
	}
	actors := p.forget(topic)
	if len(actors) == 0 {
		drop()
		return
	}
	var left atomic.Int64
	left.Store(int64(len(actors)))
	for _, a := range actors {
		a.do(func(time.Time) {
			a.deleted()
			if left.Add(-1) == 0 {
				drop()
			}
		})
	}
}

// forget takes a topic's actors out of the plane and remembers that it was deleted.
func (p *Plane) forget(topic base.TopicID) []*actor {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.mu.deleted) >= maxDeleted {
		clear(p.mu.deleted)
	}
	p.mu.deleted[topic] = struct{}{}
	var actors []*actor
	for ref, a := range p.mu.actors {
		if ref.Topic == topic {
			actors = append(actors, a)
			delete(p.mu.actors, ref)
		}
	}
	return actors
}

// deleted ends the actor.
func (a *actor) deleted() {
	a.abandon(base.Errorf(base.CodeTopicNotFound, opAppend, "topic %s was deleted", a.ref.Topic))
	a.plane.adopted(a)
	a.become(gone)
	a.dropLead()
	a.endFollowing()
	a.forgetEarly(func(*earlyMessage) bool { return true })
	a.due.Store(0)
}

// abandon answers everybody who waits for something here. What is on its way to the disk may still get there, so its
// outcome is unknown.
func (a *actor) abandon(err *base.Error) {
	if a.lead != nil {
		for _, b := range a.lead.replica.Tail() {
			b.answer(AppendResult{}, err.WithOutcome(base.Unknown))
		}
	}
	a.failWaiting(err)
	a.tellLeadWaits(err)
	for _, c := range a.confirms {
		c.failed(err)
	}
	a.confirms = nil
}

// Fence promises, durably, that nothing of the named epochs or below is acked again, and says how far each copy goes.
// It answers what it could; a request without an answer is asked again.
func (p *Plane) Fence(ctx context.Context, requests []meta.FenceRequest) ([]meta.FenceAnswer, error) {
	answers := make(chan meta.FenceAnswer, len(requests))
	for _, r := range requests {
		p.fence(r, func(a meta.FenceAnswer) { answers <- a })
	}
	list := make([]meta.FenceAnswer, 0, len(requests))
	for range requests {
		select {
		case a := <-answers:
			list = append(list, a)
		case <-ctx.Done():
			return list, ctx.Err()
		}
	}
	return list, nil
}

func (p *Plane) fence(r meta.FenceRequest, reply func(meta.FenceAnswer)) {
	answer := meta.FenceAnswer{Segment: r.Segment, Replica: base.Replica{Node: p.o.Node, Disk: p.o.Disk}}
	done := func(f store.FenceAnswer, err error) {
		if err != nil {
			answer.Err = err.Error()
			reply(answer)
			return
		}
		reply(p.extent(answer, r, f))
	}
	ask := func(time.Time) {
		if err := p.log.Fence(r.Ref, r.Epoch, r.Segment, done); err != nil {
			done(store.FenceAnswer{}, err)
		}
	}
	a := p.find(r.Ref)
	if a == nil {
		ask(time.Now())
		return
	}
	a.do(func(now time.Time) {
		// A leader that is fenced stops counting acks before the fence is written: what the answer covers is then
		// all that was ever acked.
		if l := a.lead; l != nil && l.epoch <= r.Epoch {
			l.replica.Freeze(base.CauseLeaderFailure, nil, now)
			a.settle(now)
		}
		if a.phase == opening && a.current.Epoch <= r.Epoch {
			a.neverOpened()
		}
		if f := a.following; f != nil && f.epoch <= r.Epoch {
			f.replica.Fence()
			a.settleFollower(f)
		}
		ask(now)
	})
}

// extent puts the store's answer into the coordinator's words.
func (p *Plane) extent(a meta.FenceAnswer, r meta.FenceRequest, f store.FenceAnswer) meta.FenceAnswer {
	a.Kind, a.End, a.Unbroken = meta.Extent, f.End, f.Unbroken
	if r.Boot != 0 { // the start that was placed: from then on nothing was acked but what this process knows of
		a.Unbroken = r.Boot == p.o.Boot
	}
	switch f.Kind {
	case store.FenceExtent:
	case store.FenceDamaged:
		a.Kind, a.End = meta.Damaged, f.DamagedAbove
	case store.FenceNotMine:
		a.Kind = meta.NotMine
	}
	if !f.Listed {
		// This disk was named and its catalogue never had the segment: it never acked anything of it.
		a.End, a.Unlisted = r.Base, true
		return a
	}
	if info, ok := p.log.Info(r.Segment); ok {
		a.Bytes, a.LastAppendMs = info.Bytes, info.LastAppendMs
	}
	return a
}
