package dataplane

import (
	"context"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/rangestate"
)

const (
	opState = "load range state"

	loadWithin = 2 * time.Second        // after which the coordinator hears that nobody answers
	loadOnce   = time.Second            // one question to one replica
	loadAgain  = 200 * time.Millisecond // the pause before all are asked again
	loadHolds  = 200 * time.Millisecond // how long a coordinator's message waits for it; then it is told again, beside others
)

// stateHere is what the range remembers at a segment's base, from what this node has: the state itself, or the segment here
// that knows it. Neither: it is to be asked for elsewhere.
func (a *actor) stateHere(asg *meta.Assignment) (state *rangestate.State, from base.SegmentID) {
	switch {
	case a.rest.state != nil: // of the predecessor, which was led here until now
		return a.rest.state, 0
	case asg.Base == 0: // no record, nothing to remember
		return rangestate.New(), 0
	}
	seg := asg.Prev
	if asg.From != nil {
		seg = asg.From.Segment
	}
	if b, ok := a.plane.log.Info(seg); ok && b.DurableEnd >= asg.Base {
		return nil, seg
	}
	for _, b := range a.plane.log.Segments(a.ref) { // one that came between was sealed, empty, before it ever opened
		if b.SealedEnd == asg.Base && b.Segment != asg.Segment {
			return nil, b.Segment
		}
	}
	if asg.From != nil {
		return nil, 0
	}
	// Metadata keeps the segment before one that has not opened, so this one was open somewhere before that went. What
	// it remembered there cannot be known: producers from before are to hear so.
	return rangestate.NewForgetful(), 0
}

// readState finds the state of a segment held here at an end that was committed, and runs then with it: at once if it is
// in memory, else in a turn of its own once the disk has answered.
func (a *actor) readState(seg base.SegmentID, end int64, then func(*rangestate.State, error)) {
	p := a.plane
	if state, held := p.log.HeldState(seg); held {
		then(committedAt(state, end), nil)
		return
	}
	ok := p.read(func() {
		state, err := p.stateAt(seg, end)
		a.do(func(time.Time) { then(state, err) })
	})
	if !ok {
		then(nil, base.Errorf(base.CodeShuttingDown, opState, "the broker is stopping"))
	}
}

// stateAt is the state of a segment held here at an end that was committed. It may wait for the disk.
func (p *Plane) stateAt(seg base.SegmentID, end int64) (*rangestate.State, error) {
	state, err := p.log.RangeState(seg)
	if err != nil {
		return nil, err
	}
	return committedAt(state, end), nil
}

// committedAt is a segment's state at its committed end.
func committedAt(state *rangestate.State, end int64) *rangestate.State {
	state.Rollback(end)
	if state.Committed() > end { // the end was forced below what had been acked
		return rangestate.NewForgetful()
	}
	state.Commit(end)
	return state
}

// StateAt answers the leader of a successor on another node: what the range remembers at the committed end of a segment
// that is held here, encoded.
func (p *Plane) StateAt(ref base.RangeRef, seg base.SegmentID, end int64) ([]byte, error) {
	info, ok := p.log.Info(seg)
	switch {
	case !ok || info.Ref != ref:
		return nil, base.Errorf(base.CodeNotReplica, opState, "segment %s of range %s is not on this node", seg, ref)
	case info.DurableEnd < end:
		return nil, base.Errorf(base.CodeBehind, opState, "segment %s ends at %d here, not at %d", seg, info.DurableEnd, end)
	}
	state, err := p.stateAt(seg, end)
	if err != nil {
		return nil, err
	}
	return state.Encode(), nil
}

// loadState asks the replicas of the segment before for the state, on a goroutine of a bounded pool.
func (a *actor) loadState(asg meta.Assignment) {
	slow := a.watchLoad(asg)
	ok := a.plane.spawn(a.plane.loads, func(ctx context.Context) {
		state, err := a.plane.fetchState(ctx, asg)
		a.do(func(time.Time) {
			slow.Stop()
			a.loaded(asg, state, err, a.openStateless)
		})
	})
	if !ok {
		slow.Stop()
		a.underway = 0
		a.openFailed(base.Errorf(base.CodeBusy, opState, "%d states are being loaded", maxLoads))
	}
}

