package record

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
)

// Builder makes one batch after another. Records are encoded as they are appended, into one buffer that is kept
// from batch to batch. It is not safe for concurrent use.
type Builder struct {
	codec Codec
	level int

	buf     []byte // room for the header, then the records so far
	records int
	first   int64 // timestamps
	max     int64
}

// NewBuilder makes a Builder. level is the codec's own compression level, 0 its default.
func NewBuilder(codec Codec, level int) *Builder {
	b := &Builder{codec: codec, level: level, buf: make([]byte, header.Size, 4<<10)}
	b.Reset()
	return b
}

// Reset forgets the records appended so far and keeps the buffer.
func (b *Builder) Reset() {
	b.buf = b.buf[:header.Size]
	b.records, b.first, b.max = 0, 0, math.MinInt64
}

// Len is the number of records appended.
func (b *Builder) Len() int { return b.records }

// Size is the size in bytes of the batch as it stands, not compressed, header included.
func (b *Builder) Size() int { return len(b.buf) }

// Append encodes r behind the records already there and keeps nothing of it.
func (b *Builder) Append(r Record) {
	if b.records == 0 {
		b.first = r.TimestampMs
	}
	b.max = max(b.max, r.TimestampMs)
	buf := binary.AppendVarint(b.buf, int64(b.bodySize(&r)))
	buf = append(buf, 0) // attributes: none are defined
	buf = binary.AppendVarint(buf, r.TimestampMs-b.first)
	buf = binary.AppendVarint(buf, int64(b.records))
	buf = appendBytes(buf, r.Key)
	buf = appendBytes(buf, r.Value)
	buf = binary.AppendVarint(buf, int64(len(r.Headers)))
	for i := range r.Headers {
		h := &r.Headers[i]
		buf = binary.AppendVarint(buf, int64(len(h.Key)))
		buf = append(buf, h.Key...)
		buf = appendBytes(buf, h.Value)
	}
	b.buf = buf
	b.records++
}

// Build appends the finished batch to dst: header and records, compressed, CRC set, base offset and leader epoch
// 0. The records stay, so that the same batch can be built again under another sequence.
func (b *Builder) Build(dst []byte, producerID int64, epoch int16, baseSeq int32) ([]byte, error) {
	if b.records == 0 {
		return dst, base.Errorf(base.CodeInvalidArgument, "build batch", "a batch needs at least one record")
	}
	at := len(dst)
	dst, err := b.pack(dst)
	if err != nil {
		return dst[:at], err
	}
	if size := len(dst) - at; size > math.MaxInt32 {
		return dst[:at], base.Errorf(base.CodeBatchTooLarge, "build batch", "%d bytes do not fit into a batch", size)
	}
	batch := dst[at:]
	header.Header{
		Length: int32(len(batch) - lengthEnd), Magic: header.Magic, Attributes: int16(b.codec),
		LastOffsetDelta: int32(b.records - 1), Records: int32(b.records),
		FirstTimestamp: b.first, MaxTimestamp: b.max,
		ProducerID: producerID, ProducerEpoch: epoch, BaseSequence: baseSeq,
	}.Put(batch)
	header.Seal(batch)
	return dst, nil
}

// lengthEnd is where a batch's length begins to count.
const lengthEnd = 12

// pack appends room for the header, and the records in the builder's codec.
func (b *Builder) pack(dst []byte) ([]byte, error) {
	if b.codec == header.None {
		return append(dst, b.buf...), nil
	}
	dst = append(dst, b.buf[:header.Size]...)
	return compress(dst, b.buf[header.Size:], b.codec, b.level)
}

// bodySize is the size of a record behind its length field, if it is appended next.
func (b *Builder) bodySize(r *Record) int {
	delta := int64(0)
	if b.records > 0 {
		delta = r.TimestampMs - b.first
	}
	n := 1 + varintSize(delta) + varintSize(int64(b.records)) +
		bytesSize(r.Key) + bytesSize(r.Value) + varintSize(int64(len(r.Headers)))
	for i := range r.Headers {
		h := &r.Headers[i]
		n += varintSize(int64(len(h.Key))) + len(h.Key) + bytesSize(h.Value)
	}
	return n
}

// appendBytes writes a length and what it counts; nil is the length -1.
func appendBytes(dst, b []byte) []byte {
	if b == nil {
		return append(dst, 1) // -1, zigzag
	}
	dst = binary.AppendVarint(dst, int64(len(b)))
	return append(dst, b...)
}

func bytesSize(b []byte) int {
	if b == nil {
		return 1
	}
	return varintSize(int64(len(b))) + len(b)
}

// varintSize is the number of bytes of a zigzag varint: seven bits each.
func varintSize(v int64) int {
	zigzag := uint64(v)<<1 ^ uint64(v>>63)
	return (bits.Len64(zigzag|1) + 6) / 7
}
