package planner

import (
	"fmt"
	"slices"
	"strings"
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
		var moves []string
		for _, l := range h.Next(start.Add(d), start.Add(-time.Hour), led) {
			moves = append(moves, fmt.Sprintf("%s to %s", l.Shard, l.Preferred))
		}
		return strings.Join(moves, ", ")
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
	require.Empty(t, h.Next(start, start, led(1)))
	require.Len(t, h.Next(start.Add(LeaderStart), start, led(1)), 1)

	// Far from even: all at once, as soon as nothing changes any more.
	h = Handovers{}
	require.Equal(t, "", at(0, led(1, 2, 3, 4)))
	require.Equal(t, "", at(2*time.Second, led(1, 2, 3, 4, 5)), "one more voter is ready")
	require.Equal(t, "", at(5*time.Second, led(1, 2, 3, 4, 5)))
	require.Equal(t, "1 to n2, 2 to n2, 3 to n2, 4 to n2, 5 to n2", at(6*time.Second, led(1, 2, 3, 4, 5)))
	require.Equal(t, "", at(20*time.Second, led(1, 2, 3, 4, 5)), "all came back")
	require.Equal(t, "", at(40*time.Second, led(1, 2, 3, 4, 5)))

	// A node that takes its third back is not far: those go one by one.
	h = Handovers{}
	here := led(1, 2, 3, 4, 5)
	for i := range uint16(11) {
		here = append(here, LedShard{Shard: shard(10 + i)})
	}
	require.Equal(t, "", at(0, here))
	require.Equal(t, "", at(9*time.Second, here))
	require.Equal(t, "1 to n2", at(10*time.Second, here))
}

// field is a cluster of shards whose leaders move as Handovers says, among nodes that come and go.
type field struct {
	shards []ShardVoters
	nodes  []base.NodeID
	up     map[base.NodeID]bool
	memory map[base.NodeID]*Handovers
	began  map[base.NodeID]time.Time
	leader map[base.ShardID]base.NodeID
	given  map[base.ShardID][]handed
}

type handed struct {
	to base.NodeID
	at time.Time
}

func newField(shards, nodes int, now time.Time) *field {
	f := &field{
		shards: ringVoters(shards, nodes), up: make(map[base.NodeID]bool), memory: make(map[base.NodeID]*Handovers),
		began: make(map[base.NodeID]time.Time), leader: make(map[base.ShardID]base.NodeID), given: make(map[base.ShardID][]handed),
	}
	for i := range nodes {
		f.nodes = append(f.nodes, base.NodeID(fmt.Sprintf("n%d", i+1)))
		f.turn(f.nodes[i], now)
	}
	return f
}

// turn starts a node that is down, and kills one that is up.
func (f *field) turn(node base.NodeID, now time.Time) {
	if f.up[node] = !f.up[node]; f.up[node] {
		f.memory[node], f.began[node] = &Handovers{}, now
	}
}

func (f *field) second(now time.Time) {
	fit := func(n base.NodeID) bool { return f.up[n] }
	preferred := Leaders(f.shards, fit)
	led := make(map[base.NodeID][]LedShard)
	for _, s := range f.shards {
		if leader := f.leader[s.Shard]; !f.up[leader] {
			i := slices.IndexFunc(s.Voters, fit) // an election
			if i < 0 {
				delete(f.leader, s.Shard)
				continue
			}
			f.leader[s.Shard] = s.Voters[i]
		}
		leader, l := f.leader[s.Shard], LedShard{Shard: s.Shard, Ready: true}
		if to := preferred[s.Shard]; to != leader {
			l.Preferred = to
		}
		led[leader] = append(led[leader], l)
	}
	for _, node := range f.nodes {
		if f.up[node] {
			for _, l := range f.memory[node].Next(now, f.began[node], led[node]) {
				f.leader[l.Shard] = l.Preferred
				f.given[l.Shard] = append(f.given[l.Shard], handed{l.Preferred, now})
			}
		}
	}
}

func (f *field) even(t require.TestingT) {
	list := loads(f.leader, f.nodes)
	require.LessOrEqual(t, list[len(list)-1]-list[0], 1, "%v", list)
}

// One node led everything, and two more have their seats now.
func TestAFoundedClusterIsEvenSoon(t *testing.T) {
	now := time.Unix(1000, 0)
	f := newField(32, 3, now.Add(-time.Hour))
	for _, s := range f.shards {
		f.leader[s.Shard] = "n2"
	}
	for range 1 + LeaderFar/time.Second {
		f.second(now)
		now = now.Add(time.Second)
	}
	f.even(t)
}

// However nodes flap: who is up for less than LeaderFar is given nothing, and in the end leaders are even.
func TestLeadersOfFlappingNodesRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1000, 0)
		f := newField(32, rapid.IntRange(2, 5).Draw(t, "nodes"), now)
		flapping := f.nodes[1:] // the first sees it all
		turned := make(map[base.NodeID]time.Time)
		for range rapid.IntRange(1, 300).Draw(t, "seconds") {
			if rapid.IntRange(0, 4).Draw(t, "flap") == 0 {
				node := rapid.SampledFrom(flapping).Draw(t, "node")
				f.turn(node, now)
				turned[node] = now
			}
			f.second(now)
			now = now.Add(time.Second)
			for shard, list := range f.given {
				last := list[len(list)-1]
				at, flapped := turned[last.to]
				require.True(t, !flapped || !f.up[last.to] || last.at.Before(at) || last.at.Sub(at) >= LeaderFar, "%s to %s", shard, last.to)
			}
		}
		for _, node := range flapping {
			if !f.up[node] {
				f.turn(node, now)
			}
		}
		for range (LeaderReturned + LeaderSettled + 32*LeaderPause) / time.Second {
			f.second(now)
			now = now.Add(time.Second)
		}
		f.even(t)
	})
}

// Two nodes that flap around one that stays: it gives each shard to each of them once in five minutes.
func TestAShardThatComesBackIsNotGivenAgain(t *testing.T) {
	now := time.Unix(1000, 0)
	f := newField(32, 3, now)
	for i := range int((LeaderReturned - time.Minute) / time.Second) {
		if i%20 == 0 { // up for 20 s, long enough to be given their share, and down for as long
			f.turn("n2", now)
			f.turn("n3", now)
		}
		f.second(now)
		now = now.Add(time.Second)
	}
	moves := 0
	for _, list := range f.given {
		to := make(map[base.NodeID]int)
		for _, h := range list {
			to[h.to]++
			moves++
			require.LessOrEqual(t, to[h.to], 1)
		}
	}
	require.Positive(t, moves)
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
