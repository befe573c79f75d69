package store

import (
	"encoding/binary"

	"github.com/eastguard/eastguard/internal/base"
)

// The kinds of records in the data log; append-only numbers.
const (
	kindBatch        = 1
	kindOpen         = 2
	kindFence        = 3
	kindFenceAllLed  = 4
	kindSeal         = 5
	kindDropSegments = 6
	kindDropTopic    = 7
)

// A batch record: this head, then the batch as it will lie in the file.
//
//	 0           8              16          24      32      40
//	+-----------+--------------+-----------+-------+-------+------------ - -
//	| segment   | append ms    | commit    | lo    | hi    | batch
//	+-----------+--------------+-----------+-------+-------+------------ - -
//
// commit is what was known when the batch came: after a restart the node can prove that much.
const batchHead = 40

type batchRecord struct {
	segment  base.SegmentID
	appendMs int64
	commit   int64
	lo, hi   uint64
}

func (r batchRecord) put(b *[batchHead]byte) {
	le := binary.LittleEndian
	le.PutUint64(b[0:], uint64(r.segment))
	le.PutUint64(b[8:], uint64(r.appendMs))
	le.PutUint64(b[16:], uint64(r.commit))
	le.PutUint64(b[24:], r.lo)
	le.PutUint64(b[32:], r.hi)
}

func decodeBatchRecord(b []byte) (r batchRecord, batch []byte, ok bool) {
	if len(b) < batchHead {
		return r, nil, false
	}
	le := binary.LittleEndian
	r = batchRecord{
		segment:  base.SegmentID(le.Uint64(b[0:])),
		appendMs: int64(le.Uint64(b[8:])),
		commit:   int64(le.Uint64(b[16:])),
		lo:       le.Uint64(b[24:]),
		hi:       le.Uint64(b[32:]),
	}
	return r, b[batchHead:], true
}

// An open record: | topic 16 | range u32 | segment u64 | epoch u32 | base i64 | created i64 | boot u64 | keyed u8 |
// how u8 | state u32+n |, how being 1 led here, 2 readable from memory
type openRecord struct {
	spec SegmentSpec
	boot uint64
}

func (r openRecord) encode() []byte {
	e := encoder{b: make([]byte, 0, 80+len(r.spec.State))}
	e.ref(r.spec.Ref)
	e.u64(uint64(r.spec.Segment))
	e.u32(uint32(r.spec.Epoch))
	e.i64(r.spec.Base)
	e.i64(r.spec.CreatedMs)
	e.u64(r.boot)
	e.bool(r.spec.Keyed)
	e.u8(r.spec.how())
	e.bytes(r.spec.State)
	return e.b
}

// The bits of how a segment is held.
const (
	howLeads = 1 << iota
	howMemory
	howKnown = 1<<iota - 1
)

func (s *SegmentSpec) how() (bits uint8) {
	if s.LeaderHere {
		bits |= howLeads
	}
	if s.Memory {
		bits |= howMemory
	}
	return bits
}

func decodeOpen(b []byte) (r openRecord, ok bool) {
	d := decoder{b: b}
	r.spec = SegmentSpec{
		Ref: d.ref(), Segment: base.SegmentID(d.u64()), Epoch: base.Epoch(d.u32()), Base: d.i64(), CreatedMs: d.i64(),
	}
	r.boot = d.u64()
	r.spec.Keyed = d.bool()
	how := d.u8()
	r.spec.LeaderHere, r.spec.Memory = how&howLeads != 0, how&howMemory != 0
	r.spec.State = d.bytes()
	return r, !d.bad && len(d.b) == 0 && r.spec.Base >= 0 && how&^howKnown == 0
}

// A fence record: | topic 16 | range u32 | epoch u32 |
type fenceRecord struct {
	ref   base.RangeRef
	epoch base.Epoch
}

func (r fenceRecord) encode() []byte {
	e := encoder{}
	e.ref(r.ref)
	e.u32(uint32(r.epoch))
	return e.b
}

func decodeFence(b []byte) (r fenceRecord, ok bool) {
	d := decoder{b: b}
	r = fenceRecord{ref: d.ref(), epoch: base.Epoch(d.u32())}
	return r, !d.bad && len(d.b) == 0
}

// A fence of all that was led: | boot u64 |, the boot in which it was made.
func encodeFenceAllLed(boot uint64) []byte {
	return binary.LittleEndian.AppendUint64(nil, boot)
}

func decodeFenceAllLed(b []byte) (boot uint64, ok bool) {
	if len(b) != 8 {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b), true
}

// A seal record: | segment u64 | end i64 | cause u8 |
type sealRecord struct {
	segment base.SegmentID
	end     int64
	cause   base.Cause
}

func (r sealRecord) encode() []byte {
	e := encoder{}
	e.u64(uint64(r.segment))
	e.i64(r.end)
	e.u8(uint8(r.cause))
	return e.b
}

func decodeSeal(b []byte) (r sealRecord, ok bool) {
	d := decoder{b: b}
	r = sealRecord{segment: base.SegmentID(d.u64()), end: d.i64(), cause: base.Cause(d.u8())}
	return r, !d.bad && len(d.b) == 0
}

// A drop record: | topic 16 | range u32 | n u32 | n x segment u64 |
type dropRecord struct {
	ref      base.RangeRef
	segments []base.SegmentID
}

func (r dropRecord) encode() []byte {
	e := encoder{}
	e.ref(r.ref)
	e.u32(uint32(len(r.segments)))
	for _, s := range r.segments {
		e.u64(uint64(s))
	}
	return e.b
}

func decodeDrop(b []byte) (r dropRecord, ok bool) {
	d := decoder{b: b}
	r.ref = d.ref()
	for range d.count(8) {
		r.segments = append(r.segments, base.SegmentID(d.u64()))
	}
	return r, !d.bad && len(d.b) == 0
}

// A drop of a whole topic: | topic 16 |
func decodeDropTopic(b []byte) (topic base.TopicID, ok bool) {
	if len(b) != len(topic) {
		return topic, false
	}
	return base.TopicID(b), true
}
