package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
)

func TestRangeStateSurvives(t *testing.T) {
	n := start(t, vfs.NewMem(), small())
	n.openSegment(specOf(1, 0, 0))
	for i := range 5 {
		b := makeBatch(1, 0, int64(i), 1, 10, 77, int32(i))
		require.NoError(t, n.appendWait(1, b))
		if i < 3 {
			n.Publish(1, b.Header.End())
		}
	}
	check := func(seg base.SegmentID, next int32) {
		st, err := n.RangeState(seg)
		require.NoError(t, err)
		_, seq, ok := st.Producer(77)
		require.True(t, ok)
		require.Equal(t, next, seq)
	}
	check(1, 5)
	n.restart()
	check(1, 5)
	wait(t, func(done func(error)) error { return n.Seal(1, 4, base.CauseRecovery, done) })
	check(1, 4)
	n.restart()
	check(1, 4)
	st, err := n.RangeState(1)
	require.NoError(t, err)
	next := specOf(2, 1, 4)
	next.State = st.Encode()
	n.openSegment(next)
	check(2, 4)
	n.restart()
	check(2, 4)
	require.NoError(t, n.checkpoint())
	n.restart()
	check(2, 4)
	_, err = n.RangeState(3)
	require.ErrorIs(t, err, base.CodeSegmentNotFound)
}

// Of a segment that is being written the state is in memory; of one that has ended, once a checkpoint has been, on the disk
// alone. Both are the same.
func TestAStateThatIsHeldNeedsNoDisk(t *testing.T) {
	n := start(t, vfs.NewMem(), small())
	n.openSegment(specOf(1, 0, 0))
	_, held := n.HeldState(2)
	require.False(t, held, "it is not here")
	for i := range 3 {
		require.NoError(t, n.appendWait(1, makeBatch(1, 0, int64(i), 1, 10, 77, int32(i))))
	}
	before, held := n.HeldState(1)
	require.True(t, held)
	require.NoError(t, n.checkpoint())
	_, held = n.HeldState(1)
	require.True(t, held, "it goes on")
	wait(t, func(done func(error)) error { return n.Seal(1, 3, base.CauseAge, done) })
	require.Eventually(t, func() bool {
		require.NoError(t, n.checkpoint())
		_, held := n.HeldState(1)
		return !held
	}, 10*time.Second, time.Millisecond)
	after, err := n.RangeState(1)
	require.NoError(t, err)
	before.Commit(3)
	require.Equal(t, before.Checksum(), after.Checksum())
}
