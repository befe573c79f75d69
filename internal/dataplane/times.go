package dataplane

import "time"

// times are the two clocks of a segment that is led here. What is written down comes from the wall clock, which may
// jump; what is waited for is measured by the monotonic one, which does not.
//
// Promised is this. Append times do not fall within a segment, so after the clock was ahead, and was set right, those
// of the segment stay where they are until the clock has caught up or the segment ends. It ends by age and idleness as
// if nothing had happened, and its successor begins at most maxAhead before the clock. What retention goes by is held
// against the log's own time when the segment is sealed (meta.RollSegment), so nothing is kept or deleted by a time in
// the future.
type times struct {
	firstAt, lastAt time.Time // when the first and the last batch were appended, monotonic; zero while empty
	lastMs          int64     // append time of the last batch, here or before the segment began
}

// maxAhead is how far behind append times the clock may be for a successor still to go on from them: small corrections
// do not make times fall from one segment to the next.
const maxAhead = 10 * time.Second

// successorOf is what the segment that follows begins with.
func successorOf(t times, now time.Time) times {
	return times{lastMs: min(t.lastMs, now.Add(maxAhead).UnixMilli())}
}

// appendMs is the append time of a batch that comes now.
func (t *times) appendMs(now time.Time) int64 { return max(now.UnixMilli(), t.lastMs) }

// appended notes a batch and reports whether it is the segment's first.
func (t *times) appended(ms int64, now time.Time) (first bool) {
	first = t.firstAt.IsZero()
	if first {
		t.firstAt = now
	}
	t.lastAt, t.lastMs = now, ms
	return first
}

// age is how long the plane has lived at t, in milliseconds, by the monotonic clock.
func (p *Plane) age(t time.Time) int64 { return t.Sub(p.born).Milliseconds() }
