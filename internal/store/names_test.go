package store

import (
	"fmt"
	oldrand "math/rand"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/vfs"
)

// newRanges opens n ranges of as many topics and writes one batch to each.
func newRanges(n *node, count int) {
	for i := range count {
		seg := base.SegmentID(i + 1)
		spec := specOf(seg, 0, 0)
		spec.Ref = base.RangeRef{Topic: base.TopicID{byte(i), byte(i >> 8), 1}, Range: 3}
		n.openSegment(spec)
		require.NoError(n.t, n.appendWait(seg, makeBatch(uint64(i), 0, 0, 1, 50, 9, 0)))
		n.Publish(seg, 1)
	}
}

// powerFailure is what a disk that keeps nothing unsynced is left with.
func powerFailure(mem *vfs.Mem) *vfs.Mem { return mem.CrashClone(oldrand.New(oldrand.NewSource(1)), 0) }

// New directories are synced with the checkpoint, not one by one as they are made.
func TestNamesOfNewRangesAreSyncedTogether(t *testing.T) {
	for _, count := range []int{3, 200} {
		t.Run(fmt.Sprint(count), func(t *testing.T) {
			mem := vfs.NewMem()
			syncs := 0
			fault := vfs.NewFault(mem, vfs.Rule{Ops: vfs.OpSyncDir | vfs.OpSyncFS, Before: func(vfs.Call) { syncs++ }})
			n := start(t, fault, small())
			newRanges(n, count)
			names := func(fs vfs.FS) int {
				list, err := fs.ReadDir("data/topics")
				require.NoError(t, err)
				return len(list) - 1 // the stamp
			}
			require.NoError(t, n.flushAll())
			require.Equal(t, count, names(mem))
			require.Zero(t, names(powerFailure(mem)), "nothing was synced yet")
			syncs = 0
			require.NoError(t, n.checkpoint())
			require.Equal(t, count, names(powerFailure(mem)))
			// topics/, each topic's and each range's directory, and the catalogue's; or syncfs a few times.
			require.LessOrEqual(t, syncs, min(2*count+2, 64))

			syncs = 0
			require.NoError(t, n.appendWait(1, makeBatch(1, 0, 1, 1, 50, header.NoProducer, 0)))
			require.NoError(t, n.checkpoint())
			require.Equal(t, 1, syncs, "no new name but the catalogue's")
		})
	}
}

// A process that was killed leaves directories that the next one finds, though the disk may not have them yet.
func TestDirectoriesOfAKilledProcessAreSyncedByTheNext(t *testing.T) {
	for _, count := range []int{3, 200} {
		t.Run(fmt.Sprint(count), func(t *testing.T) {
			mem := vfs.NewMem()
			n := start(t, mem, small())
			newRanges(n, count)
			require.NoError(t, n.flushAll())
			killed := mem.Snapshot()
			n2 := start(t, killed, small())
			require.NoError(t, n2.checkpoint())
			n3 := start(t, powerFailure(killed), small())
			require.Empty(t, n3.Recovery().Damaged)
			require.Empty(t, n3.Recovery().Quarantined)
			require.Zero(t, n3.Recovery().Batches, "all of it is in the files")
			for _, i := range n3.All() {
				require.Equal(t, int64(1), i.DurableEnd)
				st, err := n3.RangeState(i.Segment)
				require.NoError(t, err)
				require.Equal(t, int64(1), st.End())
			}
			require.Len(t, n3.All(), count)
		})
	}
}
