package meta

import (
	"bytes"
	"testing"

	"github.com/eastguard/eastguard/internal/base"
)

// seedState has one of everything.
func seedState(t testing.TB) *State {
	s := New(base.RootShard, 1)
	index := uint64(0)
	apply := func(cmd Command) {
		index++
		cmd.TimeMs = int64(index) * 1000
		s.Apply(index, cmd)
	}
	apply(Command{InitCluster: &InitCluster{Cluster: id('c', 1)}})
	apply(Command{RegisterNode: &RegisterNode{Node: "n1", Disk: id('d', 1), Meta: id('m', 1), Boot: 1, Instance: id('i', 1), Labels: map[string]string{"zone": "a"}}})
	for i := range 3 {
		apply(createCommand(i))
	}
	for i := range 3 {
		topic := s.TopicByName("topic-000001")
		active := topic.Ranges[0].Active()
		apply(Command{RollSegments: []RollSegment{{Topic: topic.ID, Range: 1, Segment: active.ID, Epoch: active.Epoch, End: int64(10 * i), Replicas: replicas([]string{"n1"}), Boots: []uint64{3}, Opened: true, Lossy: i == 2}}})
	}
	topic := s.TopicByName("topic-000001")
	active := topic.Ranges[0].Active()
	apply(Command{ForceSeal: &ForceSealSegment{
		Topic: topic.ID, Range: 1, Segment: active.ID, Epoch: active.Epoch, End: 30, Replicas: replicas([]string{"n1", "n2"}), Boots: []uint64{3, 4},
		Reason: "fire", Silent: active.Replicas,
	}})
	apply(Command{RequestID: id('r', 50), OpenProducer: &OpenProducer{Topic: s.TopicByName("topic-000001").ID, Name: "p", ID: 7}})
	apply(Command{RequestID: id('r', 51), DeleteTopic: &DeleteTopic{Name: "topic-000002"}})
	apply(Command{RequestID: id('r', 52), AlterTopic: &AlterTopic{Name: "topic-000001", Set: map[string]string{"retention": "1d", "label.a": "b"}}})
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	return s
}

// FuzzDecode: whatever Decode takes is a state that holds its invariants, survives its own snapshot, and goes on.
func FuzzDecode(f *testing.F) {
	f.Add(encode(f, New(base.RootShard, 1)))
	f.Add(encode(f, seedState(f)))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Decode(bytes.NewReader(b), base.RootShard, 1)
		if err != nil {
			return
		}
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		throughSnapshot(t, s)
		s.Apply(s.Applied()+1, createCommand(77))
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzApply: no command, however strange, breaks an invariant or panics.
func FuzzApply(f *testing.F) {
	for _, cmd := range []Command{
		createCommand(9),
		{RollSegments: []RollSegment{{Topic: createCommand(1).CreateTopic.ID, Range: 1, Segment: 6, Epoch: 4, End: 99, Replicas: replicas([]string{"n1"})}}},
		{ForceSeal: &ForceSealSegment{Topic: createCommand(1).CreateTopic.ID, Range: 1, Segment: 7, Epoch: 5, End: 99, Replicas: replicas([]string{"n1"})}},
		{TrimRanges: []TrimRange{{Topic: createCommand(1).CreateTopic.ID, Range: 1, Through: 4}}},
		{AlterTopic: &AlterTopic{Name: "topic-000001", Unset: []string{"retention"}}},
		{RegisterNode: &RegisterNode{Node: "n1", Disk: id('d', 1), Meta: id('m', 1), Boot: 2, Instance: id('i', 2)}},
	} {
		b, err := EncodeCommand(&cmd)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		cmd, err := DecodeCommand(b)
		if err != nil {
			return
		}
		s := seedState(t)
		s.Apply(s.Applied()+1, cmd)
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		throughSnapshot(t, s)
	})
}
