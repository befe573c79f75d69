package keymap_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/tui/keymap"
)

func TestEveryKeyMeansWhatTheTableSays(t *testing.T) {
	for _, line := range keymap.All() {
		require.NotEqual(t, keymap.None, line.Action)
		require.NotEmpty(t, line.Keys)
		for _, key := range line.Keys {
			require.Equal(t, line.Action, keymap.Lookup(key), key)
		}
		require.Equal(t, line, line.Action.Key())
	}
	require.Equal(t, keymap.None, keymap.Lookup("ctrl+alt+shift+f19"))
	require.Equal(t, keymap.Key{}, keymap.Action(255).Key())
}

func TestEveryActionHasAKey(t *testing.T) {
	for a := keymap.None + 1; a <= keymap.Quit; a++ {
		require.NotEmpty(t, a.Key().Keys, "action %d", a)
	}
}

func TestHelpShowsEveryGroup(t *testing.T) {
	lines := 0
	for _, g := range keymap.Groups() {
		require.NotEmpty(t, keymap.Lines(g), g)
		lines += len(keymap.Lines(g))
		for _, k := range keymap.Lines(g) {
			require.NotEmpty(t, k.Label)
		}
	}
	for _, k := range keymap.All() {
		if k.Text != "" {
			lines--
		}
	}
	require.Zero(t, lines, "a line is in no group")
}

func TestViewsAndHints(t *testing.T) {
	require.Equal(t, 1, keymap.Lookup("1").View())
	require.Equal(t, 9, keymap.Lookup("9").View())
	require.Equal(t, 0, keymap.Lookup("q").View())
	require.Equal(t, keymap.Hint{Key: "q", Text: "quit"}, keymap.Quit.Hint())
	require.Equal(t, keymap.Hint{Key: "⏎", Text: "segments"}, keymap.Open.With("segments"))
}
