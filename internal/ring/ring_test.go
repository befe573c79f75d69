package ring

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/eastguard/eastguard/internal/base"
)

// named makes n members with random names.
func named(rng *rand.Rand, n int) []Member {
	members := make([]Member, n)
	for i := range members {
		members[i].Node = base.NodeID(fmt.Sprintf("n-%016x", rng.Uint64()))
	}
	return members
}

func drawNamed(t *rapid.T, least, most int) []Member {
	n := rapid.IntRange(least, most).Draw(t, "members")
	return named(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "names"), 0)), n)
}

// largest is the largest share over the mean.
func largest(r *Ring) float64 {
	most := 0.0
	for _, m := range r.Members() {
		most = max(most, r.Share(m.Node))
	}
	return most * float64(r.Len())
}

// Tokens are part of what nodes of different versions must agree on.
func TestGoldenTokens(t *testing.T) {
	for _, tc := range []struct {
		node   base.NodeID
		vnodes int
		want   []uint64
	}{
		{"n1", 3, []uint64{0x7ddb5bc3154c9174, 0x4395ac466d621c1f, 0x7c123c9739f0c133}},
		{"n-0a1b2c3d", 3, []uint64{0xb5e891deb9c39ec3, 0xc5bd4dee0d2c0b2c, 0x8ea19023d93b2280}},
		{"", 3, []uint64{0x3aefa6fd5cf2deb4, 0x5b1bd2a964692595, 0x21b16d4604fdb2c8}},
	} {
		require.Equal(t, tc.want, slices.Collect(tokensOf(tc.node, tc.vnodes)), "%q", tc.node)
	}
	r := New([]Member{{Node: "n2", Labels: map[string]string{"rack": "b", "zone": "z"}}, {Node: "n1"}}, 3)
	require.Equal(t, uint64(0x35cf6a4290448ee1), r.Hash())
	require.True(t, slices.IsSorted(r.Tokens("n1")))
	require.ElementsMatch(t, slices.Collect(tokensOf("n1", 3)), r.Tokens("n1"))
	require.Nil(t, r.Tokens("n3"))
}

func TestEmptyAndSingle(t *testing.T) {
	empty := New(nil, 0)
	_, ok := empty.Owner(7)
	require.False(t, ok)
	require.Nil(t, empty.Walk(7, 3, "rack"))
	require.Zero(t, empty.Share("n1"))
	require.Empty(t, empty.Members())

	for _, vnodes := range []int{1, 2, 256} {
		one := New([]Member{{Node: "n1"}}, vnodes)
		require.Equal(t, 1.0, one.Share("n1"))
		for _, p := range []uint64{0, 1, math.MaxUint64} {
			owner, ok := one.Owner(p)
			require.True(t, ok)
			require.Equal(t, base.NodeID("n1"), owner)
			require.Equal(t, []base.NodeID{"n1"}, one.Walk(p, 3, "rack"))
		}
	}
	require.Len(t, New([]Member{{Node: "n1"}}, 0).Tokens("n1"), DefaultVnodes)
	require.Nil(t, New([]Member{{Node: "n1"}}, 0).Walk(0, -1, ""))
}

func TestOrderAndCopiesOfMembersDoNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members := drawRacked(t, 1, 12)
		double := Member{Node: members[0].Node, Labels: map[string]string{"rack": "another"}}
		for _, list := range [][]Member{members, append(slices.Clone(members), members[0]), append(slices.Clone(members), double)} {
			a := New(rapid.Permutation(list).Draw(t, "order"), 8)
			b := New(rapid.Permutation(list).Draw(t, "another order"), 8)
			require.Equal(t, len(members), a.Len())
			require.Equal(t, a.Members(), b.Members())
			require.Equal(t, a.points, b.points)
			require.Equal(t, a.Hash(), b.Hash())
		}
	})
}

func TestHashTellsRingsApart(t *testing.T) {
	two := []Member{{Node: "a", Labels: map[string]string{"rack": "1"}}, {Node: "b"}}
	hashes := map[uint64]string{}
	for name, r := range map[string]*Ring{
		"as it is":       New(two, 8),
		"more tokens":    New(two, 9),
		"one less":       New(two[:1], 8),
		"another rack":   New([]Member{{Node: "a", Labels: map[string]string{"rack": "2"}}, {Node: "b"}}, 8),
		"another label":  New([]Member{{Node: "a", Labels: map[string]string{"rac": "k1"}}, {Node: "b"}}, 8),
		"no label":       New([]Member{{Node: "a"}, {Node: "b"}}, 8),
		"an empty label": New([]Member{{Node: "a", Labels: map[string]string{"": ""}}, {Node: "b"}}, 8),
		"another name":   New([]Member{{Node: "a", Labels: map[string]string{"rack": "1"}}, {Node: "c"}}, 8),
	} {
		require.NotContains(t, hashes, r.Hash(), name)
		hashes[r.Hash()] = name
	}
}

