package store_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/store/storetest"
)

var t0 = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func apply(s *store.Store, messages ...store.Message) *store.View {
	var last time.Time
	for _, m := range messages {
		s.Apply(m)
		last = m.Time
	}
	return s.View(last)
}

// The same messages give the same view, however often somebody looked meanwhile, and whether they came as JSON lines.
func TestViewsFollowFromMessagesAlone(t *testing.T) {
	for seed := range uint64(12) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		o := storetest.Options{Seed: seed, Nodes: 1 + rnd.IntN(7), Topics: 1 + rnd.IntN(5), Ranges: 5 + rnd.IntN(25), Length: 72 * time.Second}
		messages := storetest.Messages(o)
		messages = messages[:1+rnd.IntN(len(messages))]
		every := 1 + rnd.IntN(50)
		a, b := store.New(store.Options{History: -1}), store.New(store.Options{})
		var now time.Time
		for i, m := range messages {
			now = m.Time
			a.Apply(m)
			line, err := json.Marshal(m)
			require.NoError(t, err)
			var back store.Message
			require.NoError(t, json.Unmarshal(line, &back))
			b.Apply(back)
			if i%every == 0 {
				b.View(now)
			}
		}
		requireSame(t, a.View(now), b.View(now))
	}
}

// requireSame compares what two views show, without versions.
func requireSame(t *testing.T, a, b *store.View) {
	t.Helper()
	as, bs := strings.Split(show(a), "\n"), strings.Split(show(b), "\n")
	require.Equal(t, len(as), len(bs))
	for i := range as {
		require.True(t, as[i] == bs[i], "%s\n%s", as[i], bs[i])
	}
}

func show(v *store.View) string {
	blank := *v
	blank.Version = 0
	text := ""
	add := func(name string, x any) {
		doc, err := json.Marshal(x)
		if err != nil {
			panic(err)
		}
		var tree any
		if err := json.Unmarshal(doc, &tree); err != nil {
			panic(err)
		}
		text += fmt.Sprintf("%s %v\n", name, strip(tree))
	}
	add("time", v.Time)
	add("cluster", v.Cluster)
	for _, r := range v.Nodes.Rows() {
		add("node", r)
	}
	add("believes", v.Believes.Observers)
	for _, r := range v.Shards.Rows() {
		add("shard", r)
	}
	for _, r := range v.Topics.Rows() {
		add("topic", r)
	}
	for _, r := range v.Ranges.Rows() {
		add("range", r)
	}
	for _, r := range v.Segments.Rows() {
		add("segment", r)
	}
	for _, r := range v.Groups.Rows() {
		add("group", r)
	}
	add("seals", v.Seals.All())
	add("changes", v.Changes.All())
	add("gaps", v.Gaps.All())
	add("events", v.Events.All())
	add("logs", v.Logs.All())
	add("health", v.Health)
	add("history", v.History)
	return text
}

// strip takes the stores' own versions out, which depend on who looked when.
func strip(x any) any {
	switch x := x.(type) {
	case map[string]any:
		if _, ok := x["Version"].(float64); ok {
			delete(x, "Version")
		}
		delete(x, "Disagreed") // as are these times
		delete(x, "DisagreedFor")
		if link, ok := x["Link"].(map[string]any); ok {
			delete(link, "Since")
		}
		for k, v := range x {
			x[k] = strip(v)
		}
	case []any:
		for i, v := range x {
			x[i] = strip(v)
		}
	}
	return x
}

// A view is what it was, whatever comes after it.
func TestViewsDoNotChange(t *testing.T) {
	s := store.New(store.Options{})
	type kept struct {
		v    *store.View
		text string
	}
	var views []kept
	for i, m := range storetest.Messages(storetest.Options{Seed: 3}) {
		s.Apply(m)
		if i%97 == 0 {
			v := s.View(m.Time)
			views = append(views, kept{v, show(v)})
		}
		if i%500 == 0 {
			s.At(m.Time.Add(-10 * time.Second)) // going back does not either
		}
	}
	for _, k := range views {
		require.Equal(t, k.text, show(k.v))
	}
}

