package dataplane

import (
	"context"
	"slices"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/rangestate"
	"github.com/eastguard/eastguard/internal/replica"
)

// RangeStatus is what the plane knows of one range.
type RangeStatus struct {
	Segment   base.SegmentID
	Base      int64
	Epoch     base.Epoch
	Leading   bool  // this node takes appends for it
	Following bool  // it takes them from the leader
	Next      int64 // offset of the next batch
	Commit    int64
	Bytes     int64 // appended to the segment
	Waiting   int   // appends
}

// Range describes one range; false when the plane does not know it.
func (p *Plane) Range(ctx context.Context, ref base.RangeRef) (RangeStatus, bool) {
	s, ok := ask(ctx, p, ref, func(a *actor) RangeStatus {
		s := RangeStatus{Segment: a.current.Segment, Base: a.current.Base, Epoch: a.current.Epoch, Leading: a.phase == leading, Waiting: a.waiting.len()}
		s.Next, s.Commit, s.Bytes = a.rest.next, a.rest.next, a.rest.bytes
		if f := a.following; f != nil {
			s.Next, s.Commit, s.Following = f.replica.End(), f.replica.CommitEnd(), f.replica.State() == replica.Following
		}
		if a.lead != nil {
			s.Next, s.Commit, s.Bytes = a.lead.replica.Next(), a.lead.replica.Commit(), a.lead.bytes
		}
		return s
	})
	return s, ok && s.Segment != 0
}

// LedHere reports whether the range's appends are taken here, or will be: its next segment opens on this node. It costs
// no turn of the range.
func (p *Plane) LedHere(ref base.RangeRef) bool {
	a := p.find(ref)
	return a != nil && a.leads.Load()
}

// ComesHere reports whether the range's records from an offset on come to this node, as a replica, or may once the
// segment that ends there has been sealed.
func (p *Plane) ComesHere(ref base.RangeRef, offset int64) bool {
	a := p.find(ref)
	return a != nil && (a.leads.Load() || p.awaits(a)) && a.base.Load() <= offset
}

// opensWithin is how long a follower's segment may take to be opened by its leader, for whoever waits for its records.
const opensWithin = 2 * time.Second

// awaits reports whether the range's active segment is followed here, or was assigned a moment ago and is about to be.
func (p *Plane) awaits(a *actor) bool {
	since := a.follows.Load()
	return since != 0 && (a.source.Load() != nil || p.age(time.Now())-since < opensWithin.Milliseconds())
}

// Newest is the base of the newest segment of a range that this node was told of; 0 when it was told of none.
func (p *Plane) Newest(ref base.RangeRef) int64 {
	a := p.find(ref)
	if a == nil {
		return 0
	}
	return a.base.Load()
}

// Earliest is the range's earliest offset as committed, as far as this node has been told; false when it was told nothing.
func (p *Plane) Earliest(ref base.RangeRef) (int64, bool) {
	a := p.find(ref)
	if a == nil {
		return 0, false
	}
	return a.earliest.Load(), true
}

// hearsWithin is how long a silent leader still counts as heard.
const hearsWithin = time.Second

// Hears reports whether what is committed in a range is known here at once: it is led by this process, or the leader of
// the segment that is followed here was heard within a second.
func (p *Plane) Hears(ref base.RangeRef) bool {
	a := p.find(ref)
	if a == nil {
		return false
	}
	if a.open.Load() {
		return true
	}
	source := a.source.Load()
	if source == nil {
		return false
	}
	a.askLeader(time.Now())
	l := p.o.Links.DataLink(source.Node)
	return l.Up && l.Boot == source.Boot && time.Since(l.Heard) < hearsWithin
}

// Leads counts the segments that this node leads.
func (p *Plane) Leads() int { return int(p.leads.Load()) }

// ask runs a question in an actor's turn and waits for the answer.
func ask[T any](ctx context.Context, p *Plane, ref base.RangeRef, question func(*actor) T) (answer T, ok bool) {
	a := p.find(ref)
	if a == nil {
		return answer, false
	}
	answers := make(chan T, 1)
	a.do(func(time.Time) { answers <- question(a) })
	select {
	case answer = <-answers:
		return answer, true
	case <-ctx.Done():
		return answer, false
	}
}

// ProducerState is what a range remembers of one idempotent producer, committed batches only.
type ProducerState struct {
	Known   bool
	Epoch   int16
	Batches []rangestate.Appended // oldest first
	Commit  int64
}

// ProducerState asks the leader of a range what it has of a producer.
func (p *Plane) ProducerState(ctx context.Context, ref base.RangeRef, id int64) (ProducerState, error) {
	const op = "producer state"
	type answer struct {
		state ProducerState
		err   error
	}
	got, ok := ask(ctx, p, ref, func(a *actor) answer {
		if a.phase == elsewhere || a.phase == ended {
			return answer{err: a.notHere()}
		}
		if a.phase != leading {
			return answer{err: base.Errorf(base.CodeNoLeader, op, "the range's segment is not open yet")}
		}
		if a.lead == nil && !a.resume(time.Now()) {
			return answer{err: base.Errorf(base.CodeCorruptData, op, "the range's producer state cannot be read")}
		}
		s := ProducerState{Commit: a.lead.replica.Commit()}
		s.Epoch, s.Batches, s.Known = a.lead.state.Window(id)
		return answer{state: s}
	})
	switch {
	case ok:
		return got.state, got.err
	case ctx.Err() != nil:
		return ProducerState{}, base.Wrap(base.CodeTimeout, op, ctx.Err())
	}
	return ProducerState{}, base.Errorf(base.CodeNotReplica, op, "range %s is not on this node", ref)
}

// Deleted reports whether this node was told that a topic is deleted. It forgets after 10,000 of them.
func (p *Plane) Deleted(topic base.TopicID) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	_, ok := p.mu.deleted[topic]
	return ok
}

// Want says that somebody wants to read above the commit that can be proved after a restart: if the range's segment
// is from an earlier boot, its recovery is asked for at once instead of at leisure.
func (p *Plane) Want(ref base.RangeRef) {
	a := p.find(ref)
	if a == nil {
		return
	}
	a.do(func(now time.Time) {
		if a.phase == interrupted {
			a.askRecovery(now)
		}
	})
}

// AwaitLead returns when this node leads the range, or with ctx's error, or when the topic is deleted.
func (p *Plane) AwaitLead(ctx context.Context, ref base.RangeRef) error {
	a, err := p.actorFor(ref, true)
	if err != nil {
		return err
	}
	led := make(chan error, 1)
	a.do(func(now time.Time) {
		switch a.phase {
		case leading:
			led <- nil
		case gone:
			led <- base.Errorf(base.CodeTopicNotFound, opAssign, "range %s was removed", ref)
		case unassigned, opening, interrupted, elsewhere, ended:
			a.leadWaits = append(a.leadWaits, led)
			a.watch()
		}
	})
	select {
	case err := <-led:
		return err
	case <-ctx.Done():
		a.do(func(time.Time) {
			a.leadWaits = slices.DeleteFunc(a.leadWaits, func(c chan error) bool { return c == led })
		})
		return ctx.Err()
	}
}

// tellLeadWaits answers AwaitLead.
func (a *actor) tellLeadWaits(err error) {
	for _, led := range a.leadWaits {
		led <- err
	}
	a.leadWaits = nil
}
