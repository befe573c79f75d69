package planner

import (
	"math"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
)

// Never is the due time of what is not due at all.
const Never int64 = math.MaxInt64

// Opened tells whether a segment's successor may be relied on: some replica has confirmed that it is open.
type Opened func(base.SegmentID) bool

// Trims lists what retention drops of a topic now: of each range the oldest sealed segments that are over age, or
// over the range's bytes. The segment before one that has not opened stays, since the successor starts from its state.
func Trims(t *meta.Topic, nowMs int64, opened Opened) []meta.TrimRange {
	var trims []meta.TrimRange
	for _, r := range t.Ranges {
		var through *meta.Segment
		cause := base.CauseAge
		spare := spareBytes(t, r)
		for i, s := range r.Segments {
			if s.State != base.StateSealed || i+1 == len(r.Segments) || !opened(r.Segments[i+1].ID) {
				break
			}
			aged, fat := dueMs(t, s) <= nowMs, s.Bytes <= spare && !s.Empty()
			if !aged && !fat {
				break
			}
			if !aged {
				cause = base.CauseDataPressure
			}
			through = s
			spare -= s.Bytes
		}
		if through != nil {
			trims = append(trims, meta.TrimRange{Topic: t.ID, Range: r.ID, Through: through.ID, Cause: cause})
		}
	}
	return trims
}

// TrimDue is the next time at which Trims may have something to do: at or before now when it has already.
func TrimDue(t *meta.Topic) int64 {
	due := Never
	for _, r := range t.Ranges {
		if len(r.Segments) < 2 {
			continue
		}
		oldest := r.Segments[0]
		due = min(due, dueMs(t, oldest))
		if oldest.Bytes <= spareBytes(t, r) && !oldest.Empty() {
			return 0
		}
	}
	return due
}

// dueMs is when a sealed segment is over age. One without a record never is: it goes with what follows it.
func dueMs(t *meta.Topic, s *meta.Segment) int64 {
	if t.Config.Retention == 0 || s.State != base.StateSealed || s.Empty() {
		return Never
	}
	return s.LastAppendMs + t.Config.Retention.Milliseconds()
}

// spareBytes is how much the sealed segments of a range hold above the topic's limit. What the active one holds is
// not counted: it is not known here, and at most one segment's size.
func spareBytes(t *meta.Topic, r *meta.Range) int64 {
	if t.Config.RetentionBytes == 0 {
		return -1
	}
	var sum int64
	for _, s := range r.Segments {
		sum += s.Bytes
	}
	return sum - t.Config.RetentionBytes
}
