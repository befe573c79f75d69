package gossip

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/topology"
	"github.com/stretchr/testify/require"
)

// A large cluster in virtual time: 200 nodes with EASTGUARD_SOAK=1, fewer otherwise. A leader's claim is everywhere
// within 3 s and a death within 15 s.
func TestManyNodes(t *testing.T) {
	nodes := 25
	if os.Getenv("EASTGUARD_SOAK") != "" {
		nodes = 200
	}
	inBubble(t, func(t *testing.T, c *cluster) {
		begin := time.Now()
		for i := 1; i <= nodes; i++ {
			c.start(fmt.Sprintf("n%d", i), 1)
		}
		t.Logf("%d nodes joined in %v", nodes, c.everyone(time.Minute))
		time.Sleep(5 * time.Second)

		shard := base.ShardID{Root: 7}
		c.peers[address(nodes/2)].Claim(Claim{Shard: shard, Leader: "n20", Term: 2})
		took := c.until(3*time.Second, "the claim is everywhere", func() bool {
			for _, p := range c.peers {
				if _, ok := p.ClaimOn(shard); !ok {
					return false
				}
			}
			return true
		})
		t.Logf("a claim reached all in %v", took)

		victim := c.peers[address(nodes-1)]
		id := base.NodeID(victim.name)
		c.crash(victim)
		t.Logf("a death reached all in %v", c.allSee(15*time.Second, id, topology.Dead))
		packets, bytes := c.net.Sent()
		seconds := time.Since(begin).Seconds()
		t.Logf("%.1f packets and %.0f bytes a second and node, joining included", float64(packets)/seconds/float64(nodes), float64(bytes)/seconds/float64(nodes))
		for _, p := range c.peers {
			require.NoError(t, p.fatal())
			require.Zero(t, p.Stats().Dropped)
		}
	})
}

// Half of the cluster is cut off for five minutes, and all come back.
func TestManyNodesHeal(t *testing.T) {
	nodes, cut := 10, 5*time.Minute
	if os.Getenv("EASTGUARD_SOAK") != "" {
		nodes = 60
	}
	inBubble(t, func(t *testing.T, c *cluster) {
		var side []string
		for i := 1; i <= nodes; i++ {
			c.start(fmt.Sprintf("n%d", i), 1)
			if i%2 == 0 {
				side = append(side, address(i))
			}
		}
		c.everyone(time.Minute)
		c.net.Split(side)
		time.Sleep(cut)
		for _, p := range c.peers {
			require.Equal(t, nodes/2, p.Snapshot().Count(topology.Alive))
		}
		c.net.Heal()
		t.Logf("%d nodes healed in %v", nodes, c.everyone(2*time.Minute))
	})
}
