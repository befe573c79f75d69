package server

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/topology"
	"github.com/eastguard/eastguard/internal/wire"
)

// A start that only the connection knows of is placed on once the root has admitted it, and has not been up for long.
func TestAStartThatOnlyTheConnectionKnows(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	was := topology.Node{ID: "n2", Disk: base.DiskID{2}, Boot: 3, Liveness: topology.Alive, Admitted: true, Leaving: true}
	for name, c := range map[string]struct {
		listed *meta.Node
		alive  bool
	}{
		"the root has not admitted it": {&meta.Node{ID: "n2", Disk: base.DiskID{2}, Boot: 3}, false},
		"the root does not list it":    {nil, false},
		"its disk is another one":      {&meta.Node{ID: "n2", Disk: base.DiskID{9}, Boot: 4}, false},
		"it is admitted":               {&meta.Node{ID: "n2", Disk: base.DiskID{2}, Boot: 4}, true},
	} {
		n := startedAnew(was, 4, c.listed, now)
		if !c.alive {
			require.Equal(t, topology.Suspect, n.Liveness, name)
			continue
		}
		require.Empty(t, n.Unfit(), name)
		require.EqualValues(t, 4, n.Boot)
		require.EqualValues(t, 1_010_000, n.SettledMs)
	}
}

func TestComing(t *testing.T) {
	fit := topology.Node{ID: "n2", Boot: 3, Liveness: topology.Alive, Admitted: true}
	changed := func(change func(*topology.Node)) topology.Node {
		n := fit
		change(&n)
		return n
	}
	up := peer.State{Status: peer.Reachable, Boot: 3}
	for what, c := range map[string]struct {
		node topology.Node
		link peer.State
		want bool
	}{
		"it takes segments":         {fit, up, false},
		"the root's list is behind": {changed(func(n *topology.Node) { n.Admitted = false }), up, true},
		"a rumour has it dead":      {changed(func(n *topology.Node) { n.Liveness = topology.Dead }), up, true},
		"dead":                      {changed(func(n *topology.Node) { n.Liveness = topology.Dead }), peer.State{Boot: 3}, false},
		"it leaves":                 {changed(func(n *topology.Node) { n.Leaving = true }), up, false},
		"it left, and is back":      {changed(func(n *topology.Node) { n.Leaving = true }), peer.State{Status: peer.Reachable, Boot: 4}, true},
		"it is drained, and takes none in any case": {changed(func(n *topology.Node) { n.Standing, n.Admitted = topology.Draining, false }), up, false},
	} {
		view := topology.View{Nodes: []topology.Node{c.node}}
		require.Equal(t, c.want, coming(view, map[base.NodeID]peer.State{"n2": c.link}), what)
	}
	require.False(t, coming(topology.View{Nodes: []topology.Node{changed(func(n *topology.Node) { n.Admitted = false })}}, nil), "no connection")
}

// Who has waited for a node to be ready may make a topic that needs it, at whichever node.
func TestATopicThatNeedsANodeThatHasJustStarted(t *testing.T) {
	t.Parallel()
	c := newTrio(t)
	for round := range 3 {
		m := c.all[round]
		m.stop()
		m.start()
		c.nodes[m.srv.id.Node] = m.client()
		for i := range 6 {
			name := fmt.Sprintf("topic-%d-%d", round, i)
			made := must[wire.CreateTopicResponse](c.nodes[c.all[i%3].srv.id.Node], wire.KindCreateTopic, wire.CreateTopicRequest{
				RequestID: requestID(), Name: name, Config: base.TopicConfig{ReplicationFactor: 3},
			})
			require.Len(t, made.Topic.Ranges[0].Segments[0].Replicas, 3)
		}
	}
}
