package store

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
)

// One of the two directories put back from an earlier copy is refused, whichever it is, and nothing is written then. Both
// from one moment are the node as it was.
func TestAnOlderImageOfOneDirectoryIsRefused(t *testing.T) {
	mem := vfs.NewMem()
	copies := func() *vfs.Mem { // what a copy made while the node is down has
		n := start(t, mem, small())
		n.openSegment(specOf(base.SegmentID(n.id.Boot), 0, 0))
		n.stop()
		return mem.Snapshot()
	}
	first := copies()
	for range 2 {
		copies()
	}
	for _, dir := range []string{"meta", "data"} {
		t.Run(dir, func(t *testing.T) {
			disk := mem.Snapshot()
			require.NoError(t, disk.RemoveAll(dir))
			copyDir(t, first, disk, dir)
			before, err := vfs.ReadFile(disk, "data/identity")
			require.NoError(t, err)
			_, _, err = OpenIdentity(disk, "data", "meta", IdentityRequest{})
			require.ErrorIs(t, err, base.CodePreconditionFailed)
			require.ErrorContains(t, err, dir+" is an older image: it has seen 1 starts")
			namesTheWayOut(t, err)
			after, err := vfs.ReadFile(disk, "data/identity")
			require.NoError(t, err)
			require.Equal(t, before, after)
		})
	}
	start(t, first, small())
}

// A start that ended between the two counts is no older image, again and again; a count that cannot be read is damage.
func TestStartsThatEndBetweenTheCounts(t *testing.T) {
	mem := vfs.NewMem()
	n := start(t, mem, small())
	n.stop()
	for range 3 {
		require.NoError(t, vfs.WriteFileAtomic(mem, "meta/starts", []byte("2\n"), 0o600))
		_, locks, err := OpenIdentity(mem.Snapshot(), "data", "meta", IdentityRequest{})
		require.NoError(t, err)
		require.NoError(t, locks.Close())
	}
	for _, text := range []string{"", "x\n", "-1\n", "1 \n"} {
		require.NoError(t, vfs.WriteFileAtomic(mem, "meta/starts", []byte(text), 0o600))
		_, _, err := OpenIdentity(mem, "data", "meta", IdentityRequest{})
		require.ErrorIs(t, err, base.CodeCorruptData, "%q", text)
		namesTheWayOut(t, err)
	}
	require.NoError(t, mem.Remove("meta/starts"))
	_, _, err := OpenIdentity(mem, "data", "meta", IdentityRequest{})
	require.ErrorIs(t, err, base.CodeCorruptData)
}

func copyDir(t *testing.T, from, to *vfs.Mem, dir string) {
	require.NoError(t, to.MkdirAll(dir, 0o700))
	entries, err := from.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		name := dir + "/" + e.Name
		if e.IsDir {
			copyDir(t, from, to, name)
			continue
		}
		b, err := vfs.ReadFile(from, name)
		require.NoError(t, err)
		require.NoError(t, vfs.WriteFileAtomic(to, name, b, 0o600))
	}
}
