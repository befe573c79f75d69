package header

import (
	"encoding/binary"
	"math"
)

// Size is the length of the header in bytes.
const Size = 61

// lead is how many bytes of a batch its own length field does not count: base offset and length themselves.
const lead = 12

// NoProducer is the producer id of a batch that asks for no deduplication.
const NoProducer = -1

// Magic is the only batch format there is: version 2.
const Magic = 2

// Attribute bits of a batch.
const (
	AttrCodec         int16 = 0x07
	AttrLogAppendTime int16 = 0x08 // records' timestamps are the batch's MaxTimestamp
	AttrTransactional int16 = 0x10
	AttrControl       int16 = 0x20
)

// The header, all numbers big-endian. What Patch writes is marked *, what the CRC covers begins at 21.
//
//	 0        8      12       16    17   21     23           27
//	+--------+------+--------+-----+----+------+------------+----------------+
//	| base * | len  | epoch *|magic|crc | attr | last delta | first timestamp|
//	+--------+------+--------+-----+----+------+------------+----------------+
//	 35              43          51     53         57       61
//	+---------------+-----------+------+----------+--------+-------------- - -
//	| max timestamp | producer  |epoch | base seq | records| records...
//	+---------------+-----------+------+----------+--------+-------------- - -
const (
	atBase          = 0
	atLength        = 8
	atEpoch         = 12
	atMagic         = 16
	atCRC           = 17
	atAttributes    = 21
	atLastDelta     = 23
	atFirstTime     = 27
	atMaxTime       = 35
	atProducerID    = 43
	atProducerEpoch = 51
	atBaseSequence  = 53
	atRecords       = 57
)

// Header is the fixed part of a batch.
type Header struct {
	BaseOffset      int64  // offset of the first record; the broker's
	Length          int32  // bytes behind this field: the batch is 12 bytes longer
	Epoch           int32  // leader epoch; the broker's
	Magic           int8   // 2
	CRC             uint32 // CRC32C of everything from Attributes on
	Attributes      int16
	LastOffsetDelta int32 // offset of the last record minus BaseOffset
	FirstTimestamp  int64 // milliseconds
	MaxTimestamp    int64
	ProducerID      int64 // NoProducer = none
	ProducerEpoch   int16
	BaseSequence    int32 // of the first record, per producer and range
	Records         int32
}

// Parse reads a header. It needs the first Size bytes only and checks what a reader needs before it can trust the
// rest: the magic, and a length that holds at least a header. It does not look at the CRC; see Check.
func Parse(b []byte) (Header, error) {
	if len(b) < Size {
		return Header{}, corrupt("%d bytes are too few for a batch header of %d", len(b), Size)
	}
	h := decode(b)
	if h.Magic != Magic {
		return h, corrupt("magic is %d, only %d is known", h.Magic, Magic)
	}
	if h.Length < Size-lead || h.Length > math.MaxInt32-lead {
		return h, corrupt("a batch cannot have a length field of %d", h.Length)
	}
	return h, nil
}

func decode(b []byte) Header {
	_ = b[Size-1] // one bounds check for all that follow
	be := binary.BigEndian
	return Header{
		BaseOffset:      int64(be.Uint64(b[atBase:])),
		Length:          int32(be.Uint32(b[atLength:])),
		Epoch:           int32(be.Uint32(b[atEpoch:])),
		Magic:           int8(b[atMagic]),
		CRC:             be.Uint32(b[atCRC:]),
		Attributes:      int16(be.Uint16(b[atAttributes:])),
		LastOffsetDelta: int32(be.Uint32(b[atLastDelta:])),
		FirstTimestamp:  int64(be.Uint64(b[atFirstTime:])),
		MaxTimestamp:    int64(be.Uint64(b[atMaxTime:])),
		ProducerID:      int64(be.Uint64(b[atProducerID:])),
		ProducerEpoch:   int16(be.Uint16(b[atProducerEpoch:])),
		BaseSequence:    int32(be.Uint32(b[atBaseSequence:])),
		Records:         int32(be.Uint32(b[atRecords:])),
	}
}

// Put writes h into the first Size bytes of b: the inverse of Parse. It does not compute the CRC; see Seal.
func (h Header) Put(b []byte) {
	_ = b[Size-1]
	be := binary.BigEndian
	be.PutUint64(b[atBase:], uint64(h.BaseOffset))
	be.PutUint32(b[atLength:], uint32(h.Length))
	be.PutUint32(b[atEpoch:], uint32(h.Epoch))
	b[atMagic] = byte(h.Magic)
	be.PutUint32(b[atCRC:], h.CRC)
	be.PutUint16(b[atAttributes:], uint16(h.Attributes))
	be.PutUint32(b[atLastDelta:], uint32(h.LastOffsetDelta))
	be.PutUint64(b[atFirstTime:], uint64(h.FirstTimestamp))
	be.PutUint64(b[atMaxTime:], uint64(h.MaxTimestamp))
	be.PutUint64(b[atProducerID:], uint64(h.ProducerID))
	be.PutUint16(b[atProducerEpoch:], uint16(h.ProducerEpoch))
	be.PutUint32(b[atBaseSequence:], uint32(h.BaseSequence))
	be.PutUint32(b[atRecords:], uint32(h.Records))
}

// Size is the whole batch in bytes, header included.
func (h Header) Size() int { return lead + int(h.Length) }

// End is the offset behind the batch's last record.
func (h Header) End() int64 { return h.BaseOffset + int64(h.LastOffsetDelta) + 1 }

// Codec is the compression of the batch's records.
func (h Header) Codec() Codec { return Codec(h.Attributes & AttrCodec) }

// LogAppendTime reports whether the records carry the batch's MaxTimestamp instead of their own.
func (h Header) LogAppendTime() bool { return h.Attributes&AttrLogAppendTime != 0 }

// HasProducer reports whether the batch asks to be deduplicated.
func (h Header) HasProducer() bool { return h.ProducerID != NoProducer }

// LastSequence is the sequence number of the batch's last record. Sequences wrap from 2^31-1 to 0.
func (h Header) LastSequence() int32 {
	return int32((int64(h.BaseSequence) + int64(h.LastOffsetDelta)) & math.MaxInt32)
}

// Patch writes the broker's two fields into a batch in place. The CRC does not cover them.
func Patch(b []byte, base int64, epoch int32) {
	binary.BigEndian.PutUint64(b[atBase:], uint64(base))
	binary.BigEndian.PutUint32(b[atEpoch:], uint32(epoch))
}

// Cut takes the first batch off a run of whole batches, such as a fetch's payload. It checks no more than Parse does
// and that the batch is there to its end.
func Cut(b []byte) (batch, rest []byte, err error) {
	h, err := Parse(b)
	if err != nil {
		return nil, b, err
	}
	if n := h.Size(); n <= len(b) {
		return b[:n:n], b[n:], nil
	}
	return nil, b, corrupt("a batch of %d bytes ends after %d", h.Size(), len(b))
}
