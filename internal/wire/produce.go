package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/keyspace"
)

// ProduceRequest appends one batch, which is the frame's payload, to one range.
type ProduceRequest struct {
	Topic     base.TopicID
	Range     base.RangeID
	Codec     uint8         // the batch's codec id, so that the broker's stages need not open the header
	SpanLo    keyspace.Hash // lowest and highest routing hash in the batch, both inclusive: a hint kept in the index;
	SpanHi    keyspace.Hash // 0 and 2^64-1 when not known or keyless
	TimeoutMs uint32        // how long the client waits; 0 = the broker's own limit
	Trace     bool          // answer with a ProduceTrace, in CBOR, as the payload
}

const (
	produceRequestSize  = 44
	produceResponseSize = 32

	flagTrace = 1 // of a request
)

// appendTo writes a produce request:
//
//	0            16      20     21     22      24       32       40        44
//	+------------+-------+------+------+-------+--------+--------+---------+
//	| topic      | range | codec| flags| zero  | span lo| span hi| timeout |    flags: 1 = trace
//	+------------+-------+------+------+-------+--------+--------+---------+
func (m ProduceRequest) appendTo(dst []byte) []byte {
	be := binary.BigEndian
	dst = append(dst, m.Topic[:]...)
	dst = be.AppendUint32(dst, uint32(m.Range))
	var flags byte
	if m.Trace {
		flags |= flagTrace
	}
	dst = append(dst, m.Codec, flags, 0, 0)
	dst = be.AppendUint64(dst, m.SpanLo)
	dst = be.AppendUint64(dst, m.SpanHi)
	return be.AppendUint32(dst, m.TimeoutMs)
}

func (m *ProduceRequest) decode(b []byte) error {
	if err := need(b, produceRequestSize); err != nil {
		return err
	}
	be := binary.BigEndian
	if unknown := be.Uint32(b[20:]) &^ (0xff<<24 | flagTrace<<16); unknown != 0 {
		return fmt.Errorf("flags %#06x are not known", unknown)
	}
	*m = ProduceRequest{
		Topic:     base.TopicID(b[:16]),
		Range:     base.RangeID(be.Uint32(b[16:])),
		Codec:     b[20],
		SpanLo:    be.Uint64(b[24:]),
		SpanHi:    be.Uint64(b[32:]),
		TimeoutMs: be.Uint32(b[40:]),
		Trace:     b[21]&flagTrace != 0,
	}
	return nil
}

// ProduceResponse acks the batch: it is durable on every replica.
type ProduceResponse struct {
	Base      int64 // offset of the batch's first record
	AppendMs  int64 // the leader's clock
	Segment   base.SegmentID
	Epoch     base.Epoch
	Duplicate bool // an earlier try had been appended already; Base is that one's

	// Replicas have acked the batch, the leader first. None is named of a duplicate in an earlier segment than the one that
	// is led where the answer comes from. The list is not changed: the next message decoded into this one may share it.
	Replicas []base.NodeID
}

const flagDuplicate = 1

// appendTo writes a produce response:
//
//	0        8           16        24      28     29      30     32
//	+--------+-----------+---------+-------+------+-------+------+
//	| base   | append ms | segment | epoch | flags| count | zero |  then count times:    flags: 1 = duplicate
//	+--------+-----------+---------+-------+------+-------+------+
//
//	0        1
//	+--------+------+
//	| length | node |
//	+--------+------+
func (m ProduceResponse) appendTo(dst []byte) []byte {
	be := binary.BigEndian
	dst = slices.Grow(dst, m.size())
	dst = be.AppendUint64(dst, uint64(m.Base))
	dst = be.AppendUint64(dst, uint64(m.AppendMs))
	dst = be.AppendUint64(dst, uint64(m.Segment))
	dst = be.AppendUint32(dst, uint32(m.Epoch))
	var flags byte
	if m.Duplicate {
		flags |= flagDuplicate
	}
	dst = append(dst, flags, byte(len(m.Replicas)), 0, 0)
	for _, node := range m.Replicas {
		dst = append(append(dst, byte(len(node))), node...)
	}
	return dst
}

// size is the length of the message. A segment has few replicas, and a node id at most 64 bytes.
func (m ProduceResponse) size() int {
	n := produceResponseSize + len(m.Replicas)
	for _, node := range m.Replicas {
		if len(node) > math.MaxUint8 {
			panic(fmt.Sprintf("wire: a node id of %d bytes", len(node))) // Check has let nobody have it
		}
		n += len(node)
	}
	if len(m.Replicas) > math.MaxUint8 {
		panic(fmt.Sprintf("wire: %d replicas", len(m.Replicas)))
	}
	return n
}

func (m *ProduceResponse) decode(b []byte) error {
	if err := need(b, produceResponseSize); err != nil {
		return err
	}
	be := binary.BigEndian
	replicas, err := decodeNodes(m.Replicas, int(b[29]), b[produceResponseSize:])
	if err != nil {
		return err
	}
	*m = ProduceResponse{
		Base:      int64(be.Uint64(b)),
		AppendMs:  int64(be.Uint64(b[8:])),
		Segment:   base.SegmentID(be.Uint64(b[16:])),
		Epoch:     base.Epoch(be.Uint32(b[24:])),
		Duplicate: b[28]&flagDuplicate != 0,
		Replicas:  replicas,
	}
	return nil
}

// decodeNodes reads count names. The replicas of one ack are mostly those of the last: when they are, its list is returned
// again, and nothing allocated.
func decodeNodes(last []base.NodeID, count int, b []byte) ([]base.NodeID, error) {
	if count == 0 {
		return nil, nil
	}
	same := len(last) == count
	rest := b
	for i := range count {
		name, behind, ok := cutNode(rest)
		if !ok {
			return nil, fmt.Errorf("%d node ids do not fit in %d bytes", count, len(b))
		}
		same = same && string(last[i]) == string(name)
		rest = behind
	}
	if same {
		return last, nil
	}
	list := make([]base.NodeID, count)
	for i := range list {
		var name []byte
		name, b, _ = cutNode(b)
		list[i] = base.NodeID(name)
	}
	return list, nil
}

// cutNode takes one name off b.
func cutNode(b []byte) (name, rest []byte, ok bool) {
	if len(b) == 0 || len(b) < 1+int(b[0]) {
		return nil, nil, false
	}
	return b[1 : 1+int(b[0])], b[1+int(b[0]):], true
}
