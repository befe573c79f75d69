package segment

import (
	"errors"
	"fmt"
	"io/fs"
	oldrand "math/rand"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/keyspace"
	"github.com/eastguard/eastguard/internal/vfs"
)

func TestFileGivesBackWhatWasAppended(t *testing.T) {
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 1))
		disk := newDisk(t)
		entries := makeEntries(rng, testSpec, 400, []int{10, 300, 9000}[seed%3])
		f := openFile(t, disk, Extent{End: testSpec.Base})
		fill(t, f, entries, rng, true)
		want, e := bytesOf(entries), extentOf(entries)
		require.Equal(t, e, f.Extent())

		check := func(f *File) {
			for _, maxBytes := range []int{1, 5000, 100_000, 1 << 30} {
				got, err := readAll(f, testSpec.Base, e.End, maxBytes)
				require.NoError(t, err)
				require.Equal(t, want, got)
			}
			require.NoError(t, f.Verify())
		}
		check(f)
		require.NoError(t, f.Sync())
		require.False(t, f.unsynced)
		check(openFile(t, disk, e))
	}
}

func TestReadBeginsWithTheBatchThatHoldsTheOffset(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	disk := newDisk(t)
	entries := makeEntries(rng, testSpec, 200, 600)
	f := openFile(t, disk, Extent{End: testSpec.Base})
	fill(t, f, entries, rng, false)
	pos := int64(0)
	for i, e := range entries {
		for off := e.Base; off < e.End; off++ {
			pieces, found, err := f.Read(nil, off, e.End, 1<<20, nil)
			require.NoError(t, err)
			require.Equal(t, []Piece{{pos, int64(len(e.Bytes))}}, pieces, "batch %d", i)
			require.Equal(t, e.End, found.Next)
			// A limit within the batch hides it.
			pieces, found, err = f.Read(nil, off, e.End-1, 1<<20, nil)
			require.NoError(t, err)
			require.Empty(t, pieces)
			require.Equal(t, off, found.Next)
		}
		pos += int64(len(e.Bytes))
	}
	_, _, err := f.Read(nil, testSpec.Base-1, 1<<40, 10, nil)
	require.Error(t, err)
	_, _, err = f.Read(nil, f.Extent().End, 1<<40, 10, nil)
	require.Error(t, err)
}

func TestReadOfASpanSkipsChunksOutsideAndLosesNoBatchInside(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	disk := newDisk(t)
	entries := makeEntries(rng, testSpec, 2000, 600)
	for i, e := range entries { // runs of neighbours, so that whole chunks can be skipped
		e.Lo = uint64(i/100) << 40
		e.Hi = e.Lo + 10
	}
	f := openFile(t, disk, Extent{End: testSpec.Base})
	fill(t, f, entries, rng, false)
	span := keyspace.Span{Start: 5 << 40, End: 6 << 40}
	inside := map[int64]bool{}
	total := 0
	for off, end := testSpec.Base, f.Extent().End; off < end; {
		pieces, found, err := f.Read(nil, off, end, 30_000, &span)
		require.NoError(t, err)
		require.Greater(t, found.Next, off)
		for _, p := range pieces {
			total += int(p.Len)
			at := int64(0)
			for _, e := range entries {
				if at >= p.Pos && at < p.Pos+p.Len {
					inside[e.Base] = true
				}
				at += int64(len(e.Bytes))
			}
		}
		off = found.Next
	}
	want := 0
	for i, e := range entries {
		if i/100 == 5 {
			require.True(t, inside[e.Base])
			want += len(e.Bytes)
		}
	}
	require.Less(t, total, want+3*9000, "whole chunks outside the span are not sent")
}

