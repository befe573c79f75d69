package server

import (
	"context"
	"errors"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/peer"
)

// topicCopy is a topic as committed a moment ago: from the replica of its shard that is here, else from one elsewhere.
// It is for questions to which a moment's old answer is as good as any.
func (s *Server) topicCopy(ctx context.Context, op string, id base.TopicID) (*meta.Topic, error) {
	shard, err := s.findTopic(ctx, op, id)
	if err != nil {
		return nil, err
	}
	m := topicCopyMessage{Shard: shard, Topic: id}
	t, err := s.provenTopicHere(ctx, op, m)
	if err == nil || errors.Is(err, base.CodeTopicNotFound) {
		return t, err
	}
	view := s.connected()
	for _, node := range s.replicasOf(shard) { // the leader first
		if node == s.id.Node || !lives(view, node) {
			continue
		}
		t, answer := s.askTopicCopy(ctx, node, m)
		if answer == nil || errors.Is(answer, base.CodeTopicNotFound) {
			return &t, answer
		}
	}
	return nil, err
}

// askTopicCopy asks one of the nodes that may know, which must not use up the time of the others.
func (s *Server) askTopicCopy(ctx context.Context, node base.NodeID, m topicCopyMessage) (meta.Topic, error) {
	ctx, cancel := context.WithTimeout(ctx, collectWithin)
	defer cancel()
	return callPeer[meta.Topic](ctx, s.peerCalls(), node, kindTopicCopy, m)
}

// topicHere is a topic in this node's replica of a shard, or nil.
func (s *Server) topicHere(shard base.ShardID, id base.TopicID) (t *meta.Topic) {
	_ = s.host.ViewStale(shard, func(st *meta.State) error { // fails where the shard is not hosted: nothing is found
		t = st.Topic(id)
		return nil
	})
	return t
}

// provenTopicHere is a topic in this node's replica of a shard. That it is not there may only say that the replica is
// behind: that there is no such topic, only the leader of the shard can say.
func (s *Server) provenTopicHere(ctx context.Context, op string, m topicCopyMessage) (*meta.Topic, error) {
	t := s.topicHere(m.Shard, m.Topic)
	if t != nil {
		return t, nil
	}
	ctx, cancel := context.WithTimeout(ctx, collectWithin)
	defer cancel()
	err := s.host.View(ctx, m.Shard, func(st *meta.State) error {
		t = st.Topic(m.Topic)
		return nil
	})
	switch {
	case err != nil:
		return nil, base.Errorf(base.CodeNoLeader, op, "topic %s was not found, and no leader of shard %s says that there is none", m.Topic, m.Shard)
	case t == nil:
		return nil, base.Errorf(base.CodeTopicNotFound, op, "topic %s not found in shard %s", m.Topic, m.Shard)
	}
	return t, nil
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

func (s *Server) takeTopicCopy(ctx context.Context, _ *peer.Request, m topicCopyMessage) (meta.Topic, error) {
	t, err := s.provenTopicHere(ctx, "copy topic", m)
	if err != nil {
		return meta.Topic{}, err
	}
	return *t, nil
}
