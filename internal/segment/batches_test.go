package segment

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/vfs"
)

var testSpec = Spec{Segment: 7, Epoch: 3, Base: 1000}

// makeEntry builds a batch that Check accepts; its body is random, only its header is ever looked at.
func makeEntry(rng *rand.Rand, spec Spec, base int64, records, body int, ms int64) *Entry {
	b := make([]byte, header.Size+body)
	for i := header.Size; i < len(b); i++ {
		b[i] = byte(rng.Uint32())
	}
	header.Header{
		BaseOffset: base, Length: int32(len(b) - 12), Epoch: int32(spec.Epoch), Magic: header.Magic,
		LastOffsetDelta: int32(records - 1), Records: int32(records),
		FirstTimestamp: ms, MaxTimestamp: ms, ProducerID: header.NoProducer, ProducerEpoch: -1, BaseSequence: -1,
	}.Put(b)
	header.Seal(b)
	if _, err := header.Check(b, 0); err != nil {
		panic(err)
	}
	lo := rng.Uint64() >> 1
	return &Entry{Bytes: b, Base: base, End: base + int64(records), AppendMs: ms, MaxTimestamp: ms, Lo: lo, Hi: lo + 100}
}

// makeEntries builds n batches of random sizes that follow each other.
func makeEntries(rng *rand.Rand, spec Spec, n, maxBody int) []*Entry {
	entries := make([]*Entry, n)
	base := spec.Base
	for i := range entries {
		entries[i] = makeEntry(rng, spec, base, 1+rng.IntN(5), rng.IntN(maxBody), 10_000+int64(i)*10)
		base = entries[i].End
	}
	return entries
}

func extentOf(entries []*Entry) Extent {
	e := Extent{End: testSpec.Base}
	for _, x := range entries {
		e = Extent{End: x.End, Pos: e.Pos + int64(len(x.Bytes))}
	}
	return e
}

func bytesOf(entries []*Entry) []byte {
	var b []byte
	for _, e := range entries {
		b = append(b, e.Bytes...)
	}
	return b
}

// newDisk returns a file system with the directory d.
func newDisk(t testing.TB) *vfs.Mem {
	fs := vfs.NewMem()
	require.NoError(t, fs.MkdirAll("d", 0o700))
	return fs
}

func openFile(t testing.TB, fs vfs.FS, extent Extent) *File {
	t.Helper()
	f, err := Open(fs, FileName("d", testSpec), testSpec, extent, 0)
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

// readAll reads the file from off to limit, as a consumer does.
func readAll(f *File, off, limit int64, maxBytes int) ([]byte, error) {
	var b []byte
	for off < limit {
		pieces, found, err := f.Read(nil, off, limit, maxBytes, nil)
		if err != nil {
			return b, err
		}
		if found.Next == off {
			break
		}
		for _, p := range pieces {
			part := make([]byte, p.Len)
			if _, err := f.Handle().ReadAt(part, p.Pos); err != nil {
				return b, err
			}
			b = append(b, part...)
		}
		off = found.Next
	}
	return b, nil
}

func fill(t testing.TB, f *File, entries []*Entry, rng *rand.Rand, save bool) {
	t.Helper()
	for len(entries) > 0 {
		n := min(len(entries), 1+rng.IntN(20))
		require.NoError(t, f.Append(entries[:n]))
		entries = entries[n:]
		if save && rng.IntN(3) == 0 {
			require.NoError(t, f.Sync())
		}
	}
}
