package server

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/wire"
)

// A node that does not answer may lead more than its share: it is named.
func TestBalanceNamesWhoDidNotAnswer(t *testing.T) {
	t.Parallel()
	machines := threeMachines(t)
	machines[2].srv.progress.done.Store(false) // as while it starts: it answers no questions
	n1 := machines[0].client()
	resp := must[wire.BalanceShardsResponse](n1, wire.KindBalanceShards, wire.BalanceShardsRequest{DryRun: true})
	require.Equal(t, []base.NodeID{"n3"}, resp.Missing)
}
