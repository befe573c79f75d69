package sdk

import (
	"context"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/wire"
)

// ListShards lists every metadata shard as its leader sees it. A shard whose leader did not answer is listed as far
// as the answering node knows it, and named in Missing.
func (a *Admin) ListShards(ctx context.Context) (ShardList, error) {
	var resp ShardList
	err := a.do(ctx, wire.KindListShards, wire.ListShardsRequest{}, &resp)
	return resp, err
}

// DescribeShard tells everything about one shard. Errors: CodeShardNotFound.
func (a *Admin) DescribeShard(ctx context.Context, id ShardID) (ShardDetail, error) {
	var resp ShardDetail
	err := a.do(ctx, wire.KindDescribeShard, wire.DescribeShardRequest{Shard: id}, &resp)
	return resp, err
}

// LocateShard finds the shard that holds, or would hold, the topic of this name.
func (a *Admin) LocateShard(ctx context.Context, topic string) (LocatedShard, error) {
	if err := base.CheckTopicName(topic); err != nil {
		return LocatedShard{}, about("locate shard", err)
	}
	var resp LocatedShard
	err := a.do(ctx, wire.KindLocateShard, wire.LocateShardRequest{Topic: topic}, &resp)
	return resp, err
}

// TransferShard moves the leadership of a shard to one of its voters.
//
// Errors: CodeShardNotFound; CodeNodeNotFound; CodePreconditionFailed for a node that is no voter of the shard, or
// that is not caught up.
func (a *Admin) TransferShard(ctx context.Context, r TransferShard) (TransferredShard, error) {
	var resp TransferredShard
	err := a.do(ctx, wire.KindTransferShard, wire.TransferShardRequest{Shard: r.Shard, To: r.To, DryRun: r.DryRun}, &resp)
	return resp, err
}

// BalanceShards spreads the leaderships evenly over the nodes at once; the brokers do the same by themselves, slowly.
// A move that failed says so in its Error.
func (a *Admin) BalanceShards(ctx context.Context, dryRun bool) (BalancedShards, error) {
	var resp BalancedShards
	err := a.do(ctx, wire.KindBalanceShards, wire.BalanceShardsRequest{DryRun: dryRun}, &resp)
	return resp, err
}

// RecoverShard rebuilds a shard that has lost its quorum for good from the newest log that is left. What only the
// lost voters had is gone: the call is refused without AcceptLoss, unless it is a dry run.
//
// Errors: CodeShardNotFound; CodePreconditionFailed for a shard that has a leader or could choose one.
func (a *Admin) RecoverShard(ctx context.Context, r RecoverShard) (RecoveredShard, error) {
	var resp RecoveredShard
	err := a.do(ctx, wire.KindRecoverShard, wire.RecoverShardRequest{
		Shard: r.Shard, AcceptLoss: r.AcceptLoss, DryRun: r.DryRun,
	}, &resp)
	return resp, err
}
