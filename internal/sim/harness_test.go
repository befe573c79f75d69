package sim

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// within is the context of one request in a named test.
func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// topicIn finds a name whose topic lies in a shard.
func (c *Cluster) topicIn(shard base.ShardID, prefix string) string {
	for i := 0; ; i++ {
		if name := fmt.Sprintf("%s-%d", prefix, i); meta.ShardOf(name, c.options.Shards) == shard {
			return name
		}
	}
}

// seats are the replicas of a shard on the nodes that run.
func (c *Cluster) seats(shard base.ShardID) []seat {
	synctest.Wait()
	var seats []seat
	for _, n := range c.Running() {
		for _, r := range n.Inspect().Replicas {
			if r.ID == shard {
				seats = append(seats, seat{n, r})
			}
		}
	}
	return seats
}

// voters are a shard's voters, as its leader has them.
func (c *Cluster) voters(shard base.ShardID) []base.NodeID {
	for _, s := range c.seats(shard) {
		if s.Ready {
			return s.Voters
		}
	}
	return nil
}

// named is the node of a name.
func (c *Cluster) named(name base.NodeID) *Node {
	for _, n := range c.nodes {
		if n.Name == string(name) {
			return n
		}
	}
	c.Fatalf("there is no node %s", name)
	return nil
}
