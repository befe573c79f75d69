package sim

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/sdk"
)

// refused waits until a node's start is refused, takes it down, and returns what it said, the way out included.
func (c *Cluster) refused(n *Node) string {
	c.T.Helper()
	c.Await(30*time.Second, n.Name+" is refused", func() bool { return n.Ended() != nil })
	said := n.Ended().Error()
	if e := new(base.Error); errors.As(n.Ended(), &e) {
		said += ": " + e.HintText()
	}
	c.T.Logf("%s: %s", n.Name, said)
	n.Kill()
	return said
}

// replace tells the cluster that a node comes with another disk, as soon as its old one is known to be gone.
func (c *Cluster) replace(n *Node) {
	c.T.Helper()
	var err error
	c.Await(30*time.Second, n.Name+" may have another disk", func() bool {
		_, err = c.Running()[0].admin().ChangeNode(within(c.T, 10*time.Second), sdk.ChangeNode{Node: base.NodeID(n.Name), Change: sdk.ReplaceNode})
		return err == nil || base.CodeOf(err) != base.CodePreconditionFailed
	})
	require.NoError(c.T, err)
}

// A node comes back under its name with an empty disk. It is refused until an operator says that the disk is lost; then
// it takes its seats again, and no shard has lost anything.
func TestWipedDisk(t *testing.T) {
	Run(t, Options{Seed: 1}, func(t *testing.T, c *Cluster) {
		c.Start(3)
		c.Quiet(time.Minute)
		load := c.StartLoad(LoadOptions{})
		time.Sleep(5 * time.Second)
		n := c.Node(3)
		n.Kill()
		n.Wipe()
		n.Start()
		require.Contains(t, c.refused(n), "node replace")
		c.Check()
		c.replace(n)
		n.Start()
		c.Settled(time.Minute)
		load.Stop()
		c.Quiet(time.Minute)
		load.Verify()
	})
}

// A node whose disk was given up before it came with another one learns in the middle of its start how many starts it has
// had. All of that start is the same one: it leads, and says how far it has come.
func TestANewDiskGoesOnCounting(t *testing.T) {
	Run(t, Options{Seed: 1}, func(t *testing.T, c *Cluster) {
		c.Start(3)
		n := c.Node(3)
		for range 3 {
			n.Restart()
			c.Settled(time.Minute)
		}
		n.Kill()
		n.Wipe()
		c.replace(n)
		n.Start()
		c.Settled(time.Minute)
		c.leads(n)
	})
}

// leads makes topics until the node leads one, and lets it: what it opens is of the start that it turned out to be, so it
// proves how far it has come, and its leader may rest.
func (c *Cluster) leads(n *Node) {
	c.T.Helper()
	ctx := within(c.T, time.Minute)
	client := c.Client()
	for i := 0; ; i++ {
		topic := fmt.Sprintf("led-%d", i)
		_, err := client.Admin().CreateTopic(ctx, sdk.CreateTopic{Name: topic, Config: sdk.TopicConfig{ReplicationFactor: 1}})
		require.NoError(c.T, err)
		route, err := client.Admin().RouteKey(ctx, topic, nil)
		require.NoError(c.T, err)
		if string(route.Replicas[0].ID) != n.Name {
			continue
		}
		p, err := client.NewProducer(topic)
		require.NoError(c.T, err)
		var first, ack sdk.Ack
		for j := range 3 {
			ack, err = p.Send(ctx, sdk.Record{Value: []byte("v")})
			require.NoError(c.T, err)
			if j == 0 {
				first = ack
			}
			time.Sleep(3 * time.Minute) // its leader rests, and resumes
			ctx = within(c.T, time.Minute)
		}
		require.NoError(c.T, p.Close(ctx))
		require.Equal(c.T, first.Segment, ack.Segment)
		ends, err := client.Admin().Offsets(ctx, topic, sdk.Latest())
		require.NoError(c.T, err)
		require.EqualValues(c.T, 3, ends[0].Offset)
		return
	}
}

// Another node's disk under the name of a known one is refused as well.
func TestSameAddressAnotherDisk(t *testing.T) {
	Run(t, Options{Seed: 1}, func(t *testing.T, c *Cluster) {
		c.Start(3)
		c.Quiet(time.Minute)
		n := c.Node(3)
		n.Kill()
		mine := n.Disk()
		n.Wipe()
		n.Start()
		require.Contains(t, c.refused(n), "node replace")

		// Under a name of its own it is welcome, at the same address; the old node is still a member, and dead.
		n.Wipe()
		n.Config.NodeID = "n3b"
		n.Start()
		c.Await(time.Minute, "n3b serves", n.Serving)
		c.Check()
		n.Stop()

		// And the old disk is welcome back.
		n.SetDisk(mine)
		n.Config.NodeID = "n3"
		n.Start()
		c.Quiet(time.Minute)
	})
}

// A node's disk is put back as it was two starts ago. It has forgotten what it promised since, so it is refused.
func TestRolledBackDisk(t *testing.T) {
	Run(t, Options{Seed: 1}, func(t *testing.T, c *Cluster) {
		c.Start(3)
		c.Quiet(time.Minute)
		load := c.StartLoad(LoadOptions{})
		n := c.Node(3)
		n.Stop()
		old := n.Disk().Snapshot()
		for range 2 {
			n.Start()
			c.Settled(time.Minute)
			time.Sleep(3 * time.Second)
			n.Stop()
		}
		n.SetDisk(old)
		n.Start()
		require.Contains(t, c.refused(n), "node replace")
		c.Check()
		load.Stop()

		c.replace(n)
		n.Wipe()
		n.Start()
		c.Quiet(time.Minute)
		load.Verify()
	})
}

// Two machines start from copies of one data directory. One of them stops, the other goes on as the node it was.
func TestTwoClones(t *testing.T) {
	Run(t, Options{Seed: 1}, func(t *testing.T, c *Cluster) {
		c.Start(3)
		c.Quiet(time.Minute)
		load := c.StartLoad(LoadOptions{})
		time.Sleep(2 * time.Second)
		n := c.Node(3)
		n.Stop()
		twin := c.Add()
		twin.Config.NodeID = n.Config.NodeID
		twin.SetDisk(n.Disk().Snapshot())
		n.Start()
		twin.Start()
		c.Await(time.Minute, "one of the two stops", func() bool { return n.Ended() != nil || twin.Ended() != nil })
		c.Check()
		ended := n
		if n.Ended() == nil {
			ended = twin
		}
		t.Logf("%s at %s: %v", n.Name, ended.IP, ended.Ended())
		ended.Kill()
		c.Settled(time.Minute)
		require.Len(t, c.Running(), 3)
		load.Stop()
		c.Quiet(time.Minute)
		load.Verify()
	})
}
