package server

import (
	"context"
	"time"

	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/wire"
)

// deleteTopic removes a topic. When it answers, the name is free; the files go as their holders confirm.
func (s *Server) deleteTopic(ctx context.Context, req wire.DeleteTopicRequest) (wire.DeleteTopicResponse, error) {
	const op = "delete topic"
	f, err := s.userTopic(ctx, op, req.Name, req.Topic)
	if err != nil {
		return wire.DeleteTopicResponse{}, err
	}
	sum := s.topicSummary(f.Topic, f.shard, s.shardLeader(f.shard))
	cmd := meta.Command{
		RequestID: req.RequestID, TimeMs: time.Now().UnixMilli(),
		DeleteTopic: &meta.DeleteTopic{Topic: f.ID, ExpectVersion: req.ExpectVersion},
	}
	result, err := s.decide(ctx, op, f.shard, cmd, req.DryRun)
	if err != nil {
		return wire.DeleteTopicResponse{}, err
	}
	return wire.DeleteTopicResponse{
		Topic: f.ID, Ranges: result.Ranges, Segments: result.Segments,
		Bytes:   max(result.Bytes, sum.Bytes), // metadata knows the sealed segments' bytes, the store those of the active ones
		Version: f.Version, DryRun: req.DryRun,
	}, nil
}
