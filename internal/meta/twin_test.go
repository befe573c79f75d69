package meta

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/keyspace"
)

// twin is the dumbest thing that says the same of a topic's records: for each range, which offsets are kept and
// where the next one goes. It knows nothing of segments, versions or copies.
type twin struct {
	topics map[string][]twinRange
	losses map[string]int
}

type twinRange struct{ earliest, next int64 }

// TestRandomLives plays random commands against two states and the twin. After each one the state is checked; the two
// states must be equal to the byte, one of them having gone through snapshots on the way.
func TestRandomLives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		life := &life{t: t, a: New(base.RootShard, 1), b: New(base.RootShard, 1), twin: twin{topics: map[string][]twinRange{}, losses: map[string]int{}}}
		t.Repeat(map[string]func(*rapid.T){
			"":         func(*rapid.T) { life.check() },
			"create":   life.create,
			"alter":    life.alter,
			"delete":   life.delete,
			"gone":     life.gone,
			"roll":     life.roll,
			"force":    life.force,
			"trim":     life.trim,
			"producer": life.producer,
			"node":     life.node,
			"retry":    life.retry,
			"restart":  life.restart,
		})
	})
}

type life struct {
	t    *rapid.T
	a, b *State
	twin twin

	index uint64
	now   int64
	made  int
	dead  []TopicGone
	last  Command
	said  Result
}

func (l *life) apply(t *rapid.T, cmd Command) Result {
	l.index++
	l.now += rapid.Int64Range(-5, 100_000).Draw(t, "passes")
	cmd.TimeMs = max(0, l.now)
	if cmd.RollSegments == nil && cmd.TrimRanges == nil && cmd.TopicsGone == nil {
		cmd.RequestID = id('r', int(l.index))
		l.last = cmd
	}
	ra, ea := l.a.Apply(l.index, cmd)
	rb, eb := l.b.Apply(l.index, cmd)
	require.Equal(t, ra.Code, rb.Code)
	require.Equal(t, fmt.Sprint(ea), fmt.Sprint(eb))
	if cmd.RequestID != (base.RequestID{}) {
		l.said = ra
	}
	return ra
}

var names = []string{"a", "b", "c"}

func (l *life) create(t *rapid.T) {
	name := rapid.SampledFrom(names).Draw(t, "name")
	ranges := rapid.SampledFrom([]int{1, 2, 4}).Draw(t, "ranges")
	l.made++
	cmd := CreateTopic{ID: id('t', l.made), Name: name, Config: base.TopicConfig{ReplicationFactor: 2}, Spans: keyspace.Tile(ranges)}
	known := rapid.Bool().Draw(t, "starts are known")
	for range ranges {
		set := l.replicas(t)
		cmd.Replicas = append(cmd.Replicas, set)
		if known {
			cmd.Boots = append(cmd.Boots, l.boots(t, set))
		}
	}
	r := l.apply(t, Command{CreateTopic: &cmd})
	_, exists := l.twin.topics[name]
	require.Equal(t, exists, r.Code == base.CodeTopicExists)
	if !exists {
		l.twin.topics[name] = make([]twinRange, ranges)
		for i, r := range r.Topic.Ranges {
			require.Equal(t, known, len(r.Active().Boots) > 0)
			for j, h := range r.Active().Replicas {
				require.True(t, !known || r.Active().BootOf(h) == cmd.Boots[i][j])
			}
		}
	}
}

// boots are the starts of a set's nodes, or none.
func (l *life) boots(t *rapid.T, set []base.Replica) []uint64 {
	return rapid.SliceOfN(rapid.Uint64Range(1, 9), len(set), len(set)).Draw(t, "boots")
}

func (l *life) replicas(t *rapid.T) []base.Replica {
	return rapid.SampledFrom([][]base.Replica{replicas([]string{"n1"}), replicas([]string{"n2", "n1"}), replicas([]string{"n3"})}).Draw(t, "on")
}

func (l *life) pick(t *rapid.T) (*Topic, *Range) {
	topic := l.a.TopicByName(rapid.SampledFrom(names).Draw(t, "topic"))
	if topic == nil {
		t.Skip("no such topic")
	}
	return topic, rapid.SampledFrom(topic.Ranges).Draw(t, "range")
}

