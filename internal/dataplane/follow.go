package dataplane

import (
	"errors"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/replica"
	"github.com/eastguard/eastguard/internal/store"
)

// following is one segment that this node follows. Its leader tells it of the segment, then sends batches; each goes to
// the log as it comes, and what the log has made durable is told back. Nothing is asked for that comes by itself.
//
// A node follows what a committed assignment says that it does, and nothing else: whatever comes for another segment
// waits a little for one (early.go), or is refused.
type following struct {
	seg     base.SegmentID
	epoch   base.Epoch
	memory  bool           // durability=replicated: what is in memory is acked
	refusal replica.Reason // why this process never acks the segment; 0: it may

	replica  *replica.Follower
	opens    *openArrival     // the last open, while this node looks up what it remembers itself; nil when it does not
	waiting  []*appendArrival // for the segment to be open, or for room in the log
	taken    bool             // the first of them has been taken by replica, and not yet by the log
	full     bool             // something was dropped for want of room
	notUntil time.Time        // the log had no room
	fsync    time.Duration    // of the batch that became durable last
}

// newFollowing begins to follow the actor's current segment, or to refuse to.
func (a *actor) newFollowing() *following {
	asg := &a.current
	f := &following{
		seg: asg.Segment, epoch: asg.Epoch, memory: isMemory(asg),
		replica: replica.NewFollower(asg.Base),
	}
	switch {
	case !a.placedHere(asg), a.fromEarlierBoot(asg.Segment):
		f.refusal = replica.ReasonRestarted
	case a.tooLate(asg.Segment):
		f.refusal = replica.ReasonUnassigned
	}
	return f
}

// endFollowing lets go of the segment that was followed: it has ended, or this node has another part in the range.
func (a *actor) endFollowing() {
	f := a.following
	if f == nil {
		return
	}
	a.source.Store(nil)
	a.follows.Store(0)
	a.following = nil
	f.drop(a.plane)
}

// drop lets go of everything that waits.
func (f *following) drop(p *Plane) {
	for _, m := range f.waiting {
		p.held.give(m.size())
	}
	f.waiting, f.taken, f.full = nil, false, false
}

// busy reports whether time alone can change something.
func (f *following) busy() bool { return len(f.waiting) > 0 || f.full }

// onOpenFrom hears from the leader of a segment that it leads it.
func (a *actor) onOpenFrom(m *openArrival, now time.Time) {
	switch f := a.following; {
	case f != nil && m.segment == f.seg && m.epoch == f.epoch:
		a.openFrom(f, m)
		m.done()
	case a.current.Segment == 0 || m.epoch > a.current.Epoch:
		a.keepEarly(m, now)
	default:
		a.refuseFrom(m.from, &m.segmentHead, replica.ReasonFenced)
		m.done()
	}
}

func (a *actor) openFrom(f *following, m *openArrival) {
	switch {
	case f.refusal != 0:
		a.refuseFrom(m.from, &m.segmentHead, f.refusal)
		return
	case !a.leadsFrom(m.from) || m.base != a.current.Base:
		a.refuseFrom(m.from, &m.segmentHead, replica.ReasonFenced)
		return
	}
	if f.replica.State() == replica.Waiting {
		a.openUnopened(f, m)
		return
	}
	if f.replica.Open(m.from) == replica.Refuse {
		a.refuseFrom(m.from, &m.segmentHead, f.replica.Refusal())
		return
	}
	a.settleFollower(f)
}

// leadsFrom reports whether a process is the one that was placed as the current segment's leader.
func (a *actor) leadsFrom(from replica.Source) bool {
	boot := bootOf(a.current.Boots, 0)
	return from.Node == a.current.Leader().Node && (boot == 0 || from.Boot == boot)
}

// opened hears that the segment's beginning is on this disk, or is not going to be.
func (a *actor) opened(f *following, err error, now time.Time) {
	if a.following != f {
		return // the segment has ended meanwhile
	}
	switch {
	case errors.Is(err, base.CodeFenced):
		f.replica.Fence()
	case err != nil:
		a.plane.o.Logger.Warn("segment not followed", "range", a.ref.String(), "segment", f.seg.String(), "error", err)
		f.replica.Failed()
	default:
		f.replica.Opened()
		source := f.replica.Source()
		a.source.Store(&source)
		a.dropEmpty()
	}
	a.settleFollower(f)
	a.pumpFollower(f, now)
}

