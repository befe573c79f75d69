package server

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/internal/wire"
)

// rejected asks for what is to be refused.
func rejected(n *node, code base.Code, kind wire.Kind, req any) *base.Error {
	n.t.Helper()
	_, _, err := call[struct{}](n, kind, req)
	require.ErrorIs(n.t, err, code)
	var e *base.Error
	require.True(n.t, errors.As(err, &e))
	return e
}

func TestListNodesOfOne(t *testing.T) {
	n := start(t, vfs.NewMem())
	n.mustProduce(n.create("orders", base.TopicConfig{ReplicationFactor: 1}), "a")
	resp := must[wire.ListNodesResponse](n, wire.KindListNodes, wire.ListNodesRequest{})
	require.Equal(t, base.NodeID("n1"), resp.Observer)
	require.Empty(t, resp.Missing)
	require.Len(t, resp.Nodes, 1)
	self := resp.Nodes[0]
	require.Equal(t, "alive", self.State)
	require.Equal(t, "normal", self.Status)
	require.True(t, self.Admitted)
	require.Equal(t, 1_000_000, self.OwnsPerMillion)
	require.Equal(t, n.cfg.VnodesPerNode, self.Vnodes)
	require.Equal(t, 4, self.Replicas)
	require.Equal(t, 4, self.ShardLeaders)
	require.Equal(t, 1, self.Segments)
	require.Positive(t, self.Connections)
	require.NotZero(t, self.RingHash)
}

func TestDescribeAndRingOfANode(t *testing.T) {
	n := start(t, vfs.NewMem())
	for _, name := range []base.NodeID{"", "n1"} {
		d := must[wire.DescribeNodeResponse](n, wire.KindDescribeNode, wire.DescribeNodeRequest{Node: name})
		require.Equal(t, base.NodeID("n1"), d.Status.ID)
		require.Equal(t, n.self.cluster, d.ClusterAddress)
		require.Equal(t, n.self.data, d.DataAddress)
		require.Empty(t, d.AdminAddress, "it is switched off")
		require.NotZero(t, d.RingHash)

		r := must[wire.NodeRingResponse](n, wire.KindNodeRing, wire.NodeRingRequest{Node: name})
		require.Equal(t, d.RingHash, r.Hash)
		require.Equal(t, d.RingVersion, r.Version)
		require.Len(t, r.Members, 1)
		require.Equal(t, n.cfg.VnodesPerNode, r.Members[0].Vnodes)
		require.Equal(t, "alive", r.Members[0].State)
		require.Empty(t, r.Members[0].Tokens)
	}
	r := must[wire.NodeRingResponse](n, wire.KindNodeRing, wire.NodeRingRequest{Tokens: true})
	require.Len(t, r.Members[0].Tokens, n.cfg.VnodesPerNode)
	require.IsIncreasing(t, r.Members[0].Tokens)

	rejected(n, base.CodeNodeNotFound, wire.KindDescribeNode, wire.DescribeNodeRequest{Node: "n9"})
	rejected(n, base.CodeNodeNotFound, wire.KindNodeRing, wire.NodeRingRequest{Node: "n9"})
}

func TestReachOfOne(t *testing.T) {
	n := start(t, vfs.NewMem())
	resp := must[wire.ReachResponse](n, wire.KindReach, wire.ReachRequest{})
	require.Empty(t, resp.Peers, "there are no others")
	resp = must[wire.ReachResponse](n, wire.KindReach, wire.ReachRequest{Nodes: []base.NodeID{"n1"}, Count: 3})
	require.Equal(t, 3, resp.Peers[0].Sent)
	require.Equal(t, 3, resp.Peers[0].OK)
	require.Equal(t, "alive", resp.Peers[0].Gossip)

	rejected(n, base.CodeNodeNotFound, wire.KindReach, wire.ReachRequest{Nodes: []base.NodeID{"n9"}})
	rejected(n, base.CodeInvalidArgument, wire.KindReach, wire.ReachRequest{Count: maxPings + 1})
	rejected(n, base.CodeInvalidArgument, wire.KindReach, wire.ReachRequest{Count: -1})
}

