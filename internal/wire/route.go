package wire

import (
	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/keyspace"
)

// RouteRequest asks for everything a client needs to reach a topic: by name, or by id when Name is empty.
type RouteRequest struct {
	Name  string       `cbor:"1,keyasint,omitempty"`
	Topic base.TopicID `cbor:"2,keyasint,omitempty"`
}

// RouteResponse answers it.
type RouteResponse struct {
	Topic TopicRoute `cbor:"1,keyasint"`
}

// TopicRoute is a topic as clients see it. Sealed ranges that are not trimmed away are listed too: consumers
// drain them before their children.
type TopicRoute struct {
	ID      base.TopicID     `cbor:"1,keyasint"`
	Name    string           `cbor:"2,keyasint"`
	Version base.Version     `cbor:"3,keyasint"`
	Config  base.TopicConfig `cbor:"4,keyasint"`
	Ranges  []RangeRoute     `cbor:"5,keyasint"`
	Nodes   []NodeAddress    `cbor:"6,keyasint,omitempty"` // of every node named here

	Shard       base.ShardID `cbor:"7,keyasint,omitempty"` // that holds the topic's metadata
	ShardLeader base.NodeID  `cbor:"8,keyasint,omitempty"` // whom to ask about the topic next time
}

// RangeRoute is one range of a TopicRoute.
type RangeRoute struct {
	ID       base.RangeID   `cbor:"1,keyasint"`
	Span     keyspace.Span  `cbor:"2,keyasint"`
	State    base.State     `cbor:"3,keyasint"`
	Parents  []base.RangeID `cbor:"4,keyasint,omitempty"`
	Children []base.RangeID `cbor:"5,keyasint,omitempty"`
	Earliest int64          `cbor:"6,keyasint,omitempty"` // as of the last trim the metadata knows
	End      int64          `cbor:"7,keyasint,omitempty"` // of a sealed range; the active one's is the leader's to tell
	Active   *SegmentRoute  `cbor:"8,keyasint,omitempty"` // nil when sealed
}

// SegmentRoute says who holds a segment.
type SegmentRoute struct {
	ID       base.SegmentID `cbor:"1,keyasint"`
	Epoch    base.Epoch     `cbor:"2,keyasint,omitempty"`
	Base     int64          `cbor:"3,keyasint,omitempty"`
	End      int64          `cbor:"4,keyasint,omitempty"` // of a sealed one
	State    base.State     `cbor:"5,keyasint"`
	Replicas []base.NodeID  `cbor:"6,keyasint"` // leader first
}

// NodeAddress is where clients reach a node.
type NodeAddress struct {
	ID      base.NodeID `cbor:"1,keyasint"`
	Address string      `cbor:"2,keyasint"` // host:port
	Rack    string      `cbor:"3,keyasint,omitempty"`
}

// LocateRequest asks who holds the segment with one offset of a range.
type LocateRequest struct {
	Ref    base.RangeRef `cbor:"1,keyasint"`
	Offset int64         `cbor:"2,keyasint,omitempty"`
	Name   string        `cbor:"3,keyasint,omitempty"` // of the topic, where the asker knows it: spares a search
}

// LocateResponse answers it.
type LocateResponse struct {
	Segment SegmentRoute  `cbor:"1,keyasint"`
	Nodes   []NodeAddress `cbor:"2,keyasint,omitempty"`
}