func TestTimeIndexFindsTheFirstBatchThatReachesATime(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 4))
		disk := newDisk(t)
		entries := makeEntries(rng, testSpec, 300, 2000)
		for _, e := range entries {
			e.MaxTimestamp = rng.Int64N(1000) // in no order at all
			b := e.Bytes
			*e = *retimed(e, e.MaxTimestamp)
			require.Len(rt, e.Bytes, len(b))
		}
		f := openFile(t, disk, Extent{End: testSpec.Base})
		fill(t, f, entries, rng, true)
		for range 50 {
			ms, limit := rng.Int64N(1100), testSpec.Base+rng.Int64N(900)
			var want *Entry
			for _, e := range entries {
				if e.End <= limit && e.MaxTimestamp >= ms {
					want = e
					break
				}
			}
			base, ts, ok, err := f.FirstAtOrAfter(ms, limit)
			require.NoError(rt, err)
			require.Equal(rt, want != nil, ok)
			if want != nil {
				require.Equal(rt, want.Base, base)
				require.Equal(rt, want.MaxTimestamp, ts)
			}
		}
	})
}

func TestReopenAtAnyExtentThatWasSynced(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 5))
	disk := newDisk(t)
	entries := makeEntries(rng, testSpec, 120, 3000)
	f := openFile(t, disk, Extent{End: testSpec.Base})
	for i := 0; i < len(entries); i += 10 {
		require.NoError(t, f.Append(entries[i:i+10]))
		require.NoError(t, f.Sync())
	}
	// A crash can leave the files longer than the catalogue knows: bytes beyond do not count and are written again.
	for n := 0; n <= len(entries); n += 10 {
		clone := disk.CrashClone(oldrand.New(oldrand.NewSource(1)), 1)
		f := openFile(t, clone, extentOf(entries[:n]))
		require.NoError(t, f.Append(entries[n:]))
		require.NoError(t, f.Sync())
		got, err := readAll(openFile(t, clone, extentOf(entries)), testSpec.Base, extentOf(entries).End, 1<<20)
		require.NoError(t, err)
		require.Equal(t, bytesOf(entries), got)
	}
}

func TestIndexesAreRebuiltFromTheFile(t *testing.T) {
	for _, suffixes := range [][]string{{IndexSuffix}, {TimeSuffix}, {IndexSuffix, TimeSuffix}} {
		for _, cut := range []int64{-1, 0, 500} {
			t.Run(fmt.Sprint(suffixes, cut), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(3, 6))
				disk := newDisk(t)
				entries := makeEntries(rng, testSpec, 300, 2000)
				f := openFile(t, disk, Extent{End: testSpec.Base})
				fill(t, f, entries, rng, true)
				require.NoError(t, f.Sync())
				for _, s := range suffixes {
					name := FileName("d", testSpec) + s
					if cut < 0 {
						require.NoError(t, disk.Remove(name))
						continue
					}
					h, err := disk.OpenFile(name, os.O_RDWR, 0)
					require.NoError(t, err)
					require.NoError(t, h.Truncate(cut))
					require.NoError(t, h.Close())
				}
				e := extentOf(entries)
				for range 2 { // the second time from what the first one saved
					f := openFile(t, disk, e)
					got, err := readAll(f, testSpec.Base, e.End, 10_000)
					require.NoError(t, err)
					require.Equal(t, bytesOf(entries), got)
					base, _, ok, err := f.FirstAtOrAfter(entries[100].MaxTimestamp, e.End)
					require.NoError(t, err)
					require.True(t, ok)
					require.Equal(t, entries[100].Base, base)
				}
			})
		}
	}
}

func TestCut(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 7))
	entries := makeEntries(rng, testSpec, 300, 2000)
	for _, keep := range []int{0, 1, 77, 299, 300} {
		disk := newDisk(t)
		f := openFile(t, disk, Extent{End: testSpec.Base})
		fill(t, f, entries, rng, true)
		e := extentOf(entries[:keep])
		require.NoError(t, f.Cut(e.End))
		require.Equal(t, e, f.Extent())
		trimmed, err := f.Trim()
		require.NoError(t, err)
		require.Equal(t, keep < len(entries), trimmed)
		require.NoError(t, f.Sync())
		for _, f := range []*File{f, openFile(t, disk, e)} {
			got, err := readAll(f, testSpec.Base, e.End, 1<<20)
			require.NoError(t, err)
			require.Equal(t, string(bytesOf(entries[:keep])), string(got))
			size, err := f.Handle().Size()
			require.NoError(t, err)
			require.Equal(t, e.Pos, size)
		}
	}
	disk := newDisk(t)
	f := openFile(t, disk, Extent{End: testSpec.Base})
	wide := makeEntry(rng, testSpec, testSpec.Base, 5, 10, 1)
	require.NoError(t, f.Append([]*Entry{wide}))
	require.ErrorIs(t, f.Cut(testSpec.Base+2), base.CodeInvalidArgument)
}

