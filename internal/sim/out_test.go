package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/config"
	"github.com/eastguard/eastguard/internal/topology"
)

// A node that stays away is out after node_out_secs, and not before: then its seats are taken by others. When it comes
// back it is a member again.
func TestNodeOut(t *testing.T) {
	Run(t, Options{Seed: 1, Config: func(_ int, cfg *config.Config) { cfg.NodeOutSecs = 300 }}, func(t *testing.T, c *Cluster) {
		c.Start(4)
		c.Quiet(time.Minute)
		gone := c.Node(4)
		held := 0
		for i := range c.options.Shards {
			for _, v := range c.voters(base.ShardID{Root: uint16(i)}) {
				if string(v) == gone.Name {
					held++
				}
			}
		}
		require.Positive(t, held, "the ring gives n4 no seat: the test proves nothing")
		gone.Kill()
		standing := func() string {
			list, err := c.ClientOf(c.Node(1)).Admin().ListNodes(within(t, 5*time.Second))
			require.NoError(t, err)
			for _, n := range list.Nodes {
				if string(n.ID) == gone.Name {
					return n.Status
				}
			}
			return ""
		}
		time.Sleep(295 * time.Second)
		require.Equal(t, topology.Normal.String(), standing())
		c.Await(30*time.Second, "n4 is out", func() bool { return standing() == topology.Out.String() })
		t.Logf("its seats were taken %v later", c.Quiet(2*time.Minute))
		for i := range c.options.Shards {
			require.NotContains(t, c.voters(base.ShardID{Root: uint16(i)}), base.NodeID(gone.Name))
		}
		gone.Start()
		c.Quiet(3 * time.Minute)
		require.Equal(t, topology.Normal.String(), standing())
	})
}
