package keyspace

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/eastguard/eastguard/internal/base"
)

// Hash is a position in the key space.
type Hash = uint64

// HashKey places a routing key: xxhash64, seed 0.
func HashKey(routing []byte) Hash { return xxhash.Sum64(routing) }

// Span is the slice [Start, End) of the key space; End == 0 means 2^64. The zero Span is the whole space.
type Span struct {
	Start Hash `cbor:"1,keyasint,omitempty"`
	End   Hash `cbor:"2,keyasint,omitempty"`
}

// Full is the whole key space.
var Full = Span{}

// Valid reports whether s holds at least one position.
func (s Span) Valid() bool { return s.End == 0 || s.Start < s.End }

// Contains reports whether h lies in s.
func (s Span) Contains(h Hash) bool { return s.Start <= h && h <= s.Last() }

// Covers reports whether every position of o lies in s.
func (s Span) Covers(o Span) bool { return s.Start <= o.Start && o.Last() <= s.Last() }

// Last is the highest position in s.
func (s Span) Last() Hash { return s.End - 1 } // End 0 wraps to 2^64-1, which is what it means

// Size is the number of positions in s; ok is false for the whole space, whose 2^64 do not fit.
func (s Span) Size() (n uint64, ok bool) { return s.End - s.Start, s != Full }

// Width is the part of the key space that s holds, between 0 and 1.
func (s Span) Width() float64 {
	if n, ok := s.Size(); ok {
		return math.Ldexp(float64(n), -64)
	}
	return 1
}

// SplitAt cuts s so that p becomes the first position of the right part. Both parts must get at least one
// position: ok is false when p is outside of s or its first position.
func (s Span) SplitAt(p Hash) (left, right Span, ok bool) {
	if p <= s.Start || p > s.Last() {
		return Span{}, Span{}, false
	}
	return Span{s.Start, p}, Span{p, s.End}, true
}

// Mid is the position where Halves cuts; s.Start itself when s has one position only.
func (s Span) Mid() Hash {
	// Last-Start is one less than the size, so that even the whole space does not overflow; adding the carry
	// back before halving gives size/2 exactly.
	d := s.Last() - s.Start
	return s.Start + d/2 + d&1
}

// Halves cuts s in its middle; ok is false when s has one position only.
func (s Span) Halves() (left, right Span, ok bool) { return s.SplitAt(s.Mid()) }

// Overlaps reports whether a and b share a position.
func Overlaps(a, b Span) bool { return a.Start <= b.Last() && b.Start <= a.Last() }

// Buddies reports whether a and b lie side by side, in either order, so that together they are one span. Which
// neighbours came from one split is the business of the metadata, which knows the parents.
func Buddies(a, b Span) bool {
	_, ok := Merge(a, b)
	return ok
}

// Merge joins two spans that lie side by side, in either order.
func Merge(a, b Span) (Span, bool) {
	if !a.Valid() || !b.Valid() {
		return Span{}, false
	}
	if b.Start < a.Start {
		a, b = b, a
	}
	if a.End == 0 || a.End != b.Start {
		return Span{}, false
	}
	return Span{a.Start, b.End}, true
}

// Tile cuts the whole space into n spans whose sizes differ by at most one position. n must be at least 1.
func Tile(n int) []Span {
	if n < 1 {
		return nil
	}
	spans := make([]Span, n)
	for i := range spans {
		spans[i] = Span{cut(i, n), cut(i+1, n)}
	}
	return spans
}

// cut is floor(i * 2^64 / n); for i == n that is 2^64, which wraps to the 0 that an End needs.
func cut(i, n int) Hash {
	if i == n {
		return 0
	}
	q, _ := bits.Div64(uint64(i), 0, uint64(n))
	return q
}

// TileAt cuts the whole space at the given positions, which must be strictly increasing and not 0.
func TileAt(points []Hash) ([]Span, error) {
	spans := make([]Span, 0, len(points)+1)
	rest := Full
	for _, p := range points {
		left, right, ok := rest.SplitAt(p)
		if !ok {
			return nil, base.Errorf(base.CodeInvalidArgument, "split key space", "split point %s must lie above %s", FormatHash(p), FormatHash(rest.Start))
		}
		spans, rest = append(spans, left), right
	}
	return append(spans, rest), nil
}

// String prints both ends in full, the end of the space as what it is: "0x8000000000000000-0x10000000000000000".
func (s Span) String() string {
	if s.End == 0 {
		return FormatHash(s.Start) + "-0x10000000000000000"
	}
	return FormatHash(s.Start) + "-" + FormatHash(s.End)
}

// FormatHash prints a position with all its 16 digits, so that columns of them sort and align.
func FormatHash(h Hash) string { return fmt.Sprintf("0x%016x", h) }

// ParseHash reads a position. Digits count from the left, as in the fraction of the space they stand for: "0x4",
// "0x40" and "0x4000000000000000" are the same position.
func ParseHash(text string) (Hash, error) {
	digits, ok := strings.CutPrefix(strings.ToLower(text), "0x")
	if !ok || digits == "" || len(digits) > 16 {
		return 0, badHash(text)
	}
	h, err := strconv.ParseUint(digits, 16, 64)
	if err != nil {
		return 0, badHash(text)
	}
	return h << (4 * (16 - len(digits))), nil
}

func badHash(text string) error {
	return base.Errorf(base.CodeInvalidArgument, "parse hash", "%q is not a position such as 0x40 (1 to 16 hexadecimal digits)", text)
}
