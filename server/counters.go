package server

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/dataplane"
	"github.com/eastguard/eastguard/internal/telemetry"
	"github.com/eastguard/eastguard/internal/wire"
)

const (
	countEvery  = time.Second            // for whoever watches; more often it is the same again
	ledWithin   = 200 * time.Millisecond // for all ranges led here to say how far they are
	busiestLed  = 50                     // ranges that are told one by one
	lateWindow  = 5 * time.Second        // distributions cover it at least, and twice that at most
	windowStale = 30 * time.Second       // after which a window that nobody looked at begins anew
)

// counting makes the counters that this node tells those who watch it. While nobody does, nothing is counted for it.
type counting struct {
	batches, records, bytes         *telemetry.Counter
	ack, fsync, replicate, sealGaps *lately

	mu   sync.Mutex
	last *wire.NodeCounters // read only
	at   time.Time
	was  batchSample
	led  map[base.RangeRef]ledSample
}

type batchSample struct {
	at                      time.Time
	batches, records, bytes uint64
}

// ledSample is how far a range was when it was looked at.
type ledSample struct {
	at      time.Time
	segment base.SegmentID
	bytes   int64
	commit  int64
}

func newCounting(r *telemetry.Registry, m *metrics) *counting {
	return &counting{
		batches:   r.Counter("eastguard_append_batches_total", "Batches acknowledged."),
		records:   r.Counter("eastguard_append_records_total", "Records acknowledged."),
		bytes:     r.Counter("eastguard_append_bytes_total", "Bytes of the batches acknowledged."),
		ack:       &lately{histogram: m.ack},
		fsync:     &lately{histogram: m.fsync},
		replicate: &lately{histogram: r.Histogram("eastguard_replicate_seconds", "From handing a batch to the connection to a follower to its ack; one batch in flight a follower and segment is measured.")},
		sealGaps:  &lately{histogram: r.Histogram("eastguard_seal_gap_seconds", "How long a roll kept a range from taking appends.")},
		led:       make(map[base.RangeRef]ledSample),
	}
}

// nodeCounters are what this node counts as of now, or as of a second ago. While they are being made whoever else asks
// gets none, and asks again.
func (s *Server) nodeCounters(now time.Time) *wire.NodeCounters {
	c := s.counting
	if !c.mu.TryLock() {
		return nil
	}
	defer c.mu.Unlock()
	if c.last != nil && now.Sub(c.at) < countEvery*9/10 {
		return c.last
	}
	ctx, cancel := context.WithTimeout(context.Background(), ledWithin)
	defer cancel()
	st, rate := s.store.Stats(), s.rates.now(now)
	n := &wire.NodeCounters{
		ObservedMs: now.UnixMilli(), WindowMs: c.ack.span(now).Milliseconds(),
		InBytesPerSec: rate.inBytes, OutBytesPerSec: rate.outBytes, InRecordsPerSec: rate.inRecords, OutRecordsPerSec: rate.outRecords,
		InBytes: s.rates.in.Value(), OutBytes: s.rates.out.Value(), InRecords: s.rates.inRecords.Value(), OutRecords: s.rates.outRecords.Value(),
		Ack: c.ack.quantiles(now), Fsync: c.fsync.quantiles(now), Replicate: c.replicate.quantiles(now), SealGap: c.sealGaps.quantiles(now),
		CacheHits: uint64(st.ReadsMemory), CacheMisses: uint64(st.ReadsFile),
		WalBytes: st.WAL.Bytes, WalFiles: st.WAL.Files, DiskUsed: st.DiskTotal - st.DiskFree, DiskTotal: st.DiskTotal,
		Segments: st.Segments, Leaders: s.plane.Leads(), Followers: s.plane.Follows(), Connections: s.mux.Stats().Connections, RssBytes: residentBytes(),
	}
	c.countBatches(n, now)
	c.countLed(n, s.plane.Led(ctx), now)
	c.last, c.at = n, now
	return n
}

