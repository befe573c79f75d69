package store

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/sdk"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// TestTooManyNodes lists more nodes than there can be, and one without a name: no row comes of them.
func TestTooManyNodes(t *testing.T) {
	s := New(Options{History: -1})
	list := &sdk.NodeList{Observer: "n1", Nodes: []sdk.NodeStatus{{Address: "nobody:1"}}}
	state := &sdk.NodeState{}
	for i := range 10_000 {
		id := sdk.NodeID(fmt.Sprintf("n%d", i))
		list.Nodes = append(list.Nodes, sdk.NodeStatus{ID: id, State: "alive"})
		state.Members = append(state.Members, sdk.RingMember{Node: id, State: "alive"})
	}
	for i := range 1500 {
		s.Apply(Message{Time: noon, Node: sdk.NodeID(fmt.Sprintf("n%d", i)), Boot: 1, State: state})
	}
	s.Apply(Message{Time: noon, Nodes: list})
	v := s.View(noon)
	require.Equal(t, maxNodes, v.Nodes.Len())
	for id, n := range v.Nodes.All() {
		require.NotEmpty(t, n.ID)
		require.Equal(t, id, n.ID)
	}
	require.LessOrEqual(t, len(v.Believes.Observers), maxNodes)
	for _, o := range v.Believes.Observers {
		require.LessOrEqual(t, len(o.Beliefs), maxNodes)
	}
}

// TestNobodySaysSo takes what only a node can say from nobody.
func TestNobodySaysSo(t *testing.T) {
	s := New(Options{History: -1})
	for _, m := range []Message{
		{Stream: &Stream{State: StreamLost, Error: "x"}},
		{Gap: &Gap{Lost: 3}},
		{State: &sdk.NodeState{}},
		{Counters: &sdk.NodeCounters{InBytesPerSec: 5}},
		{Event: &sdk.Event{Seq: 1, Type: "TOPIC_CREATED"}},
		{Logs: &LogPage{Lines: []sdk.LogLine{{Seq: 1, Message: "x"}}}},
	} {
		m.Time = noon
		s.Apply(m)
	}
	v := s.View(noon)
	require.Zero(t, v.Nodes.Len())
	require.Empty(t, v.Believes.Observers)
	require.Zero(t, v.Events.Len()+v.Logs.Len()+v.Gaps.Len())
}

// TestOneVoiceEach has an observer name a node again and again: that makes its word no weightier.
func TestOneVoiceEach(t *testing.T) {
	s := New(Options{History: -1})
	dead := sdk.RingMember{Node: "n3", State: "dead"}
	s.Apply(Message{Time: noon, Node: "n1", Boot: 1, State: &sdk.NodeState{Members: []sdk.RingMember{dead, dead, dead, dead, dead}}})
	for _, n := range []sdk.NodeID{"n2", "n4"} {
		s.Apply(Message{Time: noon, Node: n, Boot: 1, State: &sdk.NodeState{Members: []sdk.RingMember{{Node: "n3", State: "alive"}}}})
	}
	require.Equal(t, "suspect", s.View(noon).Nodes.Get("n3").State)
}

// TestAStartWithALowerNumber: a node whose starts are counted anew is heard all the same, once its stream says so.
func TestAStartWithALowerNumber(t *testing.T) {
	s := New(Options{History: -1})
	counters := func(at time.Duration, boot uint64, in int64) {
		s.Apply(Message{Time: noon.Add(at), Node: "n1", Boot: boot, Counters: &sdk.NodeCounters{InBytesPerSec: in}})
	}
	counters(0, math.MaxUint64, 5)
	counters(time.Second, 3, 7) // too late, for all that anybody knows
	require.Equal(t, int64(5), s.View(noon.Add(time.Second)).Nodes.Get("n1").Raw.InBytesPerSec)
	s.Apply(Message{Time: noon.Add(2 * time.Second), Node: "n1", Boot: 3, Gap: &Gap{Restarted: true, Over: true}})
	counters(3*time.Second, 3, 9)
	n := s.View(noon.Add(3 * time.Second)).Nodes.Get("n1")
	require.Equal(t, int64(9), n.Raw.InBytesPerSec)
	require.Equal(t, StreamLive, n.Stream)
}

