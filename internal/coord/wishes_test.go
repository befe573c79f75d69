package coord

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/planner"
	"github.com/eastguard/eastguard/internal/topology"
)

// drain makes the view say that a node is to be emptied.
func (w *world) drain(id base.NodeID) { w.stand(id, topology.Draining) }

func (w *world) stand(id base.NodeID, standing topology.Standing) {
	w.mu.Lock()
	for i := range w.view.Nodes {
		if w.view.Nodes[i].ID == id {
			nodes := append([]topology.Node(nil), w.view.Nodes...)
			nodes[i].Standing = standing
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
		require.Len(t, n2.orderedRolls(), topics, "each is asked for once")
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
		require.Empty(t, w.node.orderedRolls())
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
		w.leave("n2")
		settle()
		for i := range topics {
			r := w.topic(topicName(i)).Ranges[0]
			require.Equal(t, w.self, r.Active().Leader())
			require.Equal(t, base.CauseDrain, r.Segments[0].Cause)
		}
	})
}

// leave makes the view say that a node is stopping.
func (w *world) leave(id base.NodeID) {
	w.mu.Lock()
	w.view = topology.Reduce(w.view, topology.Event{Usage: &topology.Usage{ID: id, Boot: 1, Leaving: true}})
	w.mu.Unlock()
	w.coord.ViewChanged()
}

// What it follows stays, whatever else its topic needs, and what others follow goes with what it leads.
func TestWhatALeavingNodeFollowsStays(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.node.obeys = true
		for _, id := range []base.NodeID{"n2", "n3", "n4"} {
			w.join(id)
		}
		for i := range 100 {
			w.place(topicName(i), base.TopicConfig{}, "n1", "n2", "n3")
		}
		settle()
		w.leave("n2")
		rest(time.Minute)
		require.Empty(t, w.node.orderedRolls())
		w.drain("n3")
		rest(time.Minute)
		require.Len(t, w.node.orderedRolls(), 100, "to be emptied is another matter")
		for i := range 100 {
			for _, r := range w.topic(topicName(i)).Ranges[0].Active().Replicas {
				require.NotContains(t, []base.NodeID{"n2", "n3"}, r.Node)
			}
		}
	})
}

// The index of what may be better off agrees with the planner, which is asked about nothing else.
func TestEveryRenewalIsLookedFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var view topology.View
		l := &loop{known: make(map[base.NodeID]life)}
		var fit []base.NodeID
		for _, id := range []base.NodeID{"n1", "n2", "n3", "n4", "n5"} {
			n := topology.Node{
				ID: id, Boot: rapid.Uint64Range(1, 2).Draw(t, "boot"), Admitted: true, Leaving: rapid.Bool().Draw(t, "leaving"),
				Liveness: rapid.SampledFrom([]topology.Liveness{topology.Alive, topology.Alive, topology.Suspect, topology.Dead}).Draw(t, "liveness"),
				Standing: rapid.SampledFrom([]topology.Standing{topology.Normal, topology.Normal, topology.Draining, topology.Out}).Draw(t, "standing"),
			}
			view.Nodes = append(view.Nodes, n)
			l.known[id] = lifeOf(&n, Contact{})
			if n.Unfit() == "" {
				fit = append(fit, id)
			}
		}
		seg := &meta.Segment{ID: 1, Epoch: 1, State: base.StateActive}
		for _, n := range rapid.SliceOfNDistinct(rapid.SampledFrom(view.Nodes), 1, 4, func(n topology.Node) base.NodeID { return n.ID }).Draw(t, "set") {
			seg.Replicas = append(seg.Replicas, base.Replica{Node: n.ID})
			seg.Boots = append(seg.Boots, rapid.Uint64Range(1, 2).Draw(t, "placed"))
		}
		config := base.TopicConfig{ReplicationFactor: rapid.IntRange(1, 4).Draw(t, "factor")}
		topic := &meta.Topic{ID: base.TopicID{1}, Config: config, Ranges: []*meta.Range{{ID: 1, Segments: []*meta.Segment{seg}}}}
		if list := planner.Renewals(topic, view, 1000); len(list) > 0 {
			require.True(t, l.helped(&active{Segment: seg, config: config}, fit), "%s", list[0].Why)
		}
	})
}

// A roll that would only wait is not asked for.
func TestWhatNobodyElseCanTakeStaysWithALeavingNode(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		n2 := w.join("n2")
		w.place("orders", base.TopicConfig{ReplicationFactor: 2, MinReplicas: 2}, "n2", "n1")
		settle()
		w.leave("n2")
		rest(time.Minute)
		require.Empty(t, n2.orderedRolls())
	})
}

