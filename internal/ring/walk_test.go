package ring

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/eastguard/eastguard/internal/base"
)

// drawRacked makes members on a few racks, some on none.
func drawRacked(t *rapid.T, least, most int) []Member {
	racks := rapid.IntRange(1, 5).Draw(t, "racks")
	members := make([]Member, rapid.IntRange(least, most).Draw(t, "members"))
	for i := range members {
		members[i] = Member{Node: base.NodeID(fmt.Sprintf("n%d", i)), Labels: map[string]string{}}
		if rack := rapid.IntRange(0, racks).Draw(t, "rack"); rack > 0 {
			members[i].Labels["rack"] = fmt.Sprintf("rack-%d", rack)
		}
		if rapid.Bool().Draw(t, "in a zone") {
			members[i].Labels["zone"] = rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "zone")
		}
	}
	return members
}

// dumbWalk is Walk told in another way: sort all members by where they are first met, then deal them out by how
// often their rack has been used.
func dumbWalk(r *Ring, point uint64, n int, spreadBy string) []base.NodeID {
	first := make(map[base.NodeID]uint64)
	members := r.Members()
	for _, m := range members {
		tokens := r.Tokens(m.Node)
		first[m.Node] = tokens[0] - point
		for _, token := range tokens {
			first[m.Node] = min(first[m.Node], token-point)
		}
	}
	order := slices.SortedStableFunc(slices.Values(members), func(a, b Member) int {
		if first[a.Node] < first[b.Node] {
			return -1
		}
		return 1
	})
	used := make(map[string]int)
	rackOf := func(m Member) string {
		v, ok := m.Labels[spreadBy]
		return fmt.Sprint(ok, v)
	}
	var nodes []base.NodeID
	for len(nodes) < n && len(order) > 0 {
		best := 0
		for i, m := range order {
			if used[rackOf(m)] < used[rackOf(order[best])] {
				best = i
			}
		}
		used[rackOf(order[best])]++
		nodes = append(nodes, order[best].Node)
		order = slices.Delete(order, best, best+1)
	}
	return nodes
}

func TestWalkAgainstTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := New(drawRacked(t, 1, 14), rapid.IntRange(1, 12).Draw(t, "vnodes"))
		p := rapid.Uint64().Draw(t, "point")
		if rapid.Bool().Draw(t, "near a token") {
			p = rapid.SampledFrom(r.points).Draw(t, "token") + rapid.Uint64Range(0, 2).Draw(t, "off") - 1
		}
		n := rapid.IntRange(1, 16).Draw(t, "n")
		label := rapid.SampledFrom([]string{"", "rack", "zone", "nobody has it"}).Draw(t, "label")
		got := r.Walk(p, n, label)
		require.Equal(t, dumbWalk(r, p, n, label), got)
		require.Equal(t, got, r.Walk(p, n+1, label)[:len(got)], "a longer walk begins with the shorter")
	})
}

// The replicas of a position change by at most one when a member leaves, if there are no racks.
func TestWalkMovesLittle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members := drawNamed(t, 5, 30)
		gone := members[len(members)-1].Node
		before, after := New(members, 32), New(members[:len(members)-1], 32)
		p := rapid.Uint64().Draw(t, "point")
		want := slices.DeleteFunc(before.Walk(p, 4, "rack"), func(n base.NodeID) bool { return n == gone })
		require.Equal(t, want, after.Walk(p, 4, "rack")[:len(want)])
	})
}

func BenchmarkNew(b *testing.B) {
	members := benchMembers()
	b.ReportAllocs()
	for b.Loop() {
		New(members, 256)
	}
}

func BenchmarkWalk(b *testing.B) {
	r := New(benchMembers(), 256)
	for _, label := range []string{"", "rack"} {
		b.Run("by="+label, func(b *testing.B) {
			b.ReportAllocs()
			p := uint64(0)
			for b.Loop() {
				p += 0x9e3779b97f4a7c15
				r.Walk(p, 3, label)
			}
		})
	}
}

func BenchmarkOwner(b *testing.B) {
	r := New(benchMembers(), 256)
	p := uint64(0)
	for b.Loop() {
		p += 0x9e3779b97f4a7c15
		r.Owner(p)
	}
}

// benchMembers are 100 nodes on 5 racks.
func benchMembers() []Member {
	members := make([]Member, 100)
	for i := range members {
		members[i] = Member{Node: base.NodeID(fmt.Sprintf("n%d", i)), Labels: map[string]string{"rack": fmt.Sprint(i % 5)}}
	}
	return members
}
