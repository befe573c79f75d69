package store

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
)

// rotten returns the disk with one byte of the log's first file changed, in the middle of what was written.
func rotten(t *testing.T, mem *vfs.Mem, find []byte) *vfs.Mem {
	disk := mem.Snapshot()
	names, err := disk.ReadDir("data/wal")
	require.NoError(t, err)
	for _, e := range names {
		b, err := vfs.ReadFile(disk, "data/wal/"+e.Name)
		require.NoError(t, err)
		if at := indexOf(b, find); at >= 0 {
			b[at+len(find)/2] ^= 0x10
			overwrite(t, disk, "data/wal/"+e.Name, b)
			return disk
		}
	}
	t.Fatal("the batch is not in the log")
	return nil
}

func indexOf(b, find []byte) int {
	for i := 0; i+len(find) <= len(b); i++ {
		if string(b[i:i+len(find)]) == string(find) {
			return i
		}
	}
	return -1
}

// TestRotInTheLogDamagesWhatItMayHaveHeld: a hole in what had been durable is not the log's end. Whoever could have lost
// a batch to it no longer vouches for its extent; what is provably whole still does.
func TestRotInTheLogDamagesWhatItMayHaveHeld(t *testing.T) {
	mem := vfs.NewMem()
	n := start(t, mem, tiny())
	n.openSegment(specOf(1, 0, 0))
	whole := n.put(1, 2, 200)
	wait(t, func(done func(error)) error { return n.Seal(1, 2, base.CauseAge, done) })
	n.openSegment(specOf(2, 1, 2))
	first := n.put(2, 1, 300)
	lost := n.put(2, 1, 301)
	n.put(2, 1, 302)
	idle := specOf(3, 0, 0)
	idle.Ref = refOf(3)
	n.openSegment(idle)
	n.put(3, 1, 10)

	n2 := start(t, rotten(t, mem, lost), tiny())
	require.ElementsMatch(t, []base.SegmentID{2}, n2.Recovery().Damaged, "segment 3 was opened after the hole")
	fence := func(ref base.RangeRef, seg base.SegmentID) (a FenceAnswer) {
		wait(t, func(done func(error)) error {
			return n2.Fence(ref, 5, seg, func(x FenceAnswer, err error) { a = x; done(err) })
		})
		return a
	}
	check := func() {
		sameBytes(t, whole, n2.mustRead(refOf(1), 0, 100)[:len(whole)])
		i, _ := n2.Info(1)
		require.False(t, i.Damaged)
		i, _ = n2.Info(2)
		require.True(t, i.Damaged)
		require.Equal(t, int64(3), i.DamagedAbove)
		require.Equal(t, FenceAnswer{Kind: FenceDamaged, Listed: true, End: 3, DamagedAbove: 3}, fence(refOf(1), 2))
		require.Equal(t, FenceExtent, fence(refOf(3), 3).Kind)
		require.Equal(t, FenceDamaged, fence(refOf(9), 99).Kind, "its listing may be among what was lost")
	}
	check()
	n2.restart()
	check()
	wait(t, func(done func(error)) error { return n2.Seal(2, 3, base.CauseOperator, done) })
	sameBytes(t, append(whole, first...), n2.mustRead(refOf(1), 0, 100))
}

// TestABatchThatTheFullDiskRefusedMakesTheRestVoid: what was queued behind it was never acked, and does not look like
// damage afterwards.
func TestABatchThatTheFullDiskRefusedMakesTheRestVoid(t *testing.T) {
	mem := vfs.NewMem()
	o := tiny()
	n := start(t, mem, o)
	n.openSegment(specOf(1, 0, 0))
	want := n.put(1, 1, 100)
	n.space.headroom = -1 << 40 // the look at the disk must not refuse it first
	mem.SetCapacity(0)
	var acked atomic.Int64
	var refused error
	for off := int64(1); ; off++ {
		b := makeBatch(1, 0, off, 1, 3000, -1, 0)
		if err := n.appendWait(1, b); err != nil {
			refused = err
			break
		}
		want = append(want, b.Bytes...)
		acked.Store(off + 1)
	}
	require.ErrorIs(t, refused, base.CodeDiskFull)
	mem.SetCapacity(1 << 30)
	b := makeBatch(1, 0, acked.Load()+1, 1, 10, -1, 0)
	require.ErrorIs(t, n.appendWait(1, b), base.CodeDiskFull, "the segment has a hole and takes no more")
	n2 := start(t, mem.Snapshot(), o)
	require.Empty(t, n2.Recovery().Damaged)
	i, _ := n2.Info(1)
	require.GreaterOrEqual(t, i.DurableEnd, acked.Load())
	wait(t, func(done func(error)) error { return n2.Seal(1, i.DurableEnd, base.CauseRecovery, done) })
	got := n2.mustRead(refOf(1), 0, 1<<20)
	sameBytes(t, want, got[:len(want)])
}
