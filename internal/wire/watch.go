package wire

import (
	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/keyspace"
)

// WatchNodeRequest follows one node: whoever is asked. An answer comes when something has happened that From does not
// cover, or after WaitMs as a heartbeat. The first request of a watch has Boot 0 and asks for the snapshot.
type WatchNodeRequest struct {
	Boot     uint64 `cbor:"1,keyasint,omitempty"` // of the last answer; another start begins anew with a snapshot
	From     uint64 `cbor:"2,keyasint,omitempty"` // the first event wanted: Next of the last answer; 0 = the oldest kept
	Seen     uint64 `cbor:"3,keyasint,omitempty"` // StateVersion of the last answer
	WaitMs   int64  `cbor:"4,keyasint,omitempty"` // at most 30,000; 0 answers at once
	MaxEvent int    `cbor:"5,keyasint,omitempty"` // 0 = 1,000, which is the most
	Counters bool   `cbor:"6,keyasint,omitempty"` // answer with Counters too, once a second at most
	Counted  int64  `cbor:"7,keyasint,omitempty"` // ObservedMs of the last Counters
}

// WatchNodeResponse is one step of a watch.
type WatchNodeResponse struct {
	Node         base.NodeID    `cbor:"1,keyasint"`
	Boot         uint64         `cbor:"2,keyasint"`
	ObservedMs   int64          `cbor:"3,keyasint"`
	Events       []Event        `cbor:"4,keyasint,omitempty"`
	Next         uint64         `cbor:"5,keyasint"`           // the From of the next request
	Lost         uint64         `cbor:"6,keyasint,omitempty"` // events that were dropped from the journal before they were read
	StateVersion uint64         `cbor:"7,keyasint,omitempty"`
	State        *WatchedState  `cbor:"8,keyasint,omitempty"` // when it differs from Seen
	Cluster      base.ClusterID `cbor:"9,keyasint,omitempty"`
	More         bool           `cbor:"10,keyasint,omitempty"` // the next is worth asking for at once: what was there did not fit
	Counters     *NodeCounters  `cbor:"11,keyasint,omitempty"` // when asked for, and a second after Counted
}

// WatchedState is what a node sees and leads, without what only counts up.
type WatchedState struct {
	Self        NodeStatus    `cbor:"1,keyasint"`
	Members     []RingMember  `cbor:"2,keyasint,omitempty"`
	RingHash    uint64        `cbor:"3,keyasint,omitempty"`
	RingVersion uint64        `cbor:"4,keyasint,omitempty"`
	Shards      []ShardStatus `cbor:"5,keyasint,omitempty"` // replicas here
}

// NodeCounters is what one node counts: rates over the last few seconds, totals since its start, and what it leads that
// is busiest.
type NodeCounters struct {
	ObservedMs       int64            `cbor:"1,keyasint"`
	WindowMs         int64            `cbor:"2,keyasint,omitempty"` // what the distributions cover, about
	InBytesPerSec    int64            `cbor:"3,keyasint,omitempty"`
	OutBytesPerSec   int64            `cbor:"4,keyasint,omitempty"`
	InRecordsPerSec  int64            `cbor:"5,keyasint,omitempty"`
	OutRecordsPerSec int64            `cbor:"6,keyasint,omitempty"`
	InBytes          uint64           `cbor:"7,keyasint,omitempty"` // since the node's start, as the three below
	OutBytes         uint64           `cbor:"8,keyasint,omitempty"`
	InRecords        uint64           `cbor:"9,keyasint,omitempty"`
	OutRecords       uint64           `cbor:"10,keyasint,omitempty"`
	Ack              Quantiles        `cbor:"11,keyasint,omitzero"` // from a batch's arrival to its ack
	Fsync            Quantiles        `cbor:"12,keyasint,omitzero"`
	Replicate        Quantiles        `cbor:"13,keyasint,omitzero"` // from a batch's sending to a follower until its answer
	SealGap          Quantiles        `cbor:"14,keyasint,omitzero"` // for how long producers stood still at a roll
	BatchesPerSec    int64            `cbor:"15,keyasint,omitempty"`
	BatchRecords     int64            `cbor:"16,keyasint,omitempty"` // of a batch, on the average of the window
	BatchBytes       int64            `cbor:"17,keyasint,omitempty"`
	CacheHits        uint64           `cbor:"18,keyasint,omitempty"` // since the node's start: reads from memory
	CacheMisses      uint64           `cbor:"19,keyasint,omitempty"` // the same, from disk
	WalBytes         int64            `cbor:"20,keyasint,omitempty"`
	WalFiles         int              `cbor:"21,keyasint,omitempty"`
	DiskUsed         int64            `cbor:"22,keyasint,omitempty"`
	DiskTotal        int64            `cbor:"23,keyasint,omitempty"`
	Segments         int              `cbor:"24,keyasint,omitempty"` // held here
	Leaders          int              `cbor:"25,keyasint,omitempty"` // active segments led here
	Followers        int              `cbor:"26,keyasint,omitempty"` // active segments held here that other nodes lead
	Connections      int              `cbor:"27,keyasint,omitempty"`
	RssBytes         int64            `cbor:"28,keyasint,omitempty"`
	Ranges           []RangeCounters  `cbor:"29,keyasint,omitempty"` // the 50 busiest led here, by bytes per second
	Others           []int            `cbor:"30,keyasint,omitempty"` // the others led here, counted by bytes per second: 0, <1k, <10k, <100k, <1M, <10M, more
	Groups           []GroupCounters  `cbor:"31,keyasint,omitempty"` // consumer groups; no broker of this version has any
	Repairs          []RepairProgress `cbor:"32,keyasint,omitempty"` // copies being made here
}

