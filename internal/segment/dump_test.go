package segment

import (
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/vfs"
)

// dumped is a saved file of 300 batches.
func dumped(t *testing.T) (*vfs.Mem, []*Entry, string) {
	rng := rand.New(rand.NewPCG(3, 3))
	disk := newDisk(t)
	entries := makeEntries(rng, testSpec, 300, 2000)
	f := openFile(t, disk, Extent{End: testSpec.Base})
	fill(t, f, entries, rng, true)
	require.NoError(t, f.Sync())
	return disk, entries, FileName("d", testSpec)
}

func TestDumpShowsEveryBatch(t *testing.T) {
	disk, entries, path := dumped(t)
	for _, suffix := range []string{LogSuffix, IndexSuffix, TimeSuffix, ""} {
		n := 0
		info, err := Dump(disk, path+suffix, func(d Dumped) error {
			require.Equal(t, entries[n].Bytes, d.Bytes)
			require.Empty(t, d.Problem)
			n++
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, len(entries), n)
		require.Empty(t, info.Problems)
		require.Equal(t, extentOf(entries), Extent{End: info.End, Pos: info.Bytes})
		require.Equal(t, info.Bytes, info.Summed)
		require.Equal(t, info.End-testSpec.Base, info.Records)
		require.Equal(t, testSpec, Spec{Segment: info.Segment, Epoch: info.Epoch, Base: info.Base})
		require.NotZero(t, info.IndexEntries)
		require.NotZero(t, info.TimeEntries)
		require.Zero(t, info.Trailing)
	}
}

// A byte that has changed is named, and what lies behind it is shown all the same.
func TestDumpFindsDamage(t *testing.T) {
	clean, entries, path := dumped(t)
	size := extentOf(entries).Pos
	rng := rand.New(rand.NewPCG(8, 8))
	for range 60 {
		disk := clean.Snapshot()
		h, err := disk.OpenFile(path+LogSuffix, os.O_RDWR, 0)
		require.NoError(t, err)
		at := rng.Int64N(size)
		b := make([]byte, 1)
		_, err = h.ReadAt(b, at)
		require.NoError(t, err)
		b[0] ^= 1 << rng.IntN(8)
		_, err = h.WriteAt(b, at)
		require.NoError(t, err)
		require.NoError(t, h.Close())
		info, err := Dump(disk, path, nil)
		require.NoError(t, err)
		require.NotEmpty(t, info.Problems)
		require.Equal(t, []int64{at / BlockBytes}, info.BadBlocks)
		require.GreaterOrEqual(t, info.Batches, int64(len(entries)-60), "the walk goes on behind it")
	}
}

// One damaged batch is one problem of the batches: those behind it follow all the same.
func TestDumpNamesADamagedBatchOnce(t *testing.T) {
	disk, entries, path := dumped(t)
	b, err := vfs.ReadFile(disk, path+LogSuffix)
	require.NoError(t, err)
	at := 0
	for _, e := range entries[:100] {
		at += len(e.Bytes)
	}
	for _, e := range entries[100:102] { // two in a row, behind their headers
		b[at+len(e.Bytes)-1] ^= 1
		at += len(e.Bytes)
	}
	require.NoError(t, vfs.WriteFileAtomic(disk, path+LogSuffix, b, 0o600))
	bad := 0
	info, err := Dump(disk, path, func(d Dumped) error {
		if d.Problem != "" {
			bad++
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, 2, bad)
	require.Len(t, info.Problems, 2+len(info.BadBlocks))
	require.Equal(t, extentOf(entries).End, info.End)
}

// What is missing at the end of a file is said once, however many blocks that is.
func TestDumpOfAShortFile(t *testing.T) {
	disk, _, path := dumped(t)
	b, err := vfs.ReadFile(disk, path+LogSuffix)
	require.NoError(t, err)
	require.NoError(t, vfs.WriteFileAtomic(disk, path+LogSuffix, b[:BlockBytes+BlockBytes/2], 0o600))
	info, err := Dump(disk, path, nil)
	require.NoError(t, err)
	require.Greater(t, len(info.BadBlocks), 2)
	require.LessOrEqual(t, len(info.Problems), 2, "the batch that is cut, and the rest")
	require.Contains(t, info.Problems[len(info.Problems)-1], "the rest is missing")
}

// What no checksum of a batch covers is held against the batches before it, also where there is no index to tell.
func TestDumpFindsABatchOfAnotherSegment(t *testing.T) {
	disk, entries, path := dumped(t)
	require.NoError(t, disk.Remove(path+IndexSuffix))
	b, err := vfs.ReadFile(disk, path+LogSuffix)
	require.NoError(t, err)
	at := len(entries[0].Bytes)
	header.Patch(b[at:], entries[1].Base, int32(testSpec.Epoch)+1)
	require.NoError(t, vfs.WriteFileAtomic(disk, path+LogSuffix, b, 0o600))
	info, err := Dump(disk, path, func(d Dumped) error {
		require.Equal(t, d.Pos == int64(at), d.Problem != "")
		return nil
	})
	require.NoError(t, err)
	require.Len(t, info.Problems, 1)
	require.Contains(t, info.Problems[0], "epoch")
}

func TestDumpSurvivesAnything(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	clean, _, path := dumped(t)
	for range 100 {
		disk := clean.Snapshot()
		for _, suffix := range []string{LogSuffix, IndexSuffix, TimeSuffix} {
			b, err := vfs.ReadFile(disk, path+suffix)
			require.NoError(t, err)
			for range rng.IntN(20) {
				b[rng.IntN(len(b))] = byte(rng.Uint32())
			}
			b = b[:rng.IntN(len(b)+1)]
			require.NoError(t, vfs.WriteFileAtomic(disk, path+suffix, b, 0o600))
		}
		info, err := Dump(disk, path, nil)
		require.NoError(t, err)
		require.LessOrEqual(t, len(info.Problems), maxDumpProblems)
	}
	_, err := Dump(newDisk(t), "d/nonsense", nil)
	require.ErrorIs(t, err, base.CodeInvalidArgument)
	_, err = Dump(newDisk(t), "d/1-2", nil)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestBatchesGivesBackWhatWasAppended(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	entries := makeEntries(rng, testSpec, 100, 3000)
	f := openFile(t, newDisk(t), Extent{End: testSpec.Base})
	fill(t, f, entries, rng, true)
	end := extentOf(entries[:90])
	n, pos := 0, int64(0)
	for off := testSpec.Base; off < end.End; {
		got, left, err := f.Batches(off, end.End, 1+rng.IntN(20_000))
		require.NoError(t, err)
		require.Equal(t, end.Pos-pos, left)
		for _, b := range got {
			require.Equal(t, entries[n].Bytes, b.Bytes)
			require.GreaterOrEqual(t, b.AppendMs, entries[n].AppendMs)
			off, pos = b.Header.End(), pos+int64(len(b.Bytes))
			n++
		}
	}
	require.Equal(t, 90, n)
	_, _, err := f.Batches(entries[3].End-1, end.End, 1)
	if entries[3].End-1 != entries[3].Base {
		require.ErrorIs(t, err, base.CodeInvalidArgument)
	}
}
