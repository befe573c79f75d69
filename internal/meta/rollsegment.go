package meta

import (
	"slices"

	"github.com/eastguard/eastguard/internal/base"
)

// rollSegments applies each roll on its own: one that lost a race or is refused does not stop the others.
func (a *applier) rollSegments(rolls []RollSegment) Result {
	results := make([]RollResult, len(rolls))
	for i := range rolls {
		results[i] = a.rollSegment(&rolls[i], nil)
	}
	return Result{Rolls: results}
}

// rollSegment applies one roll; forced is what is remembered of it when an operator chose its end.
func (a *applier) rollSegment(cmd *RollSegment, forced *Forced) RollResult {
	s := a.state
	t := s.topics[cmd.Topic]
	if t == nil {
		return RollResult{Code: base.CodeTopicNotFound, Message: "topic " + cmd.Topic.String() + " not found", End: NoEnd}
	}
	r := t.Range(cmd.Range)
	if r == nil {
		return RollResult{Code: base.CodeRangeNotFound, Message: "range " + cmd.Range.String() + " not found", Topic: t, End: NoEnd}
	}
	active := r.Active()
	if active == nil || active.ID != cmd.Segment || active.Epoch != cmd.Epoch {
		return r.lostRoll(t, cmd)
	}
	if cmd.End < active.Base {
		return RollResult{Code: base.CodeInvalidArgument, Message: "the end lies below the segment's base", Topic: t, End: NoEnd, Active: active}
	}
	if err := checkReplicas(cmd.Replicas, cmd.Boots); err != nil {
		return RollResult{Code: err.Code, Message: err.Msg, Topic: t, End: NoEnd, Active: active}
	}

	t = t.clone()
	t.Version++
	t.Epoch++
	r = t.own(r.ID)
	sealed := active.seal(cmd, s.nowMs, t.Version)
	sealed.Forced = forced
	if forced != nil || cmd.Lossy {
		t.Losses = t.Losses.with(Loss{Range: r.ID, Segment: sealed.ID, End: sealed.End, TimeMs: s.nowMs, Forced: forced})
	}
	next := &Segment{
		ID: s.openSegment(), Epoch: t.Epoch, Base: cmd.End, End: NoEnd, State: base.StateActive,
		Replicas: cmd.Replicas, Boots: cmd.Boots, Prev: active.ID, CreatedMs: s.nowMs, LastAppendMs: sealed.LastAppendMs, Version: t.Version,
	}
	r.follow(sealed, cmd.Opened, next)
	s.put(t)
	a.emitSealed(t, r, cmd, sealed, next)
	return RollResult{Topic: t, End: cmd.End, Active: next}
}

func (a *applier) emitSealed(t *Topic, r *Range, cmd *RollSegment, sealed, next *Segment) {
	e := Event{
		Type: EventSegmentSealed, Topic: t.ID, Name: t.Name, Range: r.ID, Segment: sealed.ID, Next: next.ID,
		Cause: cmd.Cause, Offset: cmd.End, Bytes: sealed.Bytes, GapMs: cmd.GapMs, Node: next.Leader().Node,
		Replicas: next.Replicas, Late: cmd.Late, Lost: cmd.Lost, Lossy: cmd.Lossy,
	}
	if sealed.Forced != nil {
		e.Forced, e.Detail = true, "forced: "+sealed.Forced.Reason
	}
	a.emit(e)
}

// lostRoll answers a roll that names what is not active any more with what was committed.
func (r *Range) lostRoll(t *Topic, cmd *RollSegment) RollResult {
	result := RollResult{
		Code: base.CodePreconditionFailed, Message: cmd.Segment.String() + " is not the active segment",
		Topic: t, End: NoEnd, Active: r.Active(),
	}
	if s := r.Segment(cmd.Segment); s != nil {
		result.End = s.End
	} else if i := slices.IndexFunc(r.Segments, func(s *Segment) bool { return s.Prev == cmd.Segment }); i >= 0 {
		result.End = r.Segments[i].Base // it was left out long ago, being empty
	}
	return result
}

// seal is the segment as the command ends it.
func (s *Segment) seal(cmd *RollSegment, nowMs int64, version base.Version) *Segment {
	sealed := *s
	sealed.End, sealed.State, sealed.Cause = cmd.End, base.StateSealed, cmd.Cause
	sealed.SealedMs, sealed.SealVersion, sealed.GapMs = nowMs, version, cmd.GapMs
	sealed.Lossy = cmd.Lossy
	if !sealed.Empty() {
		sealed.Bytes = cmd.Bytes
		// Clamped to grow, and to the log's own time: a leader whose clock runs ahead must not keep its data from
		// expiring, nor may an unknown time (0) make it expire at once.
		last := cmd.LastAppendMs
		if last == 0 {
			last = nowMs
		}
		sealed.LastAppendMs = max(s.LastAppendMs, min(last, nowMs))
	}
	return &sealed
}

// follow puts sealed and next behind the older segments of a range that the caller may change. Of the segments without a
// record only the newest that has been opened is kept in the chain: its replicas hold the producer state that the
// successor starts from. Nothing refers to the others, but disks may hold them.
func (r *Range) follow(sealed *Segment, opened bool, next *Segment) {
	older := r.Segments[:len(r.Segments)-1]
	if sealed.Empty() && !opened {
		r.leaveOut(sealed)
		r.Segments = slices.Concat(older, []*Segment{next})
		return
	}
	if n := len(older); n > 0 && older[n-1].Empty() {
		r.leaveOut(older[n-1])
		older = older[:n-1]
	}
	r.Segments = slices.Concat(older, []*Segment{sealed, next})
}

// leaveOut remembers a segment that is in the chain no more, for a while.
func (r *Range) leaveOut(s *Segment) {
	kept := r.Emptied[max(0, len(r.Emptied)-MaxEmptied+1):]
	r.Emptied = append(slices.Clone(kept), s)
}
