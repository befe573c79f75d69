package dataplane

import (
	"bytes"
	"errors"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/rangestate"
	"github.com/eastguard/eastguard/internal/replica"
	"github.com/eastguard/eastguard/internal/store"
)

const opAppend = "append"

// Append takes one batch. It does not block: the checks that need the batch's bytes run on the caller's goroutine,
// the rest in the range's turn. done is called exactly once, with the result once every replica holds the batch on
// stable storage, or with a typed error by the request's deadline.
func (p *Plane) Append(req AppendRequest, done func(AppendResult, error)) {
	h, err := header.Admit(req.Bytes, p.o.MaxBatchBytes)
	if err != nil {
		p.metrics.refused.Inc()
		done(AppendResult{}, err)
		return
	}
	now := time.Now()
	if limit := now.Add(p.o.MaxWait); req.Deadline.IsZero() || req.Deadline.After(limit) {
		req.Deadline = limit
	}
	b := &batch{AppendRequest: req, header: h, arrived: now, done: done}
	if err := p.post(req.Ref, event{kind: evAppend, batch: b}); err != nil {
		b.answer(AppendResult{}, err)
	}
}

func (a *actor) onAppend(b *batch, now time.Time) {
	switch a.phase {
	case elsewhere, ended:
		b.answer(AppendResult{}, a.notHere())
		return
	case gone:
		b.answer(AppendResult{}, base.Errorf(base.CodeTopicNotFound, opAppend, "range %s is not on this node any more", a.ref))
		return
	case unassigned, opening, leading, interrupted:
	}
	if a.waiting.len() == 0 && a.admits(b, now) {
		a.take(b, now)
		a.sendOut(now)
		a.watch()
		return
	}
	a.wait(b, now)
}

// wait lets an append wait for its turn, for credit or for a leader: bounded in bytes over the whole node.
func (a *actor) wait(b *batch, now time.Time) {
	if err := a.plane.reserve(b.size()); err != nil {
		b.answer(AppendResult{}, err)
		return
	}
	a.waiting.push(b)
	a.watch()
	if a.phase == interrupted {
		a.askRecovery(now)
	}
}

// pump takes waiting appends for as long as the leader admits them.
func (a *actor) pump(now time.Time) {
	took := false
	for a.waiting.len() > 0 && a.admits(a.waiting.front(), now) {
		b := a.waiting.pop()
		a.plane.unreserve(b.size())
		a.take(b, now)
		took = true
	}
	if took {
		a.sendOut(now)
	}
}

// sendOut carries out what appends alone have come to. Without followers nothing does before this disk has answered.
func (a *actor) sendOut(now time.Time) {
	if l := a.lead; l != nil && (len(l.followers) > 0 || l.memory) {
		a.settle(now)
	}
}

// admits reports whether b may be appended now. A batch that would take a segment past its size limit starts the
// roll instead.
func (a *actor) admits(b *batch, now time.Time) bool {
	if a.phase != leading || a.plane.closing.Load() {
		return false
	}
	if now.Before(a.busyUntil) {
		return false
	}
	if a.lead == nil && !a.resume(now) {
		return false
	}
	l := a.lead
	if l.replica.State() != replica.Leading {
		return false
	}
	if l.replica.FreezeIfLost(now) {
		a.settle(now)
		return false
	}
	if l.bytes > 0 && l.bytes+int64(b.size()) > a.current.Config.SegmentBytes {
		a.startRoll(base.CauseDataPressure, now)
		return false
	}
	return l.replica.Room(b.size()) && a.plane.hasCredit(a, b.size())
}

// take gives a batch its offset and hands it to the log, or answers it at once: a duplicate, a gap, a fenced or
// unknown producer.
func (a *actor) take(b *batch, now time.Time) {
	l := a.lead
	l.usedAt = now
	switch v := l.state.Check(b.header); v.Kind {
	case rangestate.Accept:
	case rangestate.Duplicate:
		a.duplicate(b, v)
		return
	case rangestate.OutOfOrder, rangestate.UnknownProducer, rangestate.ProducerFenced:
		a.plane.metrics.refused.Inc()
		b.answer(AppendResult{}, verdictError(v, b.header))
		return
	}

	first := l.replica.Next()
	b.lead = l
	b.AppendResult = AppendResult{Base: first, AppendMs: l.appendMs(now), Segment: l.seg, Epoch: l.epoch}
	header.Patch(b.Bytes, first, int32(l.epoch))
	b.header.BaseOffset, b.header.Epoch = first, int32(l.epoch)
	err := a.plane.log.Append(l.seg, store.Batch{
		Bytes: b.Bytes, Header: b.header, AppendMs: b.AppendMs, SpanLo: b.SpanLo, SpanHi: b.SpanHi,
	}, func(end int64, err error) { a.box.post(event{kind: evDurable, batch: b, end: end, err: err}) })
	if err != nil { // never entered the log: its offset goes to the next one
		b.lead, b.AppendResult = nil, AppendResult{}
		a.refused(b, err, now)
		return
	}
	a.plane.began()
	a.plane.lend(l, b.size())
	l.replica.Append(int(b.header.Records), b.size(), b)
	if l.memory {
		l.replica.LocalDurable(l.replica.Next(), now)
	}
	a.traceTaken(b, now)
	l.state.Append(b.header, first, b.AppendMs)
	l.bytes += int64(b.size())
	if l.appended(b.AppendMs, now) { // now the segment has an age, and may come of it before anything else is due
		a.schedule()
	}
}

