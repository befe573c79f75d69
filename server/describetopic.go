package server

import (
	"context"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/wire"
)

// describeTopic tells everything about one topic.
func (s *Server) describeTopic(ctx context.Context, shard base.ShardID, req wire.DescribeTopicRequest) (wire.DescribeTopicResponse, error) {
	const op = "describe topic"
	f, err := s.topic(ctx, op, shard, req.Name, req.Topic)
	switch code := base.CodeOf(err); {
	case err == nil:
		return wire.DescribeTopicResponse{Topic: s.topicDetail(f.Topic, f.shard, s.copies(ctx, f.Topic))}, nil
	case req.Name != "" && (code == base.CodeTopicNotFound || code == base.CodePreconditionFailed):
		return s.describeDeleted(ctx, shard, req, err)
	}
	return wire.DescribeTopicResponse{}, err
}

// describeDeleted finds a topic among those whose files are being removed. cause is the answer when it is not there.
func (s *Server) describeDeleted(ctx context.Context, shard base.ShardID, req wire.DescribeTopicRequest, cause error) (wire.DescribeTopicResponse, error) {
	var tomb *meta.Tombstone
	err := s.host.View(ctx, shard, func(st *meta.State) error {
		tomb = st.Tombstone(req.Topic)
		return nil
	})
	switch {
	case err != nil:
		return wire.DescribeTopicResponse{}, err
	case tomb == nil:
		return wire.DescribeTopicResponse{}, cause
	}
	return wire.DescribeTopicResponse{Topic: wire.TopicDetail{Summary: wire.TopicSummary{
		ID: tomb.Topic, Name: tomb.Name, Version: tomb.Version, State: base.StateDeleting, Shard: shard, ShardLeader: s.shardLeader(shard),
	}}}, nil
}