// What has not changed keeps its version, and what has gets a higher one: pages keep what they drew by it.
func TestVersions(t *testing.T) {
	s := store.New(store.Options{})
	var before *store.View
	for _, m := range storetest.Messages(storetest.Options{Seed: 4}) {
		s.Apply(m)
		v := s.View(m.Time)
		if before != nil {
			require.GreaterOrEqual(t, v.Version, before.Version)
			sameVersionSameRow(t, before.Nodes, v.Nodes, func(r *store.Node) uint64 { return r.Version })
			sameVersionSameRow(t, before.Ranges, v.Ranges, func(r *store.Range) uint64 { return r.Version })
			sameVersionSameRow(t, before.Topics, v.Topics, func(r *store.Topic) uint64 { return r.Version })
			sameVersionSameRow(t, before.Segments, v.Segments, func(r *store.Segment) uint64 { return r.Version })
			if before.Cluster.Version == v.Cluster.Version {
				require.True(t, reflect.DeepEqual(before.Cluster, v.Cluster), "%+v\n%+v", before.Cluster, v.Cluster)
			}
		}
		before = v
	}
}

func sameVersionSameRow[K comparable, R any](t *testing.T, a, b store.Table[K, R], version func(*R) uint64) {
	t.Helper()
	if a.Version == b.Version {
		require.Equal(t, len(a.Rows()), len(b.Rows()))
		if a.Len() > 0 {
			require.Same(t, a.At(0), b.At(0))
		}
		return
	}
	for k, row := range b.All() {
		if was := a.Get(k); was != nil && version(was) == version(row) {
			require.Same(t, was, row)
		} else if was != nil {
			require.Greater(t, version(row), version(was))
		}
	}
}

func TestTheSameViewWhenNothingHasChanged(t *testing.T) {
	s := store.New(store.Options{})
	v := apply(s, storetest.Messages(storetest.Options{Seed: 2, Length: time.Second})...)
	require.Same(t, v, s.View(v.Time.Add(time.Second)))
	require.Same(t, v, s.View(v.Time.Add(2*time.Second)))
	require.NotSame(t, v, s.View(v.Time.Add(5*time.Second)), "its streams are stale by then")
}

func counters(node string, boot uint64, at time.Duration, c sdk.NodeCounters) store.Message {
	c.ObservedMs = t0.Add(at).UnixMilli()
	return store.Message{Time: t0.Add(at), Node: sdk.NodeID(node), Boot: boot, Counters: &c}
}

func TestSilentStreamsAreStale(t *testing.T) {
	s := store.New(store.Options{})
	v := apply(s, counters("n1", 1, 0, sdk.NodeCounters{}), counters("n2", 1, 2*time.Second, sdk.NodeCounters{}))
	require.Equal(t, store.StreamLive, v.Nodes.Get("n1").Stream)
	v = s.View(t0.Add(3 * time.Second))
	require.Equal(t, store.StreamLive, v.Nodes.Get("n1").Stream)
	v = s.View(t0.Add(3*time.Second + time.Millisecond))
	require.Equal(t, store.StreamStale, v.Nodes.Get("n1").Stream)
	require.Equal(t, store.StreamLive, v.Nodes.Get("n2").Stream)
	require.True(t, v.Cluster.AtLeast)
	require.Equal(t, 1, v.Cluster.Streams)
	v = apply(s, store.Message{Time: t0.Add(4 * time.Second), Node: "n1", Boot: 1})
	require.Equal(t, store.StreamLive, v.Nodes.Get("n1").Stream, "a heartbeat is enough")
}

// A node that has started anew counts from zero: no rate is ever negative, and what the earlier start says too late is
// not taken.
func TestRestartsGiveNoNegativeRates(t *testing.T) {
	s := store.New(store.Options{})
	v := apply(s,
		counters("n1", 7, 0, sdk.NodeCounters{InBytesPerSec: 1000, CacheHits: 900, CacheMisses: 100}),
		counters("n1", 7, time.Second, sdk.NodeCounters{InBytesPerSec: 1000, CacheHits: 990, CacheMisses: 110}))
	require.InDelta(t, 0.9, v.Nodes.Get("n1").CacheHit, 1e-9)
	v = apply(s, counters("n1", 8, 2*time.Second, sdk.NodeCounters{InBytesPerSec: -5, CacheHits: 1}))
	require.Zero(t, v.Nodes.Get("n1").InBytes)
	require.Negative(t, v.Nodes.Get("n1").CacheHit, "unknown")
	require.Equal(t, uint64(8), v.Nodes.Get("n1").Boot)
	v = apply(s, counters("n1", 7, 3*time.Second, sdk.NodeCounters{InBytesPerSec: 5000}))
	require.Zero(t, v.Nodes.Get("n1").InBytes)
}

