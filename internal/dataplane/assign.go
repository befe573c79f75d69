package dataplane

import (
	"errors"
	"slices"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/rangestate"
	"github.com/eastguard/eastguard/internal/replica"
	"github.com/eastguard/eastguard/internal/store"
)

const opAssign = "take assignment"

// assigned takes what the coordinator says of one segment: from Tell, where c waits for the answer, or as the answer
// to a roll request, with c nil. Either may come first, again, or late.
func (a *actor) assigned(asg meta.Assignment, c *confirm, now time.Time) {
	a.trimmed(asg.Earliest)
	switch {
	case a.phase == gone:
		if c != nil { // removed while the order was on its way: a new actor takes it, unless the topic was deleted
			a.plane.assign(asg, c.reply)
		}
	case asg.State != base.StateActive:
		a.sealed(asg, c, now)
	case asg.Epoch < a.current.Epoch || asg.Segment == a.current.Segment && asg.Version < a.current.Version:
		c.failed(base.Errorf(base.CodeFenced, opAssign, "segment %s of epoch %d is newer", a.current.Segment, a.current.Epoch))
	case asg.Segment == a.current.Segment:
		a.reassigned(asg, c)
	default:
		a.adopt(asg, c, now)
	}
}

// reassigned hears of the segment that is current already: the settings may be new, and an open that had failed is
// tried again.
func (a *actor) reassigned(asg meta.Assignment, c *confirm) {
	a.current = asg
	switch a.phase {
	case opening:
		if c != nil {
			a.confirms = append(a.confirms, *c)
		}
		if a.underway != asg.Segment {
			a.openSegment()
		}
	case interrupted:
		a.confirmFenced(c)
	case leading:
		a.schedule()
		c.held()
	case unassigned:
		c.failed(errNeverOpens(asg.Segment))
	case elsewhere, ended, gone:
		c.held()
	}
}

// adopt makes a new segment the range's current one: the old one ends at its base.
func (a *actor) adopt(asg meta.Assignment, c *confirm, now time.Time) {
	var tail []*batch
	rest := resting{times: times{lastMs: a.rest.lastMs}}
	if a.phase == interrupted {
		rest.cause = base.CauseRecovery
	}
	switch l := a.lead; {
	case l == nil:
	case asg.Prev == l.seg:
		ended, err := a.endLead(asg.Base, asg.Forced, now)
		if err != nil {
			c.failed(err)
			return
		}
		if ended {
			tail, rest = l.replayable(), l.rest(asg.Base)
		} else {
			l.overtaken(a.ref, asg.Leader().Node)
			rest.lastMs = l.lastMs
		}
	case c == nil:
		return // the orders that follow this answer of a roll say first where ours ended
	default:
		l.overtaken(a.ref, asg.Leader().Node)
		rest.lastMs = l.lastMs
	}
	a.plane.adopted(a)
	a.tellEnded()
	a.dropLead()
	a.endFollowing()
	a.current, a.rest = asg, rest
	a.due.Store(0)
	a.requeue(tail)
	if c != nil {
		a.confirms = append(a.confirms, *c)
	}
	switch {
	case asg.Leader().Node != a.plane.o.Node || asg.Leader().Disk != a.plane.o.Disk:
		a.follow()
	case a.fromEarlierBoot(asg.Segment), a.otherStart(&asg), a.tooLate(asg.Segment):
		a.interrupt(now)
	default:
		a.openSegment()
	}
	a.deliverEarly(now)
}

// replayable is the tail of a sealed leader for its successor, less what nobody waits for: that was answered as unknown,
// and may be either.
func (l *lead) replayable() (tail []*batch) {
	for _, b := range l.replica.Tail() {
		if b.done != nil || len(b.twins) > 0 {
			tail = append(tail, b.replayable())
		}
	}
	return tail
}

