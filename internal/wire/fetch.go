package wire

import (
	"encoding/binary"
	"fmt"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/keyspace"
)

// MaxFetchRanges is the most ranges one fetch may name.
const MaxFetchRanges = 4096

// FetchRequest reads whole batches from several ranges of one node. It is answered when MinBytes are there, when
// a range has something to tell (sealed, moved, an error), or after MaxWaitMs.
type FetchRequest struct {
	MaxWaitMs uint32
	MinBytes  uint32 // 0 answers at once
	MaxBytes  uint32 // of the whole answer; a first batch larger than it is sent all the same
	Ranges    []FetchRange
}

// FetchRange is one range of a FetchRequest.
type FetchRange struct {
	Topic      base.TopicID
	Range      base.RangeID
	Offset     int64  // the first record wanted; the answer begins with the batch that holds it
	MaxBytes   uint32 // of this range
	SeenCommit int64  // the highest commit this client was told: a replica that cannot prove it answers Behind
	Span       keyspace.Span
}

const (
	fetchRequestSize  = 16
	fetchRangeSize    = 60
	fetchResponseSize = 4
	fetchResultSize   = 68
)

// appendTo writes a fetch request:
//
//	0           4           8           12      14      16
//	+-----------+-----------+-----------+-------+-------+
//	| max wait  | min bytes | max bytes | count | zero  |  then count times:
//	+-----------+-----------+-----------+-------+-------+
//
//	0            16      20       28          32            40     44           52         60
//	+------------+-------+--------+-----------+-------------+------+------------+----------+
//	| topic      | range | offset | max bytes | seen commit | zero | span start | span end |
//	+------------+-------+--------+-----------+-------------+------+------------+----------+
func (m FetchRequest) appendTo(dst []byte) []byte {
	be := binary.BigEndian
	dst = be.AppendUint32(dst, m.MaxWaitMs)
	dst = be.AppendUint32(dst, m.MinBytes)
	dst = be.AppendUint32(dst, m.MaxBytes)
	dst = appendCount(dst, len(m.Ranges))
	for i := range m.Ranges {
		r := &m.Ranges[i]
		dst = append(dst, r.Topic[:]...)
		dst = be.AppendUint32(dst, uint32(r.Range))
		dst = be.AppendUint64(dst, uint64(r.Offset))
		dst = be.AppendUint32(dst, r.MaxBytes)
		dst = be.AppendUint64(dst, uint64(r.SeenCommit))
		dst = be.AppendUint32(dst, 0)
		dst = be.AppendUint64(dst, r.Span.Start)
		dst = be.AppendUint64(dst, r.Span.End)
	}
	return dst
}

func (m *FetchRequest) decode(b []byte) error {
	if err := need(b, fetchRequestSize); err != nil {
		return err
	}
	be := binary.BigEndian
	n, err := count(b[12:], len(b)-fetchRequestSize, fetchRangeSize)
	if err != nil {
		return err
	}
	*m = FetchRequest{MaxWaitMs: be.Uint32(b), MinBytes: be.Uint32(b[4:]), MaxBytes: be.Uint32(b[8:]), Ranges: room(m.Ranges, n)}
	b = b[fetchRequestSize:]
	for i := range m.Ranges {
		m.Ranges[i] = FetchRange{
			Topic:      base.TopicID(b[:16]),
			Range:      base.RangeID(be.Uint32(b[16:])),
			Offset:     int64(be.Uint64(b[20:])),
			MaxBytes:   be.Uint32(b[28:]),
			SeenCommit: int64(be.Uint64(b[32:])),
			Span:       keyspace.Span{Start: be.Uint64(b[44:]), End: be.Uint64(b[52:])},
		}
		if unknown := be.Uint32(b[40:]); unknown != 0 {
			return fmt.Errorf("flags %#08x of range %d are not known", unknown, i)
		}
		if s := m.Ranges[i].Span; !s.Valid() {
			return fmt.Errorf("span %s of range %d is empty", s, i)
		}
		b = b[fetchRangeSize:]
	}
	return nil
}

// FetchResponse answers the ranges in the order they were asked; the payload is their batches back to back.
type FetchResponse struct {
	Ranges []FetchRangeResult
}

// FetchState says what lies behind the bytes of a FetchRangeResult.
type FetchState uint8

