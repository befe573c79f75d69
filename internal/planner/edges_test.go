package planner

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/topology"
)

// placed has every seed choose, and fails where the choices differ.
func placed(t *testing.T, v topology.View, w Want) []base.Replica {
	t.Helper()
	var set []base.Replica
	for seed := range uint64(20) {
		p, err := NewPlacer(v, 1000, seeded(seed)).Place(w)
		require.NoError(t, err)
		if seed > 0 {
			require.Equal(t, set, p.Replicas, "seed %d", seed)
		}
		set = p.Replicas
	}
	return set
}

func TestASlowFollowerDoesNotStayWhereOthersCanBeHad(t *testing.T) {
	v := view(node("n1", "", 0), node("n2", "", 0), node("n3", "", 0), node("n4", "", 0))
	w := Want{Config: base.TopicConfig{ReplicationFactor: 3}, Least: 2, Keep: []base.Replica{replica("n1"), replica("n2"), replica("n3")}}
	v.Nodes[1].Slow = true
	require.Equal(t, []base.Replica{replica("n1"), replica("n3"), replica("n4")}, placed(t, v, w))
	v.Nodes[0].Slow, v.Nodes[1].Slow = true, false
	require.Equal(t, w.Keep, placed(t, v, w), "the leader stays although it is")
}

func TestASlowSetTakesNoOtherDoubtfulNodes(t *testing.T) {
	v := view(node("n1", "", 0), node("n2", "", 0))
	v.Nodes[0].Slow, v.Nodes[1].Full = true, true
	require.Equal(t, []base.Replica{replica("n1")}, placed(t, v, Want{Config: base.TopicConfig{ReplicationFactor: 2}, Least: 1, Keep: []base.Replica{replica("n1")}}))
}

func TestOfTwoThatLeadAsMuchTheOneThatReceivesLessLeads(t *testing.T) {
	v := view(node("n1", "", 3), node("n2", "", 3))
	v.Nodes[0].BytesInSec = 1000
	require.Equal(t, []base.Replica{replica("n2")}, placed(t, v, Want{Config: base.TopicConfig{ReplicationFactor: 1}, Least: 1}))
}

func TestTheBestOfTheReplicasLeads(t *testing.T) {
	v := view(node("n1", "", 0), node("n2", "", 5), node("n3", "", 9))
	all := []base.Replica{replica("n1"), replica("n2"), replica("n3")}
	v.Nodes[0].Restarts, v.Nodes[0].SettledMs = 1, 5000
	led := func() []base.Replica { return NewPlacer(v, 1000, seeded(1)).led(all) }
	require.Equal(t, []base.Replica{replica("n2"), replica("n3")}, led(), "who started again a moment ago neither leads nor stays")
	v.Nodes[1].Full, v.Nodes[2].Liveness = true, topology.Suspect
	require.Equal(t, []base.Replica{replica("n1"), replica("n2"), replica("n3")}, led(), "it leads where nobody else can")
}

// TestARollWhoseLeaderIsFullHasTheBestOfTheOthersLead: the one that leads least, and not the one that is named first.
func TestARollWhoseLeaderIsFullHasTheBestOfTheOthersLead(t *testing.T) {
	v := view(node("n1", "", 0), node("n2", "", 9), node("n3", "", 0), node("n4", "", 0))
	v.Nodes[0].Full = true
	topic := topicOf(base.TopicConfig{ReplicationFactor: 3, MinReplicas: 1})
	seg := topic.Ranges[0].Active()
	seg.Replicas = []base.Replica{replica("n1"), replica("n2"), replica("n3")}
	p := Make(Input{
		NowMs: 1000, View: v, Rand: seeded(1), Topic: func(base.TopicID) *meta.Topic { return topic },
		Rolls: []RollRequest{{Ref: base.RangeRef{Topic: topic.ID, Range: 1}, Segment: seg.ID, Epoch: seg.Epoch, Cause: base.CauseReplicaFailure, FrozenMs: 900}},
	})
	require.Len(t, p.Rolls, 1)
	require.Equal(t, []base.Replica{replica("n3"), replica("n2"), replica("n4")}, p.Rolls[0].Replicas)
}

