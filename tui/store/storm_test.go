package store_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/store/storetest"
)

// inUse is what the heap holds, without what lies in pools.
func inUse() int {
	var m runtime.MemStats
	for range 2 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// afterStorm is a store that has seen a storm, its last view, and what both take.
func afterStorm(t *testing.T, length time.Duration, opts store.Options) (s *store.Store, v *store.View, bytes int) {
	t.Helper()
	o := storetest.Storm(1)
	o.Length = length
	before, next := inUse(), t0
	s = store.New(opts)
	for m := range storetest.Stream(o) {
		if s.Apply(m); m.Time.After(next) {
			v, next = s.View(m.Time), m.Time.Add(time.Second/4)
		}
	}
	return s, v, inUse() - before
}

// In a storm everything that is kept comes to its bound, and stays there: the rows of 10,000 ranges, the logs and the past.
func TestStorm(t *testing.T) {
	length := time.Minute
	if soak {
		length = 5 * time.Minute
	}
	s, v, bytes := afterStorm(t, length, store.Options{})
	t.Logf("%.1f MB, of which the past says that it takes %.1f", float64(bytes)/(1<<20), float64(s.HistoryBytes())/(1<<20))
	require.Greater(t, v.Ranges.Len(), 9000)
	require.Greater(t, v.Segments.Len(), 9000)
	require.Greater(t, v.Events.Len(), 5000)
	require.Equal(t, 5000, v.Seals.Len())
	require.LessOrEqual(t, s.HistoryBytes(), 16<<20)
	require.LessOrEqual(t, bytes, 32<<20)
}

// What the past says that it takes is not less than what it does, but for the packer.
func TestHistoryCountsItsBytes(t *testing.T) {
	const length, packer = 15 * time.Second, 3 << 20
	s, v, with := afterStorm(t, length, store.Options{})
	said := s.HistoryBytes()
	require.Positive(t, v.Time.Sub(s.Oldest()))
	runtime.KeepAlive(s)
	_, v, without := afterStorm(t, length, store.Options{History: -1})
	runtime.KeepAlive(v)
	t.Logf("it takes %.1f MB and says %.1f", float64(with-without)/(1<<20), float64(said)/(1<<20))
	require.LessOrEqual(t, with-without-packer, said)
}
