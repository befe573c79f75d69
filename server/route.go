package server

import (
	"context"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/wire"
)

// route tells a client everything it needs to reach a topic.
func (s *Server) route(ctx context.Context, shard base.ShardID, req wire.RouteRequest) (wire.RouteResponse, error) {
	f, err := s.topic(ctx, "route", shard, req.Name, req.Topic)
	if err != nil {
		return wire.RouteResponse{}, err
	}
	return wire.RouteResponse{Topic: s.topicRoute(f.Topic, f.shard)}, nil
}
