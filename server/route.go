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
	s.wantLeaders(f)
	return wire.RouteResponse{Topic: s.topicRoute(f.Topic, f.shard)}, nil
}

// wantLeaders tells the coordinator, which is on this node, of the topic's ranges whose leaders are away: who asks for
// the route waits for them, and they go before those that nobody asks for.
func (s *Server) wantLeaders(f found) {
	view := s.connected()
	for _, r := range f.Ranges {
		if seg := r.Active(); seg != nil && seg.Leader().Node != s.id.Node && !lives(view, seg.Leader().Node) {
			s.want(base.RangeRef{Topic: f.ID, Range: r.ID})
		}
	}
}