// onAppendFrom takes one batch, or a commit alone, from the leader of a segment.
func (a *actor) onAppendFrom(m *appendArrival, now time.Time) {
	switch f := a.following; {
	case f != nil && m.segment == f.seg && m.epoch == f.epoch:
		a.followed(f, m, now)
	case a.current.Segment == 0 || m.epoch > a.current.Epoch:
		a.keepEarlyAppend(m, now)
	case m.ended:
		m.done()
	default: // its leader does not know yet that the segment has ended
		a.refuseFrom(m.from, &m.segmentHead, replica.ReasonFenced)
		m.done()
	}
}

func (a *actor) followed(f *following, m *appendArrival, now time.Time) {
	defer m.done()
	switch {
	case m.ended:
		a.leaderEnded(m.from)
		return
	case f.refusal != 0:
		a.refuseFrom(m.from, &m.segmentHead, f.refusal)
		return
	}
	f.replica.Commit(m.from, m.commit)
	switch {
	case len(m.batch) > 0:
		a.takeFollowed(f, m, now)
	case len(f.waiting) == 0:
		f.replica.Probe(m.from, m.first) // what was sent before it may not have arrived
	}
	a.settleFollower(f)
	if len(m.batch) == 0 && m.commit < f.replica.DurableEnd() {
		a.ackAgain(f, m.from)
	}
}

// ackAgain says what is here to a leader whose news are older than that: an ack may have found no room in the connection's
// queue, and a leader that waits for it asks by telling its commit again.
func (a *actor) ackAgain(f *following, to replica.Source) {
	if f.replica.State() != replica.Following || f.replica.Source() != to {
		return
	}
	a.plane.sendAck(to.Node, &ackMessage{
		segmentHead: segmentHead{ref: a.ref, epoch: f.epoch, segment: f.seg}, status: ackDurable, end: f.replica.DurableEnd(), fsync: f.fsync,
	})
}

// takeFollowed takes a batch at once if nothing is before it, or lets it wait.
func (a *actor) takeFollowed(f *following, m *appendArrival, now time.Time) {
	if len(f.waiting) == 0 && !now.Before(f.notUntil) && a.tryFollowed(f, m, now) {
		return
	}
	if f.replica.State() >= replica.Out {
		return
	}
	switch placed := f.taken && len(f.waiting) == 0; {
	case placed: // it is not sent again, and there is at most one such a segment
		a.plane.held.force(m.size())
		f.waiting = append(f.waiting, m)
	case a.plane.held.take(m.size()):
		f.waiting = append(f.waiting, m)
	default:
		f.full = true
		f.replica.Dropped()
	}
	a.watch()
}

// tryFollowed gives a batch to the log, or reports that it has to wait.
func (a *actor) tryFollowed(f *following, m *appendArrival, now time.Time) (handled bool) {
	if !f.taken {
		switch f.replica.Append(m.from, m.header.BaseOffset, m.header.End()) {
		case replica.Take:
		case replica.Early:
			return false
		case replica.Duplicate, replica.Gap:
			return true
		case replica.Refuse:
			a.refuseFrom(m.from, &m.segmentHead, f.replica.Refusal())
			return true
		}
	}
	f.taken = false
	err := a.toLog(f, m, now)
	switch {
	case err == nil:
		if f.memory {
			f.replica.Durable(m.header.End())
		}
	case errors.Is(err, base.CodeBusy):
		f.taken, f.notUntil = true, now.Add(tickEvery/2)
		return false
	case errors.Is(err, base.CodeFenced), errors.Is(err, base.CodeSegmentMoved):
		f.replica.Fence()
	case errors.Is(err, base.CodeShuttingDown):
		f.replica.Failed()
	default:
		a.plane.o.Logger.Warn("batch of a leader not taken", "range", a.ref.String(), "segment", f.seg.String(), "error", err)
		f.replica.Failed()
	}
	return true
}

