package server

import (
	"context"
	"slices"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/shard"
	"github.com/eastguard/eastguard/internal/topology"
	"github.com/eastguard/eastguard/internal/wire"
)

// transferShard hands the leadership of a shard led here to another of its voters.
func (s *Server) transferShard(ctx context.Context, id base.ShardID, req wire.TransferShardRequest) (wire.TransferShardResponse, error) {
	const op = "transfer shard"
	resp := wire.TransferShardResponse{
		Move: wire.ShardMove{Shard: id, From: s.id.Node, To: req.To}, DryRun: req.DryRun,
	}
	if err := s.mustBeShard(op, id); err != nil {
		return resp, err
	}
	if err := s.mustKnow(op, req.To); err != nil {
		return resp, err
	}
	leader, term := s.host.Leader(id)
	if leader != s.id.Node { // the router brought it here, and the leadership went meanwhile
		return resp, base.Errorf(base.CodeNotLeader, op, "shard %s is not led here", id).WithOutcome(base.NotApplied)
	}
	resp.Move.Term = term
	if voters := s.host.Voters(id); !slices.Contains(voters, req.To) {
		return resp, base.Errorf(base.CodePreconditionFailed, op, "node %s does not vote in shard %s, %v do", req.To, id, voters)
	}
	if req.To == s.id.Node {
		return resp, nil
	}
	if to, _ := s.connected().Node(req.To); to.Liveness != topology.Alive {
		return resp, base.Errorf(base.CodePreconditionFailed, op, "node %s cannot take over shard %s: it is away (%s)", req.To, id, to.Liveness).
			WithHint("see who is there: eg-cli node list")
	}
	if req.DryRun {
		return resp, nil
	}
	move, err := s.host.Transfer(ctx, id, req.To)
	switch base.CodeOf(err) {
	case base.CodeUnreachable, base.CodeShuttingDown: // the other node, not this one: nobody else can do it instead
		return resp, base.Errorf(base.CodePreconditionFailed, op, "node %s cannot take over shard %s: %w", req.To, id, err)
	}
	if err != nil {
		return resp, err
	}
	resp.Move = wireMove(move)
	return resp, nil
}

func wireMove(m shard.Move) wire.ShardMove {
	w := wire.ShardMove{Shard: m.Shard, From: m.From, To: m.To, Term: m.Term, LeaderlessUs: m.Leaderless.Microseconds()}
	if m.Err != nil {
		w.Error = m.Err.Error()
	}
	return w
}
