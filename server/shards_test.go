package server

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/internal/wire"
)

func TestShardsOfOneNode(t *testing.T) {
	n := start(t, vfs.NewMem())
	n.create("orders", base.TopicConfig{ReplicationFactor: 1})
	list := must[wire.ListShardsResponse](n, wire.KindListShards, wire.ListShardsRequest{})
	require.Empty(t, list.Missing)
	require.Len(t, list.Shards, 4)
	for i, sh := range list.Shards {
		require.Equal(t, base.ShardID{Root: uint16(i)}, sh.ID)
		require.Equal(t, base.NodeID("n1"), sh.Leader)
		require.Equal(t, []base.NodeID{"n1"}, sh.Voters)
		require.Equal(t, "ok", sh.State)
		require.True(t, sh.Hosted)
		require.Positive(t, sh.SinceMs)
		require.Zero(t, sh.Trails)
	}

	where := must[wire.LocateShardResponse](n, wire.KindLocateShard, wire.LocateShardRequest{Topic: "orders"})
	require.Equal(t, n.host.ShardOf("orders"), where.Shard)
	require.Equal(t, []base.NodeID{"n1"}, where.Voters)
	require.Equal(t, base.NodeID("n1"), where.Leader)
	require.Equal(t, 1, list.Shards[where.Shard.Root].Topics)
	require.True(t, where.Shard.Contains(where.Hash, 4), "the hash says which")

	d := must[wire.DescribeShardResponse](n, wire.KindDescribeShard, wire.DescribeShardRequest{Shard: where.Shard})
	require.Equal(t, base.NodeID("n1"), d.Observer)
	require.Len(t, d.Members, 1)
	require.True(t, d.Members[0].Leader)
	require.True(t, d.Members[0].Voter)
	require.Equal(t, n.id.Meta, d.Members[0].Server)
	require.Equal(t, d.LastIndex, d.Members[0].Match)
	require.Equal(t, "LEADER_CHANGED", d.Events[len(d.Events)-1].Type)
	require.Equal(t, "n1", d.Events[len(d.Events)-1].After)
}

func TestShardRequestsAreRefused(t *testing.T) {
	n := start(t, vfs.NewMem())
	for _, beyond := range []base.ShardID{{Root: 4}, {Root: 1, PathLen: 1}} {
		rejected(n, base.CodeShardNotFound, wire.KindDescribeShard, wire.DescribeShardRequest{Shard: beyond})
		rejected(n, base.CodeShardNotFound, wire.KindTransferShard, wire.TransferShardRequest{Shard: beyond, To: "n1"})
		rejected(n, base.CodeShardNotFound, wire.KindRecoverShard, wire.RecoverShardRequest{Shard: beyond, AcceptLoss: true})
	}
	rejected(n, base.CodeInvalidTopicName, wire.KindLocateShard, wire.LocateShardRequest{Topic: "a/b"})
	rejected(n, base.CodeNodeNotFound, wire.KindTransferShard, wire.TransferShardRequest{To: "n9"})

	e := rejected(n, base.CodeInvalidArgument, wire.KindRecoverShard, wire.RecoverShardRequest{})
	require.Contains(t, e.HintText(), "shard recover 0 --dry-run")
	_, _, err := call[wire.RecoverShardResponse](n, wire.KindRecoverShard, wire.RecoverShardRequest{AcceptLoss: true})
	require.Error(t, err, "a shard with a leader has lost nothing")
}

// To move a leadership where it is, and to even out what is even, changes nothing.
func TestNothingToMove(t *testing.T) {
	n := start(t, vfs.NewMem())
	for _, dryRun := range []bool{true, false} {
		moved := must[wire.TransferShardResponse](n, wire.KindTransferShard, wire.TransferShardRequest{To: "n1", DryRun: dryRun})
		require.Equal(t, base.NodeID("n1"), moved.Move.From)
		require.Equal(t, base.NodeID("n1"), moved.Move.To)
		require.Empty(t, moved.Move.Error)
		even := must[wire.BalanceShardsResponse](n, wire.KindBalanceShards, wire.BalanceShardsRequest{DryRun: dryRun})
		require.Empty(t, even.Moves)
	}
}
