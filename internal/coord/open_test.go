package coord

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
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
