package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A clone that is started while the original runs does not take its place.
func TestCloneOfARunningNode(t *testing.T) {
	Run(t, Options{Seed: 1}, func(t *testing.T, c *Cluster) {
		c.Start(3)
		c.Quiet(time.Minute)
		twin := c.Add()
		twin.Config.NodeID = "n3"
		twin.SetDisk(c.Node(3).Disk().Snapshot())
		twin.Start()
		c.Await(time.Minute, "one of the two stops", func() bool { return c.Node(3).Ended() != nil || twin.Ended() != nil })
		t.Logf("original: %v, clone: %v", c.Node(3).Ended(), twin.Ended())
		for _, n := range []*Node{c.Node(3), twin} {
			if n.Ended() != nil {
				n.Kill()
			}
		}
		c.Quiet(time.Minute)
		require.Len(t, c.Running(), 3)
	})
}
