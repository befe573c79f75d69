package server

import (
	"context"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/wire"
)

// recoverTimeout is longer than that of other requests: a whole snapshot may have to be read and written.
const recoverTimeout = 40 * time.Second

// recoverShard rebuilds a shard that lost its quorum for good from the newest log that is left. Any node can do it.
func (s *Server) recoverShard(ctx context.Context, req wire.RecoverShardRequest) (wire.RecoverShardResponse, error) {
	const op = "recover shard"
	resp := wire.RecoverShardResponse{Shard: req.Shard, DryRun: req.DryRun}
	if err := s.mustBeShard(op, req.Shard); err != nil {
		return resp, err
	}
	if !req.DryRun && !req.AcceptLoss {
		return resp, base.Errorf(base.CodeInvalidArgument, op, "what only the lost replicas of shard %s had committed is lost by this, and that has to be accepted", req.Shard).
			WithHint("look first: eg-cli shard recover %s --dry-run", req.Shard)
	}
	r, err := s.host.Recover(ctx, req.Shard, req.DryRun)
	if err != nil {
		return resp, err
	}
	resp.Lost, resp.Generation = r.Lost, r.Generation
	for _, l := range r.Logs {
		resp.Logs = append(resp.Logs, wire.ShardLog{
			Node: l.Node, Server: l.Server, Term: l.Term, Index: l.Index, Chosen: l.Chosen, Archived: l.Archived,
		})
	}
	return resp, nil
}
