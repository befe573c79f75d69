package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/store/storetest"
)

// What At gives is what was shown then: everything that happened, and rates of a moment before.
func TestAt(t *testing.T) {
	o := storetest.Options{Seed: 5, Length: 150 * time.Second}
	s := store.New(store.Options{})
	shown := map[time.Duration]*store.View{}
	for m := range storetest.Stream(o) {
		if at := m.Time.Sub(t0); at%(10*time.Second) == 9*time.Second && shown[at] == nil {
			shown[at] = s.View(m.Time)
		}
		s.Apply(m)
	}
	require.Equal(t, t0, s.Oldest())
	for _, at := range []time.Duration{99 * time.Second, 9 * time.Second, 19 * time.Second, 39 * time.Second, 29 * time.Second, 149 * time.Second, 69 * time.Second} {
		was := shown[at]
		v, ok := s.At(was.Time)
		require.True(t, ok)
		require.Equal(t, was.Events.Len(), v.Events.Len(), at)
		require.Equal(t, was.Seals.Len(), v.Seals.Len())
		require.Equal(t, was.Changes.Len(), v.Changes.Len())
		require.Equal(t, was.Nodes.Len(), v.Nodes.Len())
		for id, n := range was.Nodes.All() {
			then := v.Nodes.Get(id)
			require.Equal(t, n.State, then.State)
			require.Equal(t, n.Stream, then.Stream, "%s at %s", id, at)
			require.InEpsilon(t, n.InBytes+1, then.InBytes+1, 0.3)
		}
		require.Equal(t, was.Cluster.Streams, v.Cluster.Streams)
		require.Equal(t, was.Cluster.Agree, v.Cluster.Agree)
		for id, sh := range was.Shards.All() {
			require.Equal(t, sh.Leader, v.Shards.Get(id).Leader)
		}
	}
	first, ok := s.At(t0.Add(-time.Hour))
	require.True(t, ok)
	require.Equal(t, t0, first.Time, "the oldest there is")
	s.Live()
}

func TestAtWithoutHistory(t *testing.T) {
	s := store.New(store.Options{})
	_, ok := s.At(t0)
	require.False(t, ok)
	require.Zero(t, s.Oldest())
	s = store.New(store.Options{History: -1})
	s.Apply(store.Message{Time: t0, Node: "n1"})
	_, ok = s.At(t0)
	require.False(t, ok)
}

// The history is bounded by its age and by its bytes.
func TestHistoryIsBounded(t *testing.T) {
	s := store.New(store.Options{History: 5 * time.Minute})
	for i := range 1200 {
		s.Apply(counters("n1", 1, time.Duration(i)*time.Second, sdk.NodeCounters{InBytesPerSec: int64(i)}))
	}
	back := t0.Add(1199 * time.Second).Sub(s.Oldest())
	require.GreaterOrEqual(t, back, 5*time.Minute)
	require.Less(t, back, 7*time.Minute)

	small := store.New(store.Options{HistoryBytes: 150 << 10})
	for m := range storetest.Stream(storetest.Options{Seed: 1, Length: 5 * time.Minute}) {
		small.Apply(m)
		require.LessOrEqual(t, small.HistoryBytes(), 150<<10)
	}
	require.True(t, small.Oldest().After(t0))
	v, ok := small.At(t0.Add(290 * time.Second))
	require.True(t, ok)
	require.Equal(t, 5, v.Nodes.Len())
}
