package config

import "strings"

// nearest is the key that a mistyped one most likely meant: at most two edits away, or the same words joined
// differently (client-port, clientPort).
func nearest(typed string) (string, bool) {
	best, bestDistance := "", 3
	for _, s := range settings {
		if plain(typed) == plain(s.Key) {
			return s.Key, true
		}
		if d := distance(typed, s.Key); d < bestDistance {
			best, bestDistance = s.Key, d
		}
	}
	return best, best != ""
}

func plain(s string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(s))
}

// distance counts the insertions, deletions, replacements and swaps of neighbours between a and b (optimal
// string alignment). A far too long a is not worth the table.
func distance(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	var before []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := make([]int, len(b)+1)
		next[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next[j] = min(row[j]+1, next[j-1]+1, row[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