// All brokers are lost and come back: a banner's words, a gap, and two events of our own.
func TestLostAndBack(t *testing.T) {
	s := store.New(store.Options{})
	apply(s, counters("n1", 1, 0, sdk.NodeCounters{InBytesPerSec: 1000}))
	next := t0.Add(8 * time.Second)
	v := apply(s, store.Message{Time: t0.Add(5 * time.Second), Conn: &store.Conn{Lost: true, Error: "dial n1: connection refused", Tried: []string{"n1"}, Attempt: 4, Next: next}})
	require.Equal(t, store.LinkLost, v.Cluster.Link.State)
	require.Equal(t, t0, v.Cluster.Link.Since)
	require.Equal(t, next, v.Cluster.Link.Next)
	require.Equal(t, 1, v.Gaps.Len())
	require.Zero(t, v.Gaps.At(0).To)
	require.InDelta(t, 1000, v.Nodes.Get("n1").InBytes, 0.1, "what was known last stays")
	require.Equal(t, store.StreamLost, v.Nodes.Get("n1").Stream)

	v = apply(s, store.Message{Time: t0.Add(14 * time.Second), Conn: &store.Conn{}}, counters("n1", 1, 14*time.Second, sdk.NodeCounters{}))
	require.Equal(t, store.LinkLive, v.Cluster.Link.State)
	require.Equal(t, t0.Add(14*time.Second), v.Gaps.At(0).To)
	require.Equal(t, "CLIENT_BACK", v.Events.At(1).Type)
	require.Equal(t, "reconnected after 14 s", v.Events.At(1).Detail)
	require.Contains(t, fmt.Sprint(v.History.InBytes), "-1", "seconds in which nobody was heard are marked")
}

// An event is told once, and each word on a roll may come first.
func TestRolls(t *testing.T) {
	sealed := store.Message{Time: t0, Node: "n1", Boot: 1, Event: &sdk.Event{
		Seq: 1, TimeMs: t0.UnixMilli(), Type: "SEGMENT_SEALED", Subject: "orders/r9", Cause: "REPLICA_FAILURE",
		Detail: `detail="a b" end=120 next=s907 replicas=n1,n2,n5 segment=s881 shard=12`,
	}}
	opened := store.Message{Time: t0, Node: "n2", Boot: 1, Event: &sdk.Event{
		Seq: 1, TimeMs: t0.UnixMilli(), Type: "SEGMENT_OPENED", Subject: "orders/r9", Cause: "REPLICA_FAILURE", GapMs: 96,
		Detail: "base=120 previous=s881 role=leader segment=s907",
	}}
	for _, order := range [][]store.Message{{sealed, opened, sealed}, {opened, sealed, opened}} {
		v := apply(store.New(store.Options{}), order...)
		require.Equal(t, 2, v.Events.Len())
		require.Equal(t, 1, v.Seals.Len())
		seal := v.Seals.At(0)
		require.Equal(t, byte('F'), seal.Letter())
		require.Equal(t, int64(96), seal.GapMs)
		require.Equal(t, sdk.SegmentID(907), seal.New)
		require.Equal(t, sdk.NodeID("n2"), seal.Leader)
		require.Equal(t, []sdk.NodeID{"n1", "n2", "n5"}, seal.Replicas)
		require.Equal(t, "active", v.Segments.Get(907).State)
	}
}

// What a node says without end is kept in part.
func TestEverythingIsBounded(t *testing.T) {
	s := store.New(store.Options{Events: 100, LogLines: 50, LogBytes: 4000})
	for i := range 1000 {
		at := t0.Add(time.Duration(i) * time.Millisecond)
		s.Apply(store.Message{Time: at, Node: "n1", Boot: 1, Event: &sdk.Event{Seq: uint64(i + 1), TimeMs: at.UnixMilli(), Type: "SEGMENT_SEALED", Subject: fmt.Sprintf("t%d/r1", i), Detail: fmt.Sprintf("segment=s%d next=s%d", 2*i+1, 2*i+2)}})
		s.Apply(store.Message{Time: at, Node: "n1", Boot: 1, Logs: &store.LogPage{Lines: []sdk.LogLine{{Seq: uint64(i + 1), Message: "something"}}}})
	}
	v := s.View(t0.Add(time.Second))
	require.Equal(t, 100, v.Events.Len())
	require.Equal(t, uint64(900), v.Events.Dropped)
	require.Equal(t, uint64(1000), v.Events.At(99).Seq)
	require.Less(t, v.Logs.Len(), 50)
	require.Equal(t, uint64(1000), v.Logs.At(v.Logs.Len()-1).Seq)
	for i := range 3000 {
		s.Apply(store.Message{Time: t0, Node: sdk.NodeID(fmt.Sprintf("x%d", i))})
	}
	require.Equal(t, 1024, s.View(t0).Nodes.Len())
}

