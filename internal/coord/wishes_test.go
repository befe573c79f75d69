package coord

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/topology"
)

// drain makes the view say that a node is to be emptied.
func (w *world) drain(id base.NodeID) {
	w.mu.Lock()
	for i := range w.view.Nodes {
		if w.view.Nodes[i].ID == id {
			nodes := append([]topology.Node(nil), w.view.Nodes...)
			nodes[i].Standing = topology.Draining
			w.view.Nodes = nodes
		}
	}
	w.mu.Unlock()
	w.coord.ViewChanged()
}

func TestWhatANodeLeadsRollsAwayWhenItIsDrained(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		n2 := w.join("n2")
		n2.obeys = true
		const topics = 100
		for i := range topics {
			w.place(topicName(i), base.TopicConfig{ReplicationFactor: 1}, "n2")
		}
		settle()
		began := time.Now()
		w.drain("n2")
		for w.recoveredOf(topics) < topics {
			require.Less(t, time.Since(began), time.Minute)
			rest(100 * time.Millisecond)
		}
		require.InDelta(t, topics*1000/20, time.Since(began).Milliseconds(), 1500)
		for i := range topics {
			r := w.topic(topicName(i)).Ranges[0]
			require.Equal(t, base.CauseDrain, r.Segments[0].Cause)
			require.Equal(t, w.self, r.Active().Leader())
		}
		require.LessOrEqual(t, w.commands(func(c *meta.Command) bool { return c.RollSegments != nil }), 2*topics/10)
		require.Len(t, n2.asked, topics, "each is asked for once")
		tells := n2.tells
		rest(time.Hour)
		require.Equal(t, tells, n2.tells)
	})
}

// Where nobody else can take what a node leads, it stays where it is.
func TestADrainedNodeKeepsWhatNobodyElseCanTake(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.place("orders", base.TopicConfig{}, "n1")
		settle()
		w.drain("n1")
		rest(time.Minute)
		require.Empty(t, w.node.asked)
	})
}

// What a node leads that says it is stopping goes to others at once, if there are enough of them.
func TestWhatALeavingNodeLeadsGoesToOthers(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		n2 := w.join("n2")
		n2.obeys = true
		const topics = 300
		for i := range topics {
			w.place(topicName(i), base.TopicConfig{}, "n2")
		}
		settle()
		w.mu.Lock()
		w.view = topology.Reduce(w.view, topology.Event{Usage: &topology.Usage{ID: "n2", Boot: 1, Leaving: true}})
		w.mu.Unlock()
		w.coord.ViewChanged()
		settle()
		for i := range topics {
			r := w.topic(topicName(i)).Ranges[0]
			require.Equal(t, w.self, r.Active().Leader())
			require.Equal(t, base.CauseDrain, r.Segments[0].Cause)
		}
	})
}
