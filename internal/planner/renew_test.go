package planner

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/topology"
)

// TestARenewalIsWorthIt: whatever is renewed can be placed, and for want of replicas it is renewed once: the successor has
// more of them that are well, and nothing more can be done for it on the same view.
func TestARenewalIsWorthIt(t *testing.T) {
	const now = 10_000
	rapid.Check(t, func(t *rapid.T) {
		v := randomView(t)
		factor := rapid.IntRange(1, 4).Draw(t, "factor")
		topic := topicOf(base.TopicConfig{ReplicationFactor: factor})
		seg := topic.Ranges[0].Active()
		seg.Replicas, seg.Boots = nil, nil
		for _, id := range rapid.SliceOfNDistinct(rapid.SampledFrom([]base.NodeID{"n1", "n2", "n3", "n4", "n5", "n6"}), 1, factor, rapid.ID[base.NodeID]).Draw(t, "set") {
			seg.Replicas = append(seg.Replicas, replica(id))
			seg.Boots = append(seg.Boots, rapid.Uint64Range(1, 3).Draw(t, "boot"))
		}
		list := Renewals(topic, v, now)
		if len(list) == 0 || list[0].DueMs > now {
			return
		}
		n := list[0]
		lost := lostOf(seg, v)
		p := Make(Input{
			NowMs: now, View: v, Rand: seeded(rapid.Uint64().Draw(t, "seed")), Topic: func(base.TopicID) *meta.Topic { return topic },
			Rolls: []RollRequest{{Ref: n.Ref, Segment: n.Segment, Epoch: n.Epoch, Cause: n.Cause, Lost: lost, FrozenMs: now}},
		})
		require.Len(t, p.Rolls, 1, "%s: writers would wait: %v", n.Why, p.Waiting)
		next := *seg
		next.Replicas, next.Boots = p.Rolls[0].Replicas, p.Rolls[0].Boots
		topic.Ranges[0].Segments[len(topic.Ranges[0].Segments)-1] = &next
		switch n.Cause {
		case base.CauseDrain:
			require.False(t, slices.ContainsFunc(next.Replicas, func(r base.Replica) bool { return healthOf(&next, r, v) != well }), "it moved away")
		default:
			require.Greater(t, len(next.Replicas)-len(lostOf(&next, v)), n.Have, "%s", n.Why)
			require.Empty(t, Renewals(topic, v, now), "once")
		}
	})
}

// lostOf are the replicas that are gone, as their leader would name them.
func lostOf(seg *meta.Segment, v topology.View) []base.NodeID {
	var list []base.NodeID
	for _, r := range seg.Replicas {
		if healthOf(seg, r, v) == lost {
			list = append(list, r.Node)
		}
	}
	return list
}
