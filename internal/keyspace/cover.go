package keyspace

import (
	"cmp"
	"fmt"
	"slices"
)

// CheckCover reports why the spans do not tile the key space exactly: the first gap or overlap in the order of
// their positions. The order of the argument does not matter.
func CheckCover(spans []Span) error {
	if len(spans) == 0 {
		return fmt.Errorf("no span covers the key space")
	}
	sorted := slices.SortedFunc(slices.Values(spans), func(a, b Span) int { return cmp.Compare(a.Start, b.Start) })
	var next Hash // the first position that nothing covers yet
	for i, s := range sorted {
		switch {
		case !s.Valid():
			return fmt.Errorf("span %s is empty", s)
		case i > 0 && next == 0:
			return fmt.Errorf("span %s overlaps %s", s, sorted[i-1])
		case s.Start > next:
			return fmt.Errorf("nothing covers %s", Span{next, s.Start})
		case s.Start < next:
			return fmt.Errorf("span %s overlaps %s", s, sorted[i-1])
		}
		next = s.End
	}
	if next != 0 {
		return fmt.Errorf("nothing covers %s", Span{next, 0})
	}
	return nil
}
