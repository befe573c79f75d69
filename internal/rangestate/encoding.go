package rangestate

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/cespare/xxhash/v2"

	"github.com/eastguard/eastguard/internal/base"
)

// The encoding; all numbers little-endian. Sections follow each other in the order of their tags; an empty one is
// left out. Decode refuses a tag that it does not know: a state without its fences is not the same state.
//
//	+------+---------+-------+-------------+----------+---------------- - -+---------+
//	| "RS" | version | flags | commit i64  | end i64  | sections...        | crc32c  |
//	|  2   |    1    |   1   |      8      |    8     |                    |    4    |
//	+------+---------+-------+-------------+----------+---------------- - -+---------+
//
//	section: | tag u8 | count u32 | items... |
const (
	version     = 1
	flagForgot  = 1 << 0
	headBytes   = 20
	crcBytes    = 4
	tagProducer = 1 // producers, in the order of their last batch, oldest first
	tagPending  = 2 // batches above commit, in offset order
	// 3 is for the slots of keyed topics, 4 for their fences.
)

// A producer: | id i64 | epoch i16 | last ms i64 | n u8 | n x (base i64 | ms i64 | first i32 | last i32) |
// A pending batch: | id i64 | epoch i16 | base i64 | ms i64 | first i32 | last i32 |
const (
	producerBytes = 19
	windowBytes   = 24
	pendingBytes  = 34
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Encode returns the state as bytes, pending part included. Equal states have equal bytes.
func (s *State) Encode() []byte {
	b := make([]byte, 0, headBytes+crcBytes+10+len(s.producers)*(producerBytes+Window*windowBytes)+len(s.pending)*pendingBytes)
	var flags byte
	if s.forgot {
		flags |= flagForgot
	}
	b = append(b, 'R', 'S', version, flags)
	b = le64(b, s.commit)
	b = le64(b, s.end)
	b = s.encodeProducers(b)
	if n := len(s.pending); n > 0 {
		b = append(b, tagPending)
		b = le32(b, int32(n))
		for i := range s.pending {
			b = encodePending(b, &s.pending[i])
		}
	}
	return seal(b)
}

// seal appends the checksum.
func seal(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func (s *State) encodeProducers(b []byte) []byte {
	if len(s.producers) == 0 {
		return b
	}
	b = append(b, tagProducer)
	b = le32(b, int32(len(s.producers)))
	for p := s.oldest; p != nil; p = p.newer {
		b = le64(b, p.id)
		b = le16(b, p.epoch)
		b = le64(b, p.lastMs)
		b = append(b, byte(p.n))
		for i := range p.n {
			w := &p.window[i]
			b = le64(b, w.base)
			b = le64(b, w.ms)
			b = le32(b, w.first)
			b = le32(b, w.last)
		}
	}
	return b
}

func encodePending(b []byte, p *batch) []byte {
	b = le64(b, p.id)
	b = le16(b, p.epoch)
	b = le64(b, p.base)
	b = le64(b, p.ms)
	b = le32(b, p.first)
	return le32(b, p.last)
}

// Checksum is a hash of what the committed part remembers. Replicas that committed the same batches have the same one.
func (s *State) Checksum() uint64 {
	b := []byte{0}
	if s.forgot {
		b[0] = flagForgot
	}
	return xxhash.Sum64(s.encodeProducers(b))
}

// Decode is the inverse of Encode. It never allocates more than a small multiple of len(b); b is not kept.
func Decode(b []byte) (*State, error) {
	if len(b) < headBytes+crcBytes {
		return nil, corrupt("%d bytes are too few", len(b))
	}
	body, sum := b[:len(b)-crcBytes], binary.LittleEndian.Uint32(b[len(b)-crcBytes:])
	if got := crc32.Checksum(body, castagnoli); got != sum {
		return nil, corrupt("crc is %#08x, %#08x is stored", got, sum)
	}
	if body[0] != 'R' || body[1] != 'S' {
		return nil, corrupt("it begins with %q", body[:2])
	}
	if body[2] != version || body[3]&^flagForgot != 0 {
		return nil, corrupt("version %d with flags %#02x; this broker knows version %d", body[2], body[3], version)
	}
	d := decoder{b: body[4:]}
	s := &State{forgot: body[3]&flagForgot != 0, commit: d.i64(), end: d.i64()}
	if s.commit > s.end || s.commit < 0 {
		return nil, corrupt("commit %d with end %d", s.commit, s.end)
	}
	lastTag := byte(0)
	for len(d.b) > 0 && d.err == nil {
		tag := d.u8()
		if tag <= lastTag {
			d.fail("section %d after section %d", tag, lastTag)
		}
		lastTag = tag
		n := int(uint32(d.i32()))
		switch tag {
		case tagProducer:
			d.producers(s, n)
		case tagPending:
			d.pending(s, n)
		default:
			d.fail("section %d is not known; a newer broker wrote it", tag)
		}
	}
	if d.err != nil {
		return nil, d.err
	}
	return s, nil
}

func corrupt(format string, args ...any) error {
	return base.Errorf(base.CodeCorruptData, "decode range state", format, args...)
}

func le64(b []byte, v int64) []byte { return binary.LittleEndian.AppendUint64(b, uint64(v)) }
func le32(b []byte, v int32) []byte { return binary.LittleEndian.AppendUint32(b, uint32(v)) }
func le16(b []byte, v int16) []byte { return binary.LittleEndian.AppendUint16(b, uint16(v)) }
