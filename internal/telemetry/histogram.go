package telemetry

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// A histogram is log-linear: each power of two of nanoseconds is cut into 2^subBits equal buckets, so a value is
// known to within 1/2^subBits (3 %), at any size.
//
//	value          bucket
//	0 … 31         the value itself
//	32 … 63        32 … 63     width 1
//	64 … 127       64 … 95     width 2
//	128 … 255      96 … 127    width 4
//	…
const (
	subBits    = 5
	subBuckets = 1 << subBits
	maxBits    = 43 // values of 2^43 ns (2.4 hours) and more share the last bucket
	numBuckets = (maxBits - subBits + 1) * subBuckets
)

// Histogram counts durations. Observing is one atomic add to a bucket and one to the sum; there is no lock.
type Histogram struct {
	buckets [numBuckets]atomic.Uint64
	sum     Counter
	max     atomic.Int64
}

// NewHistogram makes a histogram that belongs to no registry.
func NewHistogram() *Histogram { return &Histogram{sum: *NewCounter()} }

// Observe counts d; a negative one counts as 0.
func (h *Histogram) Observe(d time.Duration) {
	ns := max(int64(d), 0)
	h.buckets[bucketOf(uint64(ns))].Add(1)
	h.sum.Add(uint64(ns))
	for {
		seen := h.max.Load()
		if ns <= seen || h.max.CompareAndSwap(seen, ns) {
			return
		}
	}
}

func bucketOf(ns uint64) int {
	if ns < subBuckets {
		return int(ns)
	}
	shift := bits.Len64(ns) - 1 - subBits
	return min((shift+1)<<subBits+int(ns>>shift)-subBuckets, numBuckets-1)
}

// upperBound is the largest value that falls into bucket i.
func upperBound(i int) int64 {
	if i < subBuckets {
		return int64(i)
	}
	shift := i>>subBits - 1
	return int64(i&(subBuckets-1)+subBuckets+1)<<shift - 1
}

// Snapshot copies the counts. Observations made meanwhile may or may not be in it.
func (h *Histogram) Snapshot() Snapshot {
	s := Snapshot{Buckets: make([]uint64, numBuckets)}
	last := -1
	for i := range h.buckets {
		n := h.buckets[i].Load()
		s.Buckets[i] = n
		s.Count += n
		if n > 0 {
			last = i
		}
	}
	s.Buckets = s.Buckets[:last+1]
	s.SumNs = h.sum.Value()
	s.MaxNs = h.max.Load()
	return s
}

// Snapshot is a histogram at one moment: a plain value that can be sent, merged and subtracted.
type Snapshot struct {
	Buckets []uint64 `cbor:"1,keyasint,omitempty"` // counts per bucket; trailing zeros are cut
	Count   uint64   `cbor:"2,keyasint"`
	SumNs   uint64   `cbor:"3,keyasint"`
	MaxNs   int64    `cbor:"4,keyasint"`
}

// Merge adds o's observations to s.
func (s *Snapshot) Merge(o Snapshot) {
	if len(o.Buckets) > len(s.Buckets) {
		s.Buckets = append(s.Buckets, make([]uint64, len(o.Buckets)-len(s.Buckets))...)
	}
	for i, n := range o.Buckets {
		s.Buckets[i] += n
	}
	s.Count += o.Count
	s.SumNs += o.SumNs
	s.MaxNs = max(s.MaxNs, o.MaxNs)
}

// Since is what was observed after earlier, a snapshot of the same histogram. The maximum is known only for the
// whole life, so it is an upper bound here.
func (s Snapshot) Since(earlier Snapshot) Snapshot {
	d := Snapshot{Buckets: make([]uint64, len(s.Buckets)), SumNs: s.SumNs - min(s.SumNs, earlier.SumNs), MaxNs: s.MaxNs}
	for i, n := range s.Buckets {
		if i < len(earlier.Buckets) {
			n -= min(n, earlier.Buckets[i])
		}
		d.Buckets[i] = n
		d.Count += n
	}
	return d
}

// Quantile is the smallest duration that at least q (0 to 1) of the observations do not exceed, rounded up to
// its bucket's bound and never above the maximum seen; 0 when nothing was observed.
func (s Snapshot) Quantile(q float64) time.Duration {
	if s.Count == 0 {
		return 0
	}
	rank := uint64(math.Ceil(min(max(q, 0), 1) * float64(s.Count)))
	rank = min(max(rank, 1), s.Count)
	var seen uint64
	for i, n := range s.Buckets {
		if seen += n; seen >= rank {
			return time.Duration(min(upperBound(i), s.MaxNs))
		}
	}
	return time.Duration(s.MaxNs)
}

// Max is the largest duration observed, exactly.
func (s Snapshot) Max() time.Duration { return time.Duration(s.MaxNs) }
