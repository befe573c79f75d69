package store

import "github.com/eastguard/eastguard/internal/base"

// maxTombstones is how many topics that were dropped are remembered. What still asks for a topic is on its way since
// before its deletion was committed; so many others are not deleted meanwhile.
const maxTombstones = 4096

// tombstones are the topics whose drop is durable, the newest of them. Nothing of such a topic is listed again, whatever
// comes late: an assignment, a fence, or a record that met a full disk and was tried again behind the drop. The zero
// value is empty; Store.mu guards it.
type tombstones struct {
	known map[base.TopicID]struct{}
	order []base.TopicID // oldest first
}

func (t *tombstones) add(topic base.TopicID) {
	if t.has(topic) {
		return
	}
	if t.known == nil {
		t.known = map[base.TopicID]struct{}{}
	}
	if len(t.order) >= maxTombstones {
		delete(t.known, t.order[0])
		t.order = t.order[1:]
	}
	t.known[topic] = struct{}{}
	t.order = append(t.order, topic)
}

func (t *tombstones) has(topic base.TopicID) bool {
	_, ok := t.known[topic]
	return ok
}

// isDropped reports whether the topic's drop was asked for. mu is held.
func (s *Store) isDropped(topic base.TopicID) bool {
	_, dropping := s.droppingTopics[topic]
	return dropping || s.tombstones.has(topic)
}

func topicDropped(op string, topic base.TopicID) error {
	return base.Errorf(base.CodeTopicDeleting, op, "topic %s was removed from this node", topic)
}