func (l *life) alter(t *rapid.T) {
	topic, _ := l.pick(t)
	l.apply(t, Command{AlterTopic: &AlterTopic{Topic: topic.ID, Set: map[string]string{"retention": rapid.SampledFrom([]string{"1h", "2d", "x"}).Draw(t, "retention")}}})
}

func (l *life) delete(t *rapid.T) {
	topic, _ := l.pick(t)
	r := l.apply(t, Command{DeleteTopic: &DeleteTopic{Topic: topic.ID}})
	require.Equal(t, base.CodeOK, r.Code)
	for _, h := range l.a.Tombstone(topic.ID).Waiting {
		l.dead = append(l.dead, TopicGone{Topic: topic.ID, Replica: h})
	}
	delete(l.twin.topics, topic.Name)
	delete(l.twin.losses, topic.Name)
}

func (l *life) gone(t *rapid.T) {
	if len(l.dead) == 0 {
		t.Skip("nothing was deleted")
	}
	i := rapid.IntRange(0, len(l.dead)-1).Draw(t, "which")
	l.apply(t, Command{TopicsGone: []TopicGone{l.dead[i], l.dead[0]}})
}

func (l *life) roll(t *rapid.T) {
	topic, r := l.pick(t)
	// Half of them name what is active, the others something that was, or never was.
	active := r.Active()
	cmd := RollSegment{
		Topic: topic.ID, Range: r.ID, Segment: active.ID, Epoch: active.Epoch, Cause: base.CauseAge, Replicas: l.replicas(t),
		End: active.Base + rapid.SampledFrom([]int64{0, 0, 1, 7, 1000, -1}).Draw(t, "records"), Bytes: 10,
		LastAppendMs: rapid.Int64Range(0, 1_000_000).Draw(t, "last"), Opened: rapid.Bool().Draw(t, "opened"),
		Lossy: rapid.IntRange(0, 4).Draw(t, "lossy") == 0,
	}
	cmd.Boots = l.boots(t, cmd.Replicas)
	if rapid.Bool().Draw(t, "stale") {
		old := rapid.SampledFrom(r.Segments).Draw(t, "segment")
		cmd.Segment, cmd.Epoch = old.ID, old.Epoch-base.Epoch(rapid.IntRange(0, 1).Draw(t, "off by"))
	}
	result := l.apply(t, Command{RollSegments: []RollSegment{cmd}}).Rolls[0]
	tr := &l.twin.topics[topic.Name][r.ID-1]
	switch result.Code {
	case base.CodeOK:
		require.Equal(t, active.ID, cmd.Segment)
		require.Equal(t, cmd.End, result.Active.Base)
		require.Equal(t, cmd.Boots, result.Active.Boots)
		tr.next = cmd.End
		if cmd.Lossy {
			l.twin.losses[topic.Name]++
		}
	case base.CodePreconditionFailed:
		if seg := r.Segment(cmd.Segment); seg != nil {
			require.Equal(t, seg.End, result.End)
		}
	default:
		require.Less(t, cmd.End, active.Base)
	}
}

// force is a roll whose end an operator chose: guarded alike, and remembered.
func (l *life) force(t *rapid.T) {
	topic, r := l.pick(t)
	active := r.Active()
	cmd := ForceSealSegment{
		Topic: topic.ID, Range: r.ID, Segment: active.ID, Epoch: active.Epoch, Replicas: l.replicas(t), Reason: "fire",
		End: active.Base + rapid.SampledFrom([]int64{0, 5, -1}).Draw(t, "records"), Silent: active.Replicas,
	}
	if rapid.Bool().Draw(t, "stale") {
		cmd.Epoch--
	}
	result := l.apply(t, Command{ForceSeal: &cmd})
	require.Equal(t, result.Rolls[0].Code, result.Code)
	switch result.Code {
	case base.CodeOK:
		require.Equal(t, active.Epoch, cmd.Epoch)
		if sealed := result.Topic.Range(r.ID).Segment(cmd.Segment); sealed != nil { // an empty one may be gone
			require.Equal(t, "fire", sealed.Forced.Reason)
		}
		l.twin.topics[topic.Name][r.ID-1].next = cmd.End
		l.twin.losses[topic.Name]++
	case base.CodePreconditionFailed:
		require.NotEqual(t, active.Epoch, cmd.Epoch)
	default:
		require.Less(t, cmd.End, active.Base)
	}
}

