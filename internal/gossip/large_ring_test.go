package gossip

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/ring"
	"github.com/eastguard/eastguard/internal/topology"
)

// Nodes die and others take over what they led, all at once. Afterwards everyone knows the same members and the same
// leaders, so everyone computes the same ring: 200 nodes with EASTGUARD_SOAK=1, fewer otherwise.
func TestManyNodesAgreeOnTheRing(t *testing.T) {
	nodes, deaths := 20, 2
	if os.Getenv("EASTGUARD_SOAK") != "" {
		nodes, deaths = 200, 10
	}
	const shards = 32
	inBubble(t, func(t *testing.T, c *cluster) {
		for i := 1; i <= nodes; i++ {
			c.start(fmt.Sprintf("n%d", i), 1)
		}
		c.everyone(time.Minute)
		claim := func(shard, by int, term uint64) {
			p := c.peers[address(by)]
			p.Claim(Claim{Shard: base.ShardID{Root: uint16(shard)}, Leader: base.NodeID(p.name), Term: term})
		}
		for shard := range shards {
			claim(shard, 1+shard%nodes, 2)
		}
		// Who misses the word of others hears of it by the next exchange of everything.
		c.until(2*time.Minute, "all claims are everywhere", func() bool { return c.agreeOnClaims(shards, 2) })

		for i := range deaths {
			c.crash(c.peers[address(nodes-i)])
		}
		for shard := range shards { // whoever is left takes over
			claim(shard, 1+shard%(nodes-deaths), 3)
		}
		// All at once, while members die: harder than the one claim and the one death of TestManyNodes, and given longer.
		took := c.until(2*time.Minute, "the new claims are everywhere", func() bool { return c.agreeOnClaims(shards, 3) })
		t.Logf("%d claims reached %d nodes in %v, %d of their members being dead", shards, nodes-deaths, took, deaths)

		took = c.until(30*time.Second, "all see the dead", func() bool {
			for _, p := range c.peers {
				if p.Snapshot().Count(topology.Dead) != deaths {
					return false
				}
			}
			return true
		})
		t.Logf("%d deaths reached all in %v", deaths, took)

		want := livingRing(c.peers[address(1)].Agent)
		require.Equal(t, nodes-deaths, want.Len())
		for _, p := range c.peers {
			require.Equal(t, want.Hash(), livingRing(p.Agent).Hash(), p.name)
		}
	})
}

// agreeOnClaims reports whether everyone knows a claim of this term on every shard, and the same one.
func (c *cluster) agreeOnClaims(shards int, term uint64) bool {
	var want []Claim
	for _, p := range c.peers {
		claims := p.Claims()
		if want == nil {
			want = claims
		}
		if len(claims) != shards {
			return false
		}
		for i := range claims {
			if claims[i].Term != term || claims[i] != want[i] {
				return false
			}
		}
	}
	return true
}

// livingRing is the ring of those that an agent believes to be alive. In the broker the members come from the root's
// table of nodes instead; what is the same is that equal members give equal rings.
func livingRing(a *Agent) *ring.Ring {
	var members []ring.Member
	for _, m := range a.Snapshot().Members {
		if m.Liveness == topology.Alive {
			members = append(members, ring.Member{Node: m.Node, Labels: m.Labels})
		}
	}
	return ring.New(members, 64)
}
