package server

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/store"
	"github.com/eastguard/eastguard/internal/topology"
	"github.com/eastguard/eastguard/internal/vfs"
)

func (m *machine) sees(id base.NodeID) topology.Node {
	n, _ := m.srv.view().Node(id)
	return n
}

// Leaders tell with their usage whom they wait for in vain; each node draws the same conclusion.
func TestANodeThatLeadersNameIsSlow(t *testing.T) {
	t.Parallel()
	machines := threeMachines(t)
	slow := machines[2].srv.id.Node
	for _, m := range machines {
		require.False(t, m.sees(slow).Slow)
		for _, leader := range machines[:2] {
			m.srv.members.heardLate(leader.srv.id.Node, []base.NodeID{slow}, []base.NodeID{slow})
		}
		m.srv.members.wakeUp()
	}
	for _, m := range machines {
		soon(t, "it is slow in every view", func() bool { return m.sees(slow).Slow })
		require.Empty(t, m.srv.connected().Nodes[2].Unfit(), "but it may be needed")
		require.False(t, m.sees(machines[0].srv.id.Node).Slow)
	}
}

// A node that has started again is not relied on at once.
func TestANodeThatStartsAgainIsShaky(t *testing.T) {
	t.Parallel()
	machines := threeMachines(t)
	again := machines[2].srv.id.Node
	require.Zero(t, machines[0].sees(again).Restarts, "the first start that was seen")
	require.NotZero(t, machines[0].sees(again).SettledMs)
	stopped := time.Now()
	machines[2].stop()
	machines[2].start()
	soon(t, "it is back, and not settled", func() bool {
		n := machines[0].sees(again)
		return n.Boot == 2 && n.Liveness == topology.Alive && n.Restarts == 1
	})
	n := machines[0].sees(again)
	require.True(t, n.Shaky(n.SettledMs-1))
	require.GreaterOrEqual(t, n.SettledMs, stopped.Add(20*time.Second).UnixMilli(), "ten seconds, and twice that for the start before")
}

// A disk that fills up is told of at once, each time and without waiting for whoever tells.
func TestAFullDiskIsNews(t *testing.T) {
	t.Parallel()
	s, err := New(testConfig(), Deps{FS: vfs.NewMem(), Logger: testLogger(t)})
	require.NoError(t, err)
	s.id = &store.Identity{Node: "n1"}
	s.onStoreEvent(store.Event{Kind: store.EventCheckpoint})
	require.Empty(t, s.diskNews)
	for range 2 {
		s.onStoreEvent(store.Event{Kind: store.EventDiskFull})
		s.onStoreEvent(store.Event{Kind: store.EventDiskFreed})
		require.Len(t, s.diskNews, 1)
	}
}

// Segments are not placed on a node from the moment at which it says that its disk is full.
func TestAFullNodeIsKnownAtOnce(t *testing.T) {
	t.Parallel()
	machines := threeMachines(t)
	full := machines[2].srv.id
	seen := machines[0].sees(full.Node)
	require.False(t, seen.Full)
	machines[0].srv.members.hear(topology.Usage{ID: full.Node, Boot: full.Boot, Full: true})
	seen = machines[0].sees(full.Node)
	require.True(t, seen.Full)
}
