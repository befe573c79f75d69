package cli

import (
	"strings"

	"github.com/eastguard/eastguard/internal/base"
)

// maxTypos is how many slips a suggestion forgives.
const maxTypos = 2

// suggest returns the name nearest to word within maxTypos, or the one that word begins, or nothing.
func suggest(word string, names []string) string {
	best, least := "", maxTypos+1
	for _, name := range names {
		d := base.Typos(strings.ToLower(word), strings.ToLower(name), maxTypos)
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
