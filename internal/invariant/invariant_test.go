package invariant

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckPanicsOnlyWhenEnabled(t *testing.T) {
	require.NotPanics(t, func() { Check(true, "never printed") })
	broken := func() { Check(false, "end %d", 7) }
	if Enabled {
		require.PanicsWithValue(t, "invariant broken: end 7", broken)
		return
	}
	require.NotPanics(t, broken)
}

func TestMangleOnlyWhenEnabled(t *testing.T) {
	b := []byte("still in use")
	Mangle(b)
	require.Equal(t, Enabled, !bytes.Equal(b, []byte("still in use")))
}

func TestCheckDoesNotAllocateWhenItHolds(t *testing.T) {
	require.Zero(t, testing.AllocsPerRun(100, func() { Check(true, "constant message") }))
}
