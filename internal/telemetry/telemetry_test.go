package telemetry

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCounterSumsAllWriters(t *testing.T) {
	c := NewCounter()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				c.Inc()
			}
			c.Add(500)
		})
	}
	wg.Wait()
	require.EqualValues(t, 8*1500, c.Value())
}

func TestRecordingDoesNotAllocate(t *testing.T) {
	c, h := NewCounter(), NewHistogram()
	require.Zero(t, testing.AllocsPerRun(100, func() { c.Inc(); h.Observe(time.Millisecond) }))
}

// Every value lies in a bucket whose bound is at least the value and at most 1/32 above it, and buckets follow
// the order of the values.
func TestBuckets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Uint64Max(1<<maxBits-1).Draw(t, "ns")
		up := uint64(upperBound(bucketOf(v)))
		if up < v || up-v > v/subBuckets {
			t.Fatalf("%d has bound %d", v, up)
		}
		w := rapid.Uint64().Draw(t, "other")
		if (v < w) != (bucketOf(v) < bucketOf(w)) && bucketOf(v) != bucketOf(w) {
			t.Fatalf("%d in %d, %d in %d", v, bucketOf(v), w, bucketOf(w))
		}
	})
}

func TestBucketBoundsTileTheValues(t *testing.T) {
	for i := range numBuckets - 1 {
		require.Equal(t, i, bucketOf(uint64(upperBound(i))))
		require.Equal(t, i+1, bucketOf(uint64(upperBound(i))+1))
	}
}

// Quantiles agree with those of the sorted values to within a bucket.
func TestQuantilesAgainstSorting(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	h := NewHistogram()
	var all []time.Duration
	for range 10_000 {
		d := time.Duration(rng.ExpFloat64() * float64(3*time.Millisecond))
		all = append(all, d)
		h.Observe(d)
	}
	slices.Sort(all)
	s := h.Snapshot()
	for _, q := range []float64{0, 0.001, 0.5, 0.9, 0.99, 0.999, 1} {
		want := all[max(int(q*float64(len(all)))-1, 0)]
		got := s.Quantile(q)
		require.GreaterOrEqual(t, got, want, "q=%v", q)
		require.LessOrEqual(t, got-want, want/subBuckets+1, "q=%v", q)
	}
	require.Equal(t, all[len(all)-1], s.Max())
	require.EqualValues(t, 10_000, s.Count)
}

func TestEmptyAndExtremeHistograms(t *testing.T) {
	h := NewHistogram()
	require.Zero(t, h.Snapshot().Quantile(0.99))
	require.Empty(t, h.Snapshot().Buckets)

	h.Observe(-time.Second)
	require.Zero(t, h.Snapshot().Quantile(1), "a clock's step back is no latency")
	h.Observe(100 * time.Hour)
	require.Equal(t, 100*time.Hour, h.Snapshot().Max())
	require.LessOrEqual(t, h.Snapshot().Quantile(1), 100*time.Hour)
}

// Merging the parts gives the whole, and taking a part away gives the rest.
func TestMergeAndSince(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gen := rapid.SliceOf(rapid.Int64Range(0, 1<<40))
		first, second := gen.Draw(t, "first"), gen.Draw(t, "second")
		h, part := NewHistogram(), NewHistogram()
		for _, ns := range first {
			h.Observe(time.Duration(ns))
		}
		before := h.Snapshot()
		for _, ns := range second {
			h.Observe(time.Duration(ns))
			part.Observe(time.Duration(ns))
		}
		whole := h.Snapshot()

		merged := Snapshot{Buckets: slices.Clone(before.Buckets), Count: before.Count, SumNs: before.SumNs, MaxNs: before.MaxNs}
		merged.Merge(part.Snapshot())
		if merged.Count != whole.Count || merged.SumNs != whole.SumNs || merged.MaxNs != whole.MaxNs || !slices.Equal(merged.Buckets, whole.Buckets) {
			t.Fatalf("merged %+v, whole %+v", merged, whole)
		}
		rest := whole.Since(before)
		if rest.Count != uint64(len(second)) || rest.SumNs != part.Snapshot().SumNs {
			t.Fatalf("rest %+v of %d observations", rest, len(second))
		}
	})
}

func TestSnapshotTravels(t *testing.T) {
	h := NewHistogram()
	h.Observe(42 * time.Microsecond)
	b, err := cbor.Marshal(h.Snapshot())
	require.NoError(t, err)
	var got Snapshot
	require.NoError(t, cbor.Unmarshal(b, &got))
	require.Equal(t, h.Snapshot(), got)
}

func TestRegistry(t *testing.T) {
	r := NewRegistry()
	c := r.Counter("eastguard_produce_batches_total", "Batches acknowledged.")
	require.Same(t, c, r.Counter("eastguard_produce_batches_total", "Batches acknowledged."))
	h := r.Histogram("eastguard_ack_seconds", "From arrival to ack.")
	require.Same(t, h, r.Histogram("eastguard_ack_seconds", "From arrival to ack."))
	r.GaugeFunc("eastguard_topics", "Topics known.", func() float64 { return 3 })
	r.Gauge("eastguard_connections", "Open connections.").Add(2)

	var names []string
	for _, m := range r.Metrics() {
		names = append(names, m.Name)
	}
	require.Equal(t, []string{"eastguard_ack_seconds", "eastguard_connections", "eastguard_produce_batches_total", "eastguard_topics"}, names)

	require.Panics(t, func() { r.Gauge("eastguard_ack_seconds", "Now a gauge.") }, "one name, one kind")
	require.Panics(t, func() { r.Counter("acks", "No prefix.") })
	require.Panics(t, func() { r.Counter("eastguard_Acks", "Upper case.") })
	require.Panics(t, func() { r.Counter("eastguard_acks", "") })
}

func BenchmarkCounter(b *testing.B) {
	c := NewCounter()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			c.Inc()
		}
	})
}

func BenchmarkHistogram(b *testing.B) {
	h := NewHistogram()
	b.RunParallel(func(pb *testing.PB) {
		for d := time.Duration(1); pb.Next(); d += 977 {
			h.Observe(d & 0xffffff)
		}
	})
}
