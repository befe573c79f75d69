package meta

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/keyspace"
)

func encode(t testing.TB, s *State) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, s.Encode(&b))
	return b.Bytes()
}

// throughSnapshot is what a restart sees of a state; it must be all of it.
func throughSnapshot(t testing.TB, s *State) *State {
	t.Helper()
	b := encode(t, s)
	next, err := Decode(bytes.NewReader(b), s.id, s.shards)
	require.NoError(t, err)
	require.Equal(t, b, encode(t, next))
	return next
}

func createCommand(i int) Command {
	return Command{RequestID: id('r', i), TimeMs: int64(i), CreateTopic: &CreateTopic{
		ID: base.UUID{'t', byte(i >> 16), byte(i >> 8), byte(i)}, Name: fmt.Sprintf("topic-%06d", i), Config: base.TopicConfig{ReplicationFactor: 1},
		Spans: keyspace.Tile(1), Replicas: [][]base.Replica{replicas([]string{"n1"})},
	}}
}

func TestTopicsThatWereReadDoNotChange(t *testing.T) {
	s := New(base.RootShard, 1)
	s.Apply(1, createCommand(1))
	before := s.TopicByName("topic-000001")
	text := dump(s)
	frozen := s.Clone()
	r := before.Ranges[0]
	for i := range 5 {
		active := s.Topic(before.ID).Ranges[0].Active()
		result, _ := s.Apply(uint64(2+i), Command{TimeMs: 5, RollSegments: []RollSegment{{
			Topic: before.ID, Range: 1, Segment: active.ID, Epoch: active.Epoch, End: active.Base + 1, Replicas: replicas([]string{"n1"}), Opened: true,
		}}})
		require.Equal(t, base.CodeOK, result.Rolls[0].Code)
	}
	_, _ = s.Apply(9, Command{TrimRanges: []TrimRange{{Topic: before.ID, Range: 1, Through: r.Segments[0].ID}}})
	_, _ = s.Apply(10, Command{RequestID: id('r', 9), AlterTopic: &AlterTopic{Topic: before.ID, Set: map[string]string{"label.a": "b"}}})
	require.NoError(t, s.Check())
	require.Equal(t, text, dump(frozen))
	require.Len(t, r.Segments, 1)
	require.Equal(t, NoEnd, r.Segments[0].End)
	require.Nil(t, before.Config.Labels)
}

func TestAnOldIndexIsNotAppliedAgain(t *testing.T) {
	s := New(base.RootShard, 1)
	s.Apply(7, createCommand(1))
	b := encode(t, s)
	r, events := s.Apply(7, createCommand(2))
	require.Equal(t, base.CodeInternal, r.Code)
	require.Empty(t, events)
	require.Equal(t, b, encode(t, s))
}

func TestTheRequestTableIsBounded(t *testing.T) {
	s := New(base.RootShard, 1)
	s.Apply(1, createCommand(1))
	topic := s.TopicByName("topic-000001").ID
	for i := range maxRequests + 100 {
		s.Apply(uint64(2+i), Command{RequestID: id('q', i), TimeMs: 1, OpenProducer: &OpenProducer{Topic: topic, Name: fmt.Sprint(i % 10), ID: 1}})
	}
	require.Equal(t, maxRequests, s.requests.len())
	require.NoError(t, s.Check())
}

func TestNamedProducersAreBoundedAndWrap(t *testing.T) {
	s := New(base.RootShard, 1)
	s.Apply(1, createCommand(1))
	topic := s.TopicByName("topic-000001").ID
	index := uint64(1)
	open := func(name string, id int64) ProducerGrant {
		index++
		r, _ := s.Apply(index, Command{TimeMs: int64(index), OpenProducer: &OpenProducer{Topic: topic, Name: name, ID: id}})
		require.Equal(t, base.CodeOK, r.Code, r.Message)
		return r.Producer
	}
	require.Equal(t, ProducerGrant{ID: 5}, open("a", 5))
	require.Equal(t, ProducerGrant{ID: 5, Epoch: 1}, open("a", 6))
	for range 32766 {
		open("a", 6)
	}
	require.Equal(t, ProducerGrant{ID: 7}, open("a", 7), "after the last epoch the name gets a new id")
	for i := range MaxProducers {
		open(fmt.Sprintf("p%d", i), 9)
	}
	require.Len(t, s.Topic(topic).Producers, MaxProducers)
	require.Equal(t, ProducerGrant{ID: 11}, open("a", 11), "the oldest was forgotten")
	require.NoError(t, s.Check())
}

func TestShardsTileTheNames(t *testing.T) {
	for _, shards := range []int{1, 2, 32, 1024} {
		for i := range 200 {
			name := fmt.Sprintf("topic-%d", i)
			home := ShardOf(name, shards)
			for root := range shards {
				other := base.ShardID{Root: uint16(root)}
				require.Equal(t, other == home, other.Contains(nameHash(name), shards))
			}
		}
	}
}

func TestSegmentIDsOfShardsAreDistinct(t *testing.T) {
	seen := make(map[base.SegmentID]bool)
	for root := range 8 {
		s := New(base.ShardID{Root: uint16(root)}, 8)
		for range 50 {
			id := s.openSegment()
			require.False(t, seen[id])
			require.NotZero(t, id)
			seen[id] = true
		}
	}
}

func TestOnlyItsOwnShardTakesATopic(t *testing.T) {
	home := ShardOf("topic-000001", 4)
	for root := range 4 {
		s := New(base.ShardID{Root: uint16(root)}, 4)
		r, _ := s.Apply(1, createCommand(1))
		if s.ID() == home {
			require.Equal(t, base.CodeOK, r.Code)
		} else {
			require.Equal(t, base.CodeShardNotFound, r.Code)
		}
		r, _ = s.Apply(2, Command{InitCluster: &InitCluster{Cluster: id('c', 1)}})
		require.Equal(t, s.ID() == base.RootShard, r.Code == base.CodeOK)
	}
}