// toLog hands a batch to the log, whose answer comes as an event of its own.
func (a *actor) toLog(f *following, m *appendArrival, now time.Time) error {
	if a.plane.closing.Load() {
		return base.Errorf(base.CodeShuttingDown, opReplicate, "the broker is stopping")
	}
	w := &written{of: f, at: now}
	err := a.plane.log.Append(f.seg, store.Batch{
		Bytes: m.batch, Header: m.header, AppendMs: m.appendMs, SpanLo: m.spanLo, SpanHi: m.spanHi,
	}, func(end int64, err error) {
		w.end, w.err = end, err
		a.box.post(event{kind: evInbound, in: w})
	})
	if err == nil {
		a.plane.began()
	}
	return err
}

// written is the log's answer for one batch of a leader.
type written struct {
	of  *following
	at  time.Time // when the log was given the batch
	end int64
	err error
}

func (w *written) deliver(a *actor, now time.Time) { a.onWritten(w, now) }

func (w *written) done() {}

// onWritten hears that a batch is on this disk, or is not going to be: then the copy has a hole, and ends before it.
func (a *actor) onWritten(w *written, now time.Time) {
	a.plane.finished()
	f := w.of
	if a.following != f {
		return // what is here of a segment that has ended is for its seal to say
	}
	if w.err != nil {
		a.plane.o.Logger.Warn("batch of a leader not written", "range", a.ref.String(), "segment", f.seg.String(), "error", w.err)
		f.replica.Failed()
	} else {
		f.fsync, f.notUntil = now.Sub(w.at), time.Time{}
		f.replica.Durable(w.end)
	}
	a.settleFollower(f)
	a.pumpFollower(f, now)
}

// pumpFollower gives waiting batches to the log for as long as it takes them.
func (a *actor) pumpFollower(f *following, now time.Time) {
	if now.Before(f.notUntil) || f.replica.State() == replica.Waiting || f.replica.State() == replica.Opening {
		return
	}
	for len(f.waiting) > 0 && a.tryFollowed(f, f.waiting[0], now) {
		a.plane.held.give(f.waiting[0].size())
		f.waiting[0] = nil
		f.waiting = f.waiting[1:]
	}
	if len(f.waiting) == 0 {
		f.waiting = nil
	}
	a.settleFollower(f)
}

// settleFollower carries out what following has come to: publish, then tell the leader.
func (a *actor) settleFollower(f *following) {
	r := f.replica.Ready()
	if r.Publish {
		a.plane.log.Publish(f.seg, r.Commit)
	}
	to := f.replica.Source().Node
	m := ackMessage{segmentHead: segmentHead{ref: a.ref, epoch: f.epoch, segment: f.seg}, end: r.Durable, fsync: f.fsync}
	if r.Lost != 0 {
		m.status, m.reason = ackLost, r.Lost
		a.plane.sendAck(to, &m)
		a.source.Store(nil)
		a.follows.Store(0)
		f.drop(a.plane)
		return
	}
	if r.Ack {
		m.status = ackDurable
		a.plane.sendAck(to, &m)
	}
	if r.Want {
		m.status, m.end = ackWant, r.End
		a.plane.sendAck(to, &m)
	}
}

// tickFollower lets time pass for what waits for room, or for an assignment.
func (a *actor) tickFollower(now time.Time) {
	a.expireEarly(now)
	f := a.following
	if f == nil {
		return
	}
	a.pumpFollower(f, now)
	if f.full && len(f.waiting) == 0 && a.plane.held.hasRoom() {
		f.full = false
		f.replica.Dropped() // what was taken since came before it
		f.replica.Room()
		a.settleFollower(f)
	}
}

// refuseFrom tells a process that this one will never ack a segment to it.
func (a *actor) refuseFrom(to replica.Source, s *segmentHead, why replica.Reason) {
	a.plane.sendAck(to.Node, &ackMessage{segmentHead: *s, status: ackLost, reason: why})
}

// admit holds what a connection does not vouch for against the batch itself: its CRC, and what that does not cover.
func (m *appendArrival) admit() error {
	if len(m.batch) == 0 {
		return nil
	}
	h, err := header.Check(m.batch, 0)
	switch {
	case err != nil:
		return err
	case h.BaseOffset != m.first || h.Epoch != int32(m.epoch):
		return badMessage("append", "a batch at %d of epoch %d in a message for %d, %d", h.BaseOffset, h.Epoch, m.first, m.epoch)
	}
	m.header = h
	return nil
}

// size is what the message is counted as while it waits.
func (m *appendArrival) size() int { return len(m.batch) + earlyOverhead }
