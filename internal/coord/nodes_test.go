package coord

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/topology"
)

// rest lets time pass, and then whatever came of it.
func rest(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// ledBy makes topics until one is led by a node.
func (w *world) ledBy(t *testing.T, node base.NodeID, prefix string) *meta.Topic {
	for i := range 100 {
		if topic := w.create(prefix+topicName(i), base.TopicConfig{ReplicationFactor: 1}, 1); topic.Ranges[0].Active().Leader().Node == node {
			return topic
		}
	}
	t.Fatalf("no topic was placed on %s", node)
	return nil
}

func TestEachNodeIsToldWhatIsItsOwn(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.join("n2")
		w.join("n3")
		for i := range 60 {
			w.create(topicName(i), base.TopicConfig{ReplicationFactor: 1 + i%2}, 1)
		}
		settle()
		for id, n := range w.nodes {
			require.NotEmpty(t, n.held, id)
			for _, a := range n.held {
				require.Contains(t, a.Replicas, n.replica)
			}
		}
	})
}

func TestANodeThatStartedAnewIsToldAgainAndWhatItLedIsSealed(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		n2 := w.join("n2")
		topic := w.ledBy(t, "n2", "orders")
		old := topic.Ranges[0].Active()
		settle()
		n2.mu.Lock()
		n2.previous[old.ID] = 9 // what its log will hold
		n2.fail = base.Errorf(base.CodeUnreachable, "tell", "the node is away")
		n2.mu.Unlock()
		w.ledBy(t, "n2", "others")
		rest(time.Minute)
		n2.mu.Lock()
		n2.fail = nil
		n2.mu.Unlock()
		w.restart("n2", 2)
		settle()
		r := w.topic(topic.Name).Ranges[0]
		require.Equal(t, base.StateSealed, r.Segments[0].State)
		require.EqualValues(t, 9, r.Segments[0].End, "the only copy decides, though it was restarted")
		require.Equal(t, base.CauseRecovery, r.Segments[0].Cause)
		active := r.Active()
		require.NotNil(t, active)
		_, ok := w.nodeOf(active.Leader().Node).held[active.ID]
		require.True(t, ok)
	})
}

func TestASegmentOfANodeThatIsAwayWaitsForIt(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		n2 := w.join("n2")
		topic := w.ledBy(t, "n2", "orders")
		settle()
		w.mu.Lock()
		delete(w.nodes, "n2")
		w.view = topology.Reduce(w.view, topology.Event{Moved: &topology.Moved{ID: "n2", Boot: 1, Liveness: topology.Dead}})
		w.mu.Unlock()
		w.coord.ViewChanged()
		rest(time.Hour)
		require.Len(t, w.topic(topic.Name).Ranges[0].Segments, 1, "nobody else has a copy")
		w.mu.Lock()
		w.nodes["n2"] = n2
		w.mu.Unlock()
		n2.previous[topic.Ranges[0].Active().ID] = 4
		w.restart("n2", 2)
		settle()
		require.EqualValues(t, 4, w.topic(topic.Name).Ranges[0].Segments[0].End)
	})
}

func TestTheSuccessorGoesWhereTheStateIs(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		n1, n2, n3 := w.node, w.join("n2"), w.join("n3")
		topic := w.ledBy(t, "n2", "orders")
		settle()
		// Nobody but n2 can say what the range remembers, and nobody reaches n2.
		for id := base.SegmentID(1); id < 300; id++ {
			n1.lost[id], n3.lost[id] = true, true
		}
		a, err := w.coord.RequestRoll(t.Context(), w.rollRequest(topic, 10))
		require.NoError(t, err)
		require.NotNil(t, a.From)
		require.Equal(t, []base.Replica{n2.replica}, a.From.Replicas)
		rest(10 * time.Second)
		r := w.topic(topic.Name).Ranges[0]
		require.Equal(t, n2.replica, r.Active().Leader())
		require.EqualValues(t, 10, r.Active().Base)
		require.Len(t, r.Segments, 2, "the one that never opened is not kept")
		_, ok := n2.held[r.Active().ID]
		require.True(t, ok)
		require.Equal(t, 0, w.coord.Status()[0].Recoveries)
	})
}

func TestADiskThatIsNoMoreHoldsNothingUp(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		n2 := w.join("n2")
		topic := w.ledBy(t, "n2", "orders")
		settle()
		n2.mu.Lock()
		n2.replica.Disk = base.DiskID{99}
		n2.mu.Unlock()
		w.see("n2", n2.replica.Disk, 2)
		_, err := w.Propose(t.Context(), base.RootShard, meta.Command{DeleteTopic: &meta.DeleteTopic{Name: topic.Name}})
		require.NoError(t, err)
		rest(10 * time.Second)
		require.NoError(t, w.ViewStale(base.RootShard, func(s *meta.State) error {
			require.Nil(t, s.Tombstone(topic.ID), "what was on it is gone")
			return nil
		}))
		require.Equal(t, 0, w.coord.Status()[0].Untold)
		require.False(t, n2.deleted[topic.ID])
	})
}

