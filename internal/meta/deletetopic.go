package meta

import (
	"cmp"
	"slices"

	"github.com/eastguard/eastguard/internal/base"
)

func (a *applier) deleteTopic(cmd *DeleteTopic) Result {
	s := a.state
	t, err := s.find(cmd.Topic, cmd.Name, cmd.ExpectVersion)
	if err != nil {
		return refuse(err)
	}
	delete(s.topics, t.ID)
	delete(s.names, t.Name)
	holders := t.holders()
	s.tombs[t.ID] = &Tombstone{Topic: t.ID, Name: t.Name, Version: t.Version + 1, DeletedMs: s.nowMs, Waiting: holders}
	segments, bytes, _ := t.Totals()
	a.emit(Event{Type: EventTopicDeleted, Topic: t.ID, Name: t.Name, Bytes: bytes, Holders: holders})
	return Result{TopicID: t.ID, Version: t.Version + 1, Ranges: len(t.Ranges), Segments: segments, Bytes: bytes}
}

// holders lists every disk that may hold something of the topic, sorted.
func (t *Topic) holders() []base.Replica {
	var all []*Segment
	for _, r := range t.Ranges {
		all = append(all, r.Placed()...)
	}
	return holdersOf(all)
}

func holdersOf(segments []*Segment) []base.Replica {
	seen := make(map[base.Replica]bool)
	var holders []base.Replica
	for _, s := range segments {
		for _, h := range s.Replicas {
			if !seen[h] {
				seen[h] = true
				holders = append(holders, h)
			}
		}
	}
	slices.SortFunc(holders, compareReplicas)
	return holders
}

func compareReplicas(a, b base.Replica) int {
	return cmp.Or(cmp.Compare(a.Node, b.Node), slices.Compare(a.Disk[:], b.Disk[:]))
}

// topicsGone crosses off the disks that have confirmed; the last one takes the tombstone with it.
func (a *applier) topicsGone(gone []TopicGone) Result {
	s := a.state
	for _, g := range gone {
		tomb := s.tombs[g.Topic]
		if tomb == nil {
			continue
		}
		i := slices.Index(tomb.Waiting, g.Replica)
		if i < 0 {
			continue
		}
		if len(tomb.Waiting) == 1 {
			delete(s.tombs, g.Topic)
			a.emit(Event{Type: EventTopicGone, Topic: tomb.Topic, Name: tomb.Name})
			continue
		}
		next := *tomb
		next.Waiting = slices.Delete(slices.Clone(tomb.Waiting), i, i+1)
		s.tombs[g.Topic] = &next
	}
	return Result{}
}
