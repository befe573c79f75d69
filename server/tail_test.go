package server

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/dataplane"
	"github.com/eastguard/eastguard/internal/meta"
)

// A node that holds nothing of a segment that has ended, and hears that it should, copies it from the other replicas.
func TestAMissingCopyIsFetchedFromOthers(t *testing.T) {
	t.Parallel()
	c := newTrio(t)
	ref, leader, followers := c.topic("orders", base.TopicConfig{SegmentBytes: base.MinSegmentBytes})
	for range 9 {
		c.append("orders", ref, strings.Repeat("x", 300_000))
	}
	soon(t, "a segment has ended everywhere", func() bool {
		for _, n := range c.nodes {
			if held := n.store.Segments(ref); len(held) == 0 || !held[0].Whole() {
				return false
			}
		}
		return true
	})
	one, first := followers[0], followers[0].store.Segments(ref)[0]
	want, err := leader.store.Checksum(t.Context(), first.Segment)
	require.NoError(t, err)

	dropped := make(chan error, 1)
	require.NoError(t, one.store.DropSegments(ref, []base.SegmentID{first.Segment}, func(err error) { dropped <- err }))
	require.NoError(t, <-dropped)
	asg := meta.Assignment{
		Ref: ref, Name: "orders", Version: 1 << 30, Segment: first.Segment, Epoch: first.Epoch, Base: first.Base,
		End: first.SealedEnd, State: base.StateSealed, Cause: first.SealedCause,
	}
	for _, n := range c.nodes {
		asg.Replicas = append(asg.Replicas, base.Replica{Node: n.id.Node, Disk: n.id.Disk})
	}
	confirmed, err := one.plane.Tell(t.Context(), meta.Orders{Assignments: []meta.Assignment{asg}})
	require.NoError(t, err)
	require.Equal(t, meta.StatusShort, confirmed[0].Status)
	soon(t, "the copy is whole", func() bool {
		info, ok := one.store.Info(first.Segment)
		return ok && info.Whole()
	})
	got, err := one.store.Checksum(t.Context(), first.Segment)
	require.NoError(t, err)
	require.Equal(t, want, got)

	from := base.Replica{Node: leader.id.Node, Disk: leader.id.Disk}
	q := dataplane.TailRequest{Ref: ref, Segment: first.Segment, From: first.Base, End: first.SealedEnd, MaxBytes: 1}
	tail, err := one.fetchTail(t.Context(), from, q)
	require.NoError(t, err)
	require.Len(t, tail.Batches, 1)
	require.Equal(t, first.Bytes, tail.Left)
	for _, wrong := range []func(*dataplane.TailRequest){
		func(q *dataplane.TailRequest) { q.Segment += 1000 },
		func(q *dataplane.TailRequest) { q.Ref.Range++ },
		func(q *dataplane.TailRequest) { q.End++ },
		func(q *dataplane.TailRequest) { q.From = q.End },
	} {
		q := q
		wrong(&q)
		_, err := one.fetchTail(t.Context(), from, q)
		require.Error(t, err)
	}
	from.Disk[0] ^= 1
	_, err = one.fetchTail(t.Context(), from, q)
	require.ErrorIs(t, err, base.CodeNotReplica)
}
