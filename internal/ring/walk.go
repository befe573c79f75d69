package ring

import (
	"github.com/eastguard/eastguard/internal/base"
)

// spread groups the members by the value of one label: those with the same value could be lost together.
type spread struct {
	group []int32 // of each member, by index
	sizes []int32 // members of each group
}

// spreadsOf groups the members by every label that any of them has. Those that lack a label are one group: nothing
// says that they are apart.
func spreadsOf(members []Member) map[string]spread {
	type value struct {
		text    string
		present bool
	}
	spreads := make(map[string]spread)
	for _, m := range members {
		for label := range m.Labels {
			if _, done := spreads[label]; done {
				continue
			}
			s := spread{group: make([]int32, len(members))}
			ids := make(map[value]int32)
			for i, m := range members {
				text, present := m.Labels[label]
				id, known := ids[value{text, present}]
				if !known {
					id = int32(len(s.sizes))
					ids[value{text, present}] = id
					s.sizes = append(s.sizes, 0)
				}
				s.group[i] = id
				s.sizes[id]++
			}
			spreads[label] = s
		}
	}
	return spreads
}

// Walk goes clockwise from point and returns the first n distinct members it meets, all of them if there are fewer.
// With spreadBy, "rack" for one, it passes over a member whose value of that label has been taken already while
// another value remains. When each value has been taken once it begins again, with those passed over first: two
// members on the same rack only when every rack with a member left has one, three only when each has two.
//
// Walk(p, n) is the beginning of Walk(p, n+1).
func (r *Ring) Walk(point uint64, n int, spreadBy string) []base.NodeID {
	n = min(n, len(r.members))
	if n <= 0 {
		return nil
	}
	w := walk{ring: r, next: r.at(point), met: make([]bool, len(r.members))}
	nodes := make([]base.NodeID, 0, n)
	if s := r.spreads[spreadBy]; len(s.sizes) > 1 {
		rounds := newRounds(s)
		for len(nodes) < n {
			nodes = append(nodes, r.members[w.nextSpread(rounds)].Node)
		}
		return nodes
	}
	for len(nodes) < n {
		nodes = append(nodes, r.members[w.nextMember()].Node)
	}
	return nodes
}

// walk is the way round the circle. It must not be asked for more members than there are.
type walk struct {
	ring   *Ring
	next   int     // the token to look at next
	met    []bool  // by member
	passed []int32 // members met and passed over, in the order of the walk
}

// nextMember is the next member clockwise that was not met before. All n are met within a few tokens a member on
// average, and within one turn of the circle for certain.
func (w *walk) nextMember() int32 {
	for {
		m := w.ring.owners[w.next]
		if w.next++; w.next == len(w.ring.owners) {
			w.next = 0
		}
		if !w.met[m] {
			w.met[m] = true
			return m
		}
	}
}

// nextSpread is the next member that the rounds admit: of those passed over, the first, else of those to come.
func (w *walk) nextSpread(rounds *rounds) int32 {
	for i, m := range w.passed {
		if rounds.admit(m) {
			w.passed = append(w.passed[:i], w.passed[i+1:]...)
			return m
		}
	}
	for {
		m := w.nextMember()
		if rounds.admit(m) {
			return m
		}
		w.passed = append(w.passed, m)
	}
}

// rounds admits one member of each group a round, as long as the group has any.
type rounds struct {
	group []int32 // of each member
	left  []int32 // members of each group not admitted yet
	taken []int32 // the last round in which each group was admitted, from 1
	round int32
	open  int // groups that this round can still admit
}

func newRounds(s spread) *rounds {
	r := &rounds{group: s.group, left: make([]int32, len(s.sizes)), taken: make([]int32, len(s.sizes))}
	copy(r.left, s.sizes)
	r.begin()
	return r
}

func (r *rounds) begin() {
	r.round++
	r.open = 0
	for _, left := range r.left {
		if left > 0 {
			r.open++
		}
	}
}

// admit reports whether member m may be taken now, and takes it. A round that has nobody left to admit gives way to
// the next at once, so that some member is always admissible until all are taken.
func (r *rounds) admit(m int32) bool {
	g := r.group[m]
	if r.taken[g] == r.round {
		return false
	}
	r.taken[g] = r.round
	r.left[g]--
	if r.open--; r.open == 0 {
		r.begin()
	}
	return true
}
