package server

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/wire"
)

// A node that does not answer may lead more than its share: it is named.
func TestBalanceNamesWhoDidNotAnswer(t *testing.T) {
	t.Parallel()
	machines := threeMachines(t)
	silent := func(context.Context, []byte) ([]byte, error) {
		return nil, base.Errorf(base.CodeTimeout, "balance", "no")
	}
	machines[2].srv.answers[askBalance] = silent
	n1 := machines[0].client()
	resp := must[wire.BalanceShardsResponse](n1, wire.KindBalanceShards, wire.BalanceShardsRequest{DryRun: true})
	require.Equal(t, []base.NodeID{"n3"}, resp.Missing)

	machines[0].srv.answers[askBalance], machines[1].srv.answers[askBalance] = silent, silent
	rejected(n1, base.CodeTimeout, wire.KindBalanceShards, wire.BalanceShardsRequest{DryRun: true})
}