// loadStateHere does the same with a segment that is held here.
func (a *actor) loadStateHere(asg meta.Assignment, seg base.SegmentID) {
	slow := a.watchLoad(asg)
	a.readState(seg, asg.Base, func(state *rangestate.State, err error) {
		slow.Stop()
		a.loaded(asg, state, err, a.openFailed)
	})
}

// watchLoad looks after those who wait for a state. Appends do meanwhile too, up to their deadlines.
func (a *actor) watchLoad(asg meta.Assignment) *time.Timer {
	return time.AfterFunc(loadHolds, func() { a.do(func(time.Time) { a.loadsSlowly(asg) }) })
}

// loaded opens the segment that the state was loaded for, unless a newer one has overtaken it.
func (a *actor) loaded(asg meta.Assignment, state *rangestate.State, err error, failed func(error)) {
	switch {
	case a.phase != opening || a.underway != asg.Segment:
	case err != nil:
		a.underway = 0
		failed(err)
	default:
		a.makeDurable(asg, state)
	}
}

// loadsSlowly lets those go who wait for a segment whose state is still being asked for: behind them may be others.
func (a *actor) loadsSlowly(asg meta.Assignment) {
	if a.phase != opening || a.underway != asg.Segment {
		return
	}
	err := base.Errorf(base.CodeBusy, opState, "the state of range %s is being loaded", a.ref)
	for i := range a.confirms {
		a.confirms[i].failed(err)
	}
	a.confirms = nil
}

func errNeverOpens(seg base.SegmentID) error {
	return base.Errorf(base.CodeFenced, opAssign, "segment %s was fenced before it had opened", seg)
}

// neverOpened gives up a segment that is fenced before it was open. If it goes on elsewhere, nobody will tell this node,
// which holds nothing of it: who waits gets an answer as from a range that is not here.
func (a *actor) neverOpened() {
	for i := range a.confirms {
		a.confirms[i].failed(errNeverOpens(a.current.Segment))
	}
	a.confirms, a.underway = nil, 0
	a.become(unassigned)
	a.watch()
}

// openStateless is openFailed for want of the range's state.
func (a *actor) openStateless(err error) {
	a.plane.o.Logger.Warn("segment not opened: nobody was found who knows what its range remembers",
		"range", a.ref.String(), "segment", a.current.Segment.String(), "error", err)
	for i := range a.confirms {
		a.confirms[i].stateless(err)
	}
	a.confirms = nil
}

// fetchState asks one replica after the other, again and again for a while.
func (p *Plane) fetchState(ctx context.Context, asg meta.Assignment) (*rangestate.State, error) {
	ctx, cancel := context.WithTimeout(ctx, loadWithin)
	defer cancel()
	err := error(base.Errorf(base.CodeUnreachable, opState, "segment %s has no replica to ask", asg.From.Segment))
	for {
		for _, from := range asg.From.Replicas {
			var state *rangestate.State
			if state, err = p.fetchStateFrom(ctx, from, asg); err == nil {
				return state, nil
			}
		}
		pause := time.NewTimer(loadAgain)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil, err
		}
	}
}

func (p *Plane) fetchStateFrom(ctx context.Context, from base.Replica, asg meta.Assignment) (*rangestate.State, error) {
	if from.Node == p.o.Node {
		return nil, base.Errorf(base.CodeNotReplica, opState, "segment %s is not whole on this node", asg.From.Segment)
	}
	ctx, cancel := context.WithTimeout(ctx, loadOnce)
	defer cancel()
	b, err := p.o.LoadState(ctx, from, asg.Ref, asg.From.Segment, asg.Base)
	if err != nil {
		return nil, err
	}
	return rangestate.Decode(b)
}
