package store

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/vfs"
)

// onDisk starts a store with its defaults on the real file system.
func onDisk(b *testing.B) *node {
	b.Helper()
	dir := b.TempDir()
	n := &node{t: b, fs: vfs.OS, fatal: make(chan error, 1)}
	n.o = Options{FS: vfs.OS, DataDir: dir + "/data", ReserveBytes: -1}
	var err error
	n.id, n.locks, err = OpenIdentity(vfs.OS, dir+"/data", dir+"/meta", IdentityRequest{Node: "n1"})
	require.NoError(b, err)
	n.Store, err = Open(n.o, *n.id)
	require.NoError(b, err)
	require.NoError(b, n.Start(context.Background()))
	b.Cleanup(n.stop)
	return n
}

// BenchmarkAppend is the append path from a batch in memory to its fsync, pipelined as producers do.
func BenchmarkAppend(b *testing.B) {
	for _, body := range []int{1 << 10, 16 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dKiB", body>>10), func(b *testing.B) {
			n := onDisk(b)
			n.openSegment(specOf(1, 0, 0))
			batch := makeBatch(1, 0, 0, 10, body, -1, 0)
			var acked atomic.Int64
			done := func(end int64, err error) {
				if err != nil {
					b.Error(err)
				}
				n.Publish(1, end)
				acked.Store(end)
			}
			b.ReportAllocs()
			b.SetBytes(int64(len(batch.Bytes)))
			b.ResetTimer()
			seg, epoch, off, written := base.SegmentID(1), int32(0), int64(0), int64(0)
			for range b.N {
				if written += int64(len(batch.Bytes)); written > 1<<30 {
					for acked.Load() < off {
					}
					wait(b, func(d func(error)) error { return n.Seal(seg, off, base.CauseDataPressure, d) })
					seg, epoch, written = seg+1, epoch+1, 0
					n.openSegment(specOf(seg, base.Epoch(epoch), off))
				}
				x := batch
				x.Bytes = append([]byte(nil), batch.Bytes...) // what arrives in a frame of its own
				header.Patch(x.Bytes, off, epoch)
				x.Header.BaseOffset, x.Header.Epoch = off, epoch
				for {
					err := n.Append(seg, x, done)
					if err == nil {
						break
					}
					if base.CodeOf(err) != base.CodeBusy {
						b.Fatal(err)
					}
				}
				off = x.Header.End()
			}
			for acked.Load() < off {
			}
		})
	}
}

// BenchmarkFloor is what the disk gives at best: 1 MiB appended to a growing file and synced, over and over.
func BenchmarkFloor(b *testing.B) {
	f, err := vfs.OS.OpenFile(b.TempDir()+"/floor", os.O_RDWR|os.O_CREATE, 0o600)
	require.NoError(b, err)
	defer f.Close()
	buf := makeBatch(1, 0, 0, 1, 1<<20, -1, 0).Bytes
	b.SetBytes(int64(len(buf)))
	for i := range b.N {
		if _, err := f.WriteAt(buf, int64(i)*int64(len(buf))); err != nil {
			b.Fatal(err)
		}
		if err := f.SyncData(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAppendAllocs counts what an append allocates beside its bytes: per batch, whatever is in it.
func BenchmarkAppendAllocs(b *testing.B) {
	for _, records := range []int{1, 1000} {
		b.Run(fmt.Sprintf("%drecords", records), func(b *testing.B) {
			n := start(b, vfs.NewMem(), Options{ReserveBytes: -1})
			require.NoError(b, n.Start(context.Background()))
			n.openSegment(specOf(1, 0, 0))
			batch := makeBatch(1, 0, 0, records, 100, -1, 0)
			var acked atomic.Int64
			done := func(end int64, err error) { n.Publish(1, end); acked.Store(end) }
			b.ReportAllocs()
			off := int64(0)
			for range b.N {
				batch.Header.BaseOffset = off
				for n.Append(1, batch, done) != nil {
				}
				off += int64(records)
			}
			for acked.Load() < off {
			}
		})
	}
}

func benchRead(b *testing.B, cache int64) {
	const size, body = 256 << 20, 100 << 10
	n := onDisk(b)
	n.Store.o.CacheBytes = cache
	n.openSegment(specOf(1, 0, 0))
	pump(b, n, 1, size/body, body)
	require.NoError(b, n.checkpoint())
	end := int64(size / body)
	b.ReportAllocs()
	b.SetBytes(size)
	b.ResetTimer()
	for range b.N {
		for off := int64(0); off < end; {
			r, err := n.Read(refOf(1), off, 1<<20, nil)
			if err != nil {
				b.Fatal(err)
			}
			for _, p := range r.Parts {
				if _, err := p.WriteTo(io.Discard); err != nil {
					b.Fatal(err)
				}
			}
			r.Release()
			off = r.Next
		}
	}
	st := n.Stats()
	b.ReportMetric(float64(st.ReadBytesMemory)/float64(st.ReadBytesMemory+st.ReadBytesFile), "memory/read")
}

// BenchmarkReadTail reads 256 MiB from memory, BenchmarkReadFile from the file behind it.
func BenchmarkReadTail(b *testing.B) { benchRead(b, 1<<40) }
func BenchmarkReadFile(b *testing.B) { benchRead(b, 0) }

// BenchmarkRecovery opens a data directory with a full log of 64 MiB.
func BenchmarkRecovery(b *testing.B) {
	for _, body := range []int{100, 1 << 10, 100 << 10} {
		b.Run(fmt.Sprintf("%dB", body), func(b *testing.B) {
			mem := vfs.NewMem()
			n := start(b, mem, Options{ReserveBytes: -1, CheckpointBytes: 1 << 40, WALBytes: 1 << 40, DirtyBytes: 1 << 40, FlushBytes: 1 << 40, CacheBytes: 1 << 40})
			n.openSegment(specOf(1, 0, 0))
			pump(b, n, 1, (64<<20)/(body+61+64), body)
			killed := mem.Snapshot()
			n.stop()
			b.ResetTimer()
			for range b.N {
				b.StopTimer()
				fs := killed.Snapshot()
				b.StartTimer()
				r := start(b, fs, Options{ReserveBytes: -1})
				b.StopTimer()
				r.stop()
				b.StartTimer()
			}
		})
	}
}

// BenchmarkCheckpointOfNewRanges is the first checkpoint after many topics were created and written to.
func BenchmarkCheckpointOfNewRanges(b *testing.B) {
	const ranges = 2000
	for range b.N {
		b.StopTimer()
		n := onDisk(b)
		var wg sync.WaitGroup
		for i := range base.SegmentID(ranges) {
			spec := specOf(i+1, 0, 0)
			spec.Ref = base.RangeRef{Topic: base.TopicID{1, byte(i), byte(i >> 8)}, Range: 1}
			wg.Add(1)
			require.NoError(b, n.OpenSegment(spec, func(err error) {
				defer wg.Done()
				if err != nil {
					b.Error(err)
				}
			}))
		}
		wg.Wait()
		for i := range base.SegmentID(ranges) {
			batch := makeBatch(uint64(i), 0, 0, 1, 100, 7, 0)
			wg.Add(1)
			require.NoError(b, n.Append(i+1, batch, func(_ int64, err error) {
				defer wg.Done()
				if err != nil {
					b.Error(err)
				}
			}))
		}
		wg.Wait()
		b.StartTimer()
		require.NoError(b, n.checkpoint())
		b.StopTimer()
		n.stop()
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/ranges, "µs/range")
}
