package dataplane

import (
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/wire"
)

// AppendRequest is one batch on its way in. Bytes belongs to the plane from the call on, and is written to: the
// leader patches base offset and epoch into the header.
type AppendRequest struct {
	Ref            base.RangeRef
	Bytes          []byte
	SpanLo, SpanHi uint64    // routing hashes of its records: a hint for readers that want a part of the key space
	Deadline       time.Time // zero = none; the answer comes by then, whatever happens
	Trace          bool      // the answer says where the time went
}

// AppendResult says where a batch went.
type AppendResult struct {
	Base     int64 // offset of its first record
	AppendMs int64 // leader append time
	Segment  base.SegmentID
	Epoch    base.Epoch

	Duplicate bool // an earlier try had been appended; Base is that one's

	Replicas []base.NodeID // have acked it, the leader first; none of a duplicate in an earlier segment. Not to be changed

	Trace *wire.ProduceTrace // if it was asked for, and this try was the one that was appended
}

// appendDone receives the answer to one append: exactly once, from any goroutine, and it must not block.
type appendDone func(AppendResult, error)

// batch is an append from its arrival to its answer. It belongs to its actor.
type batch struct {
	AppendRequest
	header  header.Header
	arrived time.Time
	done    appendDone // nil once answered: the deadline may pass before the disk answers
	twins   []twin     // duplicates that arrived while this one was in flight; answered with it

	lead *lead // who gave it its offset; nil while it waits
	AppendResult
	out   *outgoing          // as it is sent to followers; nil until then
	trace *wire.ProduceTrace // as far as it has come
}

// twin is a duplicate of a batch in flight.
type twin struct {
	done     appendDone
	deadline time.Time
}

// size is what the batch counts for against limits in bytes.
func (b *batch) size() int { return len(b.Bytes) }

// answer completes the batch and its twins. A second call finds nobody left to tell.
func (b *batch) answer(r AppendResult, err error) {
	if b.done != nil {
		b.done(r, err)
		b.done = nil
	}
	r.Duplicate, r.Trace = true, nil
	for _, t := range b.twins {
		t.done(r, err)
	}
	b.twins = nil
}

// expire answers whoever has waited past its deadline.
func (b *batch) expire(now time.Time, err error) {
	if b.done != nil && passed(b.Deadline, now) {
		b.done(AppendResult{}, err)
		b.done = nil
	}
	kept := b.twins[:0]
	for _, t := range b.twins {
		if passed(t.deadline, now) {
			t.done(AppendResult{}, err)
			continue
		}
		kept = append(kept, t)
	}
	b.twins = kept
}

func passed(deadline, now time.Time) bool { return !deadline.IsZero() && !now.Before(deadline) }
