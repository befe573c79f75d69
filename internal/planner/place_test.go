package planner

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/topology"
)

// randomView is a cluster in some disorder.
func randomView(t *rapid.T) topology.View {
	var v topology.View
	for _, id := range []base.NodeID{"n1", "n2", "n3", "n4", "n5", "n6"}[:rapid.IntRange(1, 6).Draw(t, "nodes")] {
		n := node(id, rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "rack"), rapid.IntRange(0, 9).Draw(t, "leading"))
		n.Segments = rapid.IntRange(0, 9).Draw(t, "segments")
		n.Boot = rapid.Uint64Range(1, 3).Draw(t, "boot")
		switch rapid.IntRange(0, 9).Draw(t, "trouble") {
		case 0:
			n.Liveness = topology.Dead
		case 1:
			n.Slow = true
		case 2:
			n.Full = true
		case 3:
			n.Standing = topology.Draining
		case 4:
			n.Restarts, n.SettledMs = 1, 5000
		}
		v.Nodes = append(v.Nodes, n)
	}
	return v
}

func randomNodes(t *rapid.T, label string) []base.NodeID {
	return rapid.SliceOfNDistinct(rapid.SampledFrom([]base.NodeID{"n1", "n2", "n3", "n4", "n5", "n6"}), 0, 3, rapid.ID[base.NodeID]).Draw(t, label)
}

func randomWant(t *rapid.T) Want {
	factor := rapid.IntRange(1, 4).Draw(t, "factor")
	w := Want{Config: base.TopicConfig{ReplicationFactor: factor}, Least: rapid.IntRange(1, factor).Draw(t, "least")}
	for _, id := range randomNodes(t, "keep") {
		w.Keep = append(w.Keep, replica(id))
	}
	w.Late, w.Lost, w.Room = randomNodes(t, "late"), randomNodes(t, "lost"), rapid.Bool().Draw(t, "room")
	return w
}

// TestPlaceKeepsItsPromises places for random wishes on random clusters.
func TestPlaceKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, w, seed := randomView(t), randomWant(t), rapid.Uint64().Draw(t, "seed")
		p, err := NewPlacer(v, 1000, seeded(seed)).Place(w)
		again, _ := NewPlacer(v, 1000, seeded(seed)).Place(w)
		require.Equal(t, p, again, "a function of its seed")

		able, willing := 0, 0 // who can be taken, who is taken gladly
		for i := range v.Nodes {
			n := &v.Nodes[i]
			if n.Unfit() != "" || slices.Contains(w.Lost, n.ID) || w.Room && n.Full {
				continue
			}
			able++
			if n.Doubtful(1000) == "" && !n.Full && !slices.Contains(w.Late, n.ID) {
				willing++
			}
		}
		if able < w.Least {
			require.ErrorIs(t, err, base.CodeNotEnoughNodes)
			return
		}
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(p.Replicas), w.Least, "never below the least")
		require.GreaterOrEqual(t, len(p.Replicas), min(willing, w.Config.ReplicationFactor), "as many as there are")
		require.LessOrEqual(t, len(p.Replicas), w.Config.ReplicationFactor)
		require.Len(t, p.Explain(), len(v.Nodes), "a sentence a node: %q", p.Explain())
		seen := map[base.NodeID]bool{}
		reluctant := 0
		for i, r := range p.Replicas {
			n, _ := v.Node(r.Node)
			require.False(t, seen[r.Node])
			seen[r.Node] = true
			require.Empty(t, n.Unfit())
			require.NotContains(t, w.Lost, r.Node)
			require.False(t, w.Room && n.Full)
			require.Equal(t, n.Boot, p.Boots[i])
			require.Equal(t, n.Disk, r.Disk)
			if slices.Contains(w.Late, r.Node) {
				reluctant++
			}
		}
		if reluctant > 0 {
			require.LessOrEqual(t, len(p.Replicas), max(w.Least, 1+len(w.Keep)), "late nodes only where they must be")
		}
		requireKept(t, v, w, p)
	})
}

