package store

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
)

func TestOffsetByTime(t *testing.T) {
	n := start(t, vfs.NewMem(), small())
	n.openSegment(specOf(1, 0, 0))
	for range 30 {
		n.put(1, 1, 5000)
	}
	wait(t, func(done func(error)) error { return n.Seal(1, 30, base.CauseAge, done) })
	n.openSegment(specOf(2, 1, 30))
	for range 30 {
		n.put(2, 1, 5000)
	}
	check := func() {
		for _, want := range []int64{0, 1, 29, 30, 31, 59} {
			off, ts, ok, err := n.OffsetByTime(refOf(1), 5000+want)
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, want, off)
			require.Equal(t, 5000+want, ts)
		}
		off, _, ok, err := n.OffsetByTime(refOf(1), 0)
		require.NoError(t, err)
		require.True(t, ok)
		require.Zero(t, off)
		_, _, ok, err = n.OffsetByTime(refOf(1), 5060)
		require.NoError(t, err)
		require.False(t, ok)
	}
	check()
	require.NoError(t, n.checkpoint())
	check()
	n.put(2, 1, 10)
	n.restart()
	off, _, ok, err := n.OffsetByTime(refOf(1), 5060)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, int64(60), off)
}
