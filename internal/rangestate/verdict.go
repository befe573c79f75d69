package rangestate

import (
	"math"

	"github.com/eastguard/eastguard/internal/header"
)

// VerdictKind is what a range says to a batch of an idempotent producer.
type VerdictKind uint8

// The verdicts.
const (
	Accept          VerdictKind = iota + 1
	Duplicate                   // it was appended before: answer with Base once that is committed
	OutOfOrder                  // an earlier batch of a known producer is missing
	UnknownProducer             // the range does not know the producer and the batch is not its first
	ProducerFenced              // a newer epoch of the producer has written here
)

// String prints the verdict's name.
func (k VerdictKind) String() string {
	switch k {
	case Accept:
		return "accept"
	case Duplicate:
		return "duplicate"
	case OutOfOrder:
		return "out_of_order"
	case UnknownProducer:
		return "unknown_producer"
	case ProducerFenced:
		return "producer_fenced"
	}
	return "verdict_unknown"
}

// Verdict is the answer to Check.
type Verdict struct {
	Kind     VerdictKind
	Base     int64 // Duplicate: offset of the original's first record
	AppendMs int64 // Duplicate: when the leader appended the original
}

// Check judges a batch by what has been appended, committed or not. It changes nothing.
func (s *State) Check(h header.Header) Verdict {
	if !h.HasProducer() {
		return Verdict{Kind: Accept}
	}
	t, known := s.tip(h.ProducerID)
	switch {
	case !known && h.BaseSequence != 0:
		return Verdict{Kind: UnknownProducer}
	case known && h.ProducerEpoch < t.epoch:
		return Verdict{Kind: ProducerFenced}
	case known && h.ProducerEpoch > t.epoch:
		t = tip{epoch: h.ProducerEpoch} // a new epoch starts at 0
	}
	if known && h.ProducerEpoch == t.epoch {
		if b, ok := s.find(h); ok {
			return Verdict{Kind: Duplicate, Base: b.base, AppendMs: b.ms}
		}
	}
	if h.BaseSequence != t.next {
		return Verdict{Kind: OutOfOrder}
	}
	return Verdict{Kind: Accept}
}

// tip is where a producer stands: its newest epoch and the sequence number that must follow.
type tip struct {
	epoch int16
	next  int32
}

func (s *State) tip(id int64) (tip, bool) {
	if i, ok := s.tips[id]; ok {
		b := &s.pending[i-s.first]
		return tip{b.epoch, after(b.last)}, true
	}
	p := s.producers[id]
	if p == nil {
		return tip{}, false
	}
	if p.n == 0 {
		return tip{epoch: p.epoch}, true
	}
	return tip{p.epoch, after(p.window[p.n-1].last)}, true
}

// after is the next sequence number: they wrap from 2^31-1 to 0.
func after(last int32) int32 { return (last + 1) & math.MaxInt32 }

// find looks for the very same batch, newest first: a retry names the same sequence numbers, first and last.
func (s *State) find(h header.Header) (batch, bool) {
	last := h.LastSequence()
	same := func(b *batch) bool {
		return b.epoch == h.ProducerEpoch && b.first == h.BaseSequence && b.last == last
	}
	if i, ok := s.tips[h.ProducerID]; ok {
		for ; i >= s.first; i = s.pending[i-s.first].prev {
			if b := &s.pending[i-s.first]; same(b) {
				return *b, true
			}
		}
	}
	if p := s.producers[h.ProducerID]; p != nil {
		for i := int(p.n) - 1; i >= 0; i-- {
			if same(&p.window[i]) {
				return p.window[i], true
			}
		}
	}
	return batch{}, false
}
