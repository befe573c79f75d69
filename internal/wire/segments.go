package wire

import "github.com/eastguard/eastguard/internal/base"

// ListSegmentsRequest asks for segments of all topics, or of those that fit.
type ListSegmentsRequest struct {
	Topic string         `cbor:"1,keyasint,omitempty"` // its name; empty: every topic, internal ones left out
	Range base.RangeID   `cbor:"2,keyasint,omitempty"` // of Topic; 0: all
	Node  base.NodeID    `cbor:"3,keyasint,omitempty"` // that is to hold a copy
	State string         `cbor:"4,keyasint,omitempty"` // active, sealed, under-replicated; empty: any
	After base.SegmentID `cbor:"5,keyasint,omitempty"` // paging: those with a higher id
	Limit int            `cbor:"6,keyasint,omitempty"` // 0: the broker's own
}

// ListSegmentsResponse answers it, by id.
type ListSegmentsResponse struct {
	Segments []SegmentRow   `cbor:"1,keyasint,omitempty"`
	More     bool           `cbor:"2,keyasint,omitempty"` // ask again, after the last of them
	Missing  []base.ShardID `cbor:"3,keyasint,omitempty"` // shards that did not answer
}

// SegmentRow is one segment and where it belongs.
type SegmentRow struct {
	Topic             string        `cbor:"1,keyasint"`
	TopicID           base.TopicID  `cbor:"2,keyasint"`
	Range             base.RangeID  `cbor:"3,keyasint"`
	ReplicationFactor int           `cbor:"4,keyasint"` // of the topic
	Copies            int           `cbor:"5,keyasint"` // replicas that hold it whole, as far as they answered
	Segment           SegmentDetail `cbor:"6,keyasint"`
}

// DescribeSegmentRequest asks for everything about one segment.
type DescribeSegmentRequest struct {
	Segment base.SegmentID `cbor:"1,keyasint"`
}

// DescribeSegmentResponse answers it: what is committed, and what each replica says of its copy.
type DescribeSegmentResponse struct {
	Row      SegmentRow       `cbor:"1,keyasint"`
	Shard    base.ShardID     `cbor:"2,keyasint"`
	Prev     base.SegmentID   `cbor:"3,keyasint,omitempty"`
	Next     base.SegmentID   `cbor:"4,keyasint,omitempty"`
	Version  base.Version     `cbor:"5,keyasint,omitempty"` // of the topic
	Copies   []SegmentCopy    `cbor:"6,keyasint,omitempty"` // in the order of the replicas
	Forced   *ForcedSeal      `cbor:"7,keyasint,omitempty"`
	Nodes    []NodeAddress    `cbor:"8,keyasint,omitempty"`
	Settings base.TopicConfig `cbor:"9,keyasint,omitzero"`
}

// SegmentCopy is one replica's own word on its copy.
type SegmentCopy struct {
	Replica      ReplicaDetail `cbor:"1,keyasint"`
	Role         string        `cbor:"2,keyasint,omitempty"` // leader, follower
	Commit       int64         `cbor:"3,keyasint,omitempty"` // that it can prove
	Bytes        int64         `cbor:"4,keyasint,omitempty"`
	CRC          uint32        `cbor:"5,keyasint,omitempty"` // CRC32C of the file's bytes, of a whole sealed copy
	LastFsyncUs  int64         `cbor:"6,keyasint,omitempty"` // how long its last batch was on the way to the disk; 0 before the first of this start
	IndexEntries int           `cbor:"7,keyasint,omitempty"`
	Fenced       bool          `cbor:"8,keyasint,omitempty"`
	Error        string        `cbor:"9,keyasint,omitempty"` // why nothing is known of it, or not its CRC
}

// ForcedSeal is the record of a segment that an operator ended without knowing its end.
type ForcedSeal struct {
	Reason string        `cbor:"1,keyasint,omitempty"`
	TimeMs int64         `cbor:"2,keyasint"`
	Silent []base.NodeID `cbor:"3,keyasint,omitempty"` // replicas whose copies were not known
}

// SealSegmentRequest ends an active segment and opens its successor.
type SealSegmentRequest struct {
	RequestID base.RequestID `cbor:"1,keyasint,omitzero"`
	Segment   base.SegmentID `cbor:"2,keyasint"`
	Reason    string         `cbor:"3,keyasint,omitempty"` // the operator's words, for the journal
	DryRun    bool           `cbor:"4,keyasint,omitempty"`
}

// ForceSealSegmentRequest ends an active segment of which no intact replica can be reached. What was acknowledged above
// the longest copy that answers is lost.
type ForceSealSegmentRequest struct {
	RequestID      base.RequestID `cbor:"1,keyasint,omitzero"`
	Segment        base.SegmentID `cbor:"2,keyasint"`
	Reason         string         `cbor:"3,keyasint,omitempty"`
	AcceptDataLoss bool           `cbor:"4,keyasint,omitempty"`
	DryRun         bool           `cbor:"5,keyasint,omitempty"`
}

// SealSegmentResponse answers both.
type SealSegmentResponse struct {
	Topic    string         `cbor:"1,keyasint"`
	Range    base.RangeID   `cbor:"2,keyasint"`
	Old      base.SegmentID `cbor:"3,keyasint"`
	New      base.SegmentID `cbor:"4,keyasint,omitempty"`
	Boundary int64          `cbor:"5,keyasint,omitempty"` // end of the old, base of the new
	Replicas []base.NodeID  `cbor:"6,keyasint,omitempty"` // of the new, leader first
	GapMs    int64          `cbor:"7,keyasint,omitempty"`
	Cause    base.Cause     `cbor:"8,keyasint,omitempty"`
	Known    []SegmentCopy  `cbor:"9,keyasint,omitempty"` // force-seal: what the replicas that answered hold
	Silent   []base.NodeID  `cbor:"10,keyasint,omitempty"`
	DryRun   bool           `cbor:"11,keyasint,omitempty"`
	Lossy    bool           `cbor:"12,keyasint,omitempty"` // acked records above Boundary may be lost
}

// ProduceTrace says where the time of one traced produce went: the payload of its answer. Times are microseconds since
// the request arrived at the leader.
type ProduceTrace struct {
	Node     base.NodeID    `cbor:"1,keyasint"` // the leader
	TakenUs  int64          `cbor:"2,keyasint"` // it had its offset, and was on its way to the disk and to the followers
	FsyncUs  int64          `cbor:"3,keyasint"` // durable on the leader
	CommitUs int64          `cbor:"4,keyasint"` // durable on all
	Replicas []ReplicaTrace `cbor:"5,keyasint,omitempty"`
}

// ReplicaTrace is one follower's part.
type ReplicaTrace struct {
	Node    base.NodeID `cbor:"1,keyasint"`
	SentUs  int64       `cbor:"2,keyasint"` // handed to the connection
	AckUs   int64       `cbor:"3,keyasint"` // its answer came
	FsyncUs int64       `cbor:"4,keyasint"` // of which it spent so much between receiving the batch and its fsync
}
