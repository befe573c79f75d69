package server

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/topology"
	"github.com/eastguard/eastguard/internal/wire"
)

// Nobody can say of a shard without a leader that it does without a node: then the node does not leave.
func TestLeaveNeedsTheShardsWord(t *testing.T) {
	t.Parallel()
	machines := threeMachines(t)
	n1 := machines[0].client()
	together(machines[1:], (*machine).stop)
	soon(t, "no shard has a leader", func() bool {
		silent := n1.gather(t.Context(), gatherRequest{Rests: "n1"}, func(gatherAnswer) {})
		return len(silent) == 4
	})
	e := rejected(n1, base.CodePreconditionFailed, wire.KindChangeNode, wire.ChangeNodeRequest{RequestID: requestID(), Node: "n1", Change: wire.NodeLeave})
	require.ErrorContains(t, e, "shards 0, 1, 2, 3")
	require.Empty(t, machines[0].srv.Retired(), "it was not told")
}

// Who was killed a moment ago is silent, and believed alive until membership is certain. That is not the refusal that one
// who lives gets: who asks again, as clients do, is heard in the end.
func TestReplaceOneThatWasJustKilled(t *testing.T) {
	t.Parallel()
	var cable *cable
	machines := threeMachines(t, func(m *machine) {
		if m.cfg.NodeID == "n3" {
			cable = m.wire()
		}
	})
	n1 := machines[0].client()
	defer cable.putBack()
	believed := topology.Node{ID: "n3", Liveness: topology.Alive}
	require.ErrorIs(t, n1.mustBeGone("node replace", believed), base.CodePreconditionFailed)

	cable.pull()
	soon(t, "n1's connection is silent", func() bool { return routedPeers{n1.Server}.Liveness()["n3"].Status != peer.Reachable })
	err := n1.mustBeGone("node replace", believed)
	require.ErrorIs(t, err, base.CodeUnreachable)
	require.ErrorContains(t, err, "not yet believed dead")
	require.NoError(t, n1.mustBeGone("node replace", topology.Node{ID: "n3", Liveness: topology.Dead}))
	soon(t, "n3 is believed dead", func() bool {
		a, _, err := call[wire.ChangeNodeResponse](n1, wire.KindChangeNode, wire.ChangeNodeRequest{RequestID: requestID(), Node: "n3", Change: wire.NodeReplace, DryRun: true})
		return err == nil && a.After == "dead, awaits another disk"
	})
}
