package sdk

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// With true clocks and everybody answering, the merge sorts, whatever order the answers come in.
func TestMergeSorts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := time.Unix(1_000_000, 0)
		m, now := newWatchMerge(watchHold), start
		names := []NodeID{"a", "b", "c"}
		for _, n := range names {
			m.expect(n)
		}
		var got []time.Time
		pop := func() {
			for {
				ev, ok, _ := m.next(now)
				if !ok {
					return
				}
				got = append(got, ev.Time)
			}
		}
		told := map[NodeID]time.Time{}
		total := 0
		for range rapid.IntRange(1, 40).Draw(t, "answers") {
			now = now.Add(time.Duration(rapid.IntRange(0, 50).Draw(t, "step")) * time.Millisecond)
			id := rapid.SampledFrom(names).Draw(t, "node")
			var events []WatchEvent
			at := told[id]
			if at.Before(start) {
				at = start
			}
			for range rapid.IntRange(0, 3).Draw(t, "events") {
				if at = at.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "gap")) * time.Millisecond); at.After(now) {
					at = now
				}
				events = append(events, WatchEvent{Node: id, Time: at, Event: &Event{}})
			}
			told[id] = now
			total += len(events)
			m.add(id, events, now, now)
			if rapid.Bool().Draw(t, "look") && now.Sub(start) < watchHold {
				pop()
			}
		}
		for _, n := range names {
			m.drop(n)
		}
		pop()
		if !slices.IsSortedFunc(got, time.Time.Compare) {
			t.Fatalf("not in order: %v", got)
		}
		if len(got) != total || m.len() != 0 || len(m.queues) != 0 {
			t.Fatalf("%d of %d came, %d left", len(got), total, m.len())
		}
	})
}

func TestMergeDoesNotWaitForEver(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	m := newWatchMerge(watchHold)
	m.expect("a")
	m.expect("b")
	m.add("a", []WatchEvent{{Node: "a", Time: now, Event: &Event{}}}, now, now)
	_, ok, wait := m.next(now)
	require.False(t, ok)
	require.Equal(t, watchFirstHold, wait)
	m.add("b", nil, now.Add(-time.Second), now)
	_, ok, wait = m.next(now)
	require.False(t, ok)
	require.Equal(t, watchHold, wait)
	_, ok, _ = m.next(now.Add(watchHold))
	require.True(t, ok)

	// A full memory waits for nobody.
	many := make([]WatchEvent, watchLimit)
	for i := range many {
		many[i] = WatchEvent{Node: "a", Time: now.Add(time.Second), Event: &Event{}}
	}
	m.add("a", many, now.Add(time.Second), now)
	_, ok, _ = m.next(now)
	require.True(t, ok)
	_, ok, _ = m.next(now)
	require.False(t, ok)
}

// What a node is and counts now waits for nobody, but keeps its place behind what the same node told: a screen that has
// just begun to watch shows each node as soon as that has answered.
func TestMergeHoldsOnlyWhatHappened(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	m := newWatchMerge(watchHold)
	for _, id := range []NodeID{"a", "b", "c"} {
		m.expect(id)
	}
	state, counters, event := &NodeState{}, &NodeCounters{}, &Event{}
	m.add("a", []WatchEvent{{Node: "a", Time: now, Event: event}, {Node: "a", Time: now, State: state}}, now, now)
	m.add("b", []WatchEvent{{Node: "b", Time: now.Add(time.Second), State: state}, {Node: "b", Time: now.Add(time.Second), Counters: counters}}, now.Add(time.Second), now)
	var got []WatchEvent
	pop := func(at time.Time) {
		for ev, ok, _ := m.next(at); ok; ev, ok, _ = m.next(at) {
			got = append(got, ev)
		}
	}
	pop(now)
	require.Len(t, got, 2, "c has not answered: the event of a waits, and what a told after it")
	require.NotNil(t, got[0].State)
	require.NotNil(t, got[1].Counters)
	m.add("c", nil, now, now)
	pop(now)
	require.Len(t, got, 4)
	require.NotNil(t, got[2].Event)
	require.NotNil(t, got[3].State)
	require.Zero(t, m.len())
}

// While a node does not answer it holds up nobody; once it does, it is waited for as before.
func TestMergeDoesNotWaitForTheLost(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	m := newWatchMerge(20 * time.Millisecond)
	m.expect("a")
	m.expect("b")
	m.add("b", nil, now.Add(-time.Second), now)
	m.miss("b")
	m.add("a", []WatchEvent{{Node: "a", Time: now, Event: &Event{}}}, now, now)
	_, ok, _ := m.next(now)
	require.True(t, ok)

	m.add("b", nil, now.Add(-time.Second), now)
	m.add("a", []WatchEvent{{Node: "a", Time: now, Event: &Event{}}}, now, now)
	_, ok, wait := m.next(now)
	require.False(t, ok)
	require.Equal(t, 20*time.Millisecond, wait)
}
