package server

import (
	"context"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/wire"
)

// deleteTopic removes a topic. When it answers, the name is free; the files go as their holders confirm. A retry with
// the same request id gets the same answer.
func (s *Server) deleteTopic(ctx context.Context, shard base.ShardID, req wire.DeleteTopicRequest) (wire.DeleteTopicResponse, error) {
	const op = "delete topic"
	f, err := s.userTopic(ctx, op, shard, req.Name, req.Topic)
	if err != nil {
		return s.deletedBefore(ctx, op, shard, req, err)
	}
	sum := s.topicSummary(f.Topic, f.shard, s.shardLeader(f.shard), s.extents(ctx, f.Topic))
	result, err := s.decide(ctx, op, f.shard, deletion(req, f.ID), req.DryRun)
	if err != nil {
		return wire.DeleteTopicResponse{}, err
	}
	// Metadata knows the sealed segments' bytes, the store those of the active ones.
	return deleted(result, max(result.Bytes, sum.Bytes), req.DryRun), nil
}

// deletedBefore answers for a topic that is not there, or whose name means another one by now: an earlier try of the
// same request may be why, and the shard remembers what that one did.
func (s *Server) deletedBefore(ctx context.Context, op string, shard base.ShardID, req wire.DeleteTopicRequest, cause error) (wire.DeleteTopicResponse, error) {
	code := base.CodeOf(cause)
	if req.DryRun || code != base.CodeTopicNotFound && code != base.CodePreconditionFailed || base.CheckTopicName(req.Name) != nil {
		return wire.DeleteTopicResponse{}, cause
	}
	result, err := s.propose(ctx, op, shard, deletion(req, req.Topic))
	switch {
	case base.CodeOf(err) == base.CodeTopicNotFound:
		return wire.DeleteTopicResponse{}, cause
	case err != nil:
		return wire.DeleteTopicResponse{}, err
	}
	return deleted(result, result.Bytes, false), nil
}

func deletion(req wire.DeleteTopicRequest, id base.TopicID) meta.Command {
	return meta.Command{
		RequestID: req.RequestID, TimeMs: time.Now().UnixMilli(),
		DeleteTopic: &meta.DeleteTopic{Topic: id, Name: req.Name, ExpectVersion: req.ExpectVersion},
	}
}

func deleted(r meta.Result, bytes int64, dryRun bool) wire.DeleteTopicResponse {
	return wire.DeleteTopicResponse{
		Topic: r.TopicID, Ranges: r.Ranges, Segments: r.Segments, Bytes: bytes,
		Version: r.Version - 1, // the topic's last
		DryRun:  dryRun,
	}
}
