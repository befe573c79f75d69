package wire

import (
	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/keyspace"
)

// CreateTopicRequest makes a topic. RequestID makes a retry safe: the same id gets the same answer.
type CreateTopicRequest struct {
	RequestID            base.RequestID   `cbor:"1,keyasint"`
	Name                 string           `cbor:"2,keyasint"`
	Config               base.TopicConfig `cbor:"3,keyasint"`           // ReplicationFactor 0 = min(3, nodes)
	Ranges               int              `cbor:"4,keyasint,omitempty"` // a power of two; 0 = 1
	SplitAt              []keyspace.Hash  `cbor:"5,keyasint,omitempty"` // instead of Ranges
	AllowUnderReplicated bool             `cbor:"6,keyasint,omitempty"`
	DryRun               bool             `cbor:"7,keyasint,omitempty"`
}

// CreateTopicResponse is the topic made, or that would be.
type CreateTopicResponse struct {
	Topic       TopicDetail  `cbor:"1,keyasint"`
	Shard       base.ShardID `cbor:"2,keyasint"`
	ShardLeader base.NodeID  `cbor:"3,keyasint"`
	DryRun      bool         `cbor:"4,keyasint,omitempty"`
	Explain     []string     `cbor:"5,keyasint,omitempty"` // why nodes were chosen for the first ranges, or not: "r1 n2: chosen, …"
}

// AlterTopicRequest changes settings, in the words of base.TopicConfig.Set.
type AlterTopicRequest struct {
	RequestID     base.RequestID    `cbor:"1,keyasint"`
	Name          string            `cbor:"2,keyasint"`
	ExpectVersion base.Version      `cbor:"3,keyasint,omitempty"` // fail with PreconditionFailed if it moved on; 0 = any
	Set           map[string]string `cbor:"4,keyasint,omitempty"`
	Unset         []string          `cbor:"5,keyasint,omitempty"` // back to the default
	DryRun        bool              `cbor:"6,keyasint,omitempty"`
	Topic         base.TopicID      `cbor:"7,keyasint,omitempty"` // fail if the name now means another topic; zero = any
}

// AlterTopicResponse shows each changed setting before and after; "" means not set.
type AlterTopicResponse struct {
	Before  map[string]string `cbor:"1,keyasint,omitempty"`
	After   map[string]string `cbor:"2,keyasint,omitempty"`
	Version base.Version      `cbor:"3,keyasint"`
	Topic   base.TopicID      `cbor:"4,keyasint"`
	DryRun  bool              `cbor:"5,keyasint,omitempty"`
}

// DeleteTopicRequest removes a topic and its data.
type DeleteTopicRequest struct {
	RequestID     base.RequestID `cbor:"1,keyasint"`
	Name          string         `cbor:"2,keyasint"`
	Topic         base.TopicID   `cbor:"3,keyasint,omitempty"` // fail if the name now means another topic; zero = any
	ExpectVersion base.Version   `cbor:"4,keyasint,omitempty"`
	DryRun        bool           `cbor:"5,keyasint,omitempty"`
}

// DeleteTopicResponse counts what goes.
type DeleteTopicResponse struct {
	Topic    base.TopicID `cbor:"1,keyasint"`
	Ranges   int          `cbor:"2,keyasint,omitempty"`
	Segments int          `cbor:"3,keyasint,omitempty"`
	Bytes    int64        `cbor:"4,keyasint,omitempty"`
	Version  base.Version `cbor:"5,keyasint,omitempty"` // that a dry run's plan was made from
	Groups   []string     `cbor:"6,keyasint,omitempty"` // consumer groups that read it
	DryRun   bool         `cbor:"7,keyasint,omitempty"`
}

// ListTopicsRequest lists topics by name, in pages.
type ListTopicsRequest struct {
	Glob     string `cbor:"1,keyasint,omitempty"` // "" = all
	Internal bool   `cbor:"2,keyasint,omitempty"` // system topics too
	After    string `cbor:"3,keyasint,omitempty"` // Next of the page before
	Limit    int    `cbor:"4,keyasint,omitempty"` // 0 = the broker's page size
}

