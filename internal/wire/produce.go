package wire

import (
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
}

// ProduceResponse acks the batch: it is durable on every replica.
type ProduceResponse struct {
	Base      int64 // offset of the batch's first record
	AppendMs  int64 // the leader's clock
	Segment   base.SegmentID
	Epoch     base.Epoch
	Duplicate bool // an earlier try had been appended already; Base is that one's
}
