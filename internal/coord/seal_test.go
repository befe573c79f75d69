package coord

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/topology"
)

func (w *world) sealRequest(topic *meta.Topic) SealRequest {
	return SealRequest{
		Shard: base.RootShard, Ref: base.RangeRef{Topic: topic.ID, Range: 1}, Segment: w.topic(topic.Name).Ranges[0].Active().ID, Reason: "a test",
	}
}

func TestAnOperatorsSealIsTheLeadersRoll(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		topic, seg := w.trio("orders")
		n2 := w.nodeOf("n2")
		n2.obeys = true
		req := w.sealRequest(topic)
		s, err := w.coord.Seal(t.Context(), req)
		require.NoError(t, err)
		require.EqualValues(t, 45, s.End, "the leader's own word")
		require.Equal(t, base.CauseOperator, s.Cause)
		require.Equal(t, seg.ID, s.Old)
		active := w.topic("orders").Ranges[0].Active()
		require.Equal(t, active.ID, s.New)
		require.Equal(t, active.Replicas, s.Replicas)
		require.False(t, n2.fenced[seg.ID])

		again, err := w.coord.Seal(t.Context(), req)
		require.NoError(t, err)
		require.Equal(t, s, again)
		require.Len(t, n2.orderedRolls(), 1)
	})
}

func TestAnOperatorsSealOfASegmentWhoseLeaderIsGone(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		n2 := w.join("n2")
		w.join("n3")
		topic := w.place("orders", base.TopicConfig{MinReplicas: 1}, "n2", "n3")
		settle()
		n2.mu.Lock()
		n2.hung = true
		n2.mu.Unlock()
		req := w.sealRequest(topic)
		sealed := make(chan Sealed, 1)
		go func() {
			s, err := w.coord.Seal(context.Background(), req)
			require.NoError(t, err)
			sealed <- s
		}()
		rest(time.Second)
		require.Empty(t, sealed, "its leader is asked first")
		w.believe("n2", topology.Dead)
		s := <-sealed
		require.Zero(t, s.End)
		require.Contains(t, []base.Cause{base.CauseOperator, base.CauseLeaderFailure}, s.Cause)
	})
}

func TestASealIsForAShardThatIsLedHere(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		topic, _ := w.trio("orders")
		req := w.sealRequest(topic)
		req.Shard = base.ShardID{Root: 7}
		_, err := w.coord.Seal(t.Context(), req)
		require.ErrorIs(t, err, base.CodeNotLeader)
		_, err = w.coord.ForceSeal(t.Context(), ForceRequest{Shard: req.Shard})
		require.ErrorIs(t, err, base.CodeNotLeader)
	})
}

// ruin leaves a topic of which no end can be told: one replica is gone, one was started again, one is damaged.
func (w *world) ruin(t *testing.T) (*meta.Topic, *meta.Segment) {
	topic, seg := w.trio("orders")
	n1, n3 := w.nodeOf("n1"), w.nodeOf("n3")
	n1.mu.Lock()
	n1.boot, n1.previous[seg.ID] = 2, 33
	n1.mu.Unlock()
	n3.mu.Lock()
	n3.damaged[seg.ID] = true
	n3.mu.Unlock()
	for _, n := range []*fakeNode{n1, n3} {
		held := meta.HeldSegment{Segment: seg.ID, End: n.ends[seg.ID]}
		if n.damaged[seg.ID] {
			held.Damaged, held.Intact = true, n.ends[seg.ID]
		}
		n.stock = []meta.Held{{Ref: base.RangeRef{Topic: topic.ID, Range: 1}, Segments: []meta.HeldSegment{held}}}
	}
	w.see("n1", n1.replica.Disk, 2)
	w.kill("n2")
	rest(time.Second)
	require.Nil(t, w.recovered("orders"))
	return topic, seg
}

func TestAForcedSealEndsWithTheLongestCopyThatAnswers(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		topic, seg := w.ruin(t)
		req := ForceRequest{Shard: base.RootShard, Ref: base.RangeRef{Topic: topic.ID, Range: 1}, Segment: seg.ID, Reason: "a test"}
		f, err := w.coord.ForceSeal(t.Context(), req)
		require.NoError(t, err)
		require.EqualValues(t, 42, f.End, "what is intact of the damaged one")
		require.True(t, f.Lossy)
		require.Len(t, f.Known, 2)
		require.ElementsMatch(t, []base.Replica{{Node: "n2", Disk: base.DiskID{'2'}}, {Node: "n3", Disk: base.DiskID{'3'}}}, f.Silent)
		old := w.recovered("orders")
		require.NotNil(t, old)
		require.Equal(t, "a test", old.Forced.Reason)
		require.Equal(t, w.topic("orders").Ranges[0].Active().ID, f.New)
		settle()
		require.Equal(t, 0, w.coord.Status()[0].Recoveries)
		require.Empty(t, w.coord.Stuck())

		_, err = w.coord.ForceSeal(t.Context(), req)
		require.ErrorIs(t, err, base.CodePreconditionFailed, "it has ended")
	})
}