func (l *life) trim(t *rapid.T) {
	topic, r := l.pick(t)
	through := rapid.SampledFrom(r.Segments).Draw(t, "through")
	result := l.apply(t, Command{TrimRanges: []TrimRange{{Topic: topic.ID, Range: r.ID, Through: through.ID}}}).Trims[0]
	require.Equal(t, through.State == base.StateSealed, result.Code == base.CodeOK)
	if result.Code == base.CodeOK {
		l.twin.topics[topic.Name][r.ID-1].earliest = through.End
	}
}

func (l *life) producer(t *rapid.T) {
	topic, _ := l.pick(t)
	l.apply(t, Command{OpenProducer: &OpenProducer{Topic: topic.ID, Name: rapid.SampledFrom(names).Draw(t, "producer"), ID: 1}})
}

func (l *life) node(t *rapid.T) {
	n := rapid.SampledFrom([]string{"n1", "n2", "n3"}).Draw(t, "node")
	before := l.a.Root().Node(base.NodeID(n))
	boot := rapid.Uint64Range(1, 20).Draw(t, "boot")
	r := l.apply(t, Command{RegisterNode: &RegisterNode{
		Node: base.NodeID(n), Disk: replica(n).Disk, Meta: id('m', int(n[1])), Boot: boot, Instance: id('i', int(l.index)),
	}})
	require.Equal(t, before == nil || boot > before.Boot, r.Code == base.CodeOK)
}

// retry repeats the last command that had a request id: the answer is the same, and nothing else is.
func (l *life) retry(t *rapid.T) {
	if l.last.RequestID.IsZero() {
		t.Skip("nothing to retry")
	}
	if _, ok := l.a.requests.find(l.last.RequestID); !ok {
		t.Skip("forgotten")
	}
	said := l.said
	cmd := l.last
	l.index++
	cmd.TimeMs = 0
	r, events := l.a.Apply(l.index, cmd)
	_, _ = l.b.Apply(l.index, cmd)
	require.True(t, r.Repeat)
	require.Empty(t, events)
	require.Equal(t, said.Code, r.Code)
	require.Equal(t, said.Version, r.Version)
	require.Equal(t, said.Producer, r.Producer)
}

func (l *life) restart(t *rapid.T) {
	var buf bytes.Buffer
	require.NoError(t, l.b.Encode(&buf))
	b, err := Decode(&buf, base.RootShard, 1)
	require.NoError(t, err)
	l.b = b
}

func (l *life) check() {
	t := l.t
	require.NoError(t, l.a.Check())
	var a, b bytes.Buffer
	require.NoError(t, l.a.Encode(&a))
	require.NoError(t, l.b.Encode(&b))
	require.True(t, bytes.Equal(a.Bytes(), b.Bytes()), "the two states differ")
	require.Equal(t, len(l.twin.topics), l.a.Len())
	for name, ranges := range l.twin.topics {
		topic := l.a.TopicByName(name)
		require.Len(t, topic.Ranges, len(ranges))
		lost := 0
		if topic.Losses != nil {
			lost = topic.Losses.Count
		}
		require.Equal(t, l.twin.losses[name], lost, "losses are remembered, whatever was trimmed")
		for i, want := range ranges {
			r := topic.Ranges[i]
			require.Equal(t, want.earliest, r.TrimmedTo)
			require.Equal(t, want.next, r.Active().Base)
			// Every kept offset has exactly one holder.
			for off := want.earliest; off < want.next; off += max(1, (want.next-want.earliest)/7) {
				seg := r.SegmentAt(off)
				require.NotNil(t, seg, "offset %d", off)
				require.True(t, seg.Base <= off && off < seg.End)
			}
		}
	}
}
