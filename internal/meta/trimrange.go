package meta

import (
	"slices"

	"github.com/eastguard/eastguard/internal/base"
)

func (a *applier) trimRanges(trims []TrimRange) Result {
	results := make([]TrimResult, len(trims))
	for i := range trims {
		results[i] = a.trimRange(&trims[i])
	}
	return Result{Trims: results}
}

// trimRange drops an oldest-first prefix of sealed segments. A segment that is not in the chain was trimmed before
// (ids are never used again), so a repeated trim changes nothing.
func (a *applier) trimRange(cmd *TrimRange) TrimResult {
	s := a.state
	t := s.topics[cmd.Topic]
	if t == nil {
		return TrimResult{Code: base.CodeTopicNotFound, Message: "topic " + cmd.Topic.String() + " not found"}
	}
	r := t.Range(cmd.Range)
	if r == nil {
		return TrimResult{Code: base.CodeRangeNotFound, Message: "range " + cmd.Range.String() + " not found"}
	}
	i := slices.IndexFunc(r.Segments, func(seg *Segment) bool { return seg.ID == cmd.Through })
	if i < 0 {
		return TrimResult{TrimmedTo: r.TrimmedTo}
	}
	through := r.Segments[i]
	if through.State != base.StateSealed {
		return TrimResult{Code: base.CodePreconditionFailed, Message: cmd.Through.String() + " is still active", TrimmedTo: r.TrimmedTo}
	}
	result := TrimResult{Segments: i + 1, TrimmedTo: through.End}
	for _, seg := range r.Segments[:i+1] {
		result.Bytes += seg.Bytes
	}
	gone := holdersOf(slices.Concat(r.Segments[:i+1], r.Emptied)) // one too many is told is no harm
	t = t.clone()
	t.Version++
	r = t.own(r.ID)
	r.Segments = slices.Clone(r.Segments[i+1:])
	// Not those that lie at the new beginning: a copy of one may have a tail above it, which no trim drops.
	r.Emptied = slices.DeleteFunc(slices.Clone(r.Emptied), func(s *Segment) bool { return s.End < through.End })
	r.TrimmedTo, r.TrimVersion = through.End, t.Version
	s.put(t)
	a.emit(Event{
		Type: EventRangeTrimmed, Topic: t.ID, Name: t.Name, Range: r.ID, Segment: through.ID,
		Cause: cmd.Cause, Offset: through.End, Bytes: result.Bytes, Holders: gone,
	})
	return result
}
