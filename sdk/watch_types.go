package sdk

import "github.com/eastguard/eastguard/internal/wire"

// What Watch and Logs tell besides events.
type (
	// NodeCounters is what one node counts.
	//
	//	ObservedMs       int64
	//	WindowMs         int64 // what the distributions cover, about
	//	InBytesPerSec    int64
	//	OutBytesPerSec   int64
	//	InRecordsPerSec  int64
	//	OutRecordsPerSec int64
	//	InBytes          uint64 // since the node's start, as the three below
	//	OutBytes         uint64
	//	InRecords        uint64
	//	OutRecords       uint64
	//	Ack              Quantiles // from a batch's arrival to its ack
	//	Fsync            Quantiles
	//	Replicate        Quantiles // from a batch's sending to a follower until its answer
	//	SealGap          Quantiles // for how long producers stood still at a roll
	//	BatchesPerSec    int64
	//	BatchRecords     int64 // of a batch, on the average of the window
	//	BatchBytes       int64
	//	CacheHits        uint64 // since the node's start: reads from memory
	//	CacheMisses      uint64 // the same, from disk
	//	WalBytes         int64
	//	WalFiles         int
	//	DiskUsed         int64
	//	DiskTotal        int64
	//	Segments         int // held here
	//	Leaders          int // active segments led here
	//	Followers        int // active segments held here that other nodes lead
	//	Connections      int
	//	RssBytes         int64
	//	Ranges           []RangeCounters  // the 50 busiest led here, by bytes per second
	//	Others           []int            // the others led here, counted by bytes per second: 0, <1k, <10k, <100k, <1M, <10M, more
	//	Groups           []GroupCounters  // consumer groups; no broker of this version has any
	//	Repairs          []RepairProgress // copies being made here
	NodeCounters = wire.NodeCounters
	// Quantiles is a distribution of durations in microseconds.
	//
	//	Count  uint64 // 0: nothing was observed in the window
	//	P50Us  int64
	//	P90Us  int64
	//	P99Us  int64
	//	P999Us int64
	//	MaxUs  int64
	Quantiles = wire.Quantiles
	// RangeCounters is one range as its leader counts it.
	//
	//	Topic           string
	//	TopicID         TopicID
	//	Range           RangeID
	//	Span            keyspace.Span
	//	InBytesPerSec   int64
	//	InRecordsPerSec int64
	//	Load            string    // unknown, pressure, idle, normal
	//	Streak          int       // segments in a row of that load
	//	Segment         SegmentID // the active one
	//	SegmentBytes    int64
	//	End             int64 // its commit
	RangeCounters = wire.RangeCounters
	// GroupCounters is a consumer group as its coordinator counts it. No broker of this version sends any.
	//
	//	Group         string
	//	State         string // stable, rebalancing, empty
	//	Generation    uint64
	//	Ranges        int
	//	Lag           int64 // records
	//	LagMs         int64 // age of the oldest that is not committed
	//	RecordsPerSec int64
	//	Converged     int   // members that agree on the assignment
	//	ConvergedMs   int64 // how long that took
	//	Members       []GroupMember
	//	Topics        []string
	GroupCounters = wire.GroupCounters
	// GroupMember is one member of a group.
	//
	//	Name       string
	//	Sequence   uint64   // of its heartbeats
	//	HeardMs    int64    // when the last one came
	//	Ranges     []string // orders/r3
	//	Lag        int64
	//	Assignment uint64 // hash of the assignment it works by
	//	Tokens     int
	//	Evicted    string // why it is out; empty: it is in
	//	SinceMs    int64  // when it came in, or went out
	GroupMember = wire.GroupMember
	// RepairProgress is a copy of a segment being made.
	//
	//	Segment     SegmentID
	//	Topic       string
	//	Range       RangeID
	//	Source      NodeID
	//	Target      NodeID
	//	Bytes       int64 // there already
	//	Total       int64
	//	BytesPerSec int64
	//	StartedMs   int64
	RepairProgress = wire.RepairProgress
	// LogLine is one line of a node's log. Nothing in it is escaped.
	//
	//	Seq     uint64 // per node and boot, without holes
	//	TimeMs  int64
	//	Level   string // debug, info, warn, error
	//	Message string
	//	Attrs   []LogAttr // in the order of the log
	LogLine = wire.LogLine
	// LogAttr is one named value of a line.
	//
	//	Key   string
	//	Value string
	LogAttr = wire.LogAttr
)

// Types of events that journals of later versions will have.
const (
	EventRangeSplit      = wire.EventRangeSplit
	EventRangeMerged     = wire.EventRangeMerged
	EventRepairStarted   = wire.EventRepairStarted
	EventSegmentRepaired = wire.EventSegmentRepaired
	EventGroupGeneration = wire.EventGroupGeneration
	EventGroupMember     = wire.EventGroupMember
)