func TestLabelsAreCopied(t *testing.T) {
	labels := map[string]string{"rack": "a"}
	r := New([]Member{{Node: "n1", Labels: labels}}, 8)
	labels["rack"] = "b"
	require.Equal(t, "a", r.Members()[0].Labels["rack"])
}

// Owner against a search of all tokens, at, before and after every one.
func TestOwnerAgainstSearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := New(drawNamed(t, 1, 10), rapid.IntRange(1, 20).Draw(t, "vnodes"))
		p := rapid.Uint64().Draw(t, "point")
		if rapid.Bool().Draw(t, "near a token") {
			p = rapid.SampledFrom(r.points).Draw(t, "token") + rapid.Uint64Range(0, 2).Draw(t, "off") - 1
		}
		want, distance := base.NodeID(""), uint64(math.MaxUint64)
		for _, m := range r.Members() {
			for _, token := range r.Tokens(m.Node) {
				if d := token - p; d <= distance { // clockwise from p, with the wrap of uint64
					want, distance = m.Node, d
				}
			}
		}
		got, ok := r.Owner(p)
		require.True(t, ok)
		require.Equal(t, want, got)
		require.Equal(t, got, r.Walk(p, 1, "")[0])
	})
}

func TestSharesAreWhatOwnersHave(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := New(drawNamed(t, 1, 10), 16)
		sum := 0.0
		for _, m := range r.Members() {
			sum += r.Share(m.Node)
		}
		require.InDelta(t, 1, sum, 1e-9)

		const samples = 20_000
		rng := rand.New(rand.NewPCG(1, 2))
		seen := make(map[base.NodeID]float64)
		for range samples {
			owner, _ := r.Owner(rng.Uint64())
			seen[owner] += 1.0 / samples
		}
		for _, m := range r.Members() {
			require.InDelta(t, seen[m.Node], r.Share(m.Node), 0.02)
		}
	})
}

// Each share of v tokens is Gamma distributed around the mean with a deviation of 1/√v. Six of them hold for every
// cluster that a test will ever draw (7e-9 a member with 1,024 tokens, 3e-8 with 256); 15 % of the mean is what the
// middle one of many clusters keeps, with the default from 3 nodes to 100 and with 256 tokens up to 50. doc.go has
// the table.
func TestBalance(t *testing.T) {
	for _, tc := range []struct {
		vnodes int
		worst  float64
		nodes  []int
	}{
		{DefaultVnodes, 1 + 6.0/32, []int{3, 10, 30, 100}},
		{256, 1 + 6.0/16, []int{3, 10, 30, 50}},
	} {
		t.Run(strconv.Itoa(tc.vnodes), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				require.LessOrEqual(t, largest(New(drawNamed(t, 3, 100), tc.vnodes)), tc.worst)
			})
			for _, n := range tc.nodes {
				rng := rand.New(rand.NewPCG(uint64(n), uint64(tc.vnodes)))
				most := make([]float64, 51)
				for i := range most {
					most[i] = largest(New(named(rng, n), tc.vnodes))
				}
				slices.Sort(most)
				require.LessOrEqual(t, most[len(most)/2], 1.15, "the middle of %d clusters of %d nodes", len(most), n)
			}
		})
	}
}

// Who joins takes about 1/n of the positions, and nothing moves but to it; backwards, nothing moves but from who
// leaves.
func TestMovement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members := drawNamed(t, 2, 100)
		newcomer := members[len(members)-1].Node
		before, after := New(members[:len(members)-1], DefaultVnodes), New(members, DefaultVnodes)

		// Owners change at tokens only: the tokens of both rings are all the places to look at.
		moved := 0.0
		points := slices.Sorted(slices.Values(append(slices.Clone(before.points), after.points...)))
		for i, p := range points {
			was, _ := before.Owner(p)
			is, _ := after.Owner(p)
			if was == is {
				continue
			}
			require.Equal(t, newcomer, is, "at %#x", p)
			moved += math.Ldexp(float64(p-points[(i+len(points)-1)%len(points)]), -64)
		}
		require.InDelta(t, after.Share(newcomer), moved, 1e-9)
		require.InDelta(t, 1, moved*float64(len(members)), 5.5/32)
	})
}
