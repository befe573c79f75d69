package store

import (
	"math/rand"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
)

func usedOf(t *testing.T, m *vfs.Mem) int64 {
	free, total, err := m.Free("data")
	require.NoError(t, err)
	return total - free
}

// A broker that is killed, or stopped by somebody who wonders about the full disk, comes back on it: it reads, drops and
// goes on when there is space. Others have taken the last byte meanwhile, so only the reserve is left to start with.
func TestAStartOnAFullDisk(t *testing.T) {
	for name, o := range map[string]struct{ reserve, dirty int64 }{
		"with a reserve":                     {512 << 10, 0},
		"with a reserve, much to be written": {512 << 10, 256 << 10},
		"the reserve is less than it takes":  {32 << 10, 256 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewMem()
			opts := small()
			opts.ReserveBytes = o.reserve
			n := start(t, mem, opts) // no flusher: all that is written is in the log alone
			n.openSegment(specOf(1, 0, 0))
			n.openSegment(SegmentSpec{Ref: refOf(2), Segment: 2, Epoch: 1, LeaderHere: true})
			want := n.put(1, 10, 40_000)
			other := n.put(2, 10, 40_000)
			wait(t, func(done func(error)) error { return n.Seal(1, 10, base.CauseDataPressure, done) })
			wait(t, func(done func(error)) error { return n.Seal(2, 10, base.CauseDataPressure, done) })

			disk := mem.CrashClone(rand.New(rand.NewSource(1)), 0)
			disk.SetCapacity(usedOf(t, disk))
			opts.DirtyBytes = o.dirty
			n = start(t, disk, opts)
			for range 3 { // again and again: a start leaves nothing behind that the next one has no room for
				sameBytes(t, want, n.mustRead(refOf(1), 0, 1<<20))
				sameBytes(t, other, n.mustRead(refOf(2), 0, 1<<20))
				require.True(t, n.Stats().DiskFull)
				wait(t, func(done func(error)) error { return n.FenceAllLed(done) })
				disk.SetCapacity(usedOf(t, disk) + 3*4096) // others take what it has left, but for a few pages
				n.restart()
			}
			require.NoError(t, n.Start(t.Context()))
			wait(t, func(done func(error)) error { return n.DropSegments(refOf(2), []base.SegmentID{2}, done) })

			disk.SetCapacity(1 << 30)
			n.openSegment(SegmentSpec{Ref: refOf(3), Segment: 3, Epoch: 1, LeaderHere: true})
			at := int64(1 << 40)
			require.Eventually(t, func() bool { // the flusher looks at the disk when appends ask for it
				b := makeBatch(1, 1, 0, 1, 5000, -1, 0)
				at += 1000
				b.AppendMs = at
				return n.appendWait(3, b) == nil
			}, patience, time.Millisecond)
			require.NoError(t, n.checkpoint())
			require.True(t, n.space.reserve.Held())
			n.restart()
			sameBytes(t, want, n.mustRead(refOf(1), 0, 1<<20))
			require.Empty(t, n.fatal)
		})
	}
}