func TestAFailedWriteCanBeRepeated(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 8))
	disk := newDisk(t)
	entries := makeEntries(rng, testSpec, 50, 4000)
	f := openFile(t, disk, Extent{End: testSpec.Base})
	require.NoError(t, f.Append(entries[:10]))
	disk.SetCapacity(extentOf(entries[:10]).Pos + 3000)
	require.Error(t, f.Append(entries[10:]))
	require.Equal(t, extentOf(entries[:10]), f.Extent())
	disk.SetCapacity(1 << 30)
	require.NoError(t, f.Append(entries[10:]))
	got, err := readAll(f, testSpec.Base, f.Extent().End, 1<<20)
	require.NoError(t, err)
	require.Equal(t, bytesOf(entries), got)
}

func TestAppendRefusesAGap(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 9))
	f := openFile(t, newDisk(t), Extent{End: testSpec.Base})
	require.Error(t, f.Append([]*Entry{makeEntry(rng, testSpec, testSpec.Base+1, 1, 1, 1)}))
	require.NoError(t, f.Append(nil))
}

func TestAFileThatIsGoneIsDamage(t *testing.T) {
	_, err := Open(newDisk(t), FileName("d", testSpec), testSpec, Extent{End: testSpec.Base + 1, Pos: 100}, 0)
	var d *DamageError
	require.ErrorAs(t, err, &d)
	require.Equal(t, Extent{End: testSpec.Base}, d.Intact)
	require.ErrorIs(t, err, base.CodeCorruptData)
	require.NotErrorIs(t, err, fs.ErrNotExist)
}

// TestReadersBesideTheWriter is for the race detector: any number of readers, one writer that appends and saves.
func TestReadersBesideTheWriter(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 10))
	entries := makeEntries(rng, testSpec, 3000, 500)
	want := bytesOf(entries)
	f := openFile(t, newDisk(t), Extent{End: testSpec.Base})
	var done atomic.Bool
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for last := false; !last; {
				last = done.Load()
				e := f.Extent()
				got, err := readAll(f, testSpec.Base, e.End, 50_000)
				if err != nil || string(got) != string(want[:e.Pos]) {
					t.Errorf("read up to %+v: %d bytes, %v", e, len(got), err)
					return
				}
			}
		})
	}
	fill(t, f, entries, rng, true)
	done.Store(true)
	wg.Wait()
}

// flipped opens the segment with one bit or a tail of one of its files changed, reads all of it, and demands that nothing
// wrong is ever read: damage is an error, or has no effect.
func flipped(t *testing.T, disk *vfs.Mem, suffix string, entries []*Entry, change func(vfs.File)) {
	name := FileName("d", testSpec) + suffix
	before, err := vfs.ReadFile(disk, name)
	require.NoError(t, err)
	h, err := disk.OpenFile(name, os.O_RDWR, 0)
	require.NoError(t, err)
	change(h)
	defer func() {
		require.NoError(t, h.Truncate(0))
		_, err := h.WriteAt(before, 0)
		require.NoError(t, err)
		require.NoError(t, h.Close())
	}()
	e := extentOf(entries)
	want := bytesOf(entries)
	f, err := Open(disk, FileName("d", testSpec), testSpec, e, 0)
	var d *DamageError
	if errors.As(err, &d) {
		require.Equal(t, LogSuffix, suffix, "%v", err)
		if d.Intact.Pos == 0 {
			return
		}
		e = d.Intact
		f, err = Open(disk, FileName("d", testSpec), testSpec, e, 0)
	}
	require.NoError(t, err)
	defer f.Close()
	for _, x := range entries {
		if x.End > e.End {
			break
		}
		got, err := readAll(f, x.Base, x.End, 1)
		if errors.As(err, &d) {
			require.Equal(t, LogSuffix, suffix)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, x.Bytes, got)
	}
	got, err := readAll(f, testSpec.Base, e.End, 1<<20)
	if !errors.As(err, &d) {
		require.NoError(t, err)
		require.Equal(t, want[:e.Pos], got)
	}
	for _, i := range []int{0, len(entries) / 2} {
		base, _, ok, err := f.FirstAtOrAfter(entries[i].MaxTimestamp, e.End)
		if err == nil && ok {
			require.Equal(t, entries[i].Base, base)
		}
	}
}

