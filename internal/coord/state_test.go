package coord

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/topology"
)

// believe makes the view say of a node what it says of its life.
func (w *world) believe(id base.NodeID, l topology.Liveness) {
	w.mu.Lock()
	w.view.Nodes = slices.Clone(w.view.Nodes)
	for i := range w.view.Nodes {
		if w.view.Nodes[i].ID == id {
			w.view.Nodes[i].Liveness = l
		}
	}
	w.mu.Unlock()
	w.coord.ViewChanged()
}

// Whoever leads a range answers where it begins, though the segments that were trimmed were never his.
func TestTheLeaderHearsWhereItsRangeBegins(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.join("n2")
		topic := w.create("orders", base.TopicConfig{RetentionBytes: 1}, 1)
		ref := base.RangeRef{Topic: topic.ID, Range: 1}
		others := 0
		for end := int64(10); end <= 300; end += 10 {
			before := w.topic("orders").Ranges[0]
			_, err := w.coord.RequestRoll(t.Context(), w.rollRequest(topic, end))
			require.NoError(t, err)
			settle()
			after := w.topic("orders").Ranges[0]
			if after.TrimmedTo == before.TrimmedTo {
				continue
			}
			leader := w.nodeOf(after.Active().Leader().Node)
			require.Equal(t, after.TrimmedTo, leader.trims[ref])
			if before.Segments[0].Leader() != after.Active().Leader() {
				others++
			}
		}
		require.NotZero(t, others, "some were trimmed on another node")
	})
}

// A node that lives again is told at once what waits for it, however long it was away.
func TestWhoLivesAgainIsToldAtOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		n2 := w.join("n2")
		n2.fail = base.Errorf(base.CodeUnreachable, "tell", "the node is away")
		w.ledBy(t, "n2", "orders")
		w.believe("n2", topology.Suspect)
		rest(time.Minute)
		tells := func() int {
			n2.mu.Lock()
			defer n2.mu.Unlock()
			return n2.tells
		}
		for had := tells(); tells() == had; {
			rest(10 * time.Millisecond)
		}
		n2.mu.Lock()
		n2.fail = nil // just after a try: the next is seconds away
		n2.mu.Unlock()
		w.believe("n2", topology.Alive)
		rest(50 * time.Millisecond)
		require.Zero(t, w.coord.Status()[0].Untold)
	})
}

// While none of those who know what the range remembers can lead, a segment that waits for one of them is left alone: its
// leader opens it as soon as it reaches one.
func TestASegmentWaitsForThoseWhoKnowTheState(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.join("n2")
		topic := w.ledBy(t, "n2", "orders")
		settle()
		w.believe("n2", topology.Dead)
		n1 := w.node
		n1.mu.Lock()
		for id := base.SegmentID(1); id < 300; id++ {
			n1.lost[id] = true
		}
		n1.mu.Unlock()
		a, err := w.coord.RequestRoll(t.Context(), w.rollRequest(topic, 10))
		require.NoError(t, err)
		require.Equal(t, w.self, a.Leader())
		rest(time.Minute)
		require.False(t, n1.fenced[a.Segment])
		n1.mu.Lock()
		clear(n1.lost)
		n1.mu.Unlock()
		rest(10 * time.Second)
		_, ok := w.holds(a.Segment)
		require.True(t, ok)
		require.Len(t, w.topic(topic.Name).Ranges[0].Segments, 2)
	})
}

// That a segment has opened after all ends only what was to be done because it could not.
func TestOpeningEndsOnlyWhatWasForWantOfTheState(t *testing.T) {
	asg := &meta.Assignment{Segment: 7, From: &meta.Source{Segment: 6, Replicas: []base.Replica{{Node: "n1"}}}}
	now := time.Now()
	rs := newRecoveries(newIdlePace(1))
	rs.stateless(asg, now)
	require.Equal(t, asg.From.Replicas, rs.all[7].On)
	rs.opened(7)
	require.Zero(t, rs.len())

	rs.stateless(asg, now)
	rs.all[7].state = fencesOut
	rs.opened(7)
	require.Equal(t, 1, rs.len(), "its fence is under way")
	rs.done(7)

	rs.found(asg, filled, now)
	rs.opened(7)
	require.Equal(t, 1, rs.len(), "a node cannot lead it any more")
	rs.stateless(asg, now)
	require.Empty(t, rs.all[7].On, "which stands")
}

// What a census brought while the shard could not be read is compared when it can be.
func TestACensusOutlivesAShardThatCannotBeRead(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		topic := w.create("orders", base.TopicConfig{RetentionBytes: 1}, 1)
		ref := base.RangeRef{Topic: topic.ID, Range: 1}
		first := topic.Ranges[0].Active().ID
		for end := int64(10); end <= 30; end += 10 {
			_, err := w.coord.RequestRoll(t.Context(), w.rollRequest(topic, end))
			require.NoError(t, err)
			settle()
		}
		n2 := newFakeNode(base.Replica{Node: "n2", Disk: base.DiskID{'2'}})
		n2.stock = []meta.Held{{Ref: ref, Segments: []meta.HeldSegment{{Segment: first, Base: 0, End: 10}}}}
		w.mu.Lock()
		w.nodes["n2"] = n2
		w.mu.Unlock()
		w.see("n2", n2.replica.Disk, 1)
		settle()
		w.mu.Lock()
		w.refuse = base.Errorf(base.CodeInternal, "view", "not now")
		w.mu.Unlock()
		rest(5 * time.Second)
		require.Equal(t, 1, n2.counts)
		w.mu.Lock()
		w.refuse = nil
		w.mu.Unlock()
		rest(10 * time.Second)
		require.Equal(t, map[base.RangeRef]int64{ref: 20}, n2.trims)
	})
}