// TestAnOutsidersDiskIsNobodysReplacement: what a node that is not admitted says of its disk is no word of metadata's.
func TestAnOutsidersDiskIsNobodysReplacement(t *testing.T) {
	v := view(node("n1", "", 0), node("n2", "", 0))
	seg := &meta.Segment{ID: 5, Base: 100, End: meta.NoEnd, Replicas: []base.Replica{replica("n1"), replica("n2")}}
	answers := []meta.FenceAnswer{{Segment: 5, Replica: replica("n1"), Kind: meta.Extent, End: 104}}
	v.Nodes[1].Disk = base.DiskID{99}
	require.True(t, DecideEnd(seg, base.TopicConfig{}, answers, v).Decided, "its old disk is gone for good")
	v.Nodes[1].Admitted = false
	require.False(t, DecideEnd(seg, base.TopicConfig{}, answers, v).Decided)
}

// TestAForcedEndIsThatOfACopy: what is no copy of the segment says nothing of its end, whatever it says.
func TestAForcedEndIsThatOfACopy(t *testing.T) {
	topic := topicOf(base.TopicConfig{ReplicationFactor: 3, MinReplicas: 1})
	seg := topic.Ranges[0].Active()
	seg.Replicas = []base.Replica{replica("n1"), replica("n2"), replica("n3")}
	in := Input{NowMs: 1000, View: view(node("n1", "", 0), node("n2", "", 0), node("n3", "", 0)), Rand: seeded(1), Topic: func(base.TopicID) *meta.Topic { return topic }}
	cmd, _, err := ForceSeal(in, Recovery{
		Ref: base.RangeRef{Topic: topic.ID, Range: 1}, Segment: seg.ID, Epoch: seg.Epoch,
		Answers: []meta.FenceAnswer{
			{Segment: seg.ID, Replica: replica("n1"), Kind: meta.Extent, End: 5, Bytes: 50},
			{Segment: seg.ID, Replica: replica("n2"), Kind: meta.NotMine, End: 8, Bytes: 80},
			{Segment: seg.ID, Replica: replica("n3"), Kind: meta.Damaged, Unlisted: true, End: 9, Bytes: 90},
		},
	}, "the disks are gone")
	require.NoError(t, err)
	require.EqualValues(t, 5, cmd.End)
	require.EqualValues(t, 50, cmd.Bytes)
	require.Equal(t, []base.Replica{replica("n2"), replica("n3")}, cmd.Silent)
}

// TestAShardThatComesBackMayGoToAnother: that one node sees things differently says nothing of the others.
func TestAShardThatComesBackMayGoToAnother(t *testing.T) {
	var h Handovers
	began := time.Unix(1000, 0)
	led := func(preferred base.NodeID) []LedShard {
		return []LedShard{{Shard: base.RootShard, Preferred: preferred, Ready: true}}
	}
	now := began.Add(time.Hour)
	require.Empty(t, h.Next(now, began, led("n2")))
	now = now.Add(LeaderSettled)
	require.Len(t, h.Next(now, began, led("n2")), 1)
	now = now.Add(time.Second) // it is back
	require.Empty(t, h.Next(now, began, led("n2")))
	require.Empty(t, h.Next(now.Add(LeaderSettled), began, led("n2")), "n2 gave it back at once")
	require.Empty(t, h.Next(now.Add(LeaderSettled), began, led("n3")))
	require.Len(t, h.Next(now.Add(2*LeaderSettled), began, led("n3")), 1)
}

