package server

import (
	"context"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
)

// found is a topic as its shard has committed it, and which shard that is.
type found struct {
	*meta.Topic
	shard base.ShardID
}

// topic reads a topic freshly: the answer holds everything that was committed before the question. It is found by name
// or, when that is empty, by id; with both, the name must still mean that id.
func (s *Server) topic(ctx context.Context, op string, shard base.ShardID, name string, id base.TopicID) (found, error) {
	f := found{shard: shard}
	err := s.host.View(ctx, shard, func(st *meta.State) error {
		if name == "" {
			f.Topic = st.Topic(id)
		} else {
			f.Topic = st.TopicByName(name)
		}
		return nil
	})
	switch {
	case err != nil:
		return found{}, err
	case f.Topic == nil && name == "":
		return found{}, base.Errorf(base.CodeTopicNotFound, op, "topic %s not found", id)
	case f.Topic == nil:
		return found{}, base.Errorf(base.CodeTopicNotFound, op, "topic %s not found", name)
	case !id.IsZero() && f.ID != id:
		return found{}, base.Errorf(base.CodePreconditionFailed, op, "the name %s belongs to another topic now", name)
	}
	return f, nil
}

// propose commits a command to a topic's shard and turns a refusal into an error.
func (s *Server) propose(ctx context.Context, op string, shard base.ShardID, cmd meta.Command) (meta.Result, error) {
	result, err := s.host.Propose(ctx, shard, cmd)
	if err != nil {
		return result, err
	}
	return result, result.Err(op)
}
