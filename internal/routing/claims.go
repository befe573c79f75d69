package routing

import (
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/base"
)

// Claim says that a node leads a shard since a term. The generation counts the shard's recoveries, and a later one
// makes all terms of earlier ones void.
type Claim struct {
	Leader     base.NodeID
	Term       uint64
	Generation uint64
}

// newerThan orders claims on one shard.
func (c Claim) newerThan(d Claim) bool {
	if c.Generation != d.Generation {
		return c.Generation > d.Generation
	}
	return c.Term > d.Term
}

// doubtFor is how long a claim that proved wrong is not acted upon. It is short, because what was wrong may have been
// the connection.
const doubtFor = time.Second

type doubt struct {
	Claim
	until time.Time
}

// claims is what answers have taught about who leads, to be held against what others say.
type claims struct {
	mu      sync.Mutex
	learnt  map[base.ShardID]Claim
	doubts  map[base.ShardID]doubt
	changed chan struct{} // closed and replaced whenever somebody should look again
}

func newClaims() *claims {
	return &claims{learnt: make(map[base.ShardID]Claim), doubts: make(map[base.ShardID]doubt), changed: make(chan struct{})}
}

// learn takes a claim over if it is newer than the one there is.
func (c *claims) learn(shard base.ShardID, claim Claim) {
	if claim.Leader == "" || claim.Term == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if d, ok := c.doubts[shard]; ok && (d.Leader == claim.Leader || claim.newerThan(d.Claim)) && !d.newerThan(claim) {
		delete(c.doubts, shard)
	}
	if old, ok := c.learnt[shard]; ok && !claim.newerThan(old) {
		return
	}
	c.learnt[shard] = claim
	c.wakeLocked()
}

// doubt notes that a claim was wrong.
func (c *claims) doubt(shard base.ShardID, claim Claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.doubts[shard] = doubt{claim, time.Now().Add(doubtFor)}
}

// best picks the claim to act upon: the newest, unless it is in doubt.
func (c *claims) best(shard base.ShardID, others ...Claim) (best Claim, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	best = c.learnt[shard]
	for _, o := range others {
		if o.Leader != "" && (best.Leader == "" || o.newerThan(best)) {
			best = o
		}
	}
	if best.Leader == "" {
		return best, false
	}
	d, doubted := c.doubts[shard]
	return best, !doubted || d.Leader != best.Leader || best.newerThan(d.Claim) || time.Now().After(d.until)
}

// wait returns the channel that the next change closes.
func (c *claims) wait() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

func (c *claims) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wakeLocked()
}

func (c *claims) wakeLocked() {
	close(c.changed)
	c.changed = make(chan struct{})
}
