package store

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
)

func TestFence(t *testing.T) {
	n := start(t, vfs.NewMem(), small())
	n.openSegment(specOf(1, 3, 10))
	n.put(1, 4, 10)
	fence := func(epoch base.Epoch, seg base.SegmentID) (a FenceAnswer) {
		wait(t, func(done func(error)) error {
			return n.Fence(refOf(1), epoch, seg, func(x FenceAnswer, err error) { a = x; done(err) })
		})
		return a
	}
	require.Equal(t, FenceAnswer{Kind: FenceExtent, Listed: true, End: 14, Unbroken: true}, fence(2, 1))
	n.put(1, 1, 10)
	require.Equal(t, FenceAnswer{Kind: FenceExtent, Listed: true, End: 15, Unbroken: true}, fence(3, 1))
	require.ErrorIs(t, n.appendWait(1, makeBatch(1, 3, 15, 1, 1, -1, 0)), base.CodeFenced)
	require.Equal(t, FenceAnswer{Kind: FenceExtent}, fence(5, 99), "a segment that was never listed")

	n.restart()
	require.ErrorIs(t, n.appendWait(1, makeBatch(1, 3, 15, 1, 1, -1, 0)), base.CodeFenced)
	require.Equal(t, FenceAnswer{Kind: FenceExtent, Listed: true, End: 15}, fence(3, 1), "not unbroken any more")
	require.ErrorIs(t, n.OpenSegment(specOf(4, 5, 15), nil), base.CodeFenced, "fenced before it was listed")
	n.openSegment(specOf(5, 6, 15))
	require.NoError(t, n.appendWait(5, makeBatch(1, 6, 15, 1, 1, -1, 0)))
}

func TestFenceAllLedCoversEarlierBootsOnly(t *testing.T) {
	n := start(t, vfs.NewMem(), small())
	n.openSegment(specOf(1, 0, 0))
	follower := specOf(2, 0, 0)
	follower.Ref, follower.LeaderHere = refOf(2), false
	n.openSegment(follower)
	n.put(1, 1, 1)
	for range 2 {
		n.restart()
		require.ErrorIs(t, n.appendWait(1, makeBatch(1, 0, 1, 1, 1, -1, 0)), base.CodeFenced)
		wait(t, n.FenceAllLed)
		i, _ := n.Info(1)
		require.True(t, i.Fenced)
		i, _ = n.Info(2)
		require.False(t, i.Fenced)
		require.ErrorIs(t, n.appendWait(2, makeBatch(1, 0, 0, 1, 1, -1, 0)), base.CodeFenced, "a follower's copy is of one start, too")
	}
	i, _ := n.Info(1)
	require.NotEqual(t, n.id.Boot, i.Boot)
}