// What cannot be done to the only node of a cluster, and what would rest on it.
func TestChangeTheOnlyNode(t *testing.T) {
	n := start(t, vfs.NewMem())
	n.create("orders", base.TopicConfig{ReplicationFactor: 1})
	change := func(c wire.NodeChange, node base.NodeID, dryRun bool) wire.ChangeNodeRequest {
		return wire.ChangeNodeRequest{RequestID: requestID(), Node: node, Change: c, DryRun: dryRun}
	}
	plan := must[wire.ChangeNodeResponse](n, wire.KindChangeNode, change(wire.NodeLeave, "n1", true))
	require.Equal(t, "alive, normal", plan.Before)
	require.Equal(t, "leaving, normal", plan.After)
	require.Equal(t, 1, plan.Segments)
	require.Equal(t, []base.ShardID{{}, {Root: 1}, {Root: 2}, {Root: 3}}, plan.Shards)

	e := rejected(n, base.CodePreconditionFailed, wire.KindChangeNode, change(wire.NodeLeave, "n1", false))
	require.Contains(t, e.Error(), "no majority is left of shards 0, 1, 2, 3")
	select {
	case <-n.Retired():
		t.Fatal("it was refused")
	default:
	}
	for _, dryRun := range []bool{false, true} {
		e = rejected(n, base.CodePreconditionFailed, wire.KindChangeNode, change(wire.NodeForget, "n1", dryRun))
		require.Contains(t, e.Error(), "node n1 is alive")
		rejected(n, base.CodePreconditionFailed, wire.KindChangeNode, change(wire.NodeReplace, "n1", dryRun))
		rejected(n, base.CodeNodeNotFound, wire.KindChangeNode, change(wire.NodeForget, "n9", dryRun))
		rejected(n, base.CodeNodeNotFound, wire.KindChangeNode, change(wire.NodeLeave, "n9", dryRun))
		rejected(n, base.CodeInvalidArgument, wire.KindChangeNode, change(77, "n1", dryRun))
	}
}

// The process is told once, however often it is asked.
func TestLeaveIsTold(t *testing.T) {
	n := start(t, vfs.NewMem())
	for range 3 {
		_, err := n.leaveHere(t.Context(), nothing{})
		require.NoError(t, err)
	}
	<-n.Retired()
	select {
	case <-n.Retired():
		t.Fatal("told twice")
	default:
	}
}

func TestAlone(t *testing.T) {
	d1, d2, old := base.DiskID{1}, base.DiskID{2}, base.DiskID{3}
	alive := living{{Node: "n1", Disk: d1}: 1, {Node: "n2", Disk: d2}: 1}
	for name, tc := range map[string]struct {
		replicas []base.Replica
		alone    bool
	}{
		"elsewhere":               {[]base.Replica{{Node: "n2", Disk: d2}}, false},
		"only here":               {[]base.Replica{{Node: "n1", Disk: d1}}, true},
		"here and there":          {[]base.Replica{{Node: "n1", Disk: d1}, {Node: "n2", Disk: d2}}, false},
		"the other's disk is old": {[]base.Replica{{Node: "n1", Disk: d1}, {Node: "n2", Disk: old}}, true},
		"the other is dead":       {[]base.Replica{{Node: "n3", Disk: d1}, {Node: "n1", Disk: d1}}, true},
		"here, on a lost disk":    {[]base.Replica{{Node: "n1", Disk: old}}, true},
	} {
		require.Equal(t, tc.alone, alone(&meta.Segment{Replicas: tc.replicas}, "n1", alive), name)
	}
}

func TestCrew(t *testing.T) {
	c := crew{name: "test", limit: 2}
	release := make(chan struct{})
	for range 2 {
		require.NoError(t, c.run(func() { <-release }))
	}
	require.ErrorIs(t, c.run(func() {}), base.CodeBusy)

	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	c.close(short) // does not wait for ever
	require.ErrorIs(t, c.run(func() {}), base.CodeShuttingDown)
	close(release)
	for {
		c.mu.Lock()
		busy := c.busy
		c.mu.Unlock()
		if busy == 0 {
			break
		}
	}
	require.ErrorIs(t, new(crew).run(func() {}), base.CodeBusy, "the zero crew refuses everything")
}