// TestClocksYearsApart: what a node with a wrong clock tells stands where it was told, and keeps no room from the others.
func TestClocksYearsApart(t *testing.T) {
	s := New(Options{History: -1, Events: 100})
	years := []int64{10, -10}
	clock := func(i int, now time.Time) int64 { return now.AddDate(int(years[i]), 0, 0).UnixMilli() }
	for i, node := range []sdk.NodeID{"fast", "slow"} {
		s.Apply(Message{Time: noon, Node: node, Boot: 1, Counters: &sdk.NodeCounters{ObservedMs: clock(i, noon)}})
	}
	for n := range 300 {
		now := noon.Add(time.Duration(n) * time.Second)
		for i, node := range []sdk.NodeID{"fast", "slow"} {
			s.Apply(Message{Time: now, Node: node, Boot: 1, Event: &sdk.Event{Seq: uint64(n + 1), TimeMs: clock(i, now), Type: "TOPIC_CREATED"}})
		}
		s.Apply(Message{Time: now, Node: "true", Boot: 1, Event: &sdk.Event{Seq: uint64(n + 1), TimeMs: now.UnixMilli(), Type: "TOPIC_CREATED"}})
	}
	by := make(map[sdk.NodeID]int)
	for _, e := range s.View(noon.Add(5 * time.Minute)).Events.All() {
		by[e.Node]++
		require.WithinRange(t, e.At, noon, noon.Add(5*time.Minute), e.Node)
	}
	for _, n := range []sdk.NodeID{"fast", "slow", "true"} {
		require.InDelta(t, 33, by[n], 2, n)
	}
	unknown := New(Options{History: -1}) // whose clock nobody knows yet
	for _, ms := range []int64{math.MaxInt64, math.MinInt64, 0} {
		unknown.Apply(Message{Time: noon, Node: "n1", Boot: 1, Event: &sdk.Event{TimeMs: ms}})
	}
	for _, e := range unknown.View(noon).Events.All() {
		require.False(t, e.At.After(noon))
	}
}

// TestClockSetBack: everything goes on from the time that it is then, and nothing is of a time to come.
func TestClockSetBack(t *testing.T) {
	s := New(Options{})
	tell := func(at time.Time, seq uint64, in int64) {
		s.Apply(Message{Time: at, Node: "n1", Boot: 1, Event: &sdk.Event{Seq: seq, TimeMs: at.UnixMilli(), Type: "TOPIC_CREATED", Subject: fmt.Sprint(seq)}})
		row := sdk.RangeCounters{Topic: "orders", Range: 1, InBytesPerSec: in}
		s.Apply(Message{Time: at, Node: "n1", Boot: 1, Counters: &sdk.NodeCounters{ObservedMs: at.UnixMilli(), InBytesPerSec: in, Ranges: []sdk.RangeCounters{row}}})
	}
	seq := uint64(0)
	for i := range 60 {
		seq++
		tell(noon.Add(time.Duration(i)*time.Second), seq, 1000)
	}
	back := noon.Add(-time.Hour)
	for i := range 30 {
		seq++
		tell(back.Add(time.Duration(i)*time.Second), seq, 5000)
	}
	now := back.Add(30 * time.Second)
	v := s.View(now)
	require.Equal(t, StreamLive, v.Nodes.Get("n1").Stream)
	require.Equal(t, 5000.0, v.Nodes.Get("n1").InBytes)
	require.Equal(t, 5000.0, v.Ranges.Get(RangeKey{"orders", 1}).InBytes)
	require.Equal(t, []float32{5000, 5000, 5000}, []float32(v.History.InBytes.Last(3)), "the line goes on")
	require.Equal(t, fmt.Sprint(seq), v.Events.At(v.Events.Len()-1).Subject, "what is told last stands last")
	said := false
	for _, e := range v.Events.All() {
		require.False(t, e.At.After(now))
		said = said || e.Type == "CLIENT_CLOCK" && e.Detail == "the clock here was set back by 1h0m59s"
	}
	require.True(t, said)
	require.Equal(t, StreamStale, s.View(now.Add(10*time.Second)).Nodes.Get("n1").Stream, "silence is noticed")
	past, ok := s.At(back.Add(10 * time.Second))
	require.True(t, ok)
	require.Equal(t, back, s.Oldest())
	require.WithinRange(t, past.Time, back, back.Add(10*time.Second))
}
