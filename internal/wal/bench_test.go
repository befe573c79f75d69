package wal_test

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/internal/wal"
)

// The benchmarks come in pairs: what the disk does for a program that appends to a growing file, and what the log
// does on the same disk. The log should not be slower: its files do not grow.

// percentiles reports the distribution of latencies.
func percentiles(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	at := func(q float64) float64 { return float64(took[int(float64(len(took)-1)*q)].Microseconds()) }
	b.ReportMetric(at(0.50), "p50-µs")
	b.ReportMetric(at(0.99), "p99-µs")
}

func benchFloor(b *testing.B, size int) {
	f, err := vfs.OS.OpenFile(filepath.Join(b.TempDir(), "floor"), os.O_RDWR|os.O_CREATE, 0o600)
	require.NoError(b, err)
	defer f.Close()
	data := random(size)
	took := make([]time.Duration, 0, b.N)
	b.SetBytes(int64(size))
	for b.Loop() {
		began := time.Now()
		_, err := f.WriteAt(data, int64(len(took)*size))
		if err == nil {
			err = f.SyncData()
		}
		if err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	percentiles(b, took)
}

func random(n int) []byte {
	data := make([]byte, n)
	_, _ = rand.Read(data)
	return data
}

func BenchmarkFloorAppend4KiB(b *testing.B) { benchFloor(b, 4<<10) }

func BenchmarkFloorAppend1MiB(b *testing.B) { benchFloor(b, 1<<20) }

func openBench(b *testing.B) *wal.Log {
	b.Helper()
	l, _, err := wal.Open(wal.Options{FS: vfs.OS, Dir: b.TempDir(), UUID: disk}, nil)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, l.Close()) })
	return l
}

// trim, called now and then, keeps the log short, as its owner does.
func trim(b *testing.B, l *wal.Log, i int) {
	if i%256 == 0 {
		if err := l.TrimTo(l.Durable()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendOneAtATime1KiB(b *testing.B) {
	l := openBench(b)
	e := wal.Entry{Kind: 1, Records: 1, Parts: [][]byte{random(1 << 10)}}
	took := make([]time.Duration, 0, b.N)
	b.SetBytes(1 << 10)
	b.ReportAllocs()
	done := make(chan error, 1)
	ack := func(_ wal.LSN, err error) { done <- err }
	for b.Loop() {
		began := time.Now()
		if err := l.Append(e, ack); err != nil {
			b.Fatal(err)
		}
		if err := <-done; err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
		trim(b, l, len(took))
	}
	percentiles(b, took)
}

// BenchmarkAppendConcurrent keeps a number of appends in flight.
func BenchmarkAppendConcurrent(b *testing.B) {
	for _, c := range []struct{ size, inFlight int }{{1 << 20, 8}, {64 << 10, 64}, {1 << 10, 512}} {
		b.Run(fmt.Sprintf("%dx%d", c.inFlight, c.size), func(b *testing.B) {
			l := openBench(b)
			e := wal.Entry{Kind: 1, Records: 1, Parts: [][]byte{random(c.size)}}
			slots := make(chan struct{}, c.inFlight)
			var failed sync.Once
			ack := func(_ wal.LSN, err error) {
				if err != nil {
					failed.Do(func() { b.Error(err) })
				}
				<-slots
			}
			b.SetBytes(int64(c.size))
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				slots <- struct{}{}
				if err := l.Append(e, ack); err != nil {
					b.Fatal(err)
				}
				i++
				if i*c.size%(64<<20) < c.size {
					trim(b, l, 0)
				}
			}
			for range c.inFlight {
				slots <- struct{}{}
			}
			st := l.Stats()
			b.ReportMetric(float64(st.Entries)/float64(st.Commits), "entries/commit")
		})
	}
}

// BenchmarkRecover opens a log of one full file.
func BenchmarkRecover(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("64MiB of %d", size), func(b *testing.B) {
			dir := b.TempDir()
			o := wal.Options{FS: vfs.OS, Dir: dir, UUID: disk}
			replay := func(wal.LSN, uint8, []byte) error { return nil }
			l, _, err := wal.Open(o, replay)
			require.NoError(b, err)
			e := wal.Entry{Kind: 1, Records: 1, Parts: [][]byte{random(size)}}
			var acks sync.WaitGroup
			for n := 0; n < 63<<20; n += size + 24 {
				acks.Add(1)
				require.NoError(b, l.Append(e, func(_ wal.LSN, err error) { acks.Done() }))
				if n%(1<<20) < size {
					acks.Wait()
				}
			}
			acks.Wait()
			require.NoError(b, l.Close())
			b.SetBytes(64 << 20)
			b.ReportAllocs()
			for b.Loop() {
				l, _, err := wal.Open(o, replay)
				require.NoError(b, err)
				require.NoError(b, l.Close())
			}
		})
	}
}

// BenchmarkOpenEmpty is what a log adds to the start of a fresh broker.
func BenchmarkOpenEmpty(b *testing.B) {
	for b.Loop() {
		l, _, err := wal.Open(wal.Options{FS: vfs.OS, Dir: b.TempDir(), UUID: disk}, nil)
		require.NoError(b, err)
		require.NoError(b, l.Close())
	}
}

func BenchmarkOpenEmptyMem(b *testing.B) {
	for b.Loop() {
		m := vfs.NewMem()
		l, _, err := wal.Open(wal.Options{FS: m, Dir: "/", UUID: disk}, nil)
		require.NoError(b, err)
		require.NoError(b, l.Close())
		l, _, err = wal.Open(wal.Options{FS: m, Dir: "/", UUID: disk}, nil)
		require.NoError(b, err)
		require.NoError(b, l.Close())
	}
}