// ListTopicsResponse is one page.
type ListTopicsResponse struct {
	Topics  []TopicSummary `cbor:"1,keyasint,omitempty"`
	Next    string         `cbor:"2,keyasint,omitempty"` // "" = the last page
	Missing []base.ShardID `cbor:"3,keyasint,omitempty"` // shards that did not answer
}

// TopicSummary is a topic's row in a list.
type TopicSummary struct {
	ID                base.TopicID      `cbor:"1,keyasint"`
	Name              string            `cbor:"2,keyasint"`
	Version           base.Version      `cbor:"3,keyasint,omitempty"`
	State             base.State        `cbor:"4,keyasint"`
	ReplicationFactor int               `cbor:"5,keyasint"`
	Ranges            int               `cbor:"6,keyasint"` // active ones
	Strategy          base.Strategy     `cbor:"7,keyasint,omitempty"`
	Segments          int               `cbor:"8,keyasint,omitempty"`
	Records           int64             `cbor:"9,keyasint,omitempty"`
	Bytes             int64             `cbor:"10,keyasint,omitempty"` // one copy's
	InBytesPerSec     int64             `cbor:"11,keyasint,omitempty"`
	InRecordsPerSec   int64             `cbor:"12,keyasint,omitempty"`
	RetentionMs       int64             `cbor:"13,keyasint,omitempty"` // 0 = for ever
	RetentionBytes    int64             `cbor:"14,keyasint,omitempty"` // 0 = no limit
	Compression       string            `cbor:"15,keyasint,omitempty"`
	Labels            map[string]string `cbor:"16,keyasint,omitempty"`
	CreatedMs         int64             `cbor:"17,keyasint,omitempty"`
	Shard             base.ShardID      `cbor:"18,keyasint"`
	ShardLeader       base.NodeID       `cbor:"19,keyasint,omitempty"`
	Partial           bool              `cbor:"20,keyasint,omitempty"` // leaders of active segments did not answer: Records and Bytes lack theirs
	UnderReplicated   int               `cbor:"21,keyasint,omitempty"` // segments with fewer copies than the factor, as far as metadata and membership show
}

// DescribeTopicRequest asks for everything about one topic, by name or, when Name is empty, by id. With both, a topic
// that was deleted is found as well, in state deleting, until the last disk has confirmed that its part is gone.
type DescribeTopicRequest struct {
	Name  string       `cbor:"1,keyasint,omitempty"`
	Topic base.TopicID `cbor:"2,keyasint,omitempty"`
}

// DescribeTopicResponse answers it.
type DescribeTopicResponse struct {
	Topic TopicDetail `cbor:"1,keyasint"`
}

// TopicDetail is everything about one topic.
type TopicDetail struct {
	Summary  TopicSummary     `cbor:"1,keyasint"`
	Config   base.TopicConfig `cbor:"2,keyasint"`
	Settings []Setting        `cbor:"3,keyasint,omitempty"` // effective values with their sources
	Ranges   []RangeDetail    `cbor:"4,keyasint,omitempty"` // by id; trimmed-away ones are gone
	Nodes    []NodeAddress    `cbor:"5,keyasint,omitempty"`
	Copies   int              `cbor:"6,keyasint,omitempty"` // how many replicas a segment is to have
	Losses   int              `cbor:"7,keyasint,omitempty"` // seals above whose ends acked records may be gone, ever
	Lost     []SegmentLoss    `cbor:"8,keyasint,omitempty"` // the last of them, oldest first
}

// SegmentLoss is a seal above whose end acked records may be gone. It is remembered for as long as the topic lives.
type SegmentLoss struct {
	Range   base.RangeID   `cbor:"1,keyasint"`
	Segment base.SegmentID `cbor:"2,keyasint"`
	End     int64          `cbor:"3,keyasint,omitempty"`
	TimeMs  int64          `cbor:"4,keyasint"`
	Forced  *ForcedSeal    `cbor:"5,keyasint,omitempty"` // an operator accepted it; absent: all replicas had lost their memory, in a topic that acks before fsync
}

// Setting is one effective setting and where it comes from.
type Setting struct {
	Key     string `cbor:"1,keyasint"`
	Value   string `cbor:"2,keyasint,omitempty"`
	Default string `cbor:"3,keyasint,omitempty"`
	Source  string `cbor:"4,keyasint,omitempty"` // default, topic, broker, file, env, flag
	Reload  string `cbor:"5,keyasint,omitempty"` // live, restart
	Help    string `cbor:"6,keyasint,omitempty"`
}

