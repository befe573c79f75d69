package meta

import (
	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/keyspace"
)

// Command is one entry of a shard's log. Exactly one of the fields after TimeMs is set.
//
// Field numbers are for ever. Taken by commands that are not written yet:
//
//	20 SplitRange         21 MergeRanges       22 ReplaceRange      23 ResolveRange
//	24 ReassignSegment    25 SetRangeLoad
//	40 CreateShard        42 SetUser           43 SetSetting
type Command struct {
	RequestID base.RequestID `cbor:"1,keyasint,omitzero"` // zero: not remembered
	TimeMs    int64          `cbor:"2,keyasint"`          // the proposer's clock

	CreateTopic  *CreateTopic  `cbor:"3,keyasint,omitempty"`
	AlterTopic   *AlterTopic   `cbor:"4,keyasint,omitempty"`
	DeleteTopic  *DeleteTopic  `cbor:"5,keyasint,omitempty"`
	TopicsGone   []TopicGone   `cbor:"6,keyasint,omitempty"`
	RollSegments []RollSegment `cbor:"7,keyasint,omitempty"`
	TrimRanges   []TrimRange   `cbor:"8,keyasint,omitempty"`
	OpenProducer *OpenProducer `cbor:"9,keyasint,omitempty"`

	ForceSeal *ForceSealSegment `cbor:"26,keyasint,omitempty"`

	InitCluster  *InitCluster  `cbor:"30,keyasint,omitempty"` // these four in the root shard only
	RegisterNode *RegisterNode `cbor:"31,keyasint,omitempty"`
	SetNodeState *SetNodeState `cbor:"32,keyasint,omitempty"`
	ReplaceNode  *ReplaceNode  `cbor:"41,keyasint,omitempty"`

	RecordRecovery *RecordRecovery `cbor:"50,keyasint,omitempty"` // in any shard
}

// CreateTopic makes a topic with one active segment in each of its initial ranges.
type CreateTopic struct {
	ID       base.TopicID     `cbor:"1,keyasint"`
	Name     string           `cbor:"2,keyasint"`
	Config   base.TopicConfig `cbor:"3,keyasint"`
	Spans    []keyspace.Span  `cbor:"4,keyasint"` // tile the key space; range i+1 gets Spans[i]
	Replicas [][]base.Replica `cbor:"5,keyasint"` // one set a span, leader first
	Internal bool             `cbor:"6,keyasint,omitempty"`
	Boots    [][]uint64       `cbor:"7,keyasint,omitempty"` // of Replicas; see Segment.Boots
}

// AlterTopic changes settings. ExpectVersion, when not 0, must be the topic's version.
type AlterTopic struct {
	Topic         base.TopicID      `cbor:"1,keyasint,omitzero"` // by id, else by name
	Name          string            `cbor:"2,keyasint,omitempty"`
	ExpectVersion base.Version      `cbor:"3,keyasint,omitempty"`
	Set           map[string]string `cbor:"4,keyasint,omitempty"`
	Unset         []string          `cbor:"5,keyasint,omitempty"`
}

// DeleteTopic removes a topic; its name is free at once, its data goes as the replicas confirm.
type DeleteTopic struct {
	Topic         base.TopicID `cbor:"1,keyasint,omitzero"` // by id, else by name
	Name          string       `cbor:"2,keyasint,omitempty"`
	ExpectVersion base.Version `cbor:"3,keyasint,omitempty"`
}

// TopicGone says that one disk holds nothing of a deleted topic any more.
type TopicGone struct {
	Topic   base.TopicID `cbor:"1,keyasint"`
	Replica base.Replica `cbor:"2,keyasint"`
}

// RollSegment seals the active segment of a range at End and opens its successor on Replicas. It takes effect only
// if (Segment, Epoch) is what is active.
type RollSegment struct {
	Topic        base.TopicID   `cbor:"1,keyasint"`
	Range        base.RangeID   `cbor:"2,keyasint"`
	Segment      base.SegmentID `cbor:"3,keyasint"`
	Epoch        base.Epoch     `cbor:"4,keyasint"`
	End          int64          `cbor:"5,keyasint"`
	Cause        base.Cause     `cbor:"6,keyasint"`
	Replicas     []base.Replica `cbor:"7,keyasint"` // of the successor, leader first
	Bytes        int64          `cbor:"8,keyasint,omitempty"`
	LastAppendMs int64          `cbor:"9,keyasint,omitempty"`
	GapMs        int64          `cbor:"10,keyasint,omitempty"`
	Opened       bool           `cbor:"11,keyasint,omitempty"` // some replica has confirmed Segment
	Boots        []uint64       `cbor:"12,keyasint,omitempty"` // of Replicas; see Segment.Boots
	Late         []base.NodeID  `cbor:"13,keyasint,omitempty"` // replicas that the leader waited for in vain: for the journal
	Lost         []base.NodeID  `cbor:"14,keyasint,omitempty"` // replicas that had gone: for the journal
	Lossy        bool           `cbor:"15,keyasint,omitempty"` // acked records above End may be gone; see Segment.Lossy
}

// TrimRange drops the oldest segments of a range, up to and including Through. All of them must be sealed.
type TrimRange struct {
	Topic   base.TopicID   `cbor:"1,keyasint"`
	Range   base.RangeID   `cbor:"2,keyasint"`
	Through base.SegmentID `cbor:"3,keyasint"`
	Cause   base.Cause     `cbor:"4,keyasint,omitempty"` // AGE or DATA_PRESSURE for retention, OPERATOR for truncate
}

// OpenProducer hands out the next epoch of a named producer. ID is used when the name is new or its epochs are used up.
type OpenProducer struct {
	Topic base.TopicID `cbor:"1,keyasint"`
	Name  string       `cbor:"2,keyasint"`
	ID    int64        `cbor:"3,keyasint"`
}

// InitCluster gives the cluster its id, once.
type InitCluster struct {
	Cluster base.ClusterID `cbor:"1,keyasint"`
}

// RegisterNode admits one start of a node, or refuses it.
type RegisterNode struct {
	Node     base.NodeID       `cbor:"1,keyasint"`
	Disk     base.DiskID       `cbor:"2,keyasint"`
	Meta     base.UUID         `cbor:"3,keyasint"`
	Boot     uint64            `cbor:"4,keyasint"`
	Instance base.UUID         `cbor:"5,keyasint"` // of the process: the same start may register again
	WALEnd   uint64            `cbor:"6,keyasint,omitempty"`
	Address  string            `cbor:"7,keyasint,omitempty"` // host:port of its client port
	Rack     string            `cbor:"8,keyasint,omitempty"`
	Labels   map[string]string `cbor:"9,keyasint,omitempty"`
	Version  string            `cbor:"10,keyasint,omitempty"` // of its binary
	Peer     string            `cbor:"11,keyasint,omitempty"` // host:port of its cluster port
	Data     string            `cbor:"12,keyasint,omitempty"` // of its data port
}

// ReplaceNode gives up the disk and the meta directory of a node that does not run: the next start of that node id may
// bring others, and the old ones are never admitted again. What they held counts as lost.
type ReplaceNode struct {
	Node base.NodeID `cbor:"1,keyasint"`
	Disk base.DiskID `cbor:"2,keyasint,omitzero"` // the one that is given up, if the caller knows it: any
}

// SetNodeState makes a node normal, draining or out.
type SetNodeState struct {
	Node  base.NodeID `cbor:"1,keyasint"`
	State NodeState   `cbor:"2,keyasint"`
}
