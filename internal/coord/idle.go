package coord

import (
	"sync"
	"time"
)

// idleRound is how often the background gets a round: its segments share messages, fsyncs and an entry.
const idleRound = 250 * time.Millisecond

// idlePace is what all loops of this node share for recoveries that nobody waits for. A node that led ten thousand ranges
// loses all of them at once, while those few that are written to elect and seal on the same processors and disks: the
// others are to take little of both, however many shards they are spread over.
type idlePace struct {
	perSecond int
	round     int // segments of one, which is all that is saved up

	mu       sync.Mutex
	tokens   float64
	refilled time.Time
}

func newIdlePace(perSecond int) *idlePace {
	round := max(1, int(idleRound.Seconds()*float64(perSecond)))
	return &idlePace{perSecond: perSecond, round: round, tokens: float64(round)}
}

// take gives at most n, and nothing if it has less than least.
func (p *idlePace) take(n, least int, now time.Time) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refilled.IsZero() {
		p.refilled = now
	}
	if passed := now.Sub(p.refilled); passed > 0 {
		p.tokens = min(p.tokens+passed.Seconds()*float64(p.perSecond), float64(p.round))
		p.refilled = now
	}
	if n = min(n, int(p.tokens)); n < least {
		return 0
	}
	p.tokens -= float64(n)
	return n
}
