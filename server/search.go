package server

import (
	"context"
	"sync"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
)

// topicIndex remembers in which shard topics were found by id. A topic never changes its shard and an id is never used
// again, so what it holds cannot become wrong.
type topicIndex struct {
	mu sync.Mutex
	m  map[base.TopicID]base.ShardID
}

// maxIndexed bounds the index; clients know the names of topics and seldom ask by id alone.
const maxIndexed = 1 << 14

func (x *topicIndex) get(id base.TopicID) (base.ShardID, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	shard, ok := x.m[id]
	return shard, ok
}

func (x *topicIndex) put(id base.TopicID, shard base.ShardID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.m == nil {
		x.m = make(map[base.TopicID]base.ShardID)
	}
	if len(x.m) >= maxIndexed {
		for old := range x.m { // any one
			delete(x.m, old)
			break
		}
	}
	x.m[id] = shard
}

// findTopic finds the shard of a topic of which only the id is known: the id does not say. A replica here may be behind
// and still cannot be wrong about a topic that it has; that there is none, only the leaders of all shards can say.
func (s *Server) findTopic(ctx context.Context, op string, id base.TopicID) (base.ShardID, error) {
	if shard, ok := s.topics.get(id); ok {
		return shard, nil
	}
	shard, ok := s.findHere(id)
	if !ok {
		missing := s.gather(ctx, gatherRequest{Find: id}, func(a gatherAnswer) {
			if a.Found != nil {
				shard, ok = *a.Found, true
			}
		})
		switch {
		case ok:
		case len(missing) > 0:
			return shard, base.Errorf(base.CodeNoLeader, op, "topic %s was not found, and %d shards did not answer", id, len(missing)).
				WithHint("ask by the topic's name, or again when the shards have leaders: eg-cli shard list")
		default:
			return shard, base.Errorf(base.CodeTopicNotFound, op, "topic %s not found", id)
		}
	}
	s.topics.put(id, shard)
	return shard, nil
}

// findHere looks through the replicas on this node.
func (s *Server) findHere(id base.TopicID) (shard base.ShardID, ok bool) {
	for _, candidate := range s.allShards() {
		if !s.host.Hosts(candidate) {
			continue
		}
		has := false
		_ = s.host.ViewStale(candidate, func(st *meta.State) error { // one that cannot be read does not have it
			has = st.Topic(id) != nil
			return nil
		})
		if has {
			return candidate, true
		}
	}
	return shard, false
}
