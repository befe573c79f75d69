package store

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
)

// A segment without a record takes no offset with it: what lies below may be elsewhere, and was not trimmed.
func TestDropOfAnEmptySegmentTrimsNothing(t *testing.T) {
	o := small()
	o.OnEvent = func(e Event) {
		if e.Kind == EventDropped {
			t.Errorf("files that are not there were dropped: %+v", e)
		}
	}
	n := start(t, vfs.NewMem(), o)
	require.NoError(t, n.Start(t.Context()))
	n.openSegment(specOf(1, 0, 5))
	wait(t, func(done func(error)) error { return n.Seal(1, 5, base.CauseRecovery, done) })
	n.openSegment(specOf(2, 1, 5))
	wait(t, func(done func(error)) error { return n.DropSegments(refOf(1), []base.SegmentID{1}, done) })
	_, err := n.Read(refOf(1), 3, 100, nil)
	require.ErrorIs(t, err, base.CodeNotReplica)
	require.Len(t, n.Segments(refOf(1)), 1)
}

func TestDropSegmentsFreesTheDiskAndKeepsReaders(t *testing.T) {
	mem := vfs.NewMem()
	n := start(t, mem, small())
	require.NoError(t, n.Start(context.Background()))
	n.openSegment(specOf(1, 0, 0))
	var want []byte
	for range 20 {
		want = append(want, n.put(1, 1, 10_000)...)
	}
	wait(t, func(done func(error)) error { return n.Seal(1, 20, base.CauseAge, done) })
	n.openSegment(specOf(2, 1, 20))
	n.put(2, 1, 10)
	require.NoError(t, n.checkpoint())
	// All from the file, held while it is dropped.
	n.takeToken()
	n.Store.o.CacheBytes = 0
	n.evict()
	n.giveToken()
	r, err := n.Read(refOf(1), 0, 1<<20, nil)
	require.NoError(t, err)
	require.Equal(t, 1, len(r.Parts))

	wait(t, func(done func(error)) error { return n.DropSegments(refOf(1), []base.SegmentID{1, 77}, done) })
	var got bytes.Buffer
	_, err = r.Parts[0].WriteTo(&got)
	require.NoError(t, err)
	require.Equal(t, want, got.Bytes())
	r.Release()
	_, err = n.Read(refOf(1), 0, 1<<20, nil)
	require.ErrorIs(t, err, base.CodeOffsetOutOfRange)
	require.Len(t, n.Segments(refOf(1)), 1)
	names, err := mem.ReadDir("data/topics/" + topicA.String() + "/1")
	require.NoError(t, err)
	for _, e := range names {
		require.Contains(t, e.Name, "2-20")
	}
	wait(t, func(done func(error)) error { return n.DropSegments(refOf(1), []base.SegmentID{1}, done) })
	n.restart()
	_, err = n.Read(refOf(1), 0, 1<<20, nil)
	require.ErrorIs(t, err, base.CodeOffsetOutOfRange, "a trim is remembered")
}

func TestDropTopicFreesAll(t *testing.T) {
	mem := vfs.NewMem()
	n := start(t, mem, small())
	require.NoError(t, n.Start(context.Background()))
	for i := range base.SegmentID(5) {
		spec := specOf(i+1, 0, 0)
		spec.Ref = refOf(base.RangeID(i + 1))
		n.openSegment(spec)
		n.put(i+1, 1, 30_000)
	}
	require.NoError(t, n.checkpoint())
	n.put(1, 1, 10)
	var woken atomic.Int32
	n.Notify(refOf(1), 2, func() { woken.Add(1) })
	wait(t, func(done func(error)) error { return n.DropTopic(topicA, done) })
	require.Equal(t, int32(1), woken.Load())
	require.Empty(t, n.All())
	_, err := n.Read(refOf(1), 0, 1<<20, nil)
	require.ErrorIs(t, err, base.CodeNotReplica)
	names, err := mem.ReadDir("data/topics")
	require.NoError(t, err)
	require.Len(t, names, 1, "the stamp only")
	require.Zero(t, n.dirty.Load())
	require.Zero(t, n.cached.Load())
	n.restart()
	require.Empty(t, n.All())
	require.Zero(t, n.files.figures())
}
