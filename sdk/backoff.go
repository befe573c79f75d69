package sdk

import (
	"math/rand/v2"
	"time"
)

// backoff is full-jitter exponential backoff: the n-th wait is anything from 0 to base·2ⁿ, at most cap. Full
// jitter, because clients that lost one broker at the same moment must not come back at the same moment.
//
// What is expected to be over soon is asked for often: after patience failures, if that is not 0, cap gives way to late.
type backoff struct {
	base, cap time.Duration
	patience  int
	late      time.Duration
}

var (
	dialBackoff    = backoff{base: 50 * time.Millisecond, cap: 2 * time.Second}
	requestBackoff = backoff{base: 20 * time.Millisecond, cap: time.Second}
	// moveBackoff is for whoever waits for a segment to be sealed and its successor to be named, which takes a fraction
	// of a second; if it does not, there is nobody to take its place.
	moveBackoff = backoff{base: 10 * time.Millisecond, cap: 200 * time.Millisecond, patience: 50, late: time.Second}
)

// wait is how long to wait after n failures in a row; none after 0.
func (b backoff) wait(n int) time.Duration {
	if n <= 0 {
		return 0
	}
	most := b.cap
	if b.patience > 0 && n > b.patience {
		most = b.late
	}
	return rand.N(min(b.base<<min(n-1, 20), most) + 1)
}
