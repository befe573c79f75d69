package header

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/eastguard/eastguard/internal/base"
)

// castagnoli is CRC32C, which the CPU computes.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// known are the attribute bits that may be set on arrival. Transactions, control batches and whatever Kafka may
// define later are refused: the broker would store them without keeping what they promise.
const known = AttrCodec | AttrLogAppendTime

// minRecord is the size of a record without key, value and headers: its length, its attributes, two deltas and three
// lengths of a byte each.
const minRecord = 7

// Admit is what the broker asks of every batch before it takes it: that Check finds nothing wrong, and that an
// uncompressed one has room for as many records as it says. What was stored by an earlier version is held to Check alone.
func Admit(b []byte, maxBytes int) (Header, error) {
	h, err := Check(b, maxBytes)
	if body := len(b) - Size; err == nil && h.Codec() == None && int64(h.Records)*minRecord > int64(body) {
		err = corrupt("%d records in %d bytes: the smallest takes %d", h.Records, body, minRecord)
	}
	return h, err
}

// Check is what must hold of every batch that arrives or is stored: b is exactly one batch, of magic 2, not above
// maxBytes (0 = no limit), of a codec that consumers can read, with at least one record and offsets without
// holes, and its CRC holds. The records themselves are not looked at.
func Check(b []byte, maxBytes int) (Header, error) {
	if maxBytes > 0 && len(b) > maxBytes {
		return Header{}, base.Errorf(base.CodeBatchTooLarge, "check batch", "the batch has %d bytes, at most %d are accepted", len(b), maxBytes)
	}
	h, err := Parse(b)
	if err != nil {
		return h, err
	}
	if err := h.validate(len(b)); err != nil {
		return h, err
	}
	if got := Sum(b); got != h.CRC {
		return h, corrupt("crc is %#08x, the header says %#08x", got, h.CRC)
	}
	return h, nil
}

// validate holds the rules that need no byte beyond the header.
func (h Header) validate(size int) error {
	switch {
	case h.Size() != size:
		return corrupt("the header states %d bytes, %d arrived", h.Size(), size)
	case h.Attributes&^known != 0:
		return corrupt("attributes %#04x: transactional, control and unknown batches are not accepted", uint16(h.Attributes))
	case !h.Codec().Accepted():
		return corrupt("compression %s is not accepted", h.Codec()).WithHint("use none, lz4 or zstd")
	case h.Records < 1:
		return corrupt("a batch of %d records", h.Records)
	case h.LastOffsetDelta != h.Records-1:
		return corrupt("%d records with a last offset delta of %d: offsets must be dense", h.Records, h.LastOffsetDelta)
	case h.ProducerID < NoProducer:
		return corrupt("producer id %d", h.ProducerID)
	case h.HasProducer() && (h.ProducerEpoch < 0 || h.BaseSequence < 0):
		return corrupt("producer %d with epoch %d and sequence %d", h.ProducerID, h.ProducerEpoch, h.BaseSequence)
	}
	return nil
}

// Sum computes the CRC32C that the batch's header should state. b must hold at least a header.
func Sum(b []byte) uint32 { return crc32.Checksum(b[atAttributes:], castagnoli) }

// Seal computes the CRC of a finished batch and writes it into its header.
func Seal(b []byte) { binary.BigEndian.PutUint32(b[atCRC:], Sum(b)) }

func corrupt(format string, args ...any) *base.Error {
	return base.Errorf(base.CodeCorruptBatch, "check batch", format, args...)
}
