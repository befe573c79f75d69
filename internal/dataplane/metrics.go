package dataplane

import (
	"time"

	"github.com/eastguard/eastguard/internal/telemetry"
)

// metrics are the plane's counters. Everything is counted per batch, nothing per record.
type metrics struct {
	batches, records, bytes   *telemetry.Counter
	duplicates, refused, busy *telemetry.Counter
	rolls                     *telemetry.Counter
	late, lost, resumes       *telemetry.Counter
	rewinds, queueFull        *telemetry.Counter
	ack, gap, replicate       *telemetry.Histogram
}

func newMetrics(r *telemetry.Registry) metrics {
	return metrics{
		batches:    r.Counter("eastguard_append_batches_total", "Batches acknowledged."),
		records:    r.Counter("eastguard_append_records_total", "Records acknowledged."),
		bytes:      r.Counter("eastguard_append_bytes_total", "Bytes of the batches acknowledged."),
		duplicates: r.Counter("eastguard_append_duplicates_total", "Batches answered from what had been appended before."),
		refused:    r.Counter("eastguard_append_refused_total", "Batches refused: corrupt, too large, out of order or fenced."),
		busy:       r.Counter("eastguard_append_busy_total", "Batches refused because too many were waiting."),
		rolls:      r.Counter("eastguard_rolls_total", "Segments that this node opened as a successor."),
		late:       r.Counter("eastguard_replica_late_total", "Segments ended because a replica made no progress."),
		lost:       r.Counter("eastguard_replica_lost_total", "Followers given up for the rest of a segment: gone, restarted, fenced, or with a disk that fails."),
		resumes:    r.Counter("eastguard_replica_resumes_total", "Followers that were back in time after their connection broke, by segment."),
		rewinds:    r.Counter("eastguard_replica_rewinds_total", "Times that a follower asked for what it had missed."),
		queueFull:  r.Counter("eastguard_replica_queue_full_total", "Batches held back because as much as may be was on its way to a follower."),
		ack:        r.Histogram("eastguard_ack_seconds", "From a batch's arrival to its ack."),
		gap:        r.Histogram("eastguard_seal_gap_seconds", "How long a roll kept a range from taking appends."),
		replicate:  r.Histogram("eastguard_replicate_seconds", "From handing a batch to the connection to a follower to its ack; one batch in flight a follower and segment is measured."),
	}
}

// acked counts one committed batch.
func (p *Plane) acked(b *batch, now time.Time) {
	m := &p.metrics
	m.batches.Inc()
	m.records.Add(uint64(b.header.Records))
	m.bytes.Add(uint64(b.size()))
	m.ack.Observe(now.Sub(b.arrived))
}