func TestNilAndEmptyViews(t *testing.T) {
	var v *store.View
	require.Nil(t, v.RangesOf("x"))
	require.Nil(t, v.KeyspaceOf("x"))
	require.True(t, v.Stale("n1"))
	require.Nil(t, v.Repairs())
	v = store.New(store.Options{}).View(t0)
	require.Nil(t, v.Nodes.Get("n1"))
	require.Nil(t, v.RangesOf("x"))
	require.Equal(t, -1, (&store.View{}).Nodes.Index("n1"))
	_, ok := (*store.Observer)(nil).Of("n1")
	require.False(t, ok)
	require.Equal(t, store.LinkConnecting, v.Cluster.Link.State)
}

// Another selection of lines, some of them older than what was read, is no continuation: it begins anew.
func TestLogsBeginAnew(t *testing.T) {
	line := func(node sdk.NodeID, anew bool, seq uint64) store.Message {
		return store.Message{Time: t0, Node: node, Boot: 1, Logs: &store.LogPage{Anew: anew, Lines: []sdk.LogLine{{Seq: seq, Message: fmt.Sprintf("%s %d", node, seq)}}}}
	}
	s := store.New(store.Options{LogBytes: 1000})
	v := apply(s, line("n1", true, 7), line("n1", false, 7), line("n2", false, 3))
	require.Equal(t, 2, v.Logs.Len(), "told again")
	v = apply(s, line("n1", true, 5), line("n1", false, 6), line("n2", false, 2), line("n1", false, 7))
	var text []string
	for _, l := range v.Logs.All() {
		text = append(text, l.Message)
	}
	require.Equal(t, []string{"n1 5", "n1 6", "n2 2", "n1 7"}, text)
	require.EqualValues(t, 2, v.Logs.Dropped)
}

// The rack that observers tell of counts; that they tell of none takes away nothing, and is no change each time.
func TestTheRackIsThatOfTheObservers(t *testing.T) {
	told := func(at time.Time, rack string) store.Message {
		return store.Message{Time: at, Node: "n1", Boot: 1, State: &sdk.NodeState{
			Self: sdk.NodeStatus{ID: "n1"}, Members: []sdk.RingMember{{Node: "n1", State: "alive", Boot: 1}, {Node: "n2", State: "alive", Boot: 1, Rack: rack}},
		}}
	}
	s := store.New(store.Options{History: -1})
	require.Equal(t, "a", apply(s, told(t0, "a")).Nodes.Get("n2").Rack)
	v := apply(s, told(t0, "b"))
	require.Equal(t, "b", v.Nodes.Get("n2").Rack)
	v = apply(s, told(t0, ""))
	require.Equal(t, "b", v.Nodes.Get("n2").Rack)
	before := v.Nodes.Get("n2").Version
	require.Equal(t, before, apply(s, told(t0, "")).Nodes.Get("n2").Version)
}

// Counters are under way for some time, which makes a clock look slow: what came fastest counts.
func TestTheSkewOfAClockIsNotTheDelayOfItsWord(t *testing.T) {
	s := store.New(store.Options{History: -1})
	skew := func(second int, told, late time.Duration) int64 {
		now := t0.Add(time.Duration(second) * time.Second)
		counters := &sdk.NodeCounters{ObservedMs: now.Add(told - late).UnixMilli()}
		return apply(s, store.Message{Time: now, Node: "n1", Boot: 1, Counters: counters}).Nodes.Get("n1").SkewMs
	}
	require.EqualValues(t, -300, skew(0, 0, 300*time.Millisecond))
	require.EqualValues(t, -2, skew(1, 0, 2*time.Millisecond))
	for i := 2; i < 8; i++ {
		require.Greater(t, skew(i, 0, 250*time.Millisecond), int64(-50))
	}
	require.EqualValues(t, 900, skew(8, 900*time.Millisecond, 0), "a clock that is fast is so at once")
	var last int64
	for i := 9; i < 400; i++ {
		last = skew(i, -time.Second, 0)
	}
	require.EqualValues(t, -1000, last, "one that was set back is found out")
}

