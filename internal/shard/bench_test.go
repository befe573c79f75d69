package shard

import (
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/vfs"
)

func realOptions(b testing.TB) Options {
	return Options{FS: vfs.OS, Dir: filepath.Join(b.TempDir(), "meta"), Meta: metaUUID, Node: "n1", Shards: 32}
}

// BenchmarkCreateTopic is topic creations with 64 in flight over 32 shards, every one of them on disk.
func BenchmarkCreateTopic(b *testing.B) {
	h := start(b, realOptions(b))
	var next atomic.Int64
	var wg sync.WaitGroup
	before := h.LogStats()
	b.ResetTimer()
	for range 64 {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= b.N {
					return
				}
				if err := create(b.Context(), h, i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "topics/s")
	b.ReportMetric(float64(b.N)/float64(h.LogStats().Commits-before.Commits), "topics/fsync")
}

// BenchmarkPropose is one command at a time: what a roll waits for.
func BenchmarkPropose(b *testing.B) {
	h := start(b, realOptions(b))
	b.ResetTimer()
	for i := range b.N {
		require.NoError(b, create(b.Context(), h, i))
	}
}

// BenchmarkView is a fresh read.
func BenchmarkView(b *testing.B) {
	h := start(b, realOptions(b))
	b.ResetTimer()
	for range b.N {
		require.NoError(b, h.View(b.Context(), base.RootShard, func(*meta.State) error { return nil }))
	}
}

// BenchmarkRestart (a fifth of a second each: ask for few) is the way from Open to all 32 groups serving, with 10,000 topics.
func BenchmarkRestart(b *testing.B) {
	o := realOptions(b)
	h := start(b, o)
	var wg sync.WaitGroup
	for w := range 64 {
		wg.Go(func() {
			for i := w; i < 10_000; i += 64 {
				if err := create(b.Context(), h, i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	require.NoError(b, h.Close())
	b.ResetTimer()
	for range b.N {
		h, err := tryStart(o)
		require.NoError(b, err)
		b.StopTimer()
		require.NoError(b, h.Close())
		b.StartTimer()
	}
}

// TestIdleCost measures what 32 idle groups cost. Its figures depend on the machine, so it only prints them, and runs
// when asked to.
func TestIdleCost(t *testing.T) {
	if os.Getenv("EASTGUARD_SOAK") == "" {
		t.Skip("set EASTGUARD_SOAK=1 to measure for 20 seconds")
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	before := heap()
	h := start(t, realOptions(t))
	after := heap()
	began, used := time.Now(), cpuTime(t)
	time.Sleep(20 * time.Second) // what is measured is the passing of time
	t.Logf("%d groups: %.2f %% of a core, %d KiB of heap and stacks, %d goroutines",
		len(h.groups), 100*float64(cpuTime(t)-used)/float64(time.Since(began)), (after-before)>>10, runtime.NumGoroutine())
}

// BenchmarkFirstStart is the bootstrap of 32 shards in an empty directory.
func BenchmarkFirstStart(b *testing.B) {
	for range b.N {
		b.StopTimer()
		o := realOptions(b)
		b.StartTimer()
		h, err := tryStart(o)
		require.NoError(b, err)
		b.StopTimer()
		require.NoError(b, h.Close())
		b.StartTimer()
	}
}

// BenchmarkRestartEmpty is a restart of 32 shards that hold nothing.
func BenchmarkRestartEmpty(b *testing.B) {
	o := realOptions(b)
	require.NoError(b, start(b, o).Close())
	for range b.N {
		h, err := tryStart(o)
		require.NoError(b, err)
		b.StopTimer()
		require.NoError(b, h.Close())
		b.StartTimer()
	}
}

func cpuTime(t testing.TB) time.Duration {
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
