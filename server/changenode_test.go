package server

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
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
