package planner

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

func TestStarts(t *testing.T) {
	const minute = 60_000
	for name, c := range map[string]struct {
		seen     [][2]int64 // boot, at
		restarts int
		settled  int64
	}{
		"never seen":                          {nil, 0, 0},
		"met":                                 {[][2]int64{{7, 1000}}, 0, 11_000},
		"seen again":                          {[][2]int64{{7, 1000}, {7, 5000}}, 0, 11_000},
		"an older start is no news":           {[][2]int64{{7, 1000}, {6, 5000}}, 0, 11_000},
		"started again":                       {[][2]int64{{7, 0}, {8, minute}}, 1, minute + 20_000},
		"and again":                           {[][2]int64{{7, 0}, {8, minute}, {9, 2 * minute}}, 2, 2*minute + 40_000},
		"starts that nobody saw":              {[][2]int64{{7, 0}, {10, minute}}, 3, minute + 80_000},
		"long ago":                            {[][2]int64{{7, 0}, {8, 11 * minute}}, 0, 11*minute + 10_000},
		"one long ago, one a moment":          {[][2]int64{{7, 0}, {8, 9 * minute}, {9, 12 * minute}}, 1, 12*minute + 20_000},
		"it does not grow for ever":           {[][2]int64{{7, 0}, {1000, 1}}, 6, 1 + 640_000},
		"as many as there are, one at a time": {[][2]int64{{1, 0}, {2, 1}, {3, 2}, {4, 3}, {5, 4}, {6, 5}, {7, 6}, {8, 7}, {9, 8}}, 6, 8 + 640_000},
	} {
		var s Starts
		for _, seen := range c.seen {
			s.Saw("n1", uint64(seen[0]), seen[1])
		}
		restarts, settled := s.Of("n1")
		require.Equal(t, c.restarts, restarts, name)
		require.Equal(t, c.settled, settled, name)
	}
	var s Starts
	s.Saw("n1", 1, 0)
	s.Saw("n1", 2, 0)
	s.Forget(func(id base.NodeID) bool { return id == "n1" })
	restarts, _ := s.Of("n1")
	require.Zero(t, restarts)
}
