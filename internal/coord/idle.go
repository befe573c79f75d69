package coord

import (
	"sync"
	"time"
)

// idlePace is what all loops of this node share for recoveries that nobody waits for. A node that led ten thousand ranges
// loses all of them at once, while those few that are written to elect and seal on the same processors and disks: the
// others are to take little of both, however many shards they are spread over.
type idlePace struct {
	perSecond int

	mu       sync.Mutex
	tokens   float64
	refilled time.Time
}

// burst is what the pace saves up: one round.
const burst = maxFences

func newIdlePace(perSecond int) *idlePace { return &idlePace{perSecond: perSecond, tokens: burst} }

// worth is how many of so many idle segments make a round of their own: it should be worth its messages.
func (p *idlePace) worth(idle int) int {
	return min(idle, int(backgroundRound.Seconds()*float64(p.perSecond)), maxFences)
}

// take gives at most n, and nothing if it has less than least.
func (p *idlePace) take(n, least int, now time.Time) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.refilled.IsZero() && now.After(p.refilled) {
		p.tokens = min(p.tokens+now.Sub(p.refilled).Seconds()*float64(p.perSecond), burst)
	}
	if p.refilled.IsZero() || now.After(p.refilled) {
		p.refilled = now
	}
	n = min(n, int(p.tokens))
	if n < least {
		return 0
	}
	p.tokens -= float64(n)
	return n
}