func TestADryForcedSealOnlyLooks(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		topic := w.place("orders", base.TopicConfig{}, "n1")
		seg := topic.Ranges[0].Active()
		settle()
		w.node.mu.Lock()
		w.node.boot = 2
		w.node.stock = []meta.Held{{Ref: base.RangeRef{Topic: topic.ID, Range: 1}, Segments: []meta.HeldSegment{{Segment: seg.ID, End: 12}}}}
		w.node.mu.Unlock()
		req := ForceRequest{Shard: base.RootShard, Ref: base.RangeRef{Topic: topic.ID, Range: 1}, Segment: seg.ID, DryRun: true}
		_, err := w.coord.ForceSeal(t.Context(), req)
		require.ErrorIs(t, err, base.CodePreconditionFailed, "its only copy says where it ends")

		w.node.mu.Lock()
		w.node.replica.Disk = base.DiskID{99}
		w.node.mu.Unlock()
		f, err := w.coord.ForceSeal(t.Context(), req)
		require.NoError(t, err)
		require.Zero(t, f.End)
		require.Zero(t, f.New)
		require.Equal(t, seg.Replicas, f.Silent)
		require.Nil(t, w.recovered("orders"))
		require.False(t, w.node.fenced[seg.ID])
	})
}

// What the look that comes first takes for a proof, no operator can force: it must see damage as a fence does.
func TestADryForcedSealSeesDamage(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		topic, seg := w.ruin(t)
		w.see("n1", w.nodeOf("n1").replica.Disk, 2)
		req := ForceRequest{Shard: base.RootShard, Ref: base.RangeRef{Topic: topic.ID, Range: 1}, Segment: seg.ID, Reason: "a test", DryRun: true}
		dry, err := w.coord.ForceSeal(t.Context(), req)
		require.NoError(t, err)
		req.DryRun = false
		f, err := w.coord.ForceSeal(t.Context(), req)
		require.NoError(t, err)
		require.Equal(t, f.End, dry.End)
		require.ElementsMatch(t, f.Silent, dry.Silent)
		kinds := func(list []meta.FenceAnswer) map[base.NodeID]meta.ExtentKind {
			m := make(map[base.NodeID]meta.ExtentKind)
			for _, a := range list {
				m[a.Replica.Node] = a.Kind
			}
			return m
		}
		require.Equal(t, kinds(f.Known), kinds(dry.Known))
	})
}

// A disk that has lost records of its log proves nothing by what it does not list.
func TestADryForcedSealAsksNothingOfALossyDisk(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		topic := w.place("orders", base.TopicConfig{}, "n1")
		seg := topic.Ranges[0].Active()
		settle()
		w.node.mu.Lock()
		w.node.boot, w.node.lossy = 2, true
		w.node.mu.Unlock()
		req := ForceRequest{Shard: base.RootShard, Ref: base.RangeRef{Topic: topic.ID, Range: 1}, Segment: seg.ID, DryRun: true}
		f, err := w.coord.ForceSeal(t.Context(), req)
		require.NoError(t, err)
		require.Equal(t, seg.Base, f.End)
		require.Equal(t, meta.Damaged, f.Known[0].Kind)
	})
}

// A copy of an earlier start is one of those of which it takes two, also where nobody is fenced yet.
func TestADryForcedSealTellsStartsApart(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		topic, seg := w.trio("orders")
		ref := base.RangeRef{Topic: topic.ID, Range: 1}
		w.kill("n2")
		w.kill("n3")
		w.node.mu.Lock()
		w.node.stock = []meta.Held{{Ref: ref, Segments: []meta.HeldSegment{{Segment: seg.ID, End: 12}}}}
		w.node.mu.Unlock()
		req := ForceRequest{Shard: base.RootShard, Ref: ref, Segment: seg.ID, DryRun: true}
		w.mu.Lock()
		w.view.Nodes = slices.Clone(w.view.Nodes)
		for i := range w.view.Nodes {
			if w.view.Nodes[i].ID == "n1" {
				w.view.Nodes[i].Boot = seg.Boots[1] + 1
			}
		}
		w.mu.Unlock()
		f, err := w.coord.ForceSeal(t.Context(), req)
		require.NoError(t, err)
		require.EqualValues(t, 12, f.End)
		require.Len(t, f.Known, 1)
		require.False(t, f.Known[0].Unbroken)
	})
}

// Whoever waits for the end of a segment hears it when its topic goes.
func TestASealThatADeleteOvertakes(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		n2 := w.join("n2")
		topic := w.place("orders", base.TopicConfig{}, "n2")
		settle()
		sealed := make(chan error, 1)
		go func() {
			_, err := w.coord.Seal(context.Background(), w.sealRequest(topic))
			sealed <- err
		}()
		rest(time.Second)
		require.Len(t, n2.orderedRolls(), 1)
		_, err := w.Propose(t.Context(), base.RootShard, meta.Command{DeleteTopic: &meta.DeleteTopic{Name: "orders"}})
		require.NoError(t, err)
		require.ErrorIs(t, <-sealed, base.CodeTopicNotFound)
	})
}
