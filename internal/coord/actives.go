package coord

import (
	"iter"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
)

// actives is which active segments a shard has, by range and by the nodes of their replicas. The shard's events keep it,
// so that what depends on a node is found without a look at every topic.
type actives struct {
	topics map[base.TopicID]map[base.RangeID]*active
	nodes  map[base.NodeID]map[base.RangeRef]bool
}

// active is one of them.
type active struct {
	*meta.Segment

	ref     base.RangeRef
	config  base.TopicConfig // of its topic
	ordered time.Time        // when its leader was asked to end it; zero: never
}

func newActives() actives {
	return actives{
		topics: make(map[base.TopicID]map[base.RangeID]*active), nodes: make(map[base.NodeID]map[base.RangeRef]bool),
	}
}

// get is a range's active segment, or nil.
func (as *actives) get(ref base.RangeRef) *active { return as.topics[ref.Topic][ref.Range] }

// set notes what a range's active segment is by now. It returns it if it is another one than before.
func (as *actives) set(ref base.RangeRef, seg *meta.Segment, config base.TopicConfig) *active {
	old := as.get(ref)
	if old != nil && seg != nil && old.ID == seg.ID {
		old.Segment, old.config = seg, config
		return nil
	}
	as.remove(ref)
	if seg == nil {
		return nil
	}
	a := &active{Segment: seg, ref: ref, config: config}
	if as.topics[ref.Topic] == nil {
		as.topics[ref.Topic] = make(map[base.RangeID]*active, 1)
	}
	as.topics[ref.Topic][ref.Range] = a
	for _, r := range seg.Replicas {
		if as.nodes[r.Node] == nil {
			as.nodes[r.Node] = make(map[base.RangeRef]bool)
		}
		as.nodes[r.Node][ref] = true
	}
	return a
}

func (as *actives) remove(ref base.RangeRef) {
	old := as.get(ref)
	if old == nil {
		return
	}
	for _, r := range old.Replicas {
		delete(as.nodes[r.Node], ref)
		if len(as.nodes[r.Node]) == 0 {
			delete(as.nodes, r.Node)
		}
	}
	delete(as.topics[ref.Topic], ref.Range)
	if len(as.topics[ref.Topic]) == 0 {
		delete(as.topics, ref.Topic)
	}
}

// drop forgets a topic.
func (as *actives) drop(topic base.TopicID) {
	for id := range as.topics[topic] {
		as.remove(base.RangeRef{Topic: topic, Range: id})
	}
}

// on yields the segments that a node has a replica of.
func (as *actives) on(node base.NodeID) iter.Seq[*active] {
	return func(yield func(*active) bool) {
		for ref := range as.nodes[node] {
			if !yield(as.get(ref)) {
				return
			}
		}
	}
}

// ledBy yields the segments that a node leads.
func (as *actives) ledBy(node base.NodeID) iter.Seq[*active] {
	return func(yield func(*active) bool) {
		for a := range as.on(node) {
			if a.Leader().Node == node && !yield(a) {
				return
			}
		}
	}
}
