package sdk

import (
	"sync"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/wire"
)

// leaders remembers which node decides about a topic (leads its shard), as answers and redirects name it. Any broker
// would do; this one saves the request a hop. Errors correct it, and nothing expires by time.
type leaders struct {
	mu sync.Mutex
	m  map[string]base.NodeID // by the topic's name
}

// maxLeaders bounds what a client that touches very many topics remembers.
const maxLeaders = 4096

func (l *leaders) of(topic string) base.NodeID {
	if topic == "" {
		return ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.m[topic]
}

func (l *leaders) learn(topic string, node base.NodeID) {
	if topic == "" || node == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.m == nil {
		l.m = make(map[string]base.NodeID)
	}
	if _, known := l.m[topic]; !known && len(l.m) >= maxLeaders {
		for old := range l.m { // any one
			delete(l.m, old)
			break
		}
	}
	l.m[topic] = node
}

// forget drops what proved wrong, unless somebody has put it right already.
func (l *leaders) forget(topic string, node base.NodeID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.m[topic] == node {
		delete(l.m, topic)
	}
}

// topicOf is the name of the topic that a request is about; empty when it is about none, or about one by its id.
func topicOf(req any) string {
	switch q := req.(type) {
	case wire.RouteRequest:
		return q.Name
	case wire.LocateRequest:
		return q.Name
	case wire.CreateTopicRequest:
		return q.Name
	case wire.AlterTopicRequest:
		return q.Name
	case wire.DeleteTopicRequest:
		return q.Name
	case wire.DescribeTopicRequest:
		return q.Name
	case wire.OpenProducerRequest:
		return q.TopicName
	}
	return ""
}

// decider is the node that an answer names as the one to ask next time, and the addresses that came with it.
func decider(resp any) (base.NodeID, []wire.NodeAddress) {
	switch a := resp.(type) {
	case *wire.RouteResponse:
		return a.Topic.ShardLeader, a.Topic.Nodes
	case *wire.CreateTopicResponse:
		return a.ShardLeader, a.Topic.Nodes
	case *wire.DescribeTopicResponse:
		return a.Topic.Summary.ShardLeader, a.Topic.Nodes
	case *wire.LocateResponse:
		return "", a.Nodes
	}
	return "", nil
}
