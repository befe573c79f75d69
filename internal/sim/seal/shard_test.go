package seal

import (
	"fmt"
	"slices"
	"strings"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/keyspace"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/planner"
	"github.com/eastguard/eastguard/internal/topology"
)

type (
	metaID    uint16 // a state of metadata
	commandID uint16 // a proposal; 0 is none
)

// segment is what metadata says of a segment, and of those it no longer keeps, said.
type segment struct {
	meta.Segment

	nodes []int   // of Replicas
	disks []uint8 // of Replicas, as disk.id
}

// shard is one state of metadata, reached by the real Apply.
type shard struct {
	state    *meta.State
	applied  uint64
	segments []segment
}

func (s *shard) active() int { return len(s.segments) - 1 }

// place is where in a segment's replica set a node stands with the disk that it has; -1 where it does not.
func (s *segment) place(at int, disk uint8) int {
	if i := s.named(at); i >= 0 && s.disks[i] == disk {
		return i
	}
	return -1
}

// named is where a node's name stands in a replica set, whatever its disk.
func (s *segment) named(at int) int { return slices.Index(s.nodes, at) }

// proposal is a roll that a coordinator has planned.
type proposal struct {
	meta.RollSegment

	seg     int   // which it seals
	counted uint8 // bit a node: an unbroken extent that was before it
}

var (
	topicID = base.TopicID{15: 1}
	ref     = base.RangeRef{Topic: topicID, Range: 1}
)

func configOf(b *bounds) base.TopicConfig {
	c := base.TopicConfig{ReplicationFactor: replicas, MinReplicas: 2}
	if b.memory {
		c.Durability = base.DurabilityReplicated
	}
	return c
}

func nodeName(at int) base.NodeID { return [replicas]base.NodeID{"n1", "n2", "n3"}[at] }

func nodeOf(name base.NodeID) int { return int(name[1] - '1') }

func replicaOf(at int, disk uint8) base.Replica {
	return base.Replica{Node: nodeName(at), Disk: base.DiskID{14: byte(at + 1), 15: disk + 1}}
}

// found is the metadata that all begins with: one segment on all nodes, led by the first.
func found(b *bounds) *shard {
	create := meta.CreateTopic{
		ID: topicID, Name: "orders", Config: configOf(b), Spans: keyspace.Tile(1),
		Replicas: make([][]base.Replica, 1), Boots: [][]uint64{{1, 1, 1}},
	}
	for at := range replicas {
		create.Replicas[0] = append(create.Replicas[0], replicaOf(at, 0))
	}
	s := &shard{state: meta.New(base.RootShard, 1), applied: 1}
	if result, _ := s.state.Apply(1, meta.Command{TimeMs: 1, CreateTopic: &create}); result.Code != base.CodeOK {
		panic(result.Message)
	}
	s.add(s.topic().Range(ref.Range).Active())
	return s
}

func (s *shard) topic() *meta.Topic { return s.state.Topic(topicID) }

func (s *shard) add(active *meta.Segment) {
	seg := segment{Segment: *active}
	for _, r := range active.Replicas {
		seg.nodes = append(seg.nodes, nodeOf(r.Node))
		seg.disks = append(seg.disks, r.Disk[15]-1)
	}
	s.segments = append(s.segments, seg)
}

// commit applies a proposal and returns what metadata is then: the same when another roll was first.
func (s *shard) commit(p *proposal) (*shard, error) {
	next := &shard{state: s.state.Clone(), applied: s.applied + 1, segments: slices.Clone(s.segments)}
	result, _ := next.state.Apply(next.applied, meta.Command{TimeMs: 1, RollSegments: []meta.RollSegment{p.RollSegment}})
	if err := next.state.Check(); err != nil {
		return nil, err
	}
	if result.Rolls[0].Code != base.CodeOK {
		return s, nil
	}
	next.segments[next.active()].End = result.Rolls[0].End
	next.add(result.Rolls[0].Active)
	return next, nil
}

func (s *shard) key() string {
	var b strings.Builder
	for i := range s.segments {
		g := &s.segments[i]
		fmt.Fprintf(&b, "%d %d %d %d %v %v;", g.ID, g.Epoch, g.Base, g.End, g.Replicas, g.Boots)
	}
	return b.String()
}

// look is what a coordinator believes of the nodes when it plans: the truth, or that a leader which lives is dead.
type look struct {
	dead uint8 // bit a node
	boot [replicas]uint8
	disk [replicas]uint8
}

func (l look) view() topology.View {
	var v topology.View
	for at := range replicas {
		r := replicaOf(at, l.disk[at])
		n := topology.Node{ID: r.Node, Disk: r.Disk, Boot: uint64(l.boot[at]), Liveness: topology.Alive, Standing: topology.Normal, Admitted: true}
		if l.dead&(1<<at) != 0 {
			n.Liveness = topology.Dead
		}
		v.Nodes = append(v.Nodes, n)
	}
	return v
}

// firstChoice takes the first of whatever the planner throws dice for. Which of two fit nodes is placed makes no
// difference to what is explored: both are there in the worlds in which the other one leads.
type firstChoice struct{}

func (firstChoice) IntN(int) int { return 0 }

func (s *shard) input(l look) planner.Input {
	topic := s.topic()
	return planner.Input{
		NowMs: 1, View: l.view(), Rand: firstChoice{}, Opened: func(base.SegmentID) bool { return true },
		Topic: func(base.TopicID) *meta.Topic { return topic },
	}
}

// planRoll is what a coordinator makes of a leader's wish to end the active segment.
func (s *shard) planRoll(l look, end int) (*proposal, bool) {
	seg := &s.segments[s.active()]
	in := s.input(l)
	in.Rolls = []planner.RollRequest{{
		Ref: ref, Segment: seg.ID, Epoch: seg.Epoch, End: int64(end), Cause: base.CauseReplicaFailure,
	}}
	return s.planned(planner.Make(in))
}

// planRecovery is what a coordinator makes of the answers to its fences.
func (s *shard) planRecovery(l look, answers []meta.FenceAnswer) (*proposal, bool) {
	seg := &s.segments[s.active()]
	in := s.input(l)
	in.Recoveries = []planner.Recovery{{
		Ref: ref, Segment: seg.ID, Epoch: seg.Epoch, Cause: base.CauseLeaderFailure, Answers: answers,
	}}
	return s.planned(planner.Make(in))
}

func (s *shard) planned(p planner.Plan) (*proposal, bool) {
	if len(p.Rolls) == 0 {
		return nil, false
	}
	return &proposal{RollSegment: p.Rolls[0], seg: s.active()}, true
}

func (p *proposal) key() string {
	return fmt.Sprint(p.seg, p.Segment, p.Epoch, p.End, p.Replicas, p.Boots, p.counted)
}
