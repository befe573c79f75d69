package server

import (
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/telemetry"
	"github.com/eastguard/eastguard/internal/wire"
)

// metrics are what the request path counts.
type metrics struct {
	requests map[wire.Kind]*telemetry.Counter // read only
	unknown  *telemetry.Counter
	fsync    *telemetry.Histogram
	ack      *telemetry.Histogram // the data plane's own

	fsyncLately, ackLately *recent
}

func newMetrics(r *telemetry.Registry, kinds []wire.Kind) metrics {
	counter := func(kind string) *telemetry.Counter {
		return r.Counter("eastguard_requests_total", "Requests of clients, by kind; unknown are those that this version does not know.", "kind", kind)
	}
	m := metrics{
		requests: make(map[wire.Kind]*telemetry.Counter, len(kinds)),
		unknown:  counter("unknown"),
		fsync:    r.Histogram("eastguard_fsync_seconds", "One fdatasync of the write-ahead log."),
		ack:      r.Histogram("eastguard_ack_seconds", "From a batch's arrival to its ack."),
	}
	m.fsyncLately, m.ackLately = &recent{histogram: m.fsync}, &recent{histogram: m.ack}
	for _, k := range kinds {
		m.requests[k] = counter(k.String())
	}
	return m
}

func (m *metrics) request(k wire.Kind) {
	if c, ok := m.requests[k]; ok {
		c.Inc()
		return
	}
	m.unknown.Inc()
}

// rates turns counters into per-second rates over the last few seconds. A sample is taken when somebody asks, and with
// each report to the other nodes.
type rates struct {
	in, out, inRecords, outRecords *telemetry.Counter

	mu   sync.Mutex
	last [2]sample // older, newer
}

type sample struct {
	at                             time.Time
	in, out, inRecords, outRecords uint64
}

// perSecond is what rates are asked for.
type perSecond struct{ inBytes, outBytes, inRecords, outRecords int64 }

// rateWindow is the least time between two samples: a rate covers at least it, and at most a little over twice it
// while somebody keeps asking.
const rateWindow = 2 * time.Second

func (r *rates) now(now time.Time) perSecond {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := sample{at: now, in: r.in.Value(), out: r.out.Value(), inRecords: r.inRecords.Value(), outRecords: r.outRecords.Value()}
	if now.Sub(r.last[1].at) >= rateWindow {
		r.last[0], r.last[1] = r.last[1], s
	}
	from := r.last[0]
	secs := s.at.Sub(from.at).Seconds()
	if from.at.IsZero() || secs <= 0 {
		return perSecond{}
	}
	rate := func(a, b uint64) int64 { return int64(float64(b-a) / secs) }
	return perSecond{rate(from.in, s.in), rate(from.out, s.out), rate(from.inRecords, s.inRecords), rate(from.outRecords, s.outRecords)}
}

// recent gives quantiles of what a histogram observed lately: of its whole life they would say little about today.
type recent struct {
	histogram *telemetry.Histogram

	mu   sync.Mutex
	last [2]observed // older, newer
}

type observed struct {
	at       time.Time
	snapshot telemetry.Snapshot
}

// recentWindow is the least time that a quantile covers; it covers at most a little over twice that.
const recentWindow = 30 * time.Second

// quantile is that of the last recentWindow; of the whole life, if nothing was observed since.
func (r *recent) quantile(q float64, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.histogram.Snapshot()
	r.rollLocked(s, now)
	if lately := s.Since(r.last[0].snapshot); lately.Count > 0 {
		return lately.Quantile(q)
	}
	return s.Quantile(q)
}

// sample moves the window on.
func (r *recent) sample(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.last[1].at) >= recentWindow {
		r.rollLocked(r.histogram.Snapshot(), now)
	}
}

func (r *recent) rollLocked(s telemetry.Snapshot, now time.Time) {
	if now.Sub(r.last[1].at) >= recentWindow {
		r.last[0], r.last[1] = r.last[1], observed{now, s}
	}
}

// sample moves all windows on.
func (s *Server) sample(now time.Time) {
	s.rates.now(now)
	s.metrics.fsyncLately.sample(now)
	s.metrics.ackLately.sample(now)
}
