package server

import (
	"context"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/keyspace"
	"github.com/eastguard/eastguard/internal/wire"
)

// locateShard says which shard holds a topic of a name, whether there is one or not: any node can work that out. Who
// votes in it is asked of its leader; if nobody answers, it is what this node knows, or what the ring says.
func (s *Server) locateShard(ctx context.Context, req wire.LocateShardRequest) (wire.LocateShardResponse, error) {
	if err := base.CheckTopicName(req.Topic); err != nil {
		return wire.LocateShardResponse{}, err
	}
	id := s.host.ShardOf(req.Topic)
	resp := wire.LocateShardResponse{Hash: keyspace.HashKey([]byte(req.Topic)), Shard: id, Leader: s.shardLeader(id)}
	if d, err := s.describeShard(ctx, wire.DescribeShardRequest{Shard: id}); err == nil {
		resp.Voters, resp.Leader = d.Status.Voters, d.Status.Leader
	} else {
		resp.Voters = s.intendedVoters(id)
	}
	return resp, nil
}