// A node whose disk is full would end the segment with its first batch: it is taken only where there are too few without it.
func TestAFullNodeIsForWantOfOthers(t *testing.T) {
	full := node("n2", "", 0)
	full.Full = true
	v := topology.View{Nodes: []topology.Node{node("n1", "", 0), full, node("n3", "", 0)}}
	for least, want := range map[int][]base.Replica{
		2: {replica("n1"), replica("n3")},
		3: {replica("n1"), replica("n3"), replica("n2")},
	} {
		p, err := NewPlacer(v, 1000, seeded(1)).Place(Want{Config: base.TopicConfig{ReplicationFactor: 3}, Least: least, Keep: []base.Replica{replica("n1"), replica("n2"), replica("n3")}})
		require.NoError(t, err)
		require.Equal(t, want, p.Replicas)
	}
}

// A range whose segment has ended because replicas failed waits for room where too few disks have any: each segment that
// counts on a full one would end with its first batch.
func TestARollAfterAFailureWaitsForRoom(t *testing.T) {
	v := topology.View{Nodes: []topology.Node{node("n1", "", 0), node("n2", "", 0), node("n3", "", 0)}}
	v.Nodes[1].Full = true
	w := Want{Config: base.TopicConfig{ReplicationFactor: 3}, Least: 2, Keep: []base.Replica{replica("n3"), replica("n2"), replica("n1")}, Room: true}
	p, err := NewPlacer(v, 1000, seeded(1)).Place(w)
	require.NoError(t, err)
	require.Equal(t, []base.Replica{replica("n3"), replica("n1")}, p.Replicas)
	v.Nodes[0].Full = true
	_, err = NewPlacer(v, 1000, seeded(1)).Place(w)
	require.ErrorIs(t, err, base.CodeNotEnoughNodes)
	require.ErrorContains(t, err, "1 of 3 nodes can take a segment, 2 are needed (n1 has no room on its disk, n2 has no room on its disk)")
	w.Room = false
	_, err = NewPlacer(v, 1000, seeded(1)).Place(w)
	require.NoError(t, err, "planned: at most one roll is in vain")
}

// requireKept: who may stay stays, in its order, and the first of them leads.
func requireKept(t *rapid.T, v topology.View, w Want, p Placement) {
	var stay []base.Replica
	for i, r := range w.Keep {
		n, ok := v.Node(r.Node)
		if ok && n.Unfit() == "" && !n.Full && (i == 0 || !n.Slow) && !slices.Contains(w.Late, r.Node) && !slices.Contains(w.Lost, r.Node) {
			stay = append(stay, r)
		}
	}
	for i := range min(len(stay), w.Config.ReplicationFactor) {
		require.Equal(t, stay[i], p.Replicas[i])
	}
}

// TestPlaceSpreadsAsFarAsItCan: with nobody to keep and nothing against anybody, the set covers as many labels as any
// set of its size could.
func TestPlaceSpreadsAsFarAsItCan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var v topology.View
		labels := map[string]bool{}
		for _, id := range []base.NodeID{"n1", "n2", "n3", "n4", "n5", "n6"}[:rapid.IntRange(1, 6).Draw(t, "nodes")] {
			n := node(id, "same", rapid.IntRange(0, 9).Draw(t, "leading"))
			n.Labels = map[string]string{"zone": rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "zone")}
			labels[n.Labels["zone"]] = true
			v.Nodes = append(v.Nodes, n)
		}
		c := base.TopicConfig{ReplicationFactor: rapid.IntRange(1, 4).Draw(t, "factor"), SpreadBy: "zone"}
		p, err := NewPlacer(v, 0, seeded(rapid.Uint64().Draw(t, "seed"))).Place(Want{Config: c, Least: 1})
		require.NoError(t, err)
		used := map[string]bool{}
		for _, r := range p.Replicas {
			n, _ := v.Node(r.Node)
			used[n.Labels["zone"]] = true
		}
		require.Len(t, used, min(len(labels), len(p.Replicas)))
		require.Len(t, p.Replicas, min(len(v.Nodes), c.ReplicationFactor))
	})
}

