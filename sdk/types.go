package sdk

import (
	"fmt"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/record"
)

// The nouns this package shares with the broker.
type (
	// TopicID is a topic's UUID; a name used again gets a new one.
	TopicID = base.TopicID
	// RangeID numbers the ranges of one topic, from 1. An offset without it is meaningless.
	RangeID = base.RangeID
	// SegmentID names one segment in the whole cluster.
	SegmentID = base.SegmentID
	// NodeID names one broker.
	NodeID = base.NodeID
	// DiskID names one data directory.
	DiskID = base.DiskID
	// ShardID names one slice of the metadata.
	//
	//	Root    uint16
	//	Path    uint16
	//	PathLen uint8
	ShardID = base.ShardID
	// Epoch fences appends; it grows with each segment a topic opens.
	Epoch = base.Epoch
	// TopicConfig is a topic's settings. Its methods Set, Unset, Get and Keys take them by name, as the command line
	// does: retention, segment_bytes, label.team.
	//
	//	ReplicationFactor int
	//	MinReplicas       int // 0 = RF/2+1
	//	Strategy          Strategy
	//	Durability        Durability
	//	OnTotalLoss       OnTotalLoss
	//	Retention         time.Duration // 0 = for ever
	//	RetentionBytes    int64         // per range; 0 = no limit
	//	SegmentBytes      int64         // 0 = segment_size_limit_bytes
	//	SegmentAge        time.Duration // 0 = max_segment_age_secs
	//	Compression       string        // producers' default: none, lz4, zstd
	//	SpreadBy          string        // rack, or a label's name
	//	SplitRate         int64         // bytes per second; 0 = default
	//	Labels            map[string]string
	//	Keyed             bool // system topics with latest-by-key slots
	TopicConfig = base.TopicConfig
	// Strategy says who decides a topic's ranges.
	Strategy = base.Strategy
	// Durability says what an ack promises.
	Durability = base.Durability
	// OnTotalLoss says what a range does when no replica of its active segment is left.
	OnTotalLoss = base.OnTotalLoss
)

// The values of Strategy, Durability and OnTotalLoss.
const (
	StrategyAuto         = base.StrategyAuto
	StrategyFixed        = base.StrategyFixed
	DurabilityFsync      = base.DurabilityFsync
	DurabilityReplicated = base.DurabilityReplicated
	OnTotalLossWait      = base.OnTotalLossWait
	OnTotalLossReplace   = base.OnTotalLossReplace
)

// CheckTopicName reports why name cannot name a topic; the broker applies the same rule.
func CheckTopicName(name string) error { return base.CheckTopicName(name) }

// ParseShardID reads "12", or "12.0" for a child of 12.
func ParseShardID(s string) (ShardID, error) { return base.ParseShardID(s) }

// ParseDiskID reads the 8-4-4-4-12 form of a disk's id.
func ParseDiskID(s string) (DiskID, error) { return base.ParseUUID(s) }

// ParseRangeID reads "r17"; a bare "17" is taken too.
func ParseRangeID(s string) (RangeID, error) { return base.ParseRangeID(s) }

// Header is one header of a record. A nil Value is null, which is not the same as an empty one.
//
//	Key   string
//	Value []byte
type Header = record.Header

// Record is what a producer sends. A nil Key or Value is null and an empty one is empty: the two are told apart
// from end to end.
type Record struct {
	// Topic names the topic; empty means the producer's own.
	Topic string
	Key   []byte
	Value []byte
	// Headers keep their order; names may repeat.
	Headers []Header
	// Timestamp is kept in milliseconds; the zero value means the time of the call.
	Timestamp time.Time
	// RoutingKey chooses the range in place of Key when it is not nil. Records that must stay in order share it.
	RoutingKey []byte
}

// Position names one place in a topic's data. Offsets of different ranges have nothing to do with each other.
type Position struct {
	Topic  string
	Range  RangeID
	Offset int64
}

// String prints topic/r1@42.
func (p Position) String() string { return fmt.Sprintf("%s/%s@%d", p.Topic, p.Range, p.Offset) }

// Ack says where an acknowledged record lies: on stable storage of every replica of its segment.
type Ack struct {
	Position
	// Timestamp is when the segment's leader appended it.
	Timestamp time.Time
	// Segment is the one that the range had when the record was acknowledged. A record whose ack was lost, and that was
	// recognised when it was sent again, may lie in the one before it.
	Segment SegmentID
	// Replicas have acknowledged the record, the leader first. None is named of a record whose ack was lost and that lies in an
	// earlier segment: Admin.ListSegments tells who holds that. The list is shared by many acks: do not change it.
	Replicas []NodeID
	// Latency is the time from the call until the answer.
	Latency time.Duration
}

// Message is a record as it is stored.
type Message struct {
	Record
	Range  RangeID
	Offset int64
	// LeaderEpoch is the epoch of the segment it was appended to.
	LeaderEpoch Epoch
}

// Position is where the message lies; a consumer that has processed it continues at Position().Offset + 1.
func (m *Message) Position() Position {
	return Position{Topic: m.Topic, Range: m.Range, Offset: m.Offset}
}