func TestANodeThatMissedATrimIsToldWhenItIsCounted(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		topic := w.create("orders", base.TopicConfig{RetentionBytes: 1}, 1)
		ref := base.RangeRef{Topic: topic.ID, Range: 1}
		first := topic.Ranges[0].Active().ID
		for end := int64(10); end <= 30; end += 10 {
			_, err := w.coord.RequestRoll(t.Context(), w.rollRequest(topic, end))
			require.NoError(t, err)
			settle()
		}
		require.EqualValues(t, 20, w.topic("orders").Ranges[0].TrimmedTo)

		n2 := newFakeNode(base.Replica{Node: "n2", Disk: base.DiskID{'2'}})
		unknown := base.RangeRef{Topic: base.TopicID{42}, Range: 1}
		n2.stock = []meta.Held{
			{Ref: ref, Segments: []meta.HeldSegment{{Segment: first, Base: 0, End: 10}}},
			{Ref: base.RangeRef{Topic: topic.ID, Range: 9}, Segments: []meta.HeldSegment{{Segment: 800, Base: 0, End: 10}}},
			{Ref: unknown, Segments: []meta.HeldSegment{{Segment: 900, Base: 0, End: 10}}},
		}
		w.mu.Lock()
		w.nodes["n2"] = n2
		w.mu.Unlock()
		w.see("n2", n2.replica.Disk, 1)
		rest(3 * time.Second)
		require.Equal(t, map[base.RangeRef]int64{ref: 20}, n2.trims, "what metadata does not know is kept")
		require.Empty(t, n2.deleted)
		require.Equal(t, len(n2.stock), n2.counts, "page by page")

		// A new coordinator counts every node, once.
		w.coord.Lead(base.RootShard, false)
		w.coord.Lead(base.RootShard, true)
		rest(10 * time.Second)
		require.Equal(t, 2*len(n2.stock), n2.counts)
	})
}

// A leadership that changes in the middle of many rolls leaves one successor of each segment, and whoever asks again is
// told which.
func TestALeaderChangeInTheMiddleOfRollsLeavesOneSuccessor(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		const n = 50
		topics := make([]*meta.Topic, n)
		for i := range topics {
			topics[i] = w.create(topicName(i), base.TopicConfig{}, 1)
		}
		settle()
		var rolls sync.WaitGroup
		for _, topic := range topics {
			req := w.rollRequest(topic, 7)
			rolls.Go(func() {
				for {
					a, err := w.coord.RequestRoll(t.Context(), req)
					if err == nil {
						require.EqualValues(t, 7, a.Base)
						require.Equal(t, req.Segment, a.Prev)
						return
					}
					time.Sleep(3 * time.Millisecond)
				}
			})
		}
		for range 30 {
			w.coord.Lead(base.RootShard, false)
			time.Sleep(700 * time.Microsecond)
			w.coord.Lead(base.RootShard, true)
			time.Sleep(900 * time.Microsecond)
		}
		rolls.Wait()
		settle()
		for _, topic := range topics {
			r := w.topic(topic.Name).Ranges[0]
			require.Len(t, r.Segments, 2)
			a, ok := w.holds(r.Active().ID)
			require.True(t, ok)
			require.Equal(t, base.Epoch(2), a.Epoch)
		}
	})
}

// A copy that is short of its segment's end is told of it again by whoever finds it when nodes are counted.
func TestAShortCopyIsToldAgainWhenItIsCounted(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		n2 := w.join("n2")
		topic := w.place("orders", base.TopicConfig{}, "n1", "n2")
		settle()
		ref := base.RangeRef{Topic: topic.ID, Range: 1}
		first := topic.Ranges[0].Active().ID
		_, err := w.coord.RequestRoll(t.Context(), w.rollRequest(topic, 10))
		require.NoError(t, err)
		settle()
		told := func(n *fakeNode) (held bool) {
			n.mu.Lock()
			defer n.mu.Unlock()
			_, held = n.held[first]
			return held
		}
		for _, end := range []int64{10, 7} {
			n2.mu.Lock()
			n2.stock = []meta.Held{{Ref: ref, Segments: []meta.HeldSegment{{Segment: first, End: end}}}}
			n2.mu.Unlock()
			rest(10 * time.Second)
			n2.mu.Lock()
			delete(n2.held, first)
			n2.mu.Unlock()
			w.coord.count([]base.NodeID{"n2"})
			rest(10 * time.Second)
			require.Equal(t, end < 10, told(n2))
		}
	})
}
