package coord

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/topology"
)

func TestAwaitOpen(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.node.mu.Lock()
		w.node.slow = 300 * time.Millisecond
		w.node.mu.Unlock()
		topic := w.create("orders", base.TopicConfig{}, 4)
		start := time.Now()
		require.NoError(t, w.coord.AwaitOpen(t.Context(), base.RootShard, topic.ID))
		require.GreaterOrEqual(t, time.Since(start), 300*time.Millisecond)
		for _, r := range topic.Ranges {
			_, ok := w.holds(r.Segments[0].ID)
			require.True(t, ok)
		}

		// Again, when it is open already: at once.
		start = time.Now()
		require.NoError(t, w.coord.AwaitOpen(t.Context(), base.RootShard, topic.ID))
		require.Zero(t, time.Since(start))
	})
}

// A topic that was placed on a node that is about to stop opens elsewhere, and whoever waits for it does not wait long.
func TestAwaitOpenOfATopicOnALeavingNode(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		n2 := w.join("n2")
		n2.mu.Lock()
		n2.slow = 50 * time.Millisecond // so that the wait begins before the answer
		n2.leaving = true
		n2.mu.Unlock()
		topic := w.ledBy(t, "n2", "orders")
		w.mu.Lock()
		w.view = topology.Reduce(w.view, topology.Event{Seen: &topology.Seen{ID: "n2", Disk: n2.replica.Disk, Boot: 1, Admitted: true, Leaving: true}})
		w.mu.Unlock()
		start := time.Now()
		require.NoError(t, w.coord.AwaitOpen(t.Context(), base.RootShard, topic.ID))
		require.Less(t, time.Since(start), time.Second)
		seg := w.topic(topic.Name).Ranges[0].Active()
		require.Equal(t, w.self, seg.Leader())
		_, held := w.holds(seg.ID)
		require.True(t, held)
	})
}

func TestAwaitOpenGivesUp(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.node.mu.Lock()
		w.node.fail = base.Errorf(base.CodeUnreachable, "tell", "gone")
		w.node.mu.Unlock()
		topic := w.create("orders", base.TopicConfig{}, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, w.coord.AwaitOpen(ctx, base.RootShard, topic.ID), base.CodeTimeout)

		// A leadership that ends is somebody else's to go on with.
		time.AfterFunc(time.Second, func() { w.coord.Lead(base.RootShard, false) })
		require.ErrorIs(t, w.coord.AwaitOpen(t.Context(), base.RootShard, topic.ID), base.CodeNotLeader)
		require.ErrorIs(t, w.coord.AwaitOpen(t.Context(), base.RootShard, topic.ID), base.CodeNotLeader)
	})
}

// A follower confirms before there is anything to hold: a segment is open when its leader says so.
func TestOnlyItsLeaderOpensASegment(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		n2 := w.join("n2")
		n2.fail = base.Errorf(base.CodeUnreachable, "tell", "not yet")
		topic := w.place("orders", base.TopicConfig{MinReplicas: 1}, "n2", "n1")
		opened := make(chan error, 1)
		go func() { opened <- w.coord.AwaitOpen(context.Background(), base.RootShard, topic.ID) }()
		rest(time.Minute)
		_, held := w.holds(topic.Ranges[0].Active().ID)
		require.True(t, held)
		require.Empty(t, opened)
		n2.mu.Lock()
		n2.fail = nil
		n2.mu.Unlock()
		require.NoError(t, <-opened)
	})
}

// Nor is it a follower's to say that a segment cannot go on.
func TestAFollowersRefusalSealsNothing(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.join("n2")
		w.node.leaving = true
		w.place("orders", base.TopicConfig{MinReplicas: 1}, "n2", "n1")
		rest(time.Minute)
		require.Nil(t, w.recovered("orders"))
		require.Equal(t, Status{}, w.coord.Status()[0])
	})
}
