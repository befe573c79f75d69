package seal

import (
	"fmt"

	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/replica"
)

// model is what a search needs beside its states: every state of a core and of metadata by number, and the answers to
// every question that was put to them.
type model struct {
	*cores

	bounds bounds
	plant  plant
	passed milestone

	shards    []*shard
	shardIDs  map[string]metaID
	commits   map[commitCall]metaID
	proposals []*proposal
	commands  map[string]commandID
	plans     map[planCall]commandID
}

type commitCall struct {
	meta    metaID
	command commandID
}

// planCall is a question to a coordinator: one end that a leader asks for, or a set of answers.
type planCall struct {
	meta    metaID
	look    look
	end     int8 // -1: by the answers
	answers [replicas]answer
}

func newModel(b bounds, broken plant) *model {
	m := &model{
		cores: newCores(), bounds: b, plant: broken,
		shardIDs: make(map[string]metaID), commits: make(map[commitCall]metaID),
		proposals: make([]*proposal, 1), commands: make(map[string]commandID), plans: make(map[planCall]commandID),
	}
	m.keepShard(found(&b))
	return m
}

// initial is the system after a topic was created and its first segment opened: on all replicas, or where opens may be
// late on the leader alone.
func (m *model) initial() world {
	r := run{model: m}
	for at := range r.w.nodes {
		r.w.nodes[at].boot = 1
	}
	r.told(0, 0)
	r.fsync(0)
	for at := 1; at < replicas && !m.bounds.late; at++ {
		r.arriveOpen(at, 0)
		r.fsync(at)
	}
	return r.w
}

func (m *model) keepShard(s *shard) metaID {
	key := s.key()
	id, ok := m.shardIDs[key]
	if !ok {
		id = metaID(len(m.shards))
		m.shards = append(m.shards, s)
		m.shardIDs[key] = id
	}
	return id
}

func (m *model) keepProposal(p *proposal) commandID {
	key := p.key()
	id, ok := m.commands[key]
	if !ok {
		id = commandID(len(m.proposals))
		m.proposals = append(m.proposals, p)
		m.commands[key] = id
	}
	return id
}

// commit is meta.State.Apply, asked once.
func (m *model) commit(at metaID, cmd commandID) metaID {
	call := commitCall{at, cmd}
	if id, ok := m.commits[call]; ok {
		return id
	}
	p := m.proposals[cmd]
	if m.plant.unguardedRoll {
		active := &m.shards[at].segments[m.shards[at].active()]
		free := *p
		free.Segment, free.Epoch = active.ID, active.Epoch
		p = &free
	}
	next, err := m.shards[at].commit(p)
	if err != nil {
		panic(err)
	}
	id := m.keepShard(next)
	m.commits[call] = id
	return id
}

// plan is planner.Make, asked once; 0 when it would rather wait.
func (m *model) plan(call planCall) commandID {
	if id, ok := m.plans[call]; ok {
		return id
	}
	s := m.shards[call.meta]
	var p *proposal
	var ok bool
	var counted uint8
	if call.end >= 0 {
		p, ok = s.planRoll(call.look, int(call.end))
	} else {
		var answers []meta.FenceAnswer
		answers, counted = m.spelled(&s.segments[s.active()], call.answers)
		p, ok = m.recovery(s, call.look, answers)
	}
	var id commandID
	if ok {
		p.counted = counted
		id = m.keepProposal(p)
	}
	m.plans[call] = id
	return id
}

// spelled puts answers into the words of the wire, and says whose copies ran unbroken.
func (m *model) spelled(seg *segment, answers [replicas]answer) (list []meta.FenceAnswer, counted uint8) {
	for at, a := range answers {
		if a == 0 {
			continue
		}
		f := meta.FenceAnswer{
			Segment: seg.ID, Replica: seg.Replicas[seg.named(at)], Kind: meta.Extent, End: int64(a.end()),
			Unbroken: a&unbroken != 0, Unlisted: a&unlisted != 0,
		}
		switch {
		case a&otherDisk != 0:
			f.Kind = meta.NotMine
			f.Replica.Disk[0] = 0xff
		case a&damaged != 0:
			f.Kind = meta.Damaged
		case f.Unbroken:
			counted |= 1 << at
		}
		list = append(list, f)
	}
	return list, counted
}

// recovery is the verdict on a segment whose leader is gone, or what a plant makes of it.
func (m *model) recovery(s *shard, l look, answers []meta.FenceAnswer) (*proposal, bool) {
	if m.plant.minimumOfRestarted {
		for i := range answers {
			answers[i].Unbroken = true
		}
	}
	p, ok := s.planRecovery(l, answers)
	if ok && m.plant.lossUnrecorded {
		p.Lossy = false
	}
	if ok && m.plant.maximum {
		for _, a := range answers {
			if a.Kind == meta.Extent {
				p.End = max(p.End, a.End)
			}
		}
	}
	return p, ok
}

// bootOf is the start of a node that was placed.
func bootOf(s *segment, place int) uint8 {
	if place < len(s.Boots) {
		return uint8(s.Boots[place])
	}
	return 0
}

// sourceOf is the process that leads a segment.
func sourceOf(s *segment) replica.Source {
	return replica.Source{Node: s.Replicas[0].Node, Boot: uint64(bootOf(s, 0))}
}

func (m *model) segment(w *world, seg int) *segment { return &m.shards[w.meta].segments[seg] }

func (m *model) segments(w *world) int { return len(m.shards[w.meta].segments) }

func describe(format string, args ...any) string { return fmt.Sprintf(format, args...) }