func TestDecodeRefusesWhatIsNotASnapshotOfThisShard(t *testing.T) {
	s := New(base.RootShard, 1)
	s.Apply(1, createCommand(1))
	b := encode(t, s)
	for name, c := range map[string]struct {
		b      []byte
		id     base.ShardID
		shards int
	}{
		"another shard":   {b, base.ShardID{Root: 1}, 1},
		"another cluster": {b, base.RootShard, 2},
		"cut short":       {b[:len(b)-1], base.RootShard, 1},
		"empty":           {nil, base.RootShard, 1},
		"more behind it":  {append(bytes.Clone(b), 0), base.RootShard, 1},
	} {
		_, err := Decode(bytes.NewReader(c.b), c.id, c.shards)
		require.ErrorIs(t, err, base.CodeCorruptData, name)
	}
}

func TestSegmentAtFindsTheHolderOfAnOffset(t *testing.T) {
	r := &Range{Segments: []*Segment{
		{ID: 1, Base: 10, End: 20, State: base.StateSealed},
		{ID: 2, Base: 20, End: 20, State: base.StateSealed},
		{ID: 3, Base: 20, End: NoEnd, State: base.StateActive},
	}}
	require.Nil(t, r.SegmentAt(9))
	require.EqualValues(t, 1, r.SegmentAt(10).ID)
	require.EqualValues(t, 1, r.SegmentAt(19).ID)
	require.EqualValues(t, 3, r.SegmentAt(20).ID)
	require.EqualValues(t, 3, r.SegmentAt(1<<40).ID)
}

// BenchmarkApply is one topic creation on a shard that holds 100,000 topics.
func BenchmarkApply(b *testing.B) {
	s := New(base.RootShard, 1)
	for i := range 100_000 {
		s.Apply(uint64(i+1), createCommand(i))
	}
	cmds := make([]Command, b.N)
	for i := range cmds {
		cmds[i] = createCommand(100_000 + i)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range cmds {
		s.Apply(uint64(100_001+i), cmds[i])
	}
}

// BenchmarkClone is what a snapshot holds everything up for, at 100,000 topics.
func BenchmarkClone(b *testing.B) {
	s := New(base.RootShard, 1)
	for i := range 100_000 {
		s.Apply(uint64(i+1), createCommand(i))
	}
	b.ResetTimer()
	for range b.N {
		s.Clone()
	}
}

// BenchmarkSnapshot writes and reads 100,000 topics.
func BenchmarkSnapshot(b *testing.B) {
	s := New(base.RootShard, 1)
	for i := range 100_000 {
		s.Apply(uint64(i+1), createCommand(i))
	}
	b.ResetTimer()
	for range b.N {
		var buf bytes.Buffer
		require.NoError(b, s.Encode(&buf))
		b.SetBytes(int64(buf.Len()))
		_, err := Decode(&buf, base.RootShard, 1)
		require.NoError(b, err)
	}
}

// A segment without a record leaves the chain, and whoever has it can still be told that it ended.
func TestSegmentsThatWereLeftOutAreKnown(t *testing.T) {
	s := New(base.RootShard, 1)
	index := uint64(0)
	apply := func(cmd Command) Result {
		index++
		cmd.TimeMs = int64(index)
		r, _ := s.Apply(index, cmd)
		require.NoError(t, s.Check())
		return r
	}
	apply(createCommand(1))
	topic := s.TopicByName("topic-000001")
	roll := func(end int64, opened bool, on ...string) *Segment {
		active := s.Topic(topic.ID).Range(1).Active()
		r := apply(Command{RollSegments: []RollSegment{{Topic: topic.ID, Range: 1, Segment: active.ID, Epoch: active.Epoch, End: end, Replicas: replicas(on), Opened: opened}}})
		require.Equal(t, base.CodeOK, r.Rolls[0].Code)
		return active
	}
	roll(10, true, "n7")
	empty := roll(10, false, "n8") // on n7 alone
	r := s.Topic(topic.ID).Range(1)
	require.NotContains(t, r.Segments, empty)
	known := r.Segment(empty.ID)
	require.NotNil(t, known)
	require.Equal(t, base.StateSealed, known.State)
	a := s.Topic(topic.ID).Assignment(r, known, Limits{SegmentBytes: 1, SegmentAgeMs: 1})
	require.EqualValues(t, 10, a.End)
	require.Greater(t, a.Version, known.Version)
	require.Contains(t, s.Topic(topic.ID).holders(), replica("n7"), "a delete is told there too")
	require.Equal(t, s.Topic(topic.ID), throughSnapshot(t, s).Topic(topic.ID))

	for range 2 * MaxEmptied { // restarts do not make metadata grow
		roll(10, false, "n1")
	}
	require.Len(t, s.Topic(topic.ID).Range(1).Emptied, MaxEmptied)

	trim := func(through base.SegmentID) {
		apply(Command{TrimRanges: []TrimRange{{Topic: topic.ID, Range: 1, Through: through}}})
	}
	last := roll(20, true, "n1")
	trim(s.Topic(topic.ID).Range(1).Segments[0].ID)
	require.EqualValues(t, 10, s.Topic(topic.ID).Range(1).TrimmedTo)
	require.Len(t, s.Topic(topic.ID).Range(1).Emptied, MaxEmptied, "what lies at the beginning may have been appended to in vain")
	trim(last.ID)
	require.Empty(t, s.Topic(topic.ID).Range(1).Emptied, "they go with what was around them")
}
