package server

import (
	"context"

	"github.com/eastguard/eastguard/internal/wire"
)

// describeTopic tells everything about one topic.
func (s *Server) describeTopic(ctx context.Context, req wire.DescribeTopicRequest) (wire.DescribeTopicResponse, error) {
	f, err := s.topic(ctx, "describe topic", req.Name, req.Topic)
	if err != nil {
		return wire.DescribeTopicResponse{}, err
	}
	return wire.DescribeTopicResponse{Topic: s.topicDetail(f.Topic, f.shard)}, nil
}
