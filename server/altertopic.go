package server

import (
	"context"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/planner"
	"github.com/eastguard/eastguard/internal/wire"
)

// alterTopic changes settings. A dry run goes through the same checks, on a copy.
func (s *Server) alterTopic(ctx context.Context, shard base.ShardID, req wire.AlterTopicRequest) (wire.AlterTopicResponse, error) {
	const op = "alter topic"
	f, err := s.userTopic(ctx, op, shard, req.Name, req.Topic)
	if err != nil {
		return wire.AlterTopicResponse{}, err
	}
	// Whether there are nodes enough is known here alone; the rest the state machine checks.
	if next := f.Config; next.Alter(req.Set, req.Unset) == nil && next.ReplicationFactor > f.Config.ReplicationFactor {
		enough := func() error { return planner.CheckReplication(next, s.view()) }
		if err := s.withComing(ctx, enough); err != nil {
			return wire.AlterTopicResponse{}, err
		}
	}
	cmd := meta.Command{
		RequestID: req.RequestID, TimeMs: time.Now().UnixMilli(),
		AlterTopic: &meta.AlterTopic{Topic: f.ID, ExpectVersion: req.ExpectVersion, Set: req.Set, Unset: req.Unset},
	}
	result, err := s.decide(ctx, op, f.shard, cmd, req.DryRun)
	if err != nil {
		return wire.AlterTopicResponse{}, err
	}
	return wire.AlterTopicResponse{
		Before: result.Before, After: result.After, Version: result.Version, Topic: f.ID, DryRun: req.DryRun,
	}, nil
}

// userTopic finds a topic that a user may change.
func (s *Server) userTopic(ctx context.Context, op string, shard base.ShardID, name string, id base.TopicID) (found, error) {
	f, err := s.topic(ctx, op, shard, name, id)
	if err == nil && f.Internal {
		return found{}, base.Errorf(base.CodeDenied, op, "topic %s is internal", f.Name).WithHint("internal topics are managed by the brokers")
	}
	return f, err
}

// decide commits a command, or with dryRun says what it would do.
func (s *Server) decide(ctx context.Context, op string, shard base.ShardID, cmd meta.Command, dryRun bool) (meta.Result, error) {
	if !dryRun {
		return s.propose(ctx, op, shard, cmd)
	}
	var result meta.Result
	err := s.host.View(ctx, shard, func(st *meta.State) error {
		result = st.DryRun(cmd)
		return result.Err(op)
	})
	return result, err
}
