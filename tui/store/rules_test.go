package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/store"
)

// believed is what a node says of others.
func believed(at time.Time, by sdk.NodeID, states map[sdk.NodeID]string) store.Message {
	st := &sdk.NodeState{Self: sdk.NodeStatus{ID: by}}
	for id, state := range states {
		st.Members = append(st.Members, sdk.RingMember{Node: id, State: state, Boot: 1})
	}
	return store.Message{Time: at, Node: by, Boot: 1, State: st}
}

func TestTheVerdictOnANode(t *testing.T) {
	for _, c := range []struct {
		said []string
		want string
	}{
		{[]string{"alive", "alive", "alive"}, "alive"},
		{[]string{"alive", "suspect", "alive"}, "suspect"},
		{[]string{"alive", "dead", "alive"}, "suspect"},
		{[]string{"alive", "dead", "dead"}, "dead"},
		{[]string{"alive", "left", "dead"}, "dead"},
		{[]string{"alive", "left", "left"}, "left"},
		{[]string{"alive", "left", "alive"}, "alive"},
	} {
		s := store.New(store.Options{History: -1})
		var v *store.View
		for i, state := range c.said {
			by := sdk.NodeID(fmt.Sprint("n", i))
			v = apply(s, believed(t0, by, map[sdk.NodeID]string{by: "alive", "x": state}))
		}
		require.Equal(t, c.want, v.Nodes.Get("x").State, "%v", c.said)
	}
}

func TestHowTheClusterIsHeard(t *testing.T) {
	s := store.New(store.Options{History: -1})
	require.Equal(t, store.LinkConnecting, s.View(t0).Cluster.Link.State)
	for _, id := range []sdk.NodeID{"n1", "n2", "n3", "n4"} {
		apply(s, believed(t0, id, map[sdk.NodeID]string{id: "alive"}))
	}
	require.Equal(t, store.LinkLive, s.View(t0).Cluster.Link.State)
	for i, want := range []store.LinkState{store.LinkLive, store.LinkLive, store.LinkPartial} {
		id := sdk.NodeID(fmt.Sprint("n", i+1))
		v := apply(s, store.Message{Time: t0, Node: id, Stream: &store.Stream{State: store.StreamLost, Error: "gone"}})
		require.Equal(t, want, v.Cluster.Link.State, "%d of 4 are lost", i+1)
		require.True(t, v.Cluster.AtLeast)
	}
}

// The dead are members: a screen on which three of five nodes are is not one of a cluster that is heard. Where one of many
// is dead, the sums lack nothing; where most are, it may be those that are heard which are cut off.
func TestTheDeadAreMissedToo(t *testing.T) {
	s := store.New(store.Options{History: -1})
	members := []sdk.NodeID{"n1", "n2", "n3", "n4", "n5"}
	says := func(dead ...sdk.NodeID) (v *store.View) {
		states := make(map[sdk.NodeID]string)
		for _, id := range members {
			states[id] = "alive"
		}
		for _, id := range dead {
			states[id] = "dead"
			apply(s, store.Message{Time: t0, Node: id, Stream: &store.Stream{State: store.StreamLost, Error: "gone"}})
		}
		for _, id := range members {
			if states[id] == "alive" {
				v = apply(s, believed(t0, id, states))
			}
		}
		return v
	}
	for _, c := range []struct {
		dead    []sdk.NodeID
		streams int
		link    store.LinkState
		atLeast bool
	}{
		{nil, 5, store.LinkLive, false},
		{members[4:], 4, store.LinkLive, false},
		{members[2:], 2, store.LinkPartial, true},
	} {
		v := says(c.dead...)
		require.Equal(t, []any{c.streams, 5, c.link, c.atLeast}, []any{v.Cluster.Streams, v.Cluster.Known, v.Cluster.Link.State, v.Cluster.AtLeast}, "%v", c.dead)
	}
}

// A node that has started anew is what is said of its new start: who calls the old one dead has not heard of that yet.
func TestTheVerdictIsOnTheNewestStart(t *testing.T) {
	s := store.New(store.Options{History: -1})
	for _, by := range []sdk.NodeID{"n1", "n2", "n3"} {
		apply(s, believed(t0, by, map[sdk.NodeID]string{by: "alive", "x": "dead"}))
	}
	require.Equal(t, "dead", s.View(t0).Nodes.Get("x").State)
	anew := believed(t0, "n2", map[sdk.NodeID]string{"n2": "alive", "x": "alive"})
	for i := range anew.State.Members {
		if anew.State.Members[i].Node == "x" {
			anew.State.Members[i].Boot = 2
		}
	}
	x := apply(s, anew).Nodes.Get("x")
	require.Equal(t, "alive", x.State, "not suspect, as by a vote of one for and two against")
	require.EqualValues(t, 2, x.Boot)
	require.Empty(t, x.SuspectedBy)
}