// Quantiles is a distribution of durations in microseconds.
type Quantiles struct {
	Count  uint64 `cbor:"1,keyasint,omitempty"` // 0: nothing was observed in the window
	P50Us  int64  `cbor:"2,keyasint,omitempty"`
	P90Us  int64  `cbor:"3,keyasint,omitempty"`
	P99Us  int64  `cbor:"4,keyasint,omitempty"`
	P999Us int64  `cbor:"5,keyasint,omitempty"`
	MaxUs  int64  `cbor:"6,keyasint,omitempty"`
}

// RangeCounters is one range as its leader counts it.
type RangeCounters struct {
	Topic           string         `cbor:"1,keyasint"`
	TopicID         base.TopicID   `cbor:"2,keyasint"`
	Range           base.RangeID   `cbor:"3,keyasint"`
	Span            keyspace.Span  `cbor:"4,keyasint,omitzero"`
	InBytesPerSec   int64          `cbor:"5,keyasint,omitempty"`
	InRecordsPerSec int64          `cbor:"6,keyasint,omitempty"`
	Load            string         `cbor:"7,keyasint,omitempty"` // unknown, pressure, idle, normal
	Streak          int            `cbor:"8,keyasint,omitempty"` // segments in a row of that load
	Segment         base.SegmentID `cbor:"9,keyasint"`           // the active one
	SegmentBytes    int64          `cbor:"10,keyasint,omitempty"`
	End             int64          `cbor:"11,keyasint,omitempty"` // its commit
}

// GroupCounters is a consumer group as its coordinator counts it. The number of the message is kept for them: nothing
// sends any yet.
type GroupCounters struct {
	Group         string        `cbor:"1,keyasint"`
	State         string        `cbor:"2,keyasint,omitempty"` // stable, rebalancing, empty
	Generation    uint64        `cbor:"3,keyasint,omitempty"`
	Ranges        int           `cbor:"4,keyasint,omitempty"`
	Lag           int64         `cbor:"5,keyasint,omitempty"` // records
	LagMs         int64         `cbor:"6,keyasint,omitempty"` // age of the oldest that is not committed
	RecordsPerSec int64         `cbor:"7,keyasint,omitempty"`
	Converged     int           `cbor:"8,keyasint,omitempty"` // members that agree on the assignment
	ConvergedMs   int64         `cbor:"9,keyasint,omitempty"` // how long that took
	Members       []GroupMember `cbor:"10,keyasint,omitempty"`
	Topics        []string      `cbor:"11,keyasint,omitempty"`
}

// GroupMember is one member of a group.
type GroupMember struct {
	Name       string   `cbor:"1,keyasint"`
	Sequence   uint64   `cbor:"2,keyasint,omitempty"` // of its heartbeats
	HeardMs    int64    `cbor:"3,keyasint,omitempty"` // when the last one came
	Ranges     []string `cbor:"4,keyasint,omitempty"` // orders/r3
	Lag        int64    `cbor:"5,keyasint,omitempty"`
	Assignment uint64   `cbor:"6,keyasint,omitempty"` // hash of the assignment it works by
	Tokens     int      `cbor:"7,keyasint,omitempty"`
	Evicted    string   `cbor:"8,keyasint,omitempty"` // why it is out; empty: it is in
	SinceMs    int64    `cbor:"9,keyasint,omitempty"` // when it came in, or went out
}

// RepairProgress is a copy of a segment being made on the node that tells.
type RepairProgress struct {
	Segment     base.SegmentID `cbor:"1,keyasint"`
	Topic       string         `cbor:"2,keyasint,omitempty"`
	Range       base.RangeID   `cbor:"3,keyasint,omitempty"`
	Source      base.NodeID    `cbor:"4,keyasint,omitempty"`
	Target      base.NodeID    `cbor:"5,keyasint"`
	Bytes       int64          `cbor:"6,keyasint,omitempty"` // there already
	Total       int64          `cbor:"7,keyasint,omitempty"`
	BytesPerSec int64          `cbor:"8,keyasint,omitempty"`
	StartedMs   int64          `cbor:"9,keyasint,omitempty"`
}

// Types of events that journals of later versions will have, named here so that whoever watches can show them already.
// Of each the words of Detail are given.
const (
	EventRangeSplit      = "RANGE_SPLIT"      // subject: the parent; children=r41,r42 at=0x5000000000000000 streak=3
	EventRangeMerged     = "RANGE_MERGED"     // subject: the child; parents=r30,r31
	EventRepairStarted   = "REPAIR_STARTED"   // subject: the range; segment=s790 source=n2 target=n5
	EventSegmentRepaired = "SEGMENT_REPAIRED" // the same; bytes=1073741824 took=9.1s
	EventGroupGeneration = "GROUP_GENERATION" // subject: the group; before and after: its generations; members=6 moved=4
	EventGroupMember     = "GROUP_MEMBER"     // subject: the group; member=billing-3; after: joined, left, evicted; detail=why
)
