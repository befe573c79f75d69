package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/config"
	"github.com/eastguard/eastguard/internal/shard"
	"github.com/eastguard/eastguard/internal/sim/history"
	"github.com/eastguard/eastguard/internal/sim/ledger"
	"github.com/eastguard/eastguard/server"
)

// A checker that sees nothing would pass for ever. Here a disk forgets what was on it, and that is seen.
func TestLossIsSeen(t *testing.T) {
	alone := func(_ int, cfg *config.Config) { cfg.JoinSeedNodes = nil }
	var asked []history.Op
	Run(t, Options{Seed: 1, Config: alone}, func(t *testing.T, c *Cluster) {
		c.Start(1)
		n := c.Node(1)
		load := c.StartLoad(LoadOptions{Topics: 2, Streams: StreamOptions{Topics: 1}})
		time.Sleep(5 * time.Second)
		n.Stop()
		old := n.Disk().Snapshot()
		n.Start()
		time.Sleep(5 * time.Second)
		load.Stop()
		n.Stop()
		n.SetDisk(old)
		n.Start()
		c.Await(time.Minute, "n1 serves", n.Serving)
		require.NoError(t, load.streams[0].passes())
		require.Contains(t, ledger.Report(c.problems()), "I1: record")
		for _, op := range c.Asked.Ops() {
			c.Asked.Do(within(t, time.Minute), c.clients[0].Admin(), history.Op{Topic: op.Topic, Kind: history.Describe})
		}
		asked = c.Asked.Ops()
		c.Asked = history.NewRecorder(nil) // or Run would judge what this test broke
	})
	require.ErrorContains(t, history.Check(asked, time.Minute), "not linearizable")
}

func TestFacts(t *testing.T) {
	root := base.ShardID{}
	replica := func(state string, term, index, sum uint64) []server.ReplicaInside {
		return []server.ReplicaInside{{Status: shard.Status{ID: root, State: state, Term: term}, Index: index, Sum: sum}}
	}
	for _, tc := range []struct {
		name string
		a, b server.Inside
		want string
	}{
		{"equal", server.Inside{Node: "a", Replicas: replica("leader", 3, 7, 1)}, server.Inside{Node: "b", Replicas: replica("follower", 3, 7, 1)}, ""},
		{"one behind", server.Inside{Node: "a", Replicas: replica("leader", 3, 7, 1)}, server.Inside{Node: "b", Replicas: replica("follower", 3, 6, 2)}, ""},
		{"leaders of two terms", server.Inside{Node: "a", Replicas: replica("leader", 3, 7, 1)}, server.Inside{Node: "b", Replicas: replica("leader", 4, 7, 1)}, ""},
		{"two leaders", server.Inside{Node: "a", Replicas: replica("leader", 3, 7, 1)}, server.Inside{Node: "b", Replicas: replica("leader", 3, 7, 1)}, "leads shard 0 in term 3"},
		{"other states", server.Inside{Node: "a", Replicas: replica("leader", 3, 7, 1)}, server.Inside{Node: "b", Replicas: replica("follower", 3, 7, 2)}, "at index 7 has sum 2"},
		{"two clusters", server.Inside{Node: "a", Cluster: base.ClusterID{1}}, server.Inside{Node: "b", Cluster: base.ClusterID{2}}, "there is a cluster"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFacts()
			require.Empty(t, f.add(tc.a))
			problems := f.add(tc.b)
			if tc.want == "" {
				require.Empty(t, problems)
				return
			}
			require.Len(t, problems, 1)
			require.Contains(t, problems[0], tc.want)
		})
	}
}
