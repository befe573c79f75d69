package sdk

import (
	"sync/atomic"

	"github.com/eastguard/eastguard/internal/base"
)

// ProducerStats counts what a producer has done so far.
type ProducerStats struct {
	Acked   uint64 // records acknowledged
	Failed  uint64 // records that failed and are known not to be stored
	Unknown uint64 // records that failed and may be stored
	Bytes   uint64 // of acknowledged records, as buffered
	Batches uint64 // acknowledged
	Tries   uint64 // batches sent, retries included
	Retries uint64 // tries that failed
	// Duplicates counts batches that a broker recognised as stored by an earlier try.
	Duplicates uint64
	// Identities counts the times a range went on under a new identity.
	Identities uint64
	// BufferedBytes is the memory of records not acknowledged yet.
	BufferedBytes int64
}

type producerCounters struct {
	acked, failed, unknown, bytes, batches, tries, retries, duplicates, identities atomic.Uint64
}

// Stats is a snapshot of the producer's counters.
func (p *Producer) Stats() ProducerStats {
	s := &p.stats
	return ProducerStats{
		Acked: s.acked.Load(), Failed: s.failed.Load(), Unknown: s.unknown.Load(), Bytes: s.bytes.Load(),
		Batches: s.batches.Load(), Tries: s.tries.Load(), Retries: s.retries.Load(),
		Duplicates: s.duplicates.Load(), Identities: s.identities.Load(), BufferedBytes: p.memory.used.Load(),
	}
}

// count adds a finished batch.
func (s *producerCounters) count(bt *batch) {
	n := uint64(bt.records())
	switch {
	case bt.err == nil:
		s.acked.Add(n)
		s.bytes.Add(uint64(bt.charged))
		s.batches.Add(1)
		if bt.ack.Duplicate {
			s.duplicates.Add(1)
		}
	case base.OutcomeOf(bt.err) == base.Unknown:
		s.unknown.Add(n)
	default:
		s.failed.Add(n)
	}
}