func TestEveryFlipAndTruncationIsDetectedOrHarmless(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 11))
	disk := newDisk(t)
	entries := makeEntries(rng, testSpec, 6, 120)
	f := openFile(t, disk, Extent{End: testSpec.Base})
	require.NoError(t, f.Append(entries[:3]))
	require.NoError(t, f.Sync())
	require.NoError(t, f.Append(entries[3:]))
	require.NoError(t, f.Sync())
	for _, suffix := range []string{LogSuffix, IndexSuffix, TimeSuffix} {
		b, err := vfs.ReadFile(disk, FileName("d", testSpec)+suffix)
		require.NoError(t, err)
		for bit := range len(b) * 8 {
			flipped(t, disk, suffix, entries, func(h vfs.File) {
				_, err := h.WriteAt([]byte{b[bit/8] ^ 1<<(bit%8)}, int64(bit/8))
				require.NoError(t, err)
			})
		}
		for n := range b {
			flipped(t, disk, suffix, entries, func(h vfs.File) { require.NoError(t, h.Truncate(int64(n))) })
		}
	}
}

// TestFlipsOfTheFileAreAlwaysDetected: with its sums known, no single bit of the file can change unnoticed, the bytes
// that the batches' own CRCs do not cover included.
func TestFlipsOfTheFileAreAlwaysDetected(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 12))
	disk := newDisk(t)
	entries := makeEntries(rng, testSpec, 4, 100)
	f := openFile(t, disk, Extent{End: testSpec.Base})
	require.NoError(t, f.Append(entries))
	require.NoError(t, f.Sync())
	e := extentOf(entries)
	for bit := range int(e.Pos) * 8 {
		change := func() {
			var b [1]byte
			_, err := f.Handle().ReadAt(b[:], int64(bit/8))
			require.NoError(t, err)
			b[0] ^= 1 << (bit % 8)
			_, err = f.Handle().WriteAt(b[:], int64(bit/8))
			require.NoError(t, err)
		}
		change()
		_, err := readAll(openFile(t, disk, e), testSpec.Base, e.End, 1<<20)
		require.ErrorIs(t, err, base.CodeCorruptData)
		change()
	}
}

func FuzzIndexPages(f *testing.F) {
	rng := rand.New(rand.NewPCG(3, 13))
	entries := makeEntries(rng, testSpec, 40, 900)
	disk := newDisk(f)
	file, err := Open(disk, FileName("d", testSpec), testSpec, Extent{End: testSpec.Base}, 0)
	require.NoError(f, err)
	fill(f, file, entries, rng, true)
	require.NoError(f, file.Sync())
	require.NoError(f, file.Close())
	for _, s := range []string{IndexSuffix, TimeSuffix} {
		b, err := vfs.ReadFile(disk, FileName("d", testSpec)+s)
		require.NoError(f, err)
		f.Add(s == IndexSuffix, b)
	}
	want, e := bytesOf(entries), extentOf(entries)
	f.Fuzz(func(t *testing.T, index bool, b []byte) {
		d := disk.CrashClone(oldrand.New(oldrand.NewSource(1)), 1)
		suffix := TimeSuffix
		if index {
			suffix = IndexSuffix
		}
		// Checksums made right let the fuzzer behind them.
		require.NoError(t, vfs.WriteFileAtomic(d, FileName("d", testSpec)+suffix, resealed(b), 0o600))
		f, err := Open(d, FileName("d", testSpec), testSpec, e, 0)
		if err != nil {
			require.ErrorIs(t, err, base.CodeCorruptData)
			return
		}
		defer f.Close()
		got, err := readAll(f, testSpec.Base, e.End, 5000)
		if err == nil {
			require.Equal(t, want[:len(got)], got)
		}
		_, _, _, _ = f.FirstAtOrAfter(10_100, e.End)
	})
}
