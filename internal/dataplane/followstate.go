package dataplane

import (
	"time"

	"github.com/eastguard/eastguard/internal/rangestate"
	"github.com/eastguard/eastguard/internal/store"
)

// stateToFollow is what the range remembers at the base of a segment that another node leads: from what is here, if it is
// the same that the leader has, else from the leader. nil without an error: the leader is to send it.
func (a *actor) stateToFollow(m *openArrival) (*rangestate.State, error) {
	if m.hasState {
		return sentState(m)
	}
	own := a.ownState()
	if own == nil {
		return nil, nil
	}
	own.Expire(m.openedMs)
	if own.Checksum() != m.checksum {
		return nil, nil
	}
	return own, nil
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

// ownState is the state at the current segment's base as this node can compute it, nil when it cannot.
func (a *actor) ownState() *rangestate.State {
	asg := &a.current
	if asg.Base == 0 {
		return rangestate.New()
	}
	prev, ok := a.plane.log.Info(asg.Prev)
	if !ok || prev.Ref != a.ref || prev.DurableEnd < asg.Base || prev.Damaged {
		return nil
	}
	state, err := a.plane.stateAt(asg.Prev, asg.Base)
	if err != nil {
		a.plane.o.Logger.Warn("range state not readable", "range", a.ref.String(), "segment", asg.Prev.String(), "error", err)
		return nil
	}
	return state
}

// openCopy makes the current segment durable here, as one that is followed.
func (a *actor) openCopy(f *following, state *rangestate.State) {
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