// FetchActive: more will be appended at Next. FetchNext: this segment ended at End, which is where its successor
// begins; ask again (this node or, on NotReplica, the one that Locate names). FetchSealed: the range itself ended
// at End; its successors are in the route.
const (
	FetchActive FetchState = iota + 1
	FetchNext
	FetchSealed
)

// String prints active, next or sealed.
func (s FetchState) String() string {
	switch s {
	case FetchActive:
		return "active"
	case FetchNext:
		return "next"
	case FetchSealed:
		return "sealed"
	}
	return "unknown"
}

// FetchRangeResult is one range's part of the answer.
type FetchRangeResult struct {
	Topic      base.TopicID
	Range      base.RangeID
	Code       base.Code // CodeOK, or why this range has no bytes
	State      FetchState
	Commit     int64 // what is readable ends here
	Earliest   int64 // the oldest offset kept
	End        int64 // of the segment (FetchNext) or range (FetchSealed), else 0
	Next       int64 // where to go on: behind the last batch sent, or of those the Span left out
	Segment    base.SegmentID
	PayloadLen uint32 // this range's share of the payload
}

// appendTo writes a fetch response:
//
//	0       2       4
//	+-------+-------+
//	| count | zero  |  then count times:
//	+-------+-------+
//
//	0            16      20     22      23     24       32         40    48     56        64            68
//	+------------+-------+------+-------+------+--------+----------+-----+------+---------+-------------+
//	| topic      | range | code | state | zero | commit | earliest | end | next | segment | payload len |
//	+------------+-------+------+-------+------+--------+----------+-----+------+---------+-------------+
func (m FetchResponse) appendTo(dst []byte) []byte {
	be := binary.BigEndian
	dst = appendCount(dst, len(m.Ranges))
	for i := range m.Ranges {
		r := &m.Ranges[i]
		dst = append(dst, r.Topic[:]...)
		dst = be.AppendUint32(dst, uint32(r.Range))
		dst = be.AppendUint16(dst, uint16(r.Code))
		dst = append(dst, byte(r.State), 0)
		dst = be.AppendUint64(dst, uint64(r.Commit))
		dst = be.AppendUint64(dst, uint64(r.Earliest))
		dst = be.AppendUint64(dst, uint64(r.End))
		dst = be.AppendUint64(dst, uint64(r.Next))
		dst = be.AppendUint64(dst, uint64(r.Segment))
		dst = be.AppendUint32(dst, r.PayloadLen)
	}
	return dst
}

func (m *FetchResponse) decode(b []byte) error {
	if err := need(b, fetchResponseSize); err != nil {
		return err
	}
	n, err := count(b, len(b)-fetchResponseSize, fetchResultSize)
	if err != nil {
		return err
	}
	be := binary.BigEndian
	m.Ranges = room(m.Ranges, n)
	b = b[fetchResponseSize:]
	for i := range m.Ranges {
		m.Ranges[i] = FetchRangeResult{
			Topic:      base.TopicID(b[:16]),
			Range:      base.RangeID(be.Uint32(b[16:])),
			Code:       base.Code(be.Uint16(b[20:])),
			State:      FetchState(b[22]),
			Commit:     int64(be.Uint64(b[24:])),
			Earliest:   int64(be.Uint64(b[32:])),
			End:        int64(be.Uint64(b[40:])),
			Next:       int64(be.Uint64(b[48:])),
			Segment:    base.SegmentID(be.Uint64(b[56:])),
			PayloadLen: be.Uint32(b[64:]),
		}
		b = b[fetchResultSize:]
	}
	return nil
}

// Payloads cuts a fetch answer's payload into the shares of its ranges; it fails when they do not add up.
func (m *FetchResponse) Payloads(payload []byte) ([][]byte, error) {
	parts := make([][]byte, len(m.Ranges))
	for i, r := range m.Ranges {
		n := int(r.PayloadLen)
		if n > len(payload) {
			return nil, corruptFrame("range %d claims %d bytes of the %d left", i, n, len(payload))
		}
		parts[i], payload = payload[:n:n], payload[n:]
	}
	if len(payload) != 0 {
		return nil, corruptFrame("%d bytes of the payload belong to no range", len(payload))
	}
	return parts, nil
}
