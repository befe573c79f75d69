package sdk

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/keyspace"
	"github.com/eastguard/eastguard/internal/mux"
	"github.com/eastguard/eastguard/internal/record"
	"github.com/eastguard/eastguard/internal/wire"
)

// batch is one batch of a range, from its first record until its last callback.
//
// It owns records in one form at a time: first in a builder, which encodes them as they come; from the first try
// on as the finished, compressed batch, which is what every retry sends, byte for byte apart from the identity in
// its header. Keeping that form, and no decoded copy, costs nothing while all goes well; a split, which has to cut
// the batch anew by key, decodes it again, and splits are rare.
type batch struct {
	state   batchState
	keyless bool // holds a record without a routing key, which belongs to no hash

	builder *record.Builder
	encoded []byte
	payload [1][]byte // encoded, in the form mux wants
	message []byte    // the ProduceRequest of the last try

	owed    []completion // one a record
	charged int64        // bytes taken from the producer's memory
	lo, hi  keyspace.Hash

	opened   time.Time // when its first record came
	deadline time.Time

	// The identity it carries, once stamped; the sequence is its first record's.
	stamped  bool
	identity identity
	sequence int32

	tries     int       // the try under way, or the last; answers to earlier ones are ignored
	sentAt    time.Time // of that try
	ambiguous bool      // a try of it may have been appended unseen
	strikes   int       // OutOfOrder answers though nothing before it was open
	conn      *mux.Conn // of that try
	sending   bool      // that try is being encoded and written, outside the buffer's lock

	ack     wire.ProduceResponse
	err     error
	marks   []*mark  // of flushes that wait for it
	escaped bool     // a connection may still read encoded: it is not used again
	traced  *tracing // nil unless a sender asked for it
}

type batchState uint8

const (
	batchWaiting batchState = iota // open, or to be sent, or to be sent again
	batchFlying                    // sent and not answered
	batchDone                      // acknowledged; leaves the queue in order
)

// completion is what one record's sender is owed: a callback, or the end of a wait, or nothing.
type completion struct {
	call  func(Ack, error)
	wait  *waiter
	start time.Time
}

// waiter is a Send that waits.
type waiter struct {
	ready chan struct{} // capacity 1: the answer never waits for the sender
	ack   Ack
	err   error
	trace *Trace // to be filled in; nil for a sender that does not ask
}

// records is how many records it holds.
func (b *batch) records() int { return len(b.owed) }

// add appends a record. The caller has made sure that it fits.
func (b *batch) add(r record.Record, h hashed, size int64, c completion) {
	b.builder.Append(r)
	b.owed = append(b.owed, c)
	if c.wait != nil && c.wait.trace != nil && b.traced == nil {
		b.traced = new(tracing)
	}
	b.charged += size
	if h.keyless {
		b.keyless = true
		return
	}
	b.lo, b.hi = min(b.lo, h.hash), max(b.hi, h.hash)
}

// span is the hint for the broker's index. A batch with a keyless record may interest any reader.
func (b *batch) span() (lo, hi keyspace.Hash) {
	if b.keyless {
		return 0, math.MaxUint64
	}
	return b.lo, b.hi
}

// stamp gives the batch an identity and a sequence: at the first try, and again when it goes on under another.
func (b *batch) stamp(id identity, seq int32) {
	b.stamped, b.identity, b.sequence = true, id, seq
	if b.encoded != nil {
		// In a copy: a connection that has failed may not have noticed yet, and be reading the old bytes.
		b.encoded = append(make([]byte, 0, len(b.encoded)), b.encoded...)
		restamp(b.encoded, id, seq)
	}
}

// restamp rewrites the identity in a finished batch; it lies inside the CRC.
func restamp(encoded []byte, id identity, seq int32) {
	h, err := header.Parse(encoded)
	if err != nil {
		panic(err) // the builder made it
	}
	h.ProducerID, h.ProducerEpoch, h.BaseSequence = id.id, id.epoch, seq
	h.Put(encoded)
	header.Seal(encoded)
}

// request is the message of the next try.
func (b *batch) request(ref base.RangeRef, timeout time.Duration) []byte {
	lo, hi := b.span()
	h, err := header.Parse(b.encoded)
	if err != nil {
		panic(err) // the builder made it
	}
	req := wire.ProduceRequest{
		Topic: ref.Topic, Range: ref.Range, Codec: uint8(h.Codec()), SpanLo: lo, SpanHi: hi,
		TimeoutMs: uint32(min(max(timeout.Milliseconds(), 1), math.MaxUint32)), Trace: b.traced != nil,
	}
	if b.tries > 1 {
		b.message = nil // the connection of an earlier try may be reading it still
	}
	b.message = wire.Append(b.message[:0], &req)
	return b.message
}

// body is the payload of the next try.
func (b *batch) body() [][]byte {
	if b.tries > 1 { // as in request
		return [][]byte{b.encoded}
	}
	b.payload[0] = b.encoded
	return b.payload[:]
}

// outcome is what is known of the batch when it fails without an answer that says.
func (b *batch) outcome() base.Outcome {
	if b.ambiguous || b.state == batchFlying {
		return base.Unknown
	}
	return base.NotApplied
}

// mark is one Flush waiting for one buffer: for the batch that was last when it came or, if that batch was cut
// anew, for each of those that took its records.
type mark struct {
	left atomic.Int32
	done chan struct{}
}

func newMark() *mark {
	m := &mark{done: make(chan struct{})}
	m.left.Store(1)
	return m
}

// reached is called for each batch the mark waits for, after its callbacks.
func (m *mark) reached() {
	if m.left.Add(-1) == 0 {
		close(m.done)
	}
}

// handOver makes the marks of a batch wait for the batches that took its records instead.
func (bt *batch) handOver(heirs map[*batch]bool) {
	for _, m := range bt.marks {
		m.left.Add(int32(len(heirs)))
		for heir := range heirs {
			heir.marks = append(heir.marks, m)
		}
		m.reached()
	}
	bt.marks = nil
}
