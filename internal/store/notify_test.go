package store

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
)

func TestNotify(t *testing.T) {
	n := start(t, vfs.NewMem(), small())
	n.openSegment(specOf(1, 0, 0))
	var woken atomic.Int32
	wake := func() { woken.Add(1) }
	n.Notify(refOf(9), 0, wake)
	require.Equal(t, int32(1), woken.Swap(0), "an unknown range: look again")
	n.Notify(refOf(1), 0, wake)
	cancel := n.Notify(refOf(1), 0, wake)
	cancel()
	n.Notify(refOf(1), 5, wake)
	n.put(1, 3, 1)
	require.Equal(t, int32(1), woken.Swap(0))
	n.Notify(refOf(1), 2, wake)
	require.Equal(t, int32(1), woken.Swap(0), "at once")
	wait(t, func(done func(error)) error { return n.Seal(1, 3, base.CauseIdle, done) })
	require.Equal(t, int32(1), woken.Swap(0), "the one that waited at 5")
	n.openSegment(specOf(2, 1, 3))
	n.Notify(refOf(1), 3, wake)
	require.Zero(t, woken.Load())
	require.NoError(t, n.Store.Close())
	require.Equal(t, int32(1), woken.Load(), "the end of the store wakes everybody")
}
