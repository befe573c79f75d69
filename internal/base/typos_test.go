package base

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTypos(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"a", "", 1},
		{"", "ab", 2},
		{"abc", "abc", 0},
		{"abc", "acb", 1},
		{"abc", "abd", 1},
		{"abcd", "badc", 2},
		{"racks", "rack", 1},
		{"client_prot", "client_port", 1},
		{"shards", "cards", 2},
		{"日本", "本日", 1},
		{"abc", "xyz", 3},
		{"abcdef", "a", 3},
		{"abcdefgh", "", 3},
	} {
		require.Equal(t, tc.want, Typos(tc.a, tc.b, 2), "%q %q", tc.a, tc.b)
		require.Equal(t, tc.want, Typos(tc.b, tc.a, 2), "%q %q", tc.b, tc.a)
	}
}
