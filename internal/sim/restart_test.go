package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/sim/history"
)

// Each node is stopped in good order and started again, one after the other, which clients hardly notice: every
// operation is carried out.
func TestRollingRestart(t *testing.T) {
	Run(t, Options{Seed: 1, Shards: 8}, func(t *testing.T, c *Cluster) {
		c.Start(3)
		c.Quiet(time.Minute)
		load := c.StartLoad(LoadOptions{})
		for _, n := range c.Nodes() {
			time.Sleep(5 * time.Second)
			n.Stop()
			c.Check()
			time.Sleep(2 * time.Second)
			n.Start()
			c.Settled(30 * time.Second)
		}
		load.Stop()
		load.Verify()
		for _, op := range c.Asked.Ops() {
			require.NotContains(t, []history.Answer{history.Unknown, history.Failed}, op.Answer, op)
		}
	})
}