// overtaken answers the tail of a leader that others have led after: it comes again from the producers, behind what they
// wrote elsewhere since. Where this segment ended without anybody telling, what became of it is unknown.
func (l *lead) overtaken(ref base.RangeRef, leader base.NodeID) {
	err := base.Errorf(base.CodeSegmentMoved, opAppend, "range %s has gone on without segment %s", ref, l.seg).
		WithRedirect(base.Redirect{Node: leader})
	if l.replica.State() != replica.Sealed {
		err = err.WithOutcome(base.Unknown)
	}
	for _, b := range l.replica.Tail() {
		b.answer(AppendResult{}, err)
	}
}

// rest is what a leader sealed at end leaves to its successor.
func (l *lead) rest(end int64) resting {
	l.state.Commit(end)
	l.state.Rollback(end)
	return resting{times: times{lastMs: l.lastMs}, cause: l.replica.Cause(), state: l.state}
}

// requeue puts the tail of a sealed segment before everything that waits. It is counted like the rest, but not
// refused: it was taken once.
func (a *actor) requeue(tail []*batch) {
	for _, b := range tail {
		a.plane.waiting.Add(int64(b.size()))
	}
	a.waiting.unshift(tail)
}

// fromEarlierBoot reports whether this node held the segment before it last started. A leader leads a segment for
// one process start: what was acked then is known to the disk alone, and what was not must not be acked now.
func (a *actor) fromEarlierBoot(seg base.SegmentID) bool {
	info, ok := a.plane.log.Info(seg)
	return ok && info.Boot < a.plane.o.Boot
}

// otherStart reports whether the segment was assigned to another start of this node. Whatever this one finds on the
// disk, that one may have acked more: a leader whose last records were lost silently must not begin the segment anew.
func (a *actor) otherStart(asg *meta.Assignment) bool {
	boot := bootOf(asg.Boots, 0)
	return boot != 0 && boot != a.plane.o.Boot
}

// tooLate reports whether the segment comes to a node that is about to stop, and was not opened yet: it is not begun.
func (a *actor) tooLate(seg base.SegmentID) bool {
	if !a.plane.leaving.Load() {
		return false
	}
	_, opened := a.plane.log.Info(seg)
	return !opened
}

func (a *actor) interrupt(now time.Time) {
	a.become(interrupted)
	for i := range a.confirms {
		a.confirmFenced(&a.confirms[i])
	}
	a.confirms = nil
	if a.waiting.len() > 0 {
		a.askRecovery(now)
	}
}

func (a *actor) confirmFenced(c *confirm) {
	info, listed := a.plane.log.Info(a.current.Segment)
	c.fenced(info.DurableEnd <= info.Base && (listed || !a.otherStart(&a.current)))
}

// follow is the place of a node that does not lead: whoever waits is sent to the leader. The assignment is only heard;
// that the segment is open here is for its leader to see.
func (a *actor) follow() {
	a.moved(a.current.Leader().Node)
	a.following = a.newFollowing()
	a.follows.Store(0)
	if a.following.refusal == 0 {
		a.follows.Store(max(1, a.plane.age(time.Now())))
	}
	for i := range a.confirms {
		a.confirms[i].held()
	}
	a.confirms = nil
}

// placedHere reports whether the segment names this disk as a replica, in this start of the node.
func (a *actor) placedHere(asg *meta.Assignment) bool {
	for i, r := range asg.Replicas {
		if r.Node == a.plane.o.Node && r.Disk == a.plane.o.Disk {
			boot := bootOf(asg.Boots, i)
			return boot == 0 || boot == a.plane.o.Boot
		}
	}
	return false
}

func isMemory(asg *meta.Assignment) bool { return asg.Config.Durability == base.DurabilityReplicated }

// moved sends everybody who waits, and whoever comes, to the node that leads now. What a leader here remembered is of
// no use any more: should the range come back, it will have gone on elsewhere.
func (a *actor) moved(leader base.NodeID) {
	a.leader = leader
	a.rest = resting{times: times{lastMs: a.rest.lastMs}}
	a.rolledAt, a.waited, a.refusal = time.Time{}, 0, nil
	a.become(elsewhere)
	a.failWaiting(a.notHere())
	a.tellLeadWaits(a.notHere())
}