func (c *counting) countBatches(n *wire.NodeCounters, now time.Time) {
	s := batchSample{at: now, batches: c.batches.Value(), records: c.records.Value(), bytes: c.bytes.Value()}
	was := c.was
	c.was = s
	secs := now.Sub(was.at).Seconds()
	batches := s.batches - was.batches
	if was.at.IsZero() || secs <= 0 || batches == 0 {
		return
	}
	n.BatchesPerSec = max(int64(float64(batches)/secs), 1)
	n.BatchRecords, n.BatchBytes = int64((s.records-was.records)/batches), int64((s.bytes-was.bytes)/batches)
}

// countLed tells the rates of the busiest ranges led here, and counts the others by theirs. A range that is seen for the
// first time has none yet.
func (c *counting) countLed(n *wire.NodeCounters, led []dataplane.LedRange, now time.Time) {
	before := c.led
	c.led = make(map[base.RangeRef]ledSample, len(led))
	rows := make([]wire.RangeCounters, 0, len(led))
	for _, r := range led {
		row := wire.RangeCounters{
			Topic: r.Topic, TopicID: r.Ref.Topic, Range: r.Ref.Range, Span: r.Span, Load: "unknown", Segment: r.Segment, SegmentBytes: r.Bytes, End: r.Commit,
		}
		was, ok := before[r.Ref]
		if secs := now.Sub(was.at).Seconds(); ok && secs > 0 {
			bytes := r.Bytes
			if was.segment == r.Segment {
				bytes -= was.bytes
			}
			row.InBytesPerSec = max(int64(float64(bytes)/secs), 0)
			row.InRecordsPerSec = max(int64(float64(r.Commit-was.commit)/secs), 0)
		}
		c.led[r.Ref] = ledSample{at: now, segment: r.Segment, bytes: r.Bytes, commit: r.Commit}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b wire.RangeCounters) int {
		return cmp.Or(cmp.Compare(b.InBytesPerSec, a.InBytesPerSec), cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Range, b.Range))
	})
	n.Ranges = rows[:min(len(rows), busiestLed)]
	if others := rows[len(n.Ranges):]; len(others) > 0 {
		n.Others = make([]int, len(rateBounds)+2)
		for _, r := range others {
			n.Others[rateClass(r.InBytesPerSec)]++
		}
	}
}

// rateBounds are those of NodeCounters.Others.
var rateBounds = [...]int64{1e3, 1e4, 1e5, 1e6, 1e7}

func rateClass(perSec int64) int {
	if perSec <= 0 {
		return 0
	}
	for i, bound := range rateBounds {
		if perSec < bound {
			return i + 1
		}
	}
	return len(rateBounds) + 1
}

// lately gives the distribution of what a histogram observed in the last seconds.
type lately struct {
	histogram *telemetry.Histogram
	last      [2]observed // older, newer
}

// span is how long the window covers.
func (w *lately) span(now time.Time) time.Duration {
	w.roll(now)
	return now.Sub(w.last[0].at)
}

func (w *lately) roll(now time.Time) telemetry.Snapshot {
	s := w.histogram.Snapshot()
	switch age := now.Sub(w.last[1].at); {
	case age > windowStale:
		w.last[0], w.last[1] = observed{now, s}, observed{now, s}
	case age >= lateWindow:
		w.last[0], w.last[1] = w.last[1], observed{now, s}
	}
	return s
}

func (w *lately) quantiles(now time.Time) wire.Quantiles {
	d := w.roll(now).Since(w.last[0].snapshot)
	return wire.Quantiles{
		Count: d.Count, P50Us: d.Quantile(0.5).Microseconds(), P90Us: d.Quantile(0.9).Microseconds(), P99Us: d.Quantile(0.99).Microseconds(),
		P999Us: d.Quantile(0.999).Microseconds(), MaxUs: d.Quantile(1).Microseconds(),
	}
}
