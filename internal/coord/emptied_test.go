package coord

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

// endOf is what a node was told of how a segment ended.
func (n *fakeNode) endOf(id base.SegmentID) (end int64, sealed bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	a, held := n.held[id]
	return a.End, held && a.State == base.StateSealed
}

func (n *fakeNode) away(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fail = err
}

// A segment without a record has left the chain by the time that a replica can hear of its end.
func TestTheEndOfADroppedSegmentIsToldUntilEverybodyKnows(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.join("n2")
		n3 := w.join("n3")
		topic := w.place("orders", base.TopicConfig{MinReplicas: 1}, "n1", "n2", "n3")
		settle()
		first := topic.Ranges[0].Active().ID
		n3.away(base.Errorf(base.CodeUnreachable, "tell", "away"))
		for _, end := range []int64{0, 0, 10} { // the first one ends empty; then so does its successor, which drops it
			_, err := w.coord.RequestRoll(t.Context(), w.rollRequest(topic, end))
			require.NoError(t, err)
			settle()
		}
		require.Len(t, w.topic("orders").Ranges[0].Segments, 2, "it is not one of the chain any more")
		end, sealed := w.nodeOf("n2").endOf(first)
		require.True(t, sealed)
		require.Zero(t, end)
		_, sealed = n3.endOf(first)
		require.False(t, sealed)
		n3.away(nil)
		rest(10 * time.Second)
		end, sealed = n3.endOf(first)
		require.True(t, sealed)
		require.Zero(t, end)
		require.Equal(t, Status{}, w.coord.Status()[0])
	})
}

// The same for one that its leader never opened, which is not kept for a moment.
func TestTheEndOfASegmentThatNeverOpenedIsTold(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		n2, n3 := w.join("n2"), w.join("n3")
		topic := w.place("orders", base.TopicConfig{MinReplicas: 1}, "n2", "n1", "n3")
		settle()
		first := topic.Ranges[0].Active().ID
		for _, n := range []*fakeNode{w.node, n2, n3} {
			n.mu.Lock()
			n.lost[first] = true // and never lists it
			n.mu.Unlock()
		}
		w.kill("n2")
		rest(10 * time.Second)
		for _, n := range []*fakeNode{w.node, n3} {
			n.mu.Lock()
			clear(n.lost)
			n.mu.Unlock()
		}
		rest(10 * time.Second)
		for _, n := range []*fakeNode{w.node, n3} {
			_, sealed := n.endOf(first)
			require.True(t, sealed)
		}
	})
}
