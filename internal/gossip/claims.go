package gossip

import (
	"cmp"
	"slices"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/hashicorp/memberlist"
)

// Claim says that a node leads a shard since a term. It is a hint: who follows it and is wrong is told so.
type Claim struct {
	Shard      base.ShardID `cbor:"1,keyasint"`
	Leader     base.NodeID  `cbor:"2,keyasint"`
	Term       uint64       `cbor:"3,keyasint"`
	Generation uint64       `cbor:"4,keyasint,omitempty"` // of the shard: raised when it is rebuilt after its quorum was lost
}

// wins orders claims on one shard: the higher generation, since a shard that was rebuilt counts its terms on from the
// log that was found and those who were left behind may have counted further; then the higher term. Raft has one leader
// a term; the order of names only makes merging commutative should that ever be untrue.
func (c Claim) wins(o Claim) bool {
	return cmp.Or(cmp.Compare(c.Generation, o.Generation), cmp.Compare(c.Term, o.Term), cmp.Compare(c.Leader, o.Leader)) > 0
}

// maxClaims bounds the table: more than shards can ever be.
const maxClaims = 1 << 16

// claims is the best claim on each shard, and those that still spread. Its owner locks all but spread, which locks
// itself.
type claims struct {
	best    map[base.ShardID]Claim
	encoded []byte // of all, until the next change
	spread  *memberlist.TransmitLimitedQueue
}

func newClaims(nodes func() int) *claims {
	return &claims{
		best:   make(map[base.ShardID]Claim),
		spread: &memberlist.TransmitLimitedQueue{NumNodes: nodes, RetransmitMult: retransmitMult},
	}
}

// merge takes a claim that is better than the one known, and passes it on: without the second half three in four of
// the others never hear of it.
func (c *claims) merge(n Claim) bool {
	old, known := c.best[n.Shard]
	if known && !n.wins(old) || !known && len(c.best) >= maxClaims || n.Leader.Check() != nil {
		return false
	}
	c.best[n.Shard] = n
	c.encoded = nil
	c.spread.QueueBroadcast(&claimBroadcast{n.Shard.String(), encodeMessage(kindClaim, n)})
	return true
}

func (c *claims) all() []Claim {
	all := make([]Claim, 0, len(c.best))
	for _, claim := range c.best {
		all = append(all, claim)
	}
	slices.SortFunc(all, func(a, b Claim) int {
		return a.Shard.Compare(b.Shard)
	})
	return all
}

// encode is all claims for a push-pull.
func (c *claims) encode() []byte {
	if c.encoded == nil {
		c.encoded = must(encoding.Marshal(c.all()))
	}
	return c.encoded
}

// mergeAll takes what a push-pull brought.
func (c *claims) mergeAll(b []byte) bool {
	var all []Claim
	if decoding.Unmarshal(b, &all) != nil {
		return false
	}
	changed := false
	for _, claim := range all {
		changed = c.merge(claim) || changed
	}
	return changed
}

// claimBroadcast replaces an older one on the same shard in the queue.
type claimBroadcast struct {
	shard   string
	message []byte
}

func (b *claimBroadcast) Name() string    { return b.shard }
func (b *claimBroadcast) Message() []byte { return b.message }
func (b *claimBroadcast) Finished()       {}
func (b *claimBroadcast) Invalidates(o memberlist.Broadcast) bool {
	other, ok := o.(*claimBroadcast)
	return ok && other.shard == b.shard
}
