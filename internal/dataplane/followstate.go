package dataplane

import (
	"time"

	"github.com/eastguard/eastguard/internal/rangestate"
	"github.com/eastguard/eastguard/internal/replica"
	"github.com/eastguard/eastguard/internal/store"
)

// openUnopened opens a segment that another node leads, with what the range remembers at its base: from what is here, if it
// is the same that the leader has, else from the leader, which is asked to send it. While what is here is read, a later
// open takes the place of this one, and one that brings the state needs no more of it.
func (a *actor) openUnopened(f *following, m *openArrival) {
	if m.hasState {
		f.opens = nil
		state, err := sentState(m)
		a.openCopy(f, m, state, err)
		return
	}
	looks := f.opens != nil
	f.opens = m
	if !looks {
		a.lookUpState(f)
	}
}

// sentState is the state that came with an open; nothing was sent of an empty one.
func sentState(m *openArrival) (*rangestate.State, error) {
	state := rangestate.New()
	if len(m.state) > 0 {
		var err error
		if state, err = rangestate.Decode(m.state); err != nil {
			return nil, err
		}
	}
	if state.Checksum() != m.checksum {
		return nil, badMessage("open", "the state's checksum is %#x, %#x is said", state.Checksum(), m.checksum)
	}
	return state, nil
}

// lookUpState finds the state at the current segment's base as this node can compute it.
func (a *actor) lookUpState(f *following) {
	asg := &a.current
	if asg.Base == 0 {
		a.lookedUp(f, rangestate.New())
		return
	}
	prev, ok := a.plane.log.Info(asg.Prev)
	if !ok || prev.Ref != a.ref || prev.DurableEnd < asg.Base || prev.Damaged {
		a.lookedUp(f, nil)
		return
	}
	a.readState(prev.Segment, asg.Base, func(state *rangestate.State, err error) {
		if err != nil {
			a.plane.o.Logger.Warn("range state not readable", "range", a.ref.String(), "segment", prev.Segment.String(), "error", err)
			state = nil
		}
		a.lookedUp(f, state)
	})
}

// lookedUp goes on with what this node remembers; nil: it does not.
func (a *actor) lookedUp(f *following, own *rangestate.State) {
	m := f.opens
	if a.following != f || m == nil {
		return // the segment has ended meanwhile, or the leader's state has come
	}
	f.opens = nil
	if own != nil {
		own.Expire(m.openedMs)
	}
	switch {
	case f.replica.State() != replica.Waiting: // fenced meanwhile
		a.refuseFrom(m.from, &m.segmentHead, f.replica.Refusal())
	case own == nil || own.Checksum() != m.checksum:
		a.plane.sendAck(m.from.Node, &ackMessage{segmentHead: m.segmentHead, status: ackState, end: a.current.Base})
	default:
		a.openCopy(f, m, own, nil)
	}
}

// openCopy makes the current segment durable here, as one that is followed.
func (a *actor) openCopy(f *following, m *openArrival, state *rangestate.State, err error) {
	if err != nil {
		a.plane.o.Logger.Warn("segment not followed", "range", a.ref.String(), "segment", f.seg.String(), "error", err)
		f.replica.Failed()
		a.refuseFrom(m.from, &m.segmentHead, replica.ReasonFailed)
		return
	}
	f.replica.Open(m.from)
	a.openDurably(a.specOf(state), func(err error, now time.Time) { a.opened(f, err, now) })
}

// specOf is the current segment as the log is to hold it, with the state that the range has at its base.
func (a *actor) specOf(state *rangestate.State) store.SegmentSpec {
	asg := &a.current
	spec := store.SegmentSpec{
		Ref: a.ref, Segment: asg.Segment, Epoch: asg.Epoch, Base: asg.Base, Keyed: asg.Config.Keyed, CreatedMs: asg.OpenedMs,
		LeaderHere: asg.Leader().Node == a.plane.o.Node, Memory: isMemory(asg),
	}
	if !state.Empty() {
		spec.State = state.Encode()
	}
	return spec
}

// openDurably makes the end of the segment before and the beginning of the current one durable, both in one fsync, and
// then runs then in the actor's turn.
func (a *actor) openDurably(spec store.SegmentSpec, then func(err error, now time.Time)) {
	asg := a.current
	left := 1 // records to wait for; counted in the actor's turn
	var failed error
	done := func(err error) {
		a.do(func(now time.Time) {
			if err != nil {
				failed = err
			}
			if left--; left == 0 {
				then(failed, now)
			}
		})
	}
	if prev, ok := a.plane.log.Info(asg.Prev); ok && prev.SealedEnd < 0 && asg.Prev != 0 {
		left++
		if err := a.plane.sealWith(asg.Forced)(asg.Prev, asg.Base, a.rest.cause, done); err != nil {
			done(err)
		}
	}
	if err := a.plane.log.OpenSegment(spec, done); err != nil {
		done(err)
	}
}
