package store

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/sdk"
)

// TestLinesInsert puts entries in late, in any order: they stand in order, the oldest are dropped, and no log that was
// published ever changes.
func TestLinesInsert(t *testing.T) {
	type published struct {
		log  Log[int]
		then []int
	}
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 1))
		l := lines[int]{most: 50}
		all, logs := []int(nil), []published(nil)
		for i := range 400 {
			n := i*3 - random.IntN(60)
			l.insert(n, func(other int) bool { return other > n })
			if at, _ := slices.BinarySearchFunc(all, n, func(a, b int) int { return cmp.Or(cmp.Compare(a, b), -1) }); at > 0 || len(all) < 50 {
				all = slices.Insert(all, at, n)
			}
			all = all[max(len(all)-50, 0):]
			require.Equal(t, all, l.all())
			if random.IntN(5) == 0 {
				log := l.publish(uint64(i + 1))
				logs = append(logs, published{log, slices.Clone(log.All())})
			}
		}
		for _, p := range logs {
			require.Equal(t, p.then, p.log.All())
		}
		require.NotZero(t, l.moved)
	}
}

// TestEventsStandInTheOrderOfTime: nodes tell one after the other of what happened at once.
func TestEventsStandInTheOrderOfTime(t *testing.T) {
	s := New(Options{History: -1})
	start := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	tell := func(node sdk.NodeID, seq uint64, ms int64, kind string) {
		s.Apply(Message{Time: start.Add(2 * time.Second), Node: node, Boot: 1, Event: &sdk.Event{Seq: seq, Node: node, TimeMs: start.UnixMilli() + ms, Type: kind}})
	}
	tell("n1", 1, 494, "LEADER_CHANGED")
	tell("n1", 2, 600, "SEGMENT_OPENED")
	before := s.View(start.Add(2 * time.Second))
	tell("n2", 1, 491, "LEADER_CHANGED")
	tell("n3", 1, 513, "TOPIC_CREATED")
	tell("n3", 2, 700, "TOPIC_DELETED")
	v := s.View(start.Add(2 * time.Second))
	var times []int64
	for _, e := range v.Events.All() {
		times = append(times, e.TimeMs-start.UnixMilli())
	}
	require.Equal(t, []int64{491, 494, 513, 600, 700}, times)
	require.Equal(t, 2, before.Events.Len(), "what was shown stays as it was")
	require.Equal(t, "SEGMENT_OPENED", before.Events.At(1).Type)
}

// TestRollToFewerCopies: a segment that opens on fewer nodes than the topic wants is short from its first moment, whoever
// tells first.
func TestRollToFewerCopies(t *testing.T) {
	start := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	sealed := sdk.Event{Type: "SEGMENT_SEALED", Subject: "orders/r1", Cause: "REPLICA_FAILURE", Detail: "end=10 next=s2 replicas=n1,n3 segment=s1"}
	opened := sdk.Event{Type: "SEGMENT_OPENED", Subject: "orders/r1", Cause: "REPLICA_FAILURE", GapMs: 71, Detail: "base=10 previous=s1 role=leader segment=s2"}
	for _, order := range [][]sdk.Event{{sealed, opened}, {opened, sealed}} {
		s := New(Options{History: -1})
		s.Apply(Message{Time: start, Topics: &TopicPage{Topics: []sdk.TopicSummary{{Name: "orders", State: 1, ReplicationFactor: 3}}}})
		for i, e := range order {
			e.Seq, e.TimeMs = uint64(i+1), start.UnixMilli()
			s.Apply(Message{Time: start, Node: "n1", Boot: 1, Event: &e})
		}
		row := s.View(start).Segments.Get(2)
		require.Len(t, row.Replicas, 2)
		require.True(t, row.Short())
		require.Equal(t, int64(71), row.GapMs)
	}
}

// TestLinesReplaced: a storm of seals and their gaps copies the list of seals once for each view, not once for each seal.
func TestLinesReplaced(t *testing.T) {
	l := lines[int]{most: 100}
	for i := range 100 {
		l.add(i)
	}
	published := l.publish(1)
	l.replace(7, -7)
	require.Equal(t, 7, published.At(7), "what was published stays as it was")
	require.Zero(t, testing.AllocsPerRun(10, func() { l.replace(8, -8) }))
	require.Equal(t, -7, l.all()[7])
	require.Equal(t, -8, l.publish(2).At(8))
}

// TestLinesAreBoundedByTheirBytes: however many entries come and go, what is counted is what is there.
func TestLinesAreBoundedByTheirBytes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	l := lines[int]{most: 40, room: 5000, size: func(n int) int { return n % 400 }}
	for i := range 5000 {
		switch n := i*10 + random.IntN(100); {
		case random.IntN(9) == 0 && len(l.all()) > 0:
			at := random.IntN(len(l.all()))
			l.replace(at, l.all()[at]/400*400+random.IntN(400))
		case random.IntN(500) == 0:
			l.empty()
		default:
			l.insert(n, func(other int) bool { return other > n })
		}
		sum := 0
		for _, n := range l.all() {
			sum += n % 400
		}
		require.Equal(t, sum, l.bytes)
		require.LessOrEqual(t, l.bytes, 5400, "but for one that was replaced by a longer one")
		require.LessOrEqual(t, len(l.all()), 40)
	}
}

// TestManyShortLogLines: the last 5,000 lines are kept, however many have come before them.
func TestManyShortLogLines(t *testing.T) {
	s := New(Options{History: -1})
	start := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for i := range 60 {
		page := &LogPage{}
		for j := range 1000 {
			page.Lines = append(page.Lines, sdk.LogLine{Seq: uint64(i*1000 + j + 1), TimeMs: start.UnixMilli(), Level: "info", Message: "segment rolled"})
		}
		s.Apply(Message{Time: start, Node: "n1", Boot: 1, Logs: page})
	}
	require.Equal(t, 5000, s.View(start).Logs.Len())
}
