package peer

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

func TestForeignClusters(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.start("n1")
		w.start("n2", func(o *Options) { o.Cluster = base.UUID{2} })
		_, err := a.Call(t.Context(), "n2", kindEcho, nil)
		require.ErrorIs(t, err, base.CodeUnreachable)
		require.ErrorContains(t, err, "belongs to cluster")
		require.Equal(t, base.NotApplied, base.OutcomeOf(err))
	})
}

// A node without a cluster may talk to all; once it has one, only to its own.
func TestJoining(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		fresh := w.start("n2", func(o *Options) { o.Cluster = base.ClusterID{} })
		a := w.start("n1")
		b := w.start("n3", func(o *Options) { o.Cluster = base.UUID{2} })
		for _, n := range []base.NodeID{"n1", "n3"} {
			_, err := fresh.Call(t.Context(), n, kindEcho, nil)
			require.NoError(t, err)
		}
		require.NoError(t, a.Keep([]base.NodeID{"n2"}))
		fresh.SetCluster(testCluster)
		require.Equal(t, testCluster, fresh.Cluster())
		time.Sleep(time.Second)
		require.Equal(t, Reachable, a.status("n2"))
		require.Empty(t, b.Liveness())
		_, err := fresh.Call(t.Context(), "n3", kindEcho, nil)
		require.ErrorIs(t, err, base.CodeUnreachable)
	})
}

func TestWrongAddress(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.start("n1", func(o *Options) {
			o.Resolve = func(base.NodeID) (string, bool) { return address("n2"), true }
		})
		w.start("n2")
		_, err := a.Call(t.Context(), "n3", kindEcho, nil)
		require.ErrorContains(t, err, "node n2 answers where n3 was expected")
		self := w.start("n4", func(o *Options) {
			o.Resolve = func(base.NodeID) (string, bool) { return address("n4"), true }
		})
		_, err = self.Call(t.Context(), "n3", kindEcho, nil)
		require.ErrorContains(t, err, "this node's own")
		require.Empty(t, self.seenTwins())
	})
}

// The data directory of n2 was copied, and both copies run.
func TestTwins(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes := w.mesh(2)
		l, err := w.network.Listen("copy:2922")
		require.NoError(t, err)
		copied := launch(t, l, Options{
			Node: "n2", Boot: 1, Instance: base.UUID{9, 9}, Cluster: testCluster, Dial: w.network.Dialer("copy"),
			Resolve: func(n base.NodeID) (string, bool) {
				if n == "n7" {
					return address("n2"), true // its own twin
				}
				return address(n), true
			},
		})
		_, err = copied.Call(t.Context(), "n1", kindEcho, nil)
		require.ErrorIs(t, err, base.CodeUnreachable)
		require.ErrorContains(t, err, "another process of node n2")
		require.Equal(t, []Twin{{By: "n1"}}, copied.seenTwins())

		_, err = copied.Call(t.Context(), "n7", kindEcho, nil)
		require.ErrorIs(t, err, base.CodeUnreachable)
		require.Len(t, nodes[1].seenTwins(), 1)
		require.Equal(t, copied.o.Instance, nodes[1].seenTwins()[0].Seen.Instance)
		require.True(t, connected(nodes))
	})
}

// A node that lost power and is back before anybody has noticed takes the place of its former process.
func TestNewStartReplacesTheOld(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes := w.mesh(2)
		old := nodes[1]
		w.network.Split("n1", "n2") // the farewell of the old process is never heard
		l := w.network.listeners[address("n2")]
		require.NoError(t, l.Close())
		time.Sleep(100 * time.Millisecond)
		w.boots["n2"]++
		second, err := w.network.Listen("other:2922")
		require.NoError(t, err)
		again := launch(t, second, Options{
			Node: "n2", Boot: 2, Instance: base.UUID{7}, Cluster: testCluster, Dial: w.network.Dialer("other"),
			Resolve: func(n base.NodeID) (string, bool) { return address(n), true },
		})
		require.NoError(t, again.Keep([]base.NodeID{"n1"}))
		synctest.Wait()
		require.Equal(t, Reachable, nodes[0].status("n2"))
		require.Equal(t, uint64(2), nodes[0].Liveness()["n2"].Boot)
		w.network.Heal()
		time.Sleep(10 * time.Second)
		require.Equal(t, uint64(2), nodes[0].Liveness()["n2"].Boot, "the old one is turned away")
		require.NotEmpty(t, old.seenTwins())
	})
}
