package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/store/storetest"
)

// An incident from its first sign to its end, as a page would see it.
func TestIncident(t *testing.T) {
	o := storetest.Options{Seed: 1}
	at := func(d time.Duration) *store.View { return storetest.View(o, d) }
	victim := o.Victim()

	v := at(5 * time.Second)
	require.Equal(t, 5, v.Nodes.Len())
	require.Equal(t, store.LinkLive, v.Cluster.Link.State)
	require.Equal(t, 5, v.Cluster.Streams)
	require.Equal(t, 5, v.Cluster.Alive)
	require.Equal(t, 5, v.Cluster.Agree)
	require.False(t, v.Cluster.AtLeast)
	require.Positive(t, v.Cluster.InBytes)
	require.Positive(t, v.Cluster.Ack.P99Us)
	require.Equal(t, 16, v.Cluster.Leaders)
	require.Equal(t, "alive", v.Nodes.Get(victim).State)
	require.NotEmpty(t, v.RangesOf("orders"))
	require.Positive(t, v.Topics.Get("orders").InBytes)

	v = at(storetest.SplitAt + time.Second)
	require.Equal(t, 1, v.Changes.Len())
	split := v.Changes.At(0)
	require.False(t, split.Merge)
	require.Len(t, split.Children, 2)
	parent := v.Ranges.Get(store.RangeKey{Topic: "orders", Range: split.Parents[0]})
	require.Equal(t, "sealed", parent.State)
	require.Equal(t, split.Children, parent.Children)
	left := v.Ranges.Get(store.RangeKey{Topic: "orders", Range: split.Children[0]})
	require.Equal(t, split.At, left.End)
	requireWhole(t, v.KeyspaceOf("orders"))

	v = at(storetest.MergeAt + time.Second)
	require.Equal(t, 2, v.Changes.Len())
	require.True(t, v.Changes.At(1).Merge)

	v = at(storetest.KillAt + 500*time.Millisecond)
	require.Equal(t, store.StreamLost, v.Nodes.Get(victim).Stream)
	require.True(t, v.Cluster.AtLeast)
	require.Equal(t, 4, v.Cluster.Streams)

	v = at(storetest.SuspectAt)
	require.Equal(t, "suspect", v.Nodes.Get(victim).State)
	require.Len(t, v.Nodes.Get(victim).SuspectedBy, 4)

	v = at(storetest.DeadAt)
	require.Equal(t, "dead", v.Nodes.Get(victim).State)
	require.Equal(t, 1, v.Cluster.Dead)
	failed := 0
	for _, s := range v.Seals.All() {
		if s.Letter() == 'F' {
			failed++
			require.Positive(t, s.GapMs)
			require.NotZero(t, s.New)
			require.NotEqual(t, victim, s.Leader)
		}
	}
	require.Positive(t, failed)
	for _, sh := range v.Shards.Rows() {
		require.NotEqual(t, victim, sh.Leader)
	}

	v = at(storetest.RepairAt + 4*time.Second)
	require.NotEmpty(t, v.Repairs())
	v = at(storetest.RepairedAt + time.Second)
	require.Empty(t, v.Repairs())

	v = at(storetest.ReturnAt + 3*time.Second)
	require.Equal(t, "alive", v.Nodes.Get(victim).State)
	require.Equal(t, store.StreamLive, v.Nodes.Get(victim).Stream)
	require.Equal(t, 5, v.Cluster.Alive)
	for _, g := range v.Gaps.All() {
		require.False(t, g.To.IsZero(), "the gap is over: %+v", g)
	}
}

// requireWhole: ranges cover the key space, without holes.
func requireWhole(t *testing.T, ranges []*store.Range) {
	t.Helper()
	var at uint64
	for _, r := range ranges {
		require.Equal(t, at, r.Start)
		at = r.End
	}
	require.Zero(t, at)
}