// TestPlaceSpreadsAroundThoseThatStay: the newcomer avoids the racks of the replicas that are kept.
func TestPlaceSpreadsAroundThoseThatStay(t *testing.T) {
	v := view(node("n1", "a", 0), node("n2", "b", 0), node("n3", "a", 0), node("n4", "b", 0), node("n5", "c", 99))
	for seed := range uint64(20) {
		p, err := NewPlacer(v, 0, seeded(seed)).Place(Want{
			Config: base.TopicConfig{ReplicationFactor: 3}, Least: 2, Keep: []base.Replica{replica("n2"), replica("n1")},
		})
		require.NoError(t, err)
		require.Equal(t, []base.Replica{replica("n2"), replica("n1"), replica("n5")}, p.Replicas)
	}
}

func TestPlaceBalancesLeadersByWhatTheyLeadAndFollowersByWhatTheyHold(t *testing.T) {
	v := view(node("n1", "", 0), node("n2", "", 0), node("n3", "", 0), node("n4", "", 0), node("n5", "", 0))
	placer := NewPlacer(v, 0, seeded(7))
	leads, holds := map[base.NodeID]int{}, map[base.NodeID]int{}
	for range 1000 {
		p, err := placer.Place(Want{Config: base.TopicConfig{ReplicationFactor: 3}, Least: 2})
		require.NoError(t, err)
		leads[p.Replicas[0].Node]++
		for _, r := range p.Replicas {
			holds[r.Node]++
		}
	}
	for _, n := range v.Nodes {
		require.InDelta(t, 200, leads[n.ID], 20, n.ID)
		require.InDelta(t, 600, holds[n.ID], 30, n.ID)
	}
}

func TestReplaceable(t *testing.T) {
	v := view(node("n1", "", 0), node("n2", "", 0), node("n3", "", 0))
	three := base.TopicConfig{ReplicationFactor: 3}
	require.True(t, Replaceable(three, nil, []base.NodeID{"n3"}, v))
	require.False(t, Replaceable(three, nil, []base.NodeID{"n2", "n3"}, v))
	require.True(t, Replaceable(base.TopicConfig{ReplicationFactor: 3, MinReplicas: 1}, nil, []base.NodeID{"n2", "n3"}, v))
	v.Nodes[1].Slow = true
	require.False(t, Replaceable(three, nil, []base.NodeID{"n3"}, v), "one slow node is not replaced by another")
	set := []base.Replica{replica("n1"), replica("n2"), replica("n3")}
	require.True(t, Replaceable(three, set, []base.NodeID{"n3"}, v), "but one that is a replica already, and keeps up, stays")
	require.False(t, Replaceable(three, set, []base.NodeID{"n2", "n3"}, v))
}

func TestWhereAllAreSlowNobodyIsLeftOut(t *testing.T) {
	v := view(node("n1", "", 0), node("n2", "", 0), node("n3", "", 0))
	place := func() int {
		p, err := NewPlacer(v, 0, seeded(1)).Place(Want{Config: base.TopicConfig{ReplicationFactor: 3}, Least: 2})
		require.NoError(t, err)
		return len(p.Replicas)
	}
	v.Nodes[2].Slow = true
	require.Equal(t, 2, place(), "two that are not slow are enough")
	v.Nodes[1].Slow = true
	require.Equal(t, 3, place(), "one slow replica makes the set slow; another does no harm")
}

// BenchmarkPlace is one placement in a cluster of so many nodes.
func BenchmarkPlace(b *testing.B) {
	for _, nodes := range []int{3, 100, 1000} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			var v topology.View
			for i := range nodes {
				id := base.NodeID(fmt.Sprintf("n%04d", i))
				v.Nodes = append(v.Nodes, topology.Node{ID: id, Disk: base.DiskID{byte(i), byte(i >> 8), 1}, Rack: fmt.Sprint(i % 7), Liveness: topology.Alive, Admitted: true, Boot: 1})
			}
			placer := NewPlacer(v, 0, seeded(1))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := placer.Place(Want{Config: base.TopicConfig{ReplicationFactor: 3}, Least: 2}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
