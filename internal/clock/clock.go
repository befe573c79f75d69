// Package clock is the one place where wall time enters stored data.
//
// Tests that want virtual time run in testing/synctest, where time.Now is virtual already; tests that want a
// wall clock which jumps give [New] a function of their own. Durations are measured with time.Since, which is
// monotonic and needs no help.
package clock

import (
	"sync/atomic"
	"time"
)

// Ms is t as milliseconds since 1970, the form in which times are stored and sent.
func Ms(t time.Time) int64 { return t.UnixMilli() }

// FromMs is the inverse of [Ms], in UTC.
func FromMs(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// Clock is a wall clock that never goes back: what was stored later never carries an earlier time, whatever an
// administrator or NTP does to the machine's clock. It stands still until the machine's clock has caught up.
// A Clock may be used by any number of goroutines.
type Clock struct {
	now  func() time.Time
	last atomic.Int64 // the largest time handed out, in milliseconds
}

// New is a clock on top of now; nil means the machine's.
func New(now func() time.Time) *Clock {
	if now == nil {
		now = time.Now
	}
	return &Clock{now: now}
}

// NowMs is the time in milliseconds since 1970, never less than any value handed out or observed before.
func (c *Clock) NowMs() int64 { return c.Observe(Ms(c.now())) }

// Now is [Clock.NowMs] as a time.Time in UTC.
func (c *Clock) Now() time.Time { return FromMs(c.NowMs()) }

// Observe tells the clock of a time that was stored already, by an earlier process for one, and returns the
// larger of it and what the clock has shown so far: nothing shown from now on is below it.
func (c *Clock) Observe(ms int64) int64 {
	for {
		last := c.last.Load()
		if ms <= last {
			return last
		}
		if c.last.CompareAndSwap(last, ms) {
			return ms
		}
	}
}