// A node tells of its busiest ranges: one that is not among them any more has no known rate, nor has its topic.
func TestRatesOfWhatIsNotToldAnyMoreAreForgotten(t *testing.T) {
	counted := func(second int, topics ...string) store.Message {
		c := &sdk.NodeCounters{}
		for _, topic := range topics {
			c.Ranges = append(c.Ranges, sdk.RangeCounters{Topic: topic, Range: 1, InBytesPerSec: 100})
		}
		return store.Message{Time: t0.Add(time.Duration(second) * time.Second), Node: "n1", Boot: 1, Counters: c}
	}
	s := store.New(store.Options{History: -1})
	v := apply(s, counted(0, "a", "b"))
	require.EqualValues(t, 100, v.Topics.Get("a").InBytes)
	require.EqualValues(t, 100, v.Cluster.Busiest)
	v = apply(s, counted(1, "b"))
	a := v.Ranges.Get(store.RangeKey{Topic: "a", Range: 1})
	require.False(t, a.Counted)
	require.Zero(t, a.InBytes)
	require.Zero(t, v.Topics.Get("a").InBytes)
	require.EqualValues(t, 100, v.Topics.Get("b").InBytes)
	require.Zero(t, apply(s, counted(2)).Cluster.Busiest)
}

// What a dead node told of its ranges holds no more; while it is only not heard it is what is known last.
func TestRatesOfTheDeadAreForgotten(t *testing.T) {
	s := store.New(store.Options{History: -1})
	c := &sdk.NodeCounters{Ranges: []sdk.RangeCounters{{Topic: "a", Range: 1, InBytesPerSec: 100}}}
	apply(s, believed(t0, "n2", map[sdk.NodeID]string{"n1": "alive", "n2": "alive"}), store.Message{Time: t0, Node: "n1", Boot: 1, Counters: c})
	v := apply(s, store.Message{Time: t0, Node: "n1", Stream: &store.Stream{State: store.StreamLost, Error: "gone"}})
	require.EqualValues(t, 100, v.Topics.Get("a").InBytes)
	v = apply(s, believed(t0, "n2", map[sdk.NodeID]string{"n1": "dead", "n2": "alive"}))
	require.False(t, v.Ranges.Get(store.RangeKey{Topic: "a", Range: 1}).Counted)
	require.Zero(t, v.Topics.Get("a").InBytes)
	require.True(t, v.Topics.Get("a").AtLeast)
}

// An election that is told late is no news, and how long nobody led is of the leader that ended it.
func TestLeadersByTheirTerms(t *testing.T) {
	led := func(term int, node string, gap int64) store.Message {
		e := &sdk.Event{Type: "LEADER_CHANGED", Subject: "shard 7", After: node, GapMs: gap, Detail: fmt.Sprint("term=", term)}
		return store.Message{Time: t0, Node: "n1", Boot: 1, Event: e}
	}
	id := sdk.ShardID{Root: 7}
	s := store.New(store.Options{History: -1})
	apply(s, led(4, "n2", 120))
	got := apply(s, led(3, "n3", 9)).Shards.Get(id)
	require.Equal(t, sdk.NodeID("n2"), got.Leader, "that was before")
	require.EqualValues(t, 120, got.LeaderlessMs)
	told := &sdk.NodeState{Self: sdk.NodeStatus{ID: "n3"}, Shards: []sdk.ShardStatus{{ID: id, Leader: "n3", Term: 5}}}
	got = apply(s, store.Message{Time: t0, Node: "n3", Boot: 1, State: told}).Shards.Get(id)
	require.Equal(t, sdk.NodeID("n3"), got.Leader)
	require.Equal(t, sdk.NodeID("n2"), got.LastFrom)
	require.Zero(t, got.LeaderlessMs, "that was the one before")
}

// With a topic goes all that is known of it, and nothing of others.
func TestWithATopicGoesWhatIsItsOwn(t *testing.T) {
	segments := &store.SegmentPage{}
	for i, topic := range []string{"a", "b"} {
		segments.Segments = append(segments.Segments, sdk.SegmentRow{Topic: topic, Range: 1, Segment: sdk.SegmentDetail{ID: sdk.SegmentID(i + 1)}})
	}
	counters := &sdk.NodeCounters{Ranges: []sdk.RangeCounters{{Topic: "a", Range: 1}, {Topic: "b", Range: 1}}}
	for name, end := range map[string]store.Message{
		"an event":        {Time: t0, Node: "n1", Boot: 1, Event: &sdk.Event{Type: "TOPIC_DELETED", Subject: "a"}},
		"not found":       {Time: t0, Gone: &store.Gone{Topic: "a"}},
		"not in the list": {Time: t0, Topics: &store.TopicPage{Complete: true, Topics: []sdk.TopicSummary{{Name: "b"}}}},
	} {
		s := store.New(store.Options{History: -1})
		apply(s, store.Message{Time: t0, Node: "n1", Boot: 1, Counters: counters}, store.Message{Time: t0, Segments: segments})
		v := apply(s, end)
		require.Nil(t, v.Topics.Get("a"), name)
		require.NotNil(t, v.Topics.Get("b"), name)
		require.Empty(t, v.RangesOf("a"), name)
		require.Len(t, v.RangesOf("b"), 1, name)
		require.Equal(t, 1, v.Segments.Len(), name)
		require.Equal(t, "b", v.Segments.At(0).Range.Topic, name)
	}
}