// refused deals with a batch that the log did not take. A log that is full for the moment is waited for: to refuse this
// batch and take its followers would only make them out of order. A segment that takes no more gets a successor, on
// another node where this disk is what refuses. What is the batch's own fault, or cannot be helped, is the client's to hear.
func (a *actor) refused(b *batch, err error, now time.Time) {
	own := []base.NodeID{a.plane.o.Node}
	switch {
	case errors.Is(err, base.CodeBusy) && a.plane.waiting.Load() < a.plane.o.WaitingBytes:
		a.busyUntil = now.Add(tickEvery / 2)
	case errors.Is(err, base.CodeBatchTooLarge) && a.lead.bytes > 0:
		a.startRoll(base.CauseDataPressure, now) // the file format's own limit
	case errors.Is(err, base.CodeFenced), errors.Is(err, base.CodeSegmentMoved):
		a.lead.replica.Freeze(base.CauseLeaderFailure, nil, now)
		a.settle(now)
	case errors.Is(err, base.CodeBatchTooLarge), errors.Is(err, base.CodeShuttingDown), errors.Is(err, base.CodeBusy):
		b.answer(AppendResult{}, err)
		return
	case errors.Is(err, base.CodeDiskFull):
		if !a.judgeLate(own, now) { // nobody could take its place
			b.answer(AppendResult{}, err)
			return
		}
		a.settle(now)
	default:
		a.plane.o.Logger.Warn("batch not taken by the log; its segment ends here", "range", a.ref.String(), "segment", a.lead.seg.String(), "error", err)
		a.lead.replica.Freeze(base.CauseReplicaFailure, own, now)
		a.settle(now)
	}
	a.requeue([]*batch{b})
	a.watch()
}

// duplicate answers a batch that the range has: at once when it is committed, else together with the original.
func (a *actor) duplicate(b *batch, v rangestate.Verdict) {
	a.plane.metrics.duplicates.Inc()
	if orig, ok := a.lead.replica.Find(v.Base); ok {
		if b.done != nil {
			orig.twins = append(orig.twins, twin{b.done, b.Deadline})
		}
		orig.twins = append(orig.twins, b.twins...)
		b.done, b.twins = nil, nil
		return
	}
	r := AppendResult{Base: v.Base, AppendMs: v.AppendMs, Duplicate: true}
	if r.Segment, r.Epoch = a.segmentWith(v.Base); r.Segment == a.lead.seg {
		r.Replicas = a.lead.nodes
	}
	b.answer(r, nil)
}

// segmentWith finds the segment that holds a committed offset, among those that are on this node; 0 for one that is not.
func (a *actor) segmentWith(offset int64) (base.SegmentID, base.Epoch) {
	if offset >= a.current.Base {
		return a.current.Segment, a.current.Epoch
	}
	for _, s := range a.plane.log.Segments(a.ref) {
		if s.Base <= offset && offset < s.SealedEnd {
			return s.Segment, s.Epoch
		}
	}
	return 0, 0
}

func verdictError(v rangestate.Verdict, h header.Header) error {
	switch v.Kind {
	case rangestate.OutOfOrder:
		return base.Errorf(base.CodeOutOfOrder, opAppend, "producer %d sent sequence %d before an earlier one", h.ProducerID, h.BaseSequence)
	case rangestate.ProducerFenced:
		return base.Errorf(base.CodeProducerFenced, opAppend, "producer %d has moved on from epoch %d", h.ProducerID, h.ProducerEpoch)
	case rangestate.Accept, rangestate.Duplicate, rangestate.UnknownProducer:
	}
	return base.Errorf(base.CodeUnknownProducer, opAppend, "the range does not know producer %d and its sequence does not begin at 0", h.ProducerID)
}

// onDurable is this disk's own ack, or its refusal: then the segment has a hole, takes no more and ends below it. What was
// not written goes on in the successor, or from its producer to where that is. A disk that failed may have some of it all
// the same: that lies above the committed end, which is what decides.
func (a *actor) onDurable(b *batch, end int64, err error, now time.Time) {
	a.plane.finished()
	l := b.lead
	if l != a.lead {
		return // sealed meanwhile: what became of the batch was decided with the committed end
	}
	if err != nil {
		a.plane.o.Logger.Warn("batch not written; its segment ends here", "range", a.ref.String(), "segment", l.seg.String(), "error", err)
		l.replica.Freeze(base.CauseReplicaFailure, []base.NodeID{a.plane.o.Node}, now)
		a.settle(now)
		return
	}
	a.busyUntil = time.Time{} // what has left the log has made room in it
	if b.trace != nil {
		b.trace.FsyncUs = b.sinceArrival(now)
	}
	l.replica.LocalDurable(end, now)
	a.settle(now)
	a.pump(now)
}

// replayable is a batch of a sealed segment's tail, made anew for the successor. The store may still be writing or
// serving the old bytes, so the new header goes into a copy; and the old batch's disk may still answer, so it stays
// what it was, without anybody to tell.
func (b *batch) replayable() *batch {
	c := &batch{AppendRequest: b.AppendRequest, header: b.header, arrived: b.arrived, done: b.done, twins: b.twins}
	c.Bytes = bytes.Clone(b.Bytes)
	b.done, b.twins = nil, nil
	return c
}
