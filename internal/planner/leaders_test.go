package planner

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/ring"
)

func everybody(base.NodeID) bool { return true }

// ringVoters are the voters that a ring of n nodes gives to shards.
func ringVoters(shards, nodes int) []ShardVoters {
	var members []ring.Member
	for i := range nodes {
		members = append(members, ring.Member{Node: base.NodeID(fmt.Sprintf("n%d", i+1))})
	}
	r := ring.New(members, 256)
	var list []ShardVoters
	for i := range shards {
		id := base.ShardID{Root: uint16(i)}
		list = append(list, ShardVoters{Shard: id, Voters: Intended(r, id, 3)})
	}
	return list
}

// loads counts what each node leads, least first.
func loads(leaders map[base.ShardID]base.NodeID, nodes []base.NodeID) []int {
	count := make(map[base.NodeID]int)
	for _, n := range leaders {
		count[n]++
	}
	var list []int
	for _, n := range nodes {
		list = append(list, count[n])
	}
	slices.Sort(list)
	return list
}

func TestLeadersAreEven(t *testing.T) {
	for _, nodes := range []int{1, 2, 3, 4, 5, 7} {
		shards := ringVoters(32, nodes)
		var names []base.NodeID
		for i := range nodes {
			names = append(names, base.NodeID(fmt.Sprintf("n%d", i+1)))
		}
		list := loads(Leaders(shards, everybody), names)
		require.LessOrEqual(t, list[len(list)-1]-list[0], 1, "%d nodes: %v", nodes, list)
	}
}

func TestLeadersAreFitVoters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shards := drawShards(t)
		unfit := rapid.SampledFrom([]base.NodeID{"a", "b", "c", "none"}).Draw(t, "unfit")
		fit := func(n base.NodeID) bool { return n != unfit }
		leaders := Leaders(shards, fit)
		for _, s := range shards {
			leader, led := leaders[s.Shard]
			require.Equal(t, slices.ContainsFunc(s.Voters, fit), led)
			if led {
				require.NotEqual(t, unfit, leader)
				require.Contains(t, s.Voters, leader)
			}
		}
		require.Equal(t, leaders, Leaders(rapid.Permutation(shards).Draw(t, "order"), fit))
	})
}

func drawShards(t *rapid.T) []ShardVoters {
	names := []base.NodeID{"a", "b", "c", "d"}
	var shards []ShardVoters
	for i := range rapid.IntRange(0, 7).Draw(t, "shards") {
		voters := rapid.Permutation(names).Draw(t, "voters")[:rapid.IntRange(1, 3).Draw(t, "count")]
		shards = append(shards, ShardVoters{Shard: base.ShardID{Root: uint16(i)}, Voters: voters})
	}
	return shards
}

// Against every assignment there is: none has a lower maximum, nor a smaller sum of squares.
func TestLeadersAgainstAllAssignments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shards := drawShards(t)
		cost := func(count map[base.NodeID]int) (sum int) {
			for _, n := range count {
				sum += n * n
			}
			return sum
		}
		got := make(map[base.NodeID]int)
		for _, n := range Leaders(shards, everybody) {
			got[n]++
		}
		best := -1
		count := make(map[base.NodeID]int)
		var try func(i int)
		try = func(i int) {
			if i == len(shards) {
				if c := cost(count); best < 0 || c < best {
					best = c
				}
				return
			}
			for _, v := range shards[i].Voters {
				count[v]++
				try(i + 1)
				count[v]--
			}
		}
		try(0)
		require.Equal(t, best, cost(got))
	})
}

// The loss of a node moves what it led, and not much else.
func TestLeadersStayWhenOneIsLost(t *testing.T) {
	shards := ringVoters(128, 8)
	before := Leaders(shards, everybody)
	after := Leaders(shards, func(n base.NodeID) bool { return n != "n3" })
	moved := 0
	for shard, leader := range before {
		if leader != "n3" && after[shard] != leader {
			moved++
		}
	}
	require.LessOrEqual(t, moved, 32, "of 128, of which the lost one led 16")
}

func TestHandovers(t *testing.T) {
	shard := func(i uint16) base.ShardID { return base.ShardID{Root: i} }
	start := time.Unix(1000, 0)
	led := func(ids ...uint16) (list []LedShard) {
		for _, i := range ids {
			list = append(list, LedShard{Shard: shard(i), Preferred: "n2", Ready: true})
		}
		return list
	}
	var h Handovers
	at := func(d time.Duration, led []LedShard) string {
		l, ok := h.Next(start.Add(d), start.Add(-time.Hour), led)
		if !ok {
			return ""
		}
		return fmt.Sprintf("%s to %s", l.Shard, l.Preferred)
	}
	require.Equal(t, "", at(0, led(1, 2)), "the preference is new")
	require.Equal(t, "", at(9*time.Second, led(1, 2)))
	require.Equal(t, "1 to n2", at(10*time.Second, led(1, 2)))
	require.Equal(t, "", at(11*time.Second, led(2)), "one transfer at a time, two seconds apart")
	require.Equal(t, "2 to n2", at(12*time.Second, led(2)))
	require.Equal(t, "", at(15*time.Second, led(1)), "it came back")
	require.Equal(t, "", at(30*time.Second, led(1)))
	require.Equal(t, "1 to n2", at(10*time.Second+LeaderReturned, led(1)))
	require.Equal(t, "", at(20*time.Second+LeaderReturned, nil), "it keeps it")
	require.Equal(t, "", at(120*time.Second+LeaderReturned, led(1)), "until it dies, much later")
	require.Equal(t, "1 to n2", at(130*time.Second+LeaderReturned, led(1)))

	// Who was not ready for a moment waits again.
	require.Equal(t, "", at(20*time.Minute, led(3)))
	require.Equal(t, "", at(20*time.Minute+9*time.Second, []LedShard{{Shard: shard(3), Preferred: "n2"}}))
	require.Equal(t, "", at(20*time.Minute+11*time.Second, led(3)))
	require.Equal(t, "", at(20*time.Minute+12*time.Second, []LedShard{{Shard: shard(3), Preferred: "n4", Ready: true}}))
	require.Equal(t, "3 to n4", at(20*time.Minute+22*time.Second, []LedShard{{Shard: shard(3), Preferred: "n4", Ready: true}}))

	// Right after its own start a node does not wait so long: all may have started.
	h = Handovers{}
	_, ok := h.Next(start, start, led(1))
	require.False(t, ok)
	_, ok = h.Next(start.Add(LeaderStart), start, led(1))
	require.True(t, ok)
}

func BenchmarkLeaders(b *testing.B) {
	for _, size := range []struct{ shards, nodes int }{{32, 3}, {128, 10}, {1000, 100}} {
		shards := ringVoters(size.shards, size.nodes)
		b.Run(fmt.Sprintf("%d shards of %d nodes", size.shards, size.nodes), func(b *testing.B) {
			for b.Loop() {
				Leaders(shards, everybody)
			}
		})
	}
}
