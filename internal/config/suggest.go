package config

import (
	"strings"

	"github.com/eastguard/eastguard/internal/base"
)

// nearest is the key that a mistyped one most likely meant: at most two edits away, or the same words joined
// differently (client-port, clientPort).
func nearest(typed string) (string, bool) {
	const maxTypos = 2
	best, least := "", maxTypos+1
	for _, s := range settings {
		if plain(typed) == plain(s.Key) {
			return s.Key, true
		}
		if d := base.Typos(typed, s.Key, maxTypos); d < least {
			best, least = s.Key, d
		}
	}
	return best, best != ""
}

func plain(s string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(s))
}
