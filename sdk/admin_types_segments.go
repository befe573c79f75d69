package sdk

import (
	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/wire"
)

// What Admin answers about segments.
type (
	// SegmentRow is one segment and where it belongs.
	//
	//	Topic             string
	//	TopicID           TopicID
	//	Range             RangeID
	//	ReplicationFactor int // of the topic
	//	Copies            int // replicas that hold it whole, as far as they answered
	//	Segment           SegmentDetail
	SegmentRow = wire.SegmentRow
	// DescribedSegment is everything about one segment.
	//
	//	Row      SegmentRow
	//	Shard    ShardID
	//	Prev     SegmentID
	//	Next     SegmentID
	//	Version  base.Version  // of the topic
	//	Copies   []SegmentCopy // in the order of the replicas
	//	Forced   *ForcedSeal
	//	Nodes    []NodeAddress
	//	Settings TopicConfig
	DescribedSegment = wire.DescribeSegmentResponse
	// SegmentCopy is one replica's own word on its copy.
	//
	//	Replica      ReplicaDetail
	//	Role         string // leader, follower
	//	Commit       int64  // that it can prove
	//	Bytes        int64
	//	CRC          uint32 // CRC32C of the file's bytes, of a whole sealed copy
	//	LastFsyncUs  int64  // how long its last batch was on the way to the disk; 0 before the first of this start
	//	IndexEntries int
	//	Fenced       bool
	//	Error        string // why nothing is known of it, or not its CRC
	SegmentCopy = wire.SegmentCopy
	// ForcedSeal is the record of a segment that an operator ended without knowing its end.
	//
	//	Reason string
	//	TimeMs int64
	//	Silent []NodeID // replicas whose copies were not known
	ForcedSeal = wire.ForcedSeal
	// SegmentLoss is a seal above whose end acked records may be gone. It is remembered for as long as the topic lives.
	//
	//	Range   RangeID
	//	Segment SegmentID
	//	End     int64
	//	TimeMs  int64
	//	Forced  *ForcedSeal // an operator accepted it; absent: all replicas had lost their memory, in a topic that acks before fsync
	SegmentLoss = wire.SegmentLoss
	// SealedSegment is a segment ended, or that would be, and its successor.
	//
	//	Topic    string
	//	Range    RangeID
	//	Old      SegmentID
	//	New      SegmentID
	//	Boundary int64    // end of the old, base of the new
	//	Replicas []NodeID // of the new, leader first
	//	GapMs    int64
	//	Cause    Cause
	//	Known    []SegmentCopy // force-seal: what the replicas that answered hold
	//	Silent   []NodeID
	//	DryRun   bool
	//	Lossy    bool // acked records above Boundary may be lost
	SealedSegment = wire.SealSegmentResponse
)

// Cause is why a segment or a range was sealed.
type Cause = base.Cause

// ParseSegmentID reads "s907"; a bare "907" is taken too.
func ParseSegmentID(s string) (SegmentID, error) { return base.ParseSegmentID(s) }

// ListSegments selects segments.
type ListSegments struct {
	// Topic is a topic's name; empty means all topics but internal ones.
	Topic string
	// Range is one of Topic; 0 means all.
	Range RangeID
	// Node is one that is to hold a copy; empty means any.
	Node NodeID
	// State is active, sealed or under-replicated; empty means any.
	State string
	// Limit stops after so many; 0 means all.
	Limit int
}

// SegmentList is what ListSegments found.
type SegmentList struct {
	Segments []SegmentRow // by id
	// Missing names the parts of the metadata that did not answer: their segments are not in the list.
	Missing []ShardID
}

// SealSegment says which segment to end.
type SealSegment struct {
	Segment SegmentID
	// Reason is the operator's words, for the journal.
	Reason string
	// DryRun answers what would be done and changes nothing.
	DryRun bool
}

// ForceSealSegment says which segment to end though its end is not known.
type ForceSealSegment struct {
	Segment SegmentID
	// Reason is the operator's words; it is recorded for ever.
	Reason string
	// AcceptDataLoss accepts that records above the longest copy that answers are gone.
	AcceptDataLoss bool
	// DryRun tells what is known of each copy, and changes nothing.
	DryRun bool
}
