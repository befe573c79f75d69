package store

import (
	"encoding/binary"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
)

func (n *node) dropTopic(topic base.TopicID) {
	n.t.Helper()
	wait(n.t, func(done func(error)) error { return n.DropTopic(topic, done) })
}

// nothingOf is what a dropped topic leaves.
func nothingOf(n *node, topic base.TopicID) {
	n.t.Helper()
	require.Empty(n.t, n.All())
	n.mu.RLock()
	defer n.mu.RUnlock()
	require.NotContains(n.t, n.topics, topic)
}

// An open that was under way when its topic was dropped, or its segment, comes too late.
func TestAnOpenDoesNotReviveWhatWasDroppedMeanwhile(t *testing.T) {
	for name, drop := range map[string]func(*node) func(func(error)) error{
		"topic": func(n *node) func(func(error)) error {
			return func(done func(error)) error { return n.DropTopic(topicA, done) }
		},
		"segment": func(n *node) func(func(error)) error {
			return func(done func(error)) error {
				return n.DropSegments(refOf(1), []base.SegmentID{1}, done)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := start(t, vfs.NewMem(), small())
			require.NoError(t, n.Start(t.Context()))
			g, err := n.list(specOf(1, 0, 0))
			require.NoError(t, err)
			wait(t, drop(n))
			require.Error(t, n.logOpen(g, openRecord{spec: specOf(1, 0, 0), boot: 1}, func(error) { t.Error("done") }, true))
			require.Empty(t, n.All())
			n.restart()
			require.Empty(t, n.All())
		})
	}
}

// What lies behind a drop in the log, because it met a full disk before, is void.
func TestRecordsBehindTheDropOfTheirTopicAreVoid(t *testing.T) {
	n := start(t, vfs.NewMem(), small())
	require.NoError(t, n.Start(t.Context()))
	n.openSegment(specOf(1, 0, 0))
	n.put(1, 1, 100)
	n.dropTopic(topicA)
	open, fence := openRecord{spec: specOf(2, 1, 1), boot: 1}, fenceRecord{ref: refOf(7), epoch: 3}
	wait(t, func(done func(error)) error {
		return n.record(opOpen, kindOpen, open.encode(), func() { n.applyOpen(open) }, done)
	})
	wait(t, func(done func(error)) error {
		return n.record(opFence, kindFence, fence.encode(), func() { n.applyFence(fence) }, done)
	})
	nothingOf(n, topicA)
	killed := n.fs.(*vfs.Mem).Snapshot()
	nothingOf(start(t, killed, small()), topicA)
	n.restart()
	nothingOf(n, topicA)
}

// A tombstone outlives the topic's files, and the process.
func TestALateRequestForADroppedTopicIsRefused(t *testing.T) {
	n := start(t, vfs.NewMem(), small())
	require.NoError(t, n.Start(t.Context()))
	n.openSegment(specOf(1, 0, 0))
	n.put(1, 1, 100)
	n.dropTopic(topicA)
	for range 3 {
		require.ErrorIs(t, n.Fence(refOf(1), 4, 1, func(FenceAnswer, error) { t.Error("done") }), base.CodeTopicDeleting)
		require.ErrorIs(t, n.OpenSegment(specOf(2, 1, 1), func(error) { t.Error("done") }), base.CodeTopicDeleting)
		nothingOf(n, topicA)
		require.NoError(t, n.Start(t.Context()))
		n.dropTopic(topicA) // may be repeated
		require.NoError(t, n.checkpoint())
		n.restart()
	}
	other := specOf(3, 0, 0)
	other.Ref.Topic = base.TopicID{0xb}
	n.openSegment(other)
}

// Opens, fences and drops of one topic at once: whatever the order, the drop is the last word.
func TestDropsBesideOpensAndFences(t *testing.T) {
	n := start(t, vfs.NewMem(), small())
	require.NoError(t, n.Start(t.Context()))
	for i := range 200 {
		topic := base.TopicID{0xc}
		binary.BigEndian.PutUint32(topic[8:], uint32(i))
		ref := base.RangeRef{Topic: topic, Range: 1}
		var wg sync.WaitGroup
		late := func(fn func(done func(error)) error) {
			wg.Go(func() {
				if err := tryError(fn); err != nil && base.CodeOf(err) != base.CodeTopicDeleting && base.CodeOf(err) != base.CodeFenced {
					t.Error(err)
				}
			})
		}
		late(func(done func(error)) error {
			return n.OpenSegment(SegmentSpec{Ref: ref, Segment: base.SegmentID(i + 1)}, done)
		})
		late(func(done func(error)) error {
			return n.Fence(ref, 1, 1, func(_ FenceAnswer, err error) { done(err) })
		})
		late(func(done func(error)) error { return n.DropTopic(topic, done) })
		wg.Wait()
	}
	check := func() {
		require.Empty(t, n.All())
		require.Empty(t, n.segs)
		require.Empty(t, n.topics)
	}
	check()
	n.restart()
	check()
}

func TestTombstonesAreBounded(t *testing.T) {
	var ts tombstones
	topic := func(i int) (id base.TopicID) {
		binary.BigEndian.PutUint32(id[:], uint32(i))
		return id
	}
	for i := range 3 * maxTombstones {
		ts.add(topic(i))
		ts.add(topic(i))
	}
	require.Len(t, ts.order, maxTombstones)
	require.Len(t, ts.known, maxTombstones)
	require.False(t, ts.has(topic(2*maxTombstones-1)))
	require.True(t, ts.has(topic(2*maxTombstones)))
}
