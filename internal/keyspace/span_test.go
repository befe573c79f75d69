package keyspace

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/eastguard/eastguard/internal/base"
)

const last = math.MaxUint64

// genSpan draws valid spans, the awkward ones often.
func genSpan() *rapid.Generator[Span] {
	point := rapid.OneOf(rapid.Uint64(), rapid.SampledFrom([]uint64{0, 1, 2, 1 << 63, last - 1, last}))
	return rapid.Custom(func(t *rapid.T) Span {
		a, b := point.Draw(t, "a"), point.Draw(t, "b")
		if a > b {
			a, b = b, a
		}
		if a == b || rapid.IntRange(0, 4).Draw(t, "open") == 0 {
			b = 0
		}
		return Span{a, b}
	})
}

func TestHashIsXXHash64(t *testing.T) {
	// From the reference implementation (xxhsum -H64).
	require.Equal(t, uint64(0xef46db3751d8e999), HashKey(nil))
	require.Equal(t, uint64(0x44bc2cf5ad770999), HashKey([]byte("abc")))
}

func TestSpanTable(t *testing.T) {
	half := Span{1 << 63, 0}
	for _, c := range []struct {
		span  Span
		text  string
		last  Hash
		mid   Hash
		width float64
	}{
		{Full, "0x0000000000000000-0x10000000000000000", last, 1 << 63, 1},
		{half, "0x8000000000000000-0x10000000000000000", last, 3 << 62, 0.5},
		{Span{0, 1}, "0x0000000000000000-0x0000000000000001", 0, 0, math.Ldexp(1, -64)},
		{Span{last, 0}, "0xffffffffffffffff-0x10000000000000000", last, last, math.Ldexp(1, -64)},
		{Span{4, 7}, "0x0000000000000004-0x0000000000000007", 6, 5, math.Ldexp(3, -64)},
		{Span{4, 8}, "0x0000000000000004-0x0000000000000008", 7, 6, math.Ldexp(4, -64)},
	} {
		require.True(t, c.span.Valid())
		require.Equal(t, c.text, c.span.String())
		require.Equal(t, c.last, c.span.Last(), c.text)
		require.Equal(t, c.mid, c.span.Mid(), c.text)
		require.Equal(t, c.width, c.span.Width(), c.text)
	}
	require.False(t, Span{5, 5}.Valid())
	require.False(t, Span{6, 5}.Valid())
}

// A split gives two valid parts that hold exactly the positions of the whole, and merging them gives it back.
func TestSplitAndMerge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := genSpan().Draw(t, "span")
		p := rapid.OneOf(rapid.Uint64(), rapid.Just(s.Start), rapid.Just(s.Last()), rapid.Just(s.Mid())).Draw(t, "point")
		left, right, ok := s.SplitAt(p)
		if want := s.Contains(p) && p != s.Start; ok != want {
			t.Fatalf("split %s at %#x: ok = %v", s, p, ok)
		}
		if !ok {
			return
		}
		h := rapid.OneOf(rapid.Uint64(), rapid.SampledFrom([]uint64{p - 1, p, s.Start, s.Last()})).Draw(t, "hash")
		if in := left.Contains(h) != right.Contains(h); in != s.Contains(h) || left.Contains(h) && h >= p {
			t.Fatalf("%#x lies in %s: %v; in %s: %v, in %s: %v", h, s, s.Contains(h), left, left.Contains(h), right, right.Contains(h))
		}
		for _, pair := range [][2]Span{{left, right}, {right, left}} {
			if m, ok := Merge(pair[0], pair[1]); !ok || m != s || !Buddies(pair[0], pair[1]) {
				t.Fatalf("merge %s %s = %s, %v", pair[0], pair[1], m, ok)
			}
		}
		if Overlaps(left, right) || !Overlaps(left, s) || !s.Covers(left) || left.Covers(s) {
			t.Fatalf("%s and %s of %s", left, right, s)
		}
	})
}

func TestHalvesAreEvenToOnePosition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := genSpan().Draw(t, "span")
		left, right, ok := s.Halves()
		if !ok {
			if n, bounded := s.Size(); !bounded || n != 1 {
				t.Fatalf("cannot halve %s", s)
			}
			return
		}
		l, _ := left.Size()
		r, _ := right.Size()
		if r-l > 1 {
			t.Fatalf("halves of %s: %d and %d", s, l, r)
		}
	})
}