// openSegment makes the end of the old segment and the beginning of the new one durable. Both records go into the
// same log, so that they cost one fsync together.
func (a *actor) openSegment() {
	a.become(opening)
	asg := a.current
	a.underway = asg.Segment
	switch state, seg := a.stateHere(&asg); {
	case state != nil:
		a.makeDurable(asg, state)
	case seg != 0:
		a.loadStateHere(asg, seg)
	default:
		a.loadState(asg)
	}
}

// makeDurable opens the current segment in the log with the state that the range has at its base.
func (a *actor) makeDurable(asg meta.Assignment, state *rangestate.State) {
	state.Expire(asg.OpenedMs)
	spec := a.specOf(state)
	a.openDurably(spec, func(err error, now time.Time) {
		if a.underway != asg.Segment || a.phase != opening {
			return
		}
		a.underway = 0
		switch {
		case errors.Is(err, base.CodeFenced):
			a.neverOpened()
		case err != nil:
			a.openFailed(err)
		default:
			a.beginToLead(state, spec.State, now)
		}
	})
}

// openFailed leaves the segment to be assigned again. Appends wait meanwhile, up to their deadlines.
func (a *actor) openFailed(err error) {
	a.plane.o.Logger.Warn("segment not opened", "range", a.ref.String(), "segment", a.current.Segment.String(), "error", err)
	for i := range a.confirms {
		a.confirms[i].failed(err)
	}
	a.confirms = nil
}

func (a *actor) beginToLead(state *rangestate.State, encoded []byte, now time.Time) {
	asg, o := a.current, &a.plane.o
	a.become(leading)
	lead := a.newLead(state, encoded, now)
	rolled := Rolled{Ref: a.ref, Topic: asg.Name, Opened: asg.Segment, Sealed: asg.Prev, End: asg.Base, Cause: a.rest.cause}
	if !a.rolledAt.IsZero() {
		rolled.Gap = now.Sub(a.rolledAt) + max(0, a.waited)
		a.plane.metrics.gap.Observe(rolled.Gap)
		a.rolledAt, a.waited, a.refusal = time.Time{}, 0, nil
	}
	a.rest = resting{}
	a.takeLead(lead, now)
	for i := range a.confirms {
		a.confirms[i].held()
	}
	a.confirms = nil
	a.schedule()
	a.tellLeadWaits(nil)
	if rolled.Sealed != 0 {
		a.plane.metrics.rolls.Inc()
		o.OnRoll(rolled)
	}
	a.dropEmpty()
	a.pump(now)
}

// dropEmpty drops the segments before the predecessor that were sealed without a record, as each start of a node
// leaves one of an idle range. Metadata does not keep them, so no trim would ever name them; nor can anything be lost.
func (a *actor) dropEmpty() {
	var empty []base.SegmentID
	for _, s := range a.plane.log.Segments(a.ref) {
		if s.SealedEnd == s.Base && s.Segment != a.current.Prev {
			empty = append(empty, s.Segment)
		}
	}
	if len(empty) == 0 {
		return
	}
	done := func(err error) {
		if err != nil { // the next segment to open tries again
			a.plane.o.Logger.Debug("empty segments not dropped", "range", a.ref.String(), "error", err)
		}
	}
	if err := a.plane.log.DropSegments(a.ref, empty, done); err != nil {
		done(err)
	}
}

// sealed hears the committed end of a segment that this node holds. For the one it leads nothing changes but that:
// the successor's assignment is under way.
func (a *actor) sealed(asg meta.Assignment, c *confirm, now time.Time) {
	if l := a.lead; l != nil && l.seg == asg.Segment {
		ended, err := a.endLead(asg.End, asg.Forced, now)
		switch {
		case err != nil:
			c.failed(err)
			return
		case !ended:
			l.overtaken(a.ref, asg.Active)
			a.rest.lastMs = l.lastMs
			a.dropLead()
			a.become(interrupted) // until the successor is here
		}
	}
	if f := a.following; f != nil && f.seg == asg.Segment {
		a.endFollowing()
	}
	a.movedOn(asg)
	a.plane.end(asg, c)
}

