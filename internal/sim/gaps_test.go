package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/sim/ledger"
	"github.com/eastguard/eastguard/sdk"
)

// How long writers stand still when something happens to one replica of the segment that they write to. In virtual time
// nothing depends on the machine: a round trip takes about a millisecond, a sync half of one.
func TestGaps(t *testing.T) {
	const (
		leader   = 0
		follower = 1
	)
	for _, tc := range []struct {
		name    string
		replica int
		hit     func(n *Node)
		most    time.Duration
	}{
		{"follower killed", follower, (*Node).Kill, 100 * time.Millisecond},
		{"follower stopped in good order", follower, (*Node).Stop, 100 * time.Millisecond},
		{"follower paused", follower, func(n *Node) { n.Pause(5 * time.Second) }, 900 * time.Millisecond},
		{"follower without its data port", follower, func(n *Node) { n.CutDataPort(5 * time.Second) }, 900 * time.Millisecond},
		{"follower with a disk that hangs", follower, (*Node).HangSyncs, 900 * time.Millisecond},
		{"follower with a slow disk", follower, func(n *Node) { n.SlowDisk(2 * time.Second) }, 900 * time.Millisecond},
		{"follower whose sync fails", follower, (*Node).FailSync, 150 * time.Millisecond},
		{"leader killed", leader, (*Node).Kill, 700 * time.Millisecond},
		{"leader stopped in good order", leader, (*Node).Stop, 500 * time.Millisecond},
		{"leader paused", leader, func(n *Node) { n.Pause(20 * time.Second) }, 3500 * time.Millisecond},
		{"leader cut off from all nodes", leader, func(n *Node) { n.c.Partition([]*Node{n}, n.c.without(n)) }, 3500 * time.Millisecond},
		{"leader without its data port", leader, func(n *Node) { n.CutDataPort(20 * time.Second) }, 900 * time.Millisecond},
		{"leader with a disk that hangs", leader, (*Node).HangSyncs, 2 * time.Second},
		{"leader with a slow disk", leader, func(n *Node) { n.SlowDisk(2 * time.Second) }, 3500 * time.Millisecond},
		{"leader whose sync fails", leader, (*Node).FailSync, 700 * time.Millisecond},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var gap time.Duration
			Run(t, Options{Seed: 1}, func(_ *testing.T, c *Cluster) { gap = c.gap(tc.replica, tc.hit) })
			t.Logf("%v (at most %v)", gap, tc.most)
			require.LessOrEqual(t, gap, tc.most)
		})
	}
}

// gap hits a replica that does not coordinate its topic, and returns the longest time without an ack from then on.
func (c *Cluster) gap(replica int, hit func(n *Node)) time.Duration {
	c.T.Helper()
	o := steady
	o.Writers, o.Readers, o.Every = 1, 0, 2*time.Millisecond
	load := c.written(5, o)
	n := c.replicas(c.active(load))[replica]
	c.away(load, n)
	time.Sleep(5 * time.Second)
	began := c.now()
	hit(n)
	time.Sleep(8 * time.Second)
	c.Check()
	load.Served(20 * time.Second)
	var returns []int64
	c.Book.Change(func(h *ledger.History) {
		for _, a := range h.Acks {
			returns = append(returns, a.Return)
		}
	})
	slices.Sort(returns)
	longest, at := int64(0), int64(0)
	for i, r := range returns[1:] {
		if r >= began && r-returns[i] > longest {
			longest, at = r-returns[i], returns[i]-began
		}
	}
	c.Trace.Logf("script", "the longest gap is %v, and begins %v after the blow", time.Duration(longest), time.Duration(at))
	c.judged(load)
	return time.Duration(longest)
}

// away moves the coordination of the topic away from a node, if it is there.
func (c *Cluster) away(load *Load, n *Node) {
	c.T.Helper()
	shard := meta.ShardOf(load.streams[0].topic, c.options.Shards)
	for try := 0; c.coordinator(load.streams[0]) == n; try++ {
		to := c.voters(shard)[try%3]
		if string(to) != n.Name {
			_, _ = c.ClientOf(n).Admin().TransferShard(within(c.T, 10*time.Second), sdk.TransferShard{Shard: shard, To: to})
		}
		time.Sleep(time.Second)
		require.Less(c.T, try, 30)
	}
}