func TestMergeRefusesWhatDoesNotTouch(t *testing.T) {
	for _, pair := range [][2]Span{
		{{0, 4}, {5, 8}},             // a gap
		{{0, 5}, {4, 8}},             // an overlap
		{{0, 4}, {0, 4}},             // the same
		{{8, 0}, {0, 4}},             // they touch only around the end of the space
		{Full, Full},                 //
		{Full, {0, 4}},               //
		{{0, 4}, {4, 4}},             // an empty one
		{{1 << 63, 0}, {0, 1}},       // around the end again
		{{1 << 63, 0}, {1 << 63, 0}}, //
	} {
		_, ok := Merge(pair[0], pair[1])
		require.False(t, ok, "%s %s", pair[0], pair[1])
		require.False(t, Buddies(pair[1], pair[0]))
	}
}

func TestTilesCover(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 300).Draw(t, "n")
		spans := Tile(n)
		if err := CheckCover(spans); err != nil || len(spans) != n {
			t.Fatal(err)
		}
		var lo, hi uint64 = last, 0
		for _, s := range spans {
			size := s.Last() - s.Start
			lo, hi = min(lo, size), max(hi, size)
		}
		if hi-lo > 1 {
			t.Fatalf("%d tiles of %d to %d positions", n, lo, hi)
		}
	})
	require.Equal(t, []Span{{0, 1 << 62}, {1 << 62, 1 << 63}, {1 << 63, 3 << 62}, {3 << 62, 0}}, Tile(4))
	require.Nil(t, Tile(0))
}

// Splitting and merging at random never breaks the cover; taking one span away, or adding one, always does.
func TestCoverUnderSplitsAndMerges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spans := []Span{Full}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			i := rapid.IntRange(0, len(spans)-1).Draw(t, "span")
			if rapid.Bool().Draw(t, "merge") && len(spans) > 1 {
				j := rapid.IntRange(0, len(spans)-1).Draw(t, "other")
				if m, ok := Merge(spans[i], spans[j]); ok {
					spans[i] = m
					spans = slices.Delete(spans, j, j+1)
				}
			} else if l, r, ok := spans[i].Halves(); ok {
				spans[i] = l
				spans = append(spans, r)
			}
			if err := CheckCover(spans); err != nil {
				t.Fatal(err)
			}
		}
		i := rapid.IntRange(0, len(spans)-1).Draw(t, "victim")
		if err := CheckCover(slices.Concat(spans[:i], spans[i+1:])); err == nil {
			t.Fatalf("a hole of %s was not found", spans[i])
		}
		if err := CheckCover(append(spans, spans[i])); err == nil {
			t.Fatalf("%s twice was not found", spans[i])
		}
	})
}

func TestCheckCoverSaysWhere(t *testing.T) {
	for _, c := range []struct {
		spans []Span
		want  string
	}{
		{nil, "no span"},
		{[]Span{{1, 0}}, "nothing covers 0x0000000000000000-0x0000000000000001"},
		{[]Span{{0, 1 << 63}}, "nothing covers 0x8000000000000000-0x10000000000000000"},
		{[]Span{{0, 8}, {9, 0}}, "nothing covers 0x0000000000000008-0x0000000000000009"},
		{[]Span{{0, 8}, {7, 0}}, "overlaps"},
		{[]Span{Full, Full}, "overlaps"},
		{[]Span{{0, 8}, {8, 8}, {8, 0}}, "empty"},
	} {
		require.ErrorContains(t, CheckCover(c.spans), c.want)
	}
}

func TestTileAt(t *testing.T) {
	spans, err := TileAt([]Hash{1 << 62, 1 << 63})
	require.NoError(t, err)
	require.Equal(t, []Span{{0, 1 << 62}, {1 << 62, 1 << 63}, {1 << 63, 0}}, spans)
	spans, err = TileAt(nil)
	require.NoError(t, err)
	require.Equal(t, []Span{Full}, spans)
	for _, points := range [][]Hash{{0}, {5, 5}, {9, 5}} {
		_, err := TileAt(points)
		require.ErrorIs(t, err, base.CodeInvalidArgument)
	}
}

func TestParseHash(t *testing.T) {
	for text, want := range map[string]Hash{
		"0x4": 1 << 62, "0x40": 1 << 62, "0x4000000000000000": 1 << 62, "0X80": 1 << 63, "0x0": 0, "0xffffffffffffffff": last,
	} {
		got, err := ParseHash(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "0x", "40", "0x10000000000000000", "0xg", "0x-1", "-0x1"} {
		_, err := ParseHash(text)
		require.ErrorIs(t, err, base.CodeInvalidArgument, text)
	}
	rapid.Check(t, func(t *rapid.T) {
		h := rapid.Uint64().Draw(t, "hash")
		if got, err := ParseHash(FormatHash(h)); err != nil || got != h {
			t.Fatal(got, err)
		}
	})
}
