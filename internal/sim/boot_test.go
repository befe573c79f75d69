package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

// A new node with the node_id of one that runs does not take its place: it ends before anybody has met it.
func TestNodeIDTwice(t *testing.T) {
	Run(t, Options{Seed: 1}, func(t *testing.T, c *Cluster) {
		c.Start(3)
		c.Quiet(time.Minute)
		stranger := c.Add()
		stranger.Config.NodeID = "n3"
		stranger.Start()
		require.Contains(t, c.refused(stranger), "another node_id")
		stranger.Start() // with more starts than the one whose place it must not take
		require.Contains(t, c.refused(stranger), "another node_id")
		require.NoError(t, c.Node(3).Ended())
		c.Quiet(time.Minute)
	})
}

// With the quorum of the root shard gone, the newest node table among the peers lets a known node start again, but
// nobody else; when the root is back it has the last word.
func TestStartWithoutARoot(t *testing.T) {
	Run(t, Options{Seed: 1}, func(t *testing.T, c *Cluster) {
		c.Start(4)
		c.Quiet(2 * time.Minute)
		voters := c.voters(base.RootShard)
		require.Len(t, voters, 3)
		var known *Node // the one that has no seat in the root
		for _, n := range c.Nodes() {
			if n.Name != string(voters[0]) && n.Name != string(voters[1]) && n.Name != string(voters[2]) {
				known = n
			}
		}
		for _, n := range []*Node{known, c.named(voters[1]), c.named(voters[2])} {
			n.Stop()
		}
		known.Start()
		took := c.Await(30*time.Second, "the known node serves", known.Serving)
		require.Greater(t, took, 3*time.Second, "it has waited for the root's leader first")

		stranger := c.Add()
		stranger.Start()
		time.Sleep(30 * time.Second)
		require.False(t, stranger.Serving(), "without the root nobody joins")
		require.NoError(t, stranger.Ended(), "it waits")

		c.named(voters[1]).Start()
		c.named(voters[2]).Start()
		c.Await(time.Minute, "the stranger serves too", stranger.Serving)
		c.Quiet(2 * time.Minute)
	})
}

// Nodes find each other again by what they remember, when the configuration names nobody any more.
func TestRestartWithoutSeeds(t *testing.T) {
	Run(t, Options{Seed: 1, Expect: 3}, func(t *testing.T, c *Cluster) {
		c.Start(3)
		c.Quiet(time.Minute)
		for _, n := range c.Nodes() {
			n.Kill()
			n.Config.JoinSeedNodes, n.Config.BootstrapExpect, n.Config.Bootstrap = nil, 0, nil
		}
		for _, n := range c.Nodes() {
			n.Start()
		}
		c.Quiet(time.Minute)
	})
}