// settledAt makes the view say since when a node is up for good.
func (w *world) settledAt(id base.NodeID, at time.Time) {
	w.mu.Lock()
	nodes := append([]topology.Node(nil), w.view.Nodes...)
	for i := range nodes {
		if nodes[i].ID == id {
			nodes[i].SettledMs = at.UnixMilli()
		}
	}
	w.view.Nodes = nodes
	w.mu.Unlock()
	w.coord.ViewChanged()
}

// Segments with too few replicas get more when a node has come that stays, those first that were written to last.
func TestSegmentsWithTooFewReplicasRollWhenANodeHasSettled(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.node.obeys = true
		w.join("n2")
		const topics = 100
		for i := range topics {
			w.place(topicName(i), base.TopicConfig{ReplicationFactor: 3, MinReplicas: 2}, "n1", "n2")
		}
		settle()
		busy := w.topic(topicName(77))
		roll := w.rollRequest(busy, 5)
		roll.Cause = base.CauseReplicaFailure // by which its leader stays
		_, err := w.coord.RequestRoll(t.Context(), roll)
		require.NoError(t, err)
		began := time.Now()
		w.join("n3")
		w.settledAt("n3", began.Add(10*time.Second))
		rest(9 * time.Second)
		require.Empty(t, w.node.orderedRolls())
		for w.whole(topics) < topics {
			require.Less(t, time.Since(began), time.Minute)
			rest(100 * time.Millisecond)
		}
		require.InDelta(t, 10_000+topics*1000/20, time.Since(began).Milliseconds(), 1500)
		orders := w.node.orderedRolls()
		require.Len(t, orders, topics)
		require.True(t, slices.ContainsFunc(orders[:10], func(r meta.RollOrder) bool { return r.Ref.Topic == busy.ID }), "it is of the first round")
		require.Equal(t, base.CauseRecovery, orders[0].Cause)
		require.Equal(t, "n1", string(w.topic(busy.Name).Ranges[0].Active().Leader().Node), "the leader goes on with what it has")
		rest(time.Hour)
		require.Len(t, w.node.orderedRolls(), topics)
	})
}

// whole counts the topics whose active segment has three replicas.
func (w *world) whole(topics int) (n int) {
	for i := range topics {
		if len(w.topic(topicName(i)).Ranges[0].Active().Replicas) == 3 {
			n++
		}
	}
	return n
}

// An idle segment whose follower has gone is not touched while nobody can take its place; the follower's own next start
// can, once it has been up for a while.
func TestAFollowerThatStartedAnewIsTakenAgainWhenItHasSettled(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.node.obeys = true
		w.join("n2")
		w.join("n3")
		w.place("orders", base.TopicConfig{}, "n1", "n2", "n3")
		settle()
		n3 := w.kill("n3")
		w.believe("n3", topology.Dead)
		rest(time.Minute)
		require.Empty(t, w.node.orderedRolls())

		w.mu.Lock()
		w.nodes["n3"] = n3
		delete(w.contacts, "n3")
		w.mu.Unlock()
		w.restart("n3", 2)
		w.settledAt("n3", time.Now().Add(20*time.Second))
		rest(19 * time.Second)
		require.Empty(t, w.node.orderedRolls())
		rest(3 * time.Second)
		active := w.topic("orders").Ranges[0].Active()
		require.Len(t, active.Replicas, 3)
		require.EqualValues(t, 2, active.BootOf(n3.replica))
	})
}

// A leader that took an order and did not get far is asked again, not at once.
func TestALeaderThatForgetsAnOrderIsAskedAgain(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.join("n2")
		w.join("n3")
		w.place("orders", base.TopicConfig{ReplicationFactor: 3, MinReplicas: 2}, "n1", "n2")
		rest(29 * time.Second)
		require.Len(t, w.node.orderedRolls(), 1)
		rest(10 * time.Second)
		require.Len(t, w.node.orderedRolls(), 2)
	})
}

// A node that is settled sooner than the list may be made anew does not keep the loop turning.
func TestADateThatComesTooSoonIsWaitedFor(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.node.obeys = true
		w.join("n2")
		w.place("orders", base.TopicConfig{ReplicationFactor: 3, MinReplicas: 2}, "n1", "n2")
		rest(10 * time.Second)
		w.join("n3")
		w.settledAt("n3", time.Now().Add(300*time.Millisecond))
		rest(3 * time.Second)
		require.Len(t, w.node.orderedRolls(), 1)
	})
}

// A node that was put out while it lives leads nothing any more.
func TestWhoIsOutLeadsNothing(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		n2 := w.join("n2")
		n2.obeys = true
		w.place("orders", base.TopicConfig{}, "n2")
		settle()
		w.stand("n2", topology.Out)
		settle()
		r := w.topic("orders").Ranges[0]
		require.Equal(t, base.CauseDrain, r.Segments[0].Cause)
		require.Equal(t, w.self, r.Active().Leader())
	})
}
