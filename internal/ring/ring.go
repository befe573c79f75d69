package ring

import (
	"cmp"
	"encoding/binary"
	"maps"
	"math"
	"math/bits"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/eastguard/eastguard/internal/base"
)

// DefaultVnodes is the number of tokens a member has unless told otherwise.
const DefaultVnodes = 1024

// Member is one node, or one consumer, on the ring.
type Member struct {
	Node   base.NodeID
	Labels map[string]string // read only; "rack" among them
}

// Ring is a fixed set of members and their tokens.
type Ring struct {
	members []Member          // by Node, no two alike
	shares  []float64         // of each member
	vnodes  int               // tokens of each member
	hash    uint64            // of all that went in
	points  []uint64          // every token, ascending
	owners  []int32           // owners[i] is the member, by index, that has points[i]
	spreads map[string]spread // by label
}

// New makes the ring of members with vnodes tokens each, DefaultVnodes when vnodes is not positive. The order of
// members does not matter, and one that is listed twice counts once.
func New(members []Member, vnodes int) *Ring {
	if vnodes <= 0 {
		vnodes = DefaultVnodes
	}
	r := &Ring{members: canonical(members), vnodes: vnodes}
	r.place()
	r.measure()
	r.spreads = spreadsOf(r.members)
	r.hash = r.fingerprint()
	return r
}

// canonical sorts a copy of members. Of two with one name it keeps the one whose labels sort first, which is as good
// as the other and does not depend on the order they came in.
func canonical(members []Member) []Member {
	sorted := make([]Member, len(members))
	for i, m := range members {
		sorted[i] = Member{Node: m.Node, Labels: maps.Clone(m.Labels)}
	}
	slices.SortFunc(sorted, func(a, b Member) int {
		if c := cmp.Compare(a.Node, b.Node); c != 0 {
			return c
		}
		return slices.Compare(labelBytes(nil, a.Labels), labelBytes(nil, b.Labels))
	})
	return slices.CompactFunc(sorted, func(a, b Member) bool { return a.Node == b.Node })
}

// place computes and sorts the tokens. Where two members have the same token, the lower name has it first, on every
// node alike.
func (r *Ring) place() {
	type token struct {
		point uint64
		owner int32
	}
	tokens := make([]token, 0, len(r.members)*r.vnodes)
	for i, m := range r.members {
		for p := range tokensOf(m.Node, r.vnodes) {
			tokens = append(tokens, token{p, int32(i)})
		}
	}
	slices.SortFunc(tokens, func(a, b token) int {
		if c := cmp.Compare(a.point, b.point); c != 0 {
			return c
		}
		return cmp.Compare(a.owner, b.owner)
	})
	r.points, r.owners = make([]uint64, len(tokens)), make([]int32, len(tokens))
	for i, t := range tokens {
		r.points[i], r.owners[i] = t.point, t.owner
	}
}

// tokensOf yields a member's tokens in the order of their numbers: xxhash64 of the name and the number in four
// bytes, big-endian. Clusters live by this: it never changes.
func tokensOf(node base.NodeID, vnodes int) func(yield func(uint64) bool) {
	return func(yield func(uint64) bool) {
		b := append([]byte(node), 0, 0, 0, 0)
		number := b[len(node):]
		for i := range vnodes {
			binary.BigEndian.PutUint32(number, uint32(i))
			if !yield(xxhash.Sum64(b)) {
				return
			}
		}
	}
}

// measure adds up each member's part of the circle. A token owns what lies between its predecessor, exclusive, and
// itself.
func (r *Ring) measure() {
	r.shares = make([]float64, len(r.members))
	sums := make([]uint64, len(r.members))
	for i, p := range r.points {
		before := r.points[(i+len(r.points)-1)%len(r.points)]
		owner := r.owners[i]
		sum, carry := bits.Add64(sums[owner], p-before, 0)
		sums[owner] = sum
		// All of the circle is 2^64 positions, which a uint64 counts as none.
		if carry != 0 || len(r.points) == 1 {
			r.shares[owner] = 1
		}
	}
	for i, sum := range sums {
		r.shares[i] += math.Ldexp(float64(sum), -64)
	}
}

// fingerprint covers all that any answer of the ring depends on.
func (r *Ring) fingerprint() uint64 {
	b := binary.AppendUvarint(nil, uint64(r.vnodes))
	for _, m := range r.members {
		b = appendString(b, string(m.Node))
		b = labelBytes(b, m.Labels)
	}
	return xxhash.Sum64(b)
}

// labelBytes appends labels in one order, so that equal labels give equal bytes and others do not.
func labelBytes(b []byte, labels map[string]string) []byte {
	b = binary.AppendUvarint(b, uint64(len(labels)))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		b = appendString(b, key)
		b = appendString(b, labels[key])
	}
	return b
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// Owner is the member that point belongs to; ok is false on an empty ring.
func (r *Ring) Owner(point uint64) (node base.NodeID, ok bool) {
	if len(r.points) == 0 {
		return "", false
	}
	return r.members[r.owners[r.at(point)]].Node, true
}

// at is the index of the first token at or after point, clockwise. There must be a token.
func (r *Ring) at(point uint64) int {
	i, _ := slices.BinarySearch(r.points, point)
	if i == len(r.points) {
		return 0
	}
	return i
}

// Members lists the members by name. Neither they nor their labels may be changed.
func (r *Ring) Members() []Member { return slices.Clip(r.members) }

// Len is the number of members.
func (r *Ring) Len() int { return len(r.members) }

// Hash is equal for equal members, labels and vnodes, whatever their order, and tells others apart: nodes compare it
// to see whether they agree.
func (r *Ring) Hash() uint64 { return r.hash }

// Tokens lists a member's tokens, ascending; none for a stranger.
func (r *Ring) Tokens(node base.NodeID) []uint64 {
	if _, ok := r.index(node); !ok {
		return nil
	}
	return slices.Sorted(tokensOf(node, r.vnodes))
}

// Share is the part of all positions that a member owns, from 0 to 1; 0 for a stranger.
func (r *Ring) Share(node base.NodeID) float64 {
	if i, ok := r.index(node); ok {
		return r.shares[i]
	}
	return 0
}

func (r *Ring) index(node base.NodeID) (int, bool) {
	return slices.BinarySearchFunc(r.members, node, func(m Member, n base.NodeID) int { return cmp.Compare(m.Node, n) })
}
