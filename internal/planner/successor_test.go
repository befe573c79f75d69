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

// TestTheHeirHoldsTheEnd seals random segments by random answers. Whoever leads the successor is fenced, intact and
// holds the segment to its end, as long as one such replica can lead at all; and a plan is a function of its input.
func TestTheHeirHoldsTheEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := randomView(t)
		topic := topicOf(base.TopicConfig{ReplicationFactor: rapid.IntRange(1, 3).Draw(t, "factor"), MinReplicas: 1})
		seg := topic.Ranges[0].Active()
		seg.Replicas, seg.Boots = nil, nil
		var answers []meta.FenceAnswer
		for _, id := range rapid.SliceOfNDistinct(rapid.SampledFrom([]base.NodeID{"n1", "n2", "n3", "n4", "n5", "n6"}), 1, 3, rapid.ID[base.NodeID]).Draw(t, "set") {
			seg.Replicas = append(seg.Replicas, replica(id))
			seg.Boots = append(seg.Boots, 1)
			if rapid.IntRange(0, 3).Draw(t, "silent") == 0 {
				continue
			}
			answers = append(answers, meta.FenceAnswer{
				Segment: seg.ID, Replica: replica(id), End: rapid.Int64Range(0, 3).Draw(t, "end"), Unbroken: rapid.Bool().Draw(t, "unbroken"),
				Kind: rapid.SampledFrom([]meta.ExtentKind{meta.Extent, meta.Extent, meta.Extent, meta.Damaged, meta.NotMine}).Draw(t, "kind"),
			})
		}
		seed := rapid.Uint64().Draw(t, "seed")
		plan := func() Plan {
			return Make(Input{
				NowMs: 1000, View: v, Rand: seeded(seed), Topic: func(base.TopicID) *meta.Topic { return topic },
				Recoveries: []Recovery{{Ref: base.RangeRef{Topic: topic.ID, Range: 1}, Segment: seg.ID, Epoch: seg.Epoch, Cause: base.CauseLeaderFailure, Answers: answers}},
			})
		}
		p := plan()
		require.Equal(t, p, plan())
		require.Equal(t, 1, len(p.Rolls)+len(p.Waiting), "a command, or a reason")
		if len(p.Rolls) == 0 {
			return
		}
		roll := p.Rolls[0]
		holds := func(r base.Replica) bool {
			a := answerOf(seg, r, answers)
			return slices.Contains(seg.Replicas, r) && a != nil && a.Kind == meta.Extent && a.End >= roll.End
		}
		able := slices.ContainsFunc(seg.Replicas, func(r base.Replica) bool {
			n, ok := v.Node(r.Node)
			return holds(r) && ok && n.Unfit() == "" && !n.Full
		})
		require.True(t, !able || holds(roll.Replicas[0]), "%v leads", roll.Replicas[0])
		for i, r := range roll.Replicas {
			n, _ := v.Node(r.Node)
			require.Equal(t, n.Boot, roll.Boots[i])
		}
	})
}

// TestARollKeepsTheLeader: when replicas fail the leader goes on, with all who are well.
func TestARollKeepsTheLeader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := randomView(t)
		topic := topicOf(base.TopicConfig{ReplicationFactor: 3, MinReplicas: 1})
		seg := topic.Ranges[0].Active()
		seg.Replicas, seg.Boots = []base.Replica{replica("n1"), replica("n2"), replica("n3")}, []uint64{1, 1, 1}
		req := RollRequest{
			Ref: base.RangeRef{Topic: topic.ID, Range: 1}, Segment: seg.ID, Epoch: seg.Epoch, Cause: base.CauseReplicaFailure,
			Late: randomNodes(t, "late"), Lost: randomNodes(t, "lost"), FrozenMs: 900,
		}
		p := Make(Input{NowMs: 1000, View: v, Rand: seeded(rapid.Uint64().Draw(t, "seed")), Topic: func(base.TopicID) *meta.Topic { return topic }, Rolls: []RollRequest{req}})
		stays := func(id base.NodeID) bool {
			n, ok := v.Node(id)
			return ok && n.Unfit() == "" && !n.Full && n.Boot == 1 && !slices.Contains(req.Late, id) && !slices.Contains(req.Lost, id)
		}
		named := func(id base.NodeID) bool { return slices.Contains(req.Late, id) || slices.Contains(req.Lost, id) }
		well := func(id base.NodeID) bool {
			n, ok := v.Node(id)
			return ok && n.Unfit() == "" && !n.Slow && !n.Full && n.Boot == 1
		}
		if named("n2") && named("n3") && (well("n2") && well("n3") || slices.Contains(req.Late, "n1") && (well("n2") || well("n3"))) {
			require.Len(t, p.Rolls, 1)
			require.NotEqual(t, replica("n1"), p.Rolls[0].Replicas[0], "it is rather n1 that has failed")
			return
		}
		if stays("n1") {
			require.Len(t, p.Rolls, 1)
			require.Equal(t, replica("n1"), p.Rolls[0].Replicas[0])
		}
		for _, roll := range p.Rolls {
			for i, r := range roll.Replicas {
				n, _ := v.Node(r.Node)
				require.False(t, slices.Contains(req.Lost, r.Node) && n.Boot == 1, "lost a moment ago, in the same start")
				require.True(t, !slices.Contains(req.Late, r.Node) || i < 1 && len(roll.Replicas) == 1, "late, and not needed")
			}
		}
	})
}

// A range whose segment has ended for a follower with a full disk opens no successor that would end the same way at once:
// it waits until there is room on a majority, which two of three disks had or have again.
func TestFullDisksAreNoStorm(t *testing.T) {
	v := topology.View{Nodes: []topology.Node{node("n1", "", 0), node("n2", "", 0), node("n3", "", 0)}}
	topic := topicOf(base.TopicConfig{ReplicationFactor: 3, MinReplicas: 2})
	seg := topic.Ranges[0].Active()
	seg.Replicas, seg.Boots = []base.Replica{replica("n1"), replica("n2"), replica("n3")}, []uint64{1, 1, 1}
	roll := func(cause base.Cause, full ...base.NodeID) Plan {
		view := topology.View{Nodes: slices.Clone(v.Nodes)}
		for i := range view.Nodes {
			view.Nodes[i].Full = slices.Contains(full, view.Nodes[i].ID)
		}
		return Make(Input{
			NowMs: 5000, View: view, Rand: seeded(1), Topic: func(base.TopicID) *meta.Topic { return topic },
			Rolls: []RollRequest{{
				Ref: base.RangeRef{Topic: topic.ID, Range: 1}, Segment: seg.ID, Epoch: seg.Epoch, Cause: cause, Lost: []base.NodeID{"n2"}, FrozenMs: 1000,
			}},
		})
	}
	require.Equal(t, []base.Replica{replica("n1"), replica("n3")}, roll(base.CauseReplicaFailure, "n2").Rolls[0].Replicas)
	waits := roll(base.CauseReplicaFailure, "n2", "n3")
	require.Empty(t, waits.Rolls)
	require.ErrorIs(t, waits.Waiting[0].Err, base.CodeNotEnoughNodes)
	require.Len(t, roll(base.CauseReplicaFailure, "n3").Rolls[0].Replicas, 2, "n2 has room again")
	require.Len(t, roll(base.CauseAge, "n2", "n3").Rolls, 1, "a planned one may be in vain, once")
}
