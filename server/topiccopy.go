package server

import (
	"context"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/peer"
)

// topicCopy is a topic as committed a moment ago: from the replica of its shard that is here, else from the shard's
// leader. It is for questions to which a moment's old answer is as good as any.
func (s *Server) topicCopy(ctx context.Context, op string, id base.TopicID) (*meta.Topic, error) {
	shard, err := s.findTopic(ctx, op, id)
	if err != nil {
		return nil, err
	}
	if t := s.topicHere(shard, id); t != nil {
		return t, nil
	}
	leader := s.shardLeader(shard)
	if leader == "" || leader == s.id.Node {
		return nil, base.Errorf(base.CodeNoLeader, op, "nobody is known to lead shard %s", shard)
	}
	t, err := callPeer[meta.Topic](ctx, s.peerCalls(), leader, kindTopicCopy, topicCopyMessage{Shard: shard, Topic: id})
	if err != nil {
		return nil, err
	}
	return &t, nil
}

// topicHere is a topic in this node's replica of a shard, or nil.
func (s *Server) topicHere(shard base.ShardID, id base.TopicID) (t *meta.Topic) {
	_ = s.host.ViewStale(shard, func(st *meta.State) error { // fails where the shard is not hosted: nothing is found
		t = st.Topic(id)
		return nil
	})
	return t
}

// rangeLeader is the node that leads a range's active segment, as far as the replicas here know; "" when they do not.
func (s *Server) rangeLeader(ref base.RangeRef) base.NodeID {
	shard, ok := s.topics.get(ref.Topic)
	if !ok {
		if shard, ok = s.findHere(ref.Topic); !ok {
			return ""
		}
	}
	t := s.topicHere(shard, ref.Topic)
	if t == nil || t.Range(ref.Range) == nil || t.Range(ref.Range).Active() == nil {
		return ""
	}
	return t.Range(ref.Range).Active().Leader().Node
}

type topicCopyMessage struct {
	Shard base.ShardID `cbor:"1,keyasint"`
	Topic base.TopicID `cbor:"2,keyasint"`
}

func (s *Server) takeTopicCopy(_ context.Context, _ *peer.Request, m topicCopyMessage) (meta.Topic, error) {
	if t := s.topicHere(m.Shard, m.Topic); t != nil {
		return *t, nil
	}
	return meta.Topic{}, base.Errorf(base.CodeTopicNotFound, "copy topic", "topic %s not found in shard %s", m.Topic, m.Shard)
}