func TestAShardThatCouldNotBeGivenWaitsAnew(t *testing.T) {
	var h Handovers
	began := time.Unix(1000, 0)
	led := []LedShard{{Shard: base.RootShard, Preferred: "n2", Ready: true}}
	now := began.Add(time.Hour)
	require.Empty(t, h.Next(now, began, led))
	now = now.Add(LeaderSettled)
	require.Len(t, h.Next(now, began, led), 1)
	h.Failed(base.RootShard)
	now = now.Add(LeaderPause)
	require.Empty(t, h.Next(now, began, led))
	require.Len(t, h.Next(now.Add(LeaderSettled), began, led), 1)
}

// rolled plans a roll that the leader of a topic's active segment asks for.
func rolled(t *testing.T, v topology.View, topic *meta.Topic, req RollRequest) meta.RollSegment {
	seg := topic.Ranges[0].Active()
	req.Ref, req.Segment, req.Epoch, req.Cause = base.RangeRef{Topic: topic.ID, Range: 1}, seg.ID, seg.Epoch, base.CauseReplicaFailure
	p := Make(Input{NowMs: 60_000, View: v, Rand: seeded(1), Topic: func(base.TopicID) *meta.Topic { return topic }, Rolls: []RollRequest{req}})
	require.Len(t, p.Rolls, 1)
	return p.Rolls[0]
}

// TestALeaderIsSuspectOnlyAfterItsOwnRoll: that the range rolled a moment ago under another says nothing of this one.
func TestALeaderIsSuspectOnlyAfterItsOwnRoll(t *testing.T) {
	v := view(node("n1", "", 0), node("n2", "", 0))
	for leader, want := range map[base.NodeID]base.NodeID{"n1": "n2", "n9": "n1"} {
		topic := topicOf(base.TopicConfig{ReplicationFactor: 2, MinReplicas: 1}, meta.Segment{Cause: base.CauseReplicaFailure, Replicas: []base.Replica{replica(leader)}})
		seg := topic.Ranges[0].Active()
		seg.Replicas, seg.CreatedMs = []base.Replica{replica("n1"), replica("n2")}, 59_000
		roll := rolled(t, v, topic, RollRequest{Lost: []base.NodeID{"n2"}, FrozenMs: 59_900})
		require.Equal(t, replica(want), roll.Replicas[0], "after a roll of %s", leader)
	}
}

func TestALeaderWhoseClockIsAheadTakesNothingOffAGap(t *testing.T) {
	v := view(node("n1", "", 0))
	topic := topicOf(base.TopicConfig{ReplicationFactor: 1})
	require.EqualValues(t, 700, rolled(t, v, topic, RollRequest{FrozenMs: 61_000, WaitedMs: 700}).GapMs)
}

// TestACopyThatWasNeverOpenedStays: it is a replica like the others, but leads only where there is none that was.
func TestACopyThatWasNeverOpenedStays(t *testing.T) {
	v := view(node("n1", "", 5), node("n2", "", 0), node("n3", "", 0), node("n4", "", 0))
	topic := topicOf(base.TopicConfig{ReplicationFactor: 2, MinReplicas: 1})
	seg := topic.Ranges[0].Active()
	seg.Replicas = []base.Replica{replica("n2"), replica("n1")}
	for seed := range uint64(20) {
		p := Make(Input{
			NowMs: 60_000, View: v, Rand: seeded(seed), Topic: func(base.TopicID) *meta.Topic { return topic },
			Recoveries: []Recovery{{
				Ref: base.RangeRef{Topic: topic.ID, Range: 1}, Segment: seg.ID, Epoch: seg.Epoch, Cause: base.CauseLeaderFailure,
				Answers: []meta.FenceAnswer{
					{Segment: seg.ID, Replica: replica("n1"), Kind: meta.Extent, End: seg.Base, Unbroken: true},
					{Segment: seg.ID, Replica: replica("n2"), Kind: meta.Extent, End: seg.Base, Unbroken: true, Unlisted: true},
				},
			}},
		})
		require.Len(t, p.Rolls, 1)
		require.Equal(t, []base.Replica{replica("n1"), replica("n2")}, p.Rolls[0].Replicas)
	}
}
