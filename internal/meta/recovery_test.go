package meta

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/keyspace"
)

func TestRecoveriesAreRememberedForEver(t *testing.T) {
	s := New(base.ShardID{Root: 3}, 4)
	index := uint64(0)
	record := func(r RecordRecovery) (Result, []Event) {
		index++
		return s.Apply(index, Command{TimeMs: int64(index), RecordRecovery: &r})
	}
	first := RecordRecovery{Generation: 1, Node: "n2", Server: id('m', 2), Term: 4, Index: 90, Lost: []base.UUID{id('m', 1), id('m', 3)}}
	r, events := record(first)
	require.NoError(t, r.Err("record"))
	require.Equal(t, EventShardRecovered, events[0].Type)
	require.Equal(t, "generation 1, from the log of node n2 up to entry 90 of term 4, without 2 voters", events[0].Detail)

	r, events = record(first)
	require.NoError(t, r.Err("record"))
	require.Empty(t, events, "said again")
	r, _ = record(RecordRecovery{Generation: 1, Node: "n1", Server: id('m', 1)})
	require.ErrorIs(t, r.Err("record"), base.CodePreconditionFailed)
	r, _ = record(RecordRecovery{Node: "n1", Server: id('m', 1)})
	require.ErrorIs(t, r.Err("record"), base.CodeInvalidArgument)
	r, _ = record(RecordRecovery{Generation: 5, Node: "n1", Server: id('m', 1)})
	require.NoError(t, r.Err("record"))

	require.NoError(t, s.Check())
	back := throughSnapshot(t, s)
	require.Equal(t, []Recovery{
		{RecordRecovery: first, TimeMs: 1}, {RecordRecovery: RecordRecovery{Generation: 5, Node: "n1", Server: id('m', 1)}, TimeMs: 5},
	}, back.Recoveries())
}

// The numbers that a lost log may have handed out are never handed out again, and what is said after is newer.
func TestARebuiltShardUsesNoNumberAgain(t *testing.T) {
	before, lost := New(base.RootShard, 4), New(base.RootShard, 4)
	topic := id('t', 1)
	index := uint64(0)
	apply := func(cmd Command, states ...*State) Result {
		index++
		cmd.TimeMs = int64(index)
		var r Result
		for _, s := range states {
			r, _ = s.Apply(index, cmd)
			require.NoError(t, r.Err("apply"))
		}
		return r
	}
	set := []base.Replica{{Node: "n1", Disk: id('d', 1)}}
	apply(Command{CreateTopic: &CreateTopic{ID: topic, Name: "orders", Config: base.TopicConfig{ReplicationFactor: 1}, Spans: keyspace.Tile(1), Replicas: [][]base.Replica{set}}}, before, lost)
	apply(Command{OpenProducer: &OpenProducer{Topic: topic, Name: "p", ID: 7}}, before, lost)

	// The log that is lost goes on; the one that is taken does not know it.
	active := lost.Topic(topic).Range(1).Active()
	roll := Command{RollSegments: []RollSegment{{Topic: topic, Range: 1, Segment: active.ID, Epoch: active.Epoch, End: 5, Cause: base.CauseAge, Replicas: set}}}
	apply(roll, lost)
	granted := apply(Command{OpenProducer: &OpenProducer{Topic: topic, Name: "p", ID: 7}}, lost).Producer
	gone := lost.Topic(topic)

	apply(Command{RecordRecovery: &RecordRecovery{Generation: 1, Node: "n1", Server: id('m', 1)}}, before)
	require.NoError(t, before.Check())
	require.Greater(t, before.Topic(topic).Version, gone.Version)
	require.Greater(t, before.Root().Version, lost.Root().Version)
	apply(roll, before)
	again := before.Topic(topic)
	require.Greater(t, again.Epoch, gone.Epoch)
	require.Greater(t, again.NextRange, gone.NextRange)
	require.NotEqual(t, gone.Range(1).Active().ID, again.Range(1).Active().ID)
	require.Greater(t, apply(Command{OpenProducer: &OpenProducer{Topic: topic, Name: "p", ID: 7}}, before).Producer.Epoch, granted.Epoch)
	require.NoError(t, throughSnapshot(t, before).Check())
}