// Whoever lists the shards asks their leaders: what only those know is known of all of them.
func TestAListOfShardsIsTheWordOfTheirLeaders(t *testing.T) {
	s := store.New(store.Options{History: -1})
	status := func(root uint16, leader sdk.NodeID, commit uint64) sdk.ShardStatus {
		return sdk.ShardStatus{ID: sdk.ShardID{Root: root}, Leader: leader, Term: 4, Commit: commit, State: "ok"}
	}
	told := func(node sdk.NodeID, list ...sdk.ShardStatus) store.Message {
		return store.Message{Time: t0, Node: node, Boot: 1, State: &sdk.NodeState{Self: sdk.NodeStatus{ID: node}, Shards: list}}
	}
	apply(s, told("n1", status(1, "n1", 0), status(2, "n2", 0)), told("n2", status(1, "n1", 0), status(2, "n2", 0), status(3, "n2", 0)))
	missing := status(3, "n9", 0)
	list := &sdk.ShardList{Observer: "n2", Shards: []sdk.ShardStatus{status(1, "n1", 23), status(2, "n2", 21), missing}, Missing: []sdk.ShardID{missing.ID}}
	v := apply(s, store.Message{Time: t0, Shards: list})
	for root, want := range map[uint16]uint64{1: 23, 2: 21, 3: 0} {
		require.Equal(t, want, v.Shards.Get(sdk.ShardID{Root: root}).Commit, "shard %d", root)
	}
	require.Equal(t, sdk.NodeID("n1"), v.Shards.Get(sdk.ShardID{Root: 1}).Observer)
	require.Equal(t, sdk.NodeID("n2"), v.Shards.Get(sdk.ShardID{Root: 3}).Observer, "that of a leader who did not answer is not the leader's word")
}

// The feed's word that nobody can be reached holds for nodes that something else was heard of a moment ago.
func TestLostHoldsForAllNodes(t *testing.T) {
	s := store.New(store.Options{})
	s.Apply(store.Message{Time: t0, Conn: &store.Conn{}})
	s.Apply(store.Message{Time: t0, Node: "n1", Boot: 1, Stream: &store.Stream{State: store.StreamLive}})
	s.Apply(store.Message{Time: t0, Node: "n2", Boot: 1, Logs: &store.LogPage{Lines: []sdk.LogLine{{Seq: 1}}}})
	require.Equal(t, 2, s.View(t0).Cluster.Streams)
	for i := range 3 {
		now := t0.Add(time.Duration(i) * time.Second)
		s.Apply(store.Message{Time: now, Conn: &store.Conn{Lost: true, Error: "refused", Attempt: i}})
		v := s.View(now)
		require.Equal(t, store.LinkLost, v.Cluster.Link.State)
		require.Zero(t, v.Cluster.Streams)
		require.Equal(t, 1, v.Events.Len(), "it is told once")
	}
}

// Other seeds may lead to another cluster: nothing of the first is left, and versions go on.
func TestAnotherClusterBeginsAnew(t *testing.T) {
	s := store.New(store.Options{})
	s.Apply(store.Message{Time: t0, Hello: &store.Hello{Cluster: "a"}})
	for m := range storetest.Stream(storetest.Options{Seed: 1, Length: 30 * time.Second}) {
		m.Hello = nil
		s.Apply(m)
	}
	before := s.View(t0.Add(30 * time.Second))
	require.NotZero(t, before.Ranges.Len())
	s.Apply(store.Message{Time: t0.Add(30 * time.Second), Hello: &store.Hello{Cluster: "b", Context: "other"}})
	after := s.View(t0.Add(30 * time.Second))
	require.Equal(t, "b", after.Cluster.ID)
	require.Equal(t, "other", after.Cluster.Context)
	for what, n := range map[string]int{
		"nodes": after.Nodes.Len(), "topics": after.Topics.Len(), "ranges": after.Ranges.Len(), "segments": after.Segments.Len(), "shards": after.Shards.Len(),
		"groups": after.Groups.Len(), "events": after.Events.Len(), "seals": after.Seals.Len(), "logs": after.Logs.Len(), "observers": len(after.Believes.Observers),
	} {
		require.Zero(t, n, what)
	}
	require.Greater(t, after.Version, before.Version)
	require.Greater(t, after.Nodes.Version, before.Nodes.Version)
	_, ok := s.At(t0.Add(10 * time.Second))
	require.False(t, ok)
	s.Apply(store.Message{Time: t0.Add(31 * time.Second), Node: "x1", Boot: 1, Stream: &store.Stream{State: store.StreamLive}})
	require.Equal(t, 1, s.View(t0.Add(31*time.Second)).Nodes.Len())
}