// RangeDetail is everything about one range.
type RangeDetail struct {
	ID              base.RangeID    `cbor:"1,keyasint"`
	Span            keyspace.Span   `cbor:"2,keyasint"`
	State           base.State      `cbor:"3,keyasint"`
	Parents         []base.RangeID  `cbor:"4,keyasint,omitempty"`
	Children        []base.RangeID  `cbor:"5,keyasint,omitempty"`
	Cause           base.Cause      `cbor:"6,keyasint,omitempty"` // why it was sealed
	Earliest        int64           `cbor:"7,keyasint,omitempty"`
	End             int64           `cbor:"8,keyasint,omitempty"` // commit of an active range, end of a sealed one
	Records         int64           `cbor:"9,keyasint,omitempty"`
	Bytes           int64           `cbor:"10,keyasint,omitempty"`
	InBytesPerSec   int64           `cbor:"11,keyasint,omitempty"`
	InRecordsPerSec int64           `cbor:"12,keyasint,omitempty"`
	Load            string          `cbor:"13,keyasint,omitempty"` // unknown, pressure 2, idle, normal
	CreatedMs       int64           `cbor:"14,keyasint,omitempty"`
	SealedMs        int64           `cbor:"15,keyasint,omitempty"`
	Leader          base.NodeID     `cbor:"16,keyasint,omitempty"` // of the active segment
	Segments        []SegmentDetail `cbor:"17,keyasint,omitempty"` // by base
}

// SegmentDetail is everything about one segment.
type SegmentDetail struct {
	ID           base.SegmentID  `cbor:"1,keyasint"`
	Epoch        base.Epoch      `cbor:"2,keyasint,omitempty"`
	State        base.State      `cbor:"3,keyasint"`
	Cause        base.Cause      `cbor:"4,keyasint,omitempty"` // why it was sealed
	Base         int64           `cbor:"5,keyasint,omitempty"`
	End          int64           `cbor:"6,keyasint,omitempty"` // commit of an active one
	Records      int64           `cbor:"7,keyasint,omitempty"`
	Bytes        int64           `cbor:"8,keyasint,omitempty"`
	Replicas     []ReplicaDetail `cbor:"9,keyasint,omitempty"` // leader first
	CreatedMs    int64           `cbor:"10,keyasint,omitempty"`
	SealedMs     int64           `cbor:"11,keyasint,omitempty"`
	LastAppendMs int64           `cbor:"12,keyasint,omitempty"`
	GapMs        int64           `cbor:"13,keyasint,omitempty"` // from the last ack before it to its first
	Unknown      bool            `cbor:"14,keyasint,omitempty"` // no replica of an active one answered: End, Records and Bytes are not known
	Copies       int             `cbor:"15,keyasint,omitempty"` // replicas that hold it whole, as far as they answered
	Forced       bool            `cbor:"16,keyasint,omitempty"` // an operator ended it without knowing its end
	Waits        string          `cbor:"17,keyasint,omitempty"` // its leader cannot go on: what finding its end, or opening the next one, waits for
}

// ReplicaDetail is one copy of a segment.
type ReplicaDetail struct {
	Node       base.NodeID `cbor:"1,keyasint"`
	Disk       base.DiskID `cbor:"2,keyasint,omitempty"`
	DurableEnd int64       `cbor:"3,keyasint,omitempty"`
	State      string      `cbor:"4,keyasint,omitempty"` // leader, in_sync, behind, missing, restarted, damaged, no_answer
}

// The states of a replica. Only of a sealed segment one can be behind: who takes part in an active one has acked all that
// is committed of it.
const (
	ReplicaLeader    = "leader"    // takes the appends
	ReplicaInSync    = "in_sync"   // holds all of it
	ReplicaBehind    = "behind"    // is short of a sealed segment's end, and does not count as a copy
	ReplicaMissing   = "missing"   // says that it holds nothing, or has another disk
	ReplicaRestarted = "restarted" // has started anew since: of an active segment no part any more, though it keeps what it had
	ReplicaDamaged   = "damaged"   // bytes on its disk are not what was written; intact up to its end
	ReplicaNoAnswer  = "no_answer"
)