// end makes a segment's committed end durable here, and says how the copy stands to it.
func (p *Plane) end(asg meta.Assignment, c *confirm) {
	done := func(err error) {
		info, _ := p.log.Info(asg.Segment)
		switch {
		case err != nil:
			c.failed(err)
		case info.Whole():
			c.held()
		default:
			c.short(info)
			p.foundShort(asg, info)
		}
	}
	_, listed := p.log.Info(asg.Segment)
	var err error
	switch {
	case listed:
		err = p.sealWith(asg.Forced)(asg.Segment, asg.End, asg.Cause, done)
	case asg.Base == asg.End: // never opened here, and nothing to hold
		c.held()
	case !slices.Contains(asg.Replicas, base.Replica{Node: p.o.Node, Disk: p.o.Disk}):
		c.failed(base.Errorf(base.CodeSegmentNotFound, opAssign, "segment %s is not on this node", asg.Segment))
	default:
		err = p.log.HoldSealed(heldSpec(&asg), asg.End, asg.Cause, done)
	}
	if errors.Is(err, base.CodeInvalidArgument) { // nothing is touched: what readers saw here may be all that is left of it
		p.o.Logger.Error("segment is said to end below what readers saw of it here", "range", asg.Ref.String(), "segment", asg.Segment.String(), "end", asg.End, "error", err)
	}
	if err != nil {
		c.failed(err)
	}
}

// sealWith is how the log is told of an end.
func (p *Plane) sealWith(forced bool) func(base.SegmentID, int64, base.Cause, func(error)) error {
	if forced {
		return p.log.ForceSeal
	}
	return p.log.Seal
}

// heldSpec is a segment of which nothing is here. What the range remembered at its base is not known.
func heldSpec(asg *meta.Assignment) store.SegmentSpec {
	spec := store.SegmentSpec{
		Ref: asg.Ref, Segment: asg.Segment, Epoch: asg.Epoch, Base: asg.Base, Keyed: asg.Config.Keyed, CreatedMs: asg.OpenedMs,
		Memory: isMemory(asg),
	}
	if asg.Base > 0 {
		spec.State = rangestate.NewForgetful().Encode()
	}
	return spec
}

// endLead tells the leader where its segment has ended. An end that contradicts what was acked ends the process; unless it
// was forced: then somebody has accepted that, and what this leader knows of the segment is of no use.
func (a *actor) endLead(end int64, forced bool, now time.Time) (ended bool, err error) {
	l := a.lead
	err = l.replica.Sealed(end)
	switch {
	case err == nil:
		a.settle(now)
		return true, nil
	case forced:
		a.plane.o.Logger.Warn("segment ends below what was acked, as somebody has decided", "range", a.ref.String(),
			"segment", l.seg.String(), "end", end, "acked", l.replica.Commit())
		return false, nil
	}
	a.plane.fail(err)
	return false, err
}

// movedOn hears, with the end of the newest segment that this node knows of, that the range goes on elsewhere: nobody
// else will tell, for orders go to those who hold a segment. The tail of a leader here comes again from its producers.
func (a *actor) movedOn(asg meta.Assignment) {
	newer := a.phase == unassigned || a.phase == elsewhere && asg.Epoch >= a.current.Epoch || asg.Segment == a.current.Segment
	if !newer || asg.Active == "" || asg.Active == a.plane.o.Node {
		return
	}
	a.tellEnded()
	if l := a.lead; l != nil {
		l.overtaken(a.ref, asg.Active)
		a.rest.lastMs = l.lastMs
		a.dropLead()
	}
	for i := range a.confirms { // of the same segment, while it was active
		a.confirms[i].failed(base.Errorf(base.CodeFenced, opAssign, "segment %s has been sealed", asg.Segment))
	}
	a.confirms, a.underway = nil, 0
	a.plane.adopted(a)
	a.current = asg
	a.due.Store(0)
	a.moved(asg.Active)
}
