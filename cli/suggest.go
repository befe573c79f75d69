package cli

import "strings"

// maxTypos is how many slips a suggestion forgives.
const maxTypos = 2

// suggest returns the name nearest to word within maxTypos, or the one that word begins, or nothing.
func suggest(word string, names []string) string {
	best, least := "", maxTypos+1
	for _, name := range names {
		d := damerau(strings.ToLower(word), strings.ToLower(name), maxTypos)
		// Two slips in a word of three letters make any other word.
		if d < least && d < len([]rune(name)) && d < len([]rune(word)) {
			best, least = name, d
		}
	}
	if best != "" || len(word) < 3 {
		return best
	}
	for _, name := range names {
		if strings.HasPrefix(name, word) {
			return name
		}
	}
	return ""
}

// damerau is the number of insertions, deletions, substitutions and swaps of neighbours that turn a into b
// (each place edited once), or limit+1 if it takes more.
func damerau(a, b string, limit int) int {
	x, y := []rune(a), []rune(b)
	if len(x)-len(y) > limit || len(y)-len(x) > limit {
		return limit + 1
	}
	before, prev, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		least := i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
			least = min(least, row[j])
		}
		if least > limit+1 {
			return limit + 1
		}
		before, prev, row = prev, row, before
	}
	return min(prev[len(y)], limit+1)
}
