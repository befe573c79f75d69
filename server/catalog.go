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

// topicByName reads a topic freshly: the answer holds everything that was committed before the question.
func (s *Server) topicByName(ctx context.Context, op, name string) (found, error) {
	f := found{shard: s.host.ShardOf(name)}
	err := s.host.View(ctx, f.shard, func(st *meta.State) error {
		f.Topic = st.TopicByName(name)
		return nil
	})
	if err == nil && f.Topic == nil {
		err = base.Errorf(base.CodeTopicNotFound, op, "topic %s not found", name)
	}
	return f, err
}

// topicByID finds a topic of which only the id is known. The id does not say which shard has it; the copies that are
// here do, and since an id is never used again a stale copy can only be wrong about a topic that has gone.
func (s *Server) topicByID(ctx context.Context, op string, id base.TopicID) (found, error) {
	for _, status := range s.host.Status() {
		var name string
		if err := s.host.ViewStale(status.ID, func(st *meta.State) error {
			if t := st.Topic(id); t != nil {
				name = t.Name
			}
			return nil
		}); err != nil || name == "" {
			continue
		}
		f, err := s.topicByName(ctx, op, name)
		if err == nil && f.ID != id {
			break // the name means another topic now
		}
		return f, err
	}
	return found{}, base.Errorf(base.CodeTopicNotFound, op, "topic %s not found", id)
}

// topic finds a topic by name or, when that is empty, by id. With both, the name must still mean that id.
func (s *Server) topic(ctx context.Context, op, name string, id base.TopicID) (found, error) {
	if name == "" {
		return s.topicByID(ctx, op, id)
	}
	f, err := s.topicByName(ctx, op, name)
	if err == nil && !id.IsZero() && f.ID != id {
		return found{}, base.Errorf(base.CodePreconditionFailed, op, "the name %s belongs to another topic now", name)
	}
	return f, err
}

// propose commits a command to a topic's shard and turns a refusal into an error.
func (s *Server) propose(ctx context.Context, op string, shard base.ShardID, cmd meta.Command) (meta.Result, error) {
	result, err := s.host.Propose(ctx, shard, cmd)
	if err != nil {
		return result, err
	}
	return result, result.Err(op)
}
