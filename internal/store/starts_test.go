package store

import (
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
)

// A node that is killed again and again, each time before it has written much, does not fill its disk: each start begins
// a file of the log, and lets go of those of earlier ones.
func TestManyStartsDoNotFillTheDisk(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	disk := vfs.NewMem()
	n := start(t, disk, small())
	want := make(map[base.RangeRef][]byte)
	for i := range 30 {
		spec := specOf(base.SegmentID(i+1), 0, 0)
		spec.Ref = refOf(base.RangeID(i + 1))
		n.openSegment(spec)
		want[spec.Ref] = n.put(spec.Segment, 1, 100)
		disk = disk.CrashClone(rng, rng.Float64())
		n.stop() // of the old disk, which is gone
		n.fs = disk
		require.NoError(t, n.start())
		require.LessOrEqual(t, n.Stats().WAL.Files, 3)
		for j := range i + 1 {
			n.Publish(base.SegmentID(j+1), 1)
		}
		for ref, b := range want {
			sameBytes(t, b, n.mustRead(ref, 0, 1<<20))
		}
	}
}
