package store

import (
	"cmp"
	"slices"
	"time"

	"github.com/eastguard/eastguard/sdk"
)

// StaleAfter is how long a stream may be silent.
const StaleAfter = 3 * time.Second

// View is all that is known at one moment. It never changes. Versions only grow, and mean the same in all views of a
// store.
type View struct {
	Version uint64
	Time    time.Time // of the newest message in it

	Cluster  Cluster
	Nodes    Table[sdk.NodeID, Node]
	Believes Believes
	Shards   Table[sdk.ShardID, Shard]
	Topics   Table[string, Topic]
	Ranges   Table[RangeKey, Range]
	Segments Table[sdk.SegmentID, Segment]
	Groups   Table[string, Group]
	Seals    Log[*Seal]
	Changes  Log[*Change] // splits and merges
	Gaps     Log[*StreamGap]
	Events   Log[*Event]
	Logs     Log[*LogLine]
	Health   Health
	History  History
}

// Cluster is the header: what holds for all of it.
type Cluster struct {
	Version uint64

	ID      string
	Context string
	Seeds   []string
	Polling string // "2s": the brokers are too old for streams; empty: they push

	Link    Link
	Streams int  // that are live
	Known   int  // members, dead ones too: those that should have one
	AtLeast bool // sums lack nodes that may live, and whose stream is not live

	Alive, Suspect, Dead, Left int
	Versions                   []VersionCount
	UptimeMs                   int64 // of the node that is up longest

	InBytes, OutBytes, InRecords, OutRecords float64 // a second, smoothed
	Ack, Fsync, Replicate, SealGap           sdk.Quantiles
	BatchesPerSec, BatchRecords, BatchBytes  float64
	CacheHit                                 float64 // share of reads from memory lately; -1: nothing was read
	Busiest                                  float64 // the greatest Steady of the active ranges
	MaxSkewMs                                int64   // between a node's clock and ours, both ways

	RingHash     uint64        // of most nodes
	RingVersion  uint64        // the newest
	Agree        int           // live nodes that have that hash
	AgreeOf      int           // live nodes that told theirs
	Disagreed    time.Time     // when they began to differ last, if ever
	DisagreedFor time.Duration // how long that took; 0 while it lasts

	Totals  Totals
	Counted time.Time // when Totals were; zero: never

	ListedTopics, ListedSegments Listing // what the last list of each was of

	Shards   int // known
	Leaders  int // of those that have a leader
	MaxTerm  uint64
	RateHist []int // ranges by bytes per second: 0, <1k, <10k, <100k, <1M, <10M, more
}

// Listing is how much of what there is was in a list.
type Listing struct {
	Topic string // it was of this topic's alone; empty: of all
	Whole bool   // it had all of them
}

// Has reports whether everything of a topic, or of all for an empty one, was in the list.
func (l Listing) Has(topic string) bool { return l.Whole && (l.Topic == "" || l.Topic == topic) }

// VersionCount is how many nodes run a version.
type VersionCount struct {
	Version string
	Nodes   int
}

// Link is how the cluster can be reached.
type Link struct {
	State    LinkState
	Since    time.Time
	Error    string
	Tried    []string
	Attempt  int
	Next     time.Time
	LastData time.Time
}

// LinkState is how much of the cluster is heard.
type LinkState string

// The states of the link.
const (
	LinkConnecting LinkState = "connecting"
	LinkLive       LinkState = "live"
	LinkPartial    LinkState = "partial" // more than half of the streams are not live
	LinkLost       LinkState = "lost"    // no broker answers
)

// Node is one broker.
type Node struct {
	Version uint64

	ID             sdk.NodeID
	Address        string
	Rack           string
	Software       string // its version
	State          string // alive, suspect, dead, left, unknown: what the others believe
	Since          time.Time
	Boot           uint64
	Status         string // normal, draining, leaving, out
	Admitted, Full bool

	SuspectedBy []sdk.NodeID // live nodes that believe it suspect or dead
	Stream      StreamState
	Heard       time.Time // when it spoke last
	Error       string    // why its stream is lost

	UptimeMs                                 int64
	SkewMs                                   int64            // its clock less ours
	InBytes, OutBytes, InRecords, OutRecords float64          // a second, smoothed
	Raw                                      sdk.NodeCounters // as told last; Ranges, Others, Groups and Repairs left out
	DiskUsed, DiskTotal                      int64
	Segments, Leaders, Followers             int
	Replicas, ShardLeaders                   int
	Connections                              int
	Vnodes, OwnsPerMillion                   int
	RingHash, RingVersion                    uint64
	RttUs                                    int64 // 0: unknown
	Damaged, Quarantined, Short              int
	CacheHit                                 float64 // lately; -1: nothing was read
	In, Out                                  Series  // bytes a second, one a second, 2 minutes

	spoke        uint64    // the start that spoke last
	seen         uint64    // the last event of that start
	logged       uint64    // the last line of its log
	countedAt    time.Time // when the last counters came
	counted      []RangeKey
	hist         []int  // ranges led by bytes a second
	hits, misses uint64 // as of the last counters
}

// Believes is what each node believes of the others: rows are observers, columns members, in the order of ids.
type Believes struct {
	Version   uint64
	Members   []sdk.NodeID
	Observers []*Observer
}

// Observer is one row.
type Observer struct {
	Version     uint64
	Node        sdk.NodeID
	Stale       bool // its stream is not live: this is what it believed
	RingHash    uint64
	RingVersion uint64
	Beliefs     []Belief // by node id
}

// Belief is one cell.
type Belief struct {
	Node                   sdk.NodeID
	State                  string // alive, suspect, dead, left, unknown
	Boot                   uint64
	Since                  time.Time
	Vnodes, OwnsPerMillion int
	Status, Rack           string
}

// Of is what the observer believes of a node; ok is false when it does not know it.
func (o *Observer) Of(node sdk.NodeID) (b Belief, ok bool) {
	if o == nil {
		return b, false
	}
	i, ok := slices.BinarySearchFunc(o.Beliefs, node, func(b Belief, id sdk.NodeID) int { return cmp.Compare(b.Node, id) })
	if !ok {
		return b, false
	}
	return o.Beliefs[i], true
}

// Shard is one metadata group.
type Shard struct {
	Version uint64

	sdk.ShardStatus
	Observer     sdk.NodeID // whose word this is: the leader's, if it has one
	Since        time.Time  // of its leader, or since when it has none
	LeaderlessMs int64      // for how long nobody led before that; 0: unknown
	LastFrom     sdk.NodeID // who led before
	Stale        bool       // whoever said this is not heard any more
}

// Topic is one topic.
type Topic struct {
	Version uint64

	sdk.TopicSummary
	InBytes, InRecords float64   // a second, smoothed: the sum over its ranges if all are counted, else as listed
	AtLeast            bool      // the rate or the size lack something
	Listed             time.Time // zero: known only by its ranges
	Detailed           time.Time // zero: its ranges are known only as far as they are busy

	sumBytes, sumRecords float64 // over the ranges that are counted
	nCounted             int
}

// RangeKey names a range.
type RangeKey struct {
	Topic string
	Range sdk.RangeID
}

// Range is one range.
type Range struct {
	Version uint64

	Key      RangeKey
	TopicID  sdk.TopicID
	Start    uint64
	End      uint64 // 0: 2^64
	State    string // active, sealed, deleting
	Parents  []sdk.RangeID
	Children []sdk.RangeID
	Cause    string // why it was sealed
	Created  time.Time
	Sealed   time.Time

	Counted            bool    // its leader counts it among its busiest, or it was described just now: the rates hold
	byLeader           bool    // the former
	InBytes, InRecords float64 // a second, smoothed
	Steady             float64 // InBytes as it is drawn: see the function of that name
	Load               string  // unknown, pressure, idle, normal
	Streak             int
	Leader             sdk.NodeID
	Segment            sdk.SegmentID // the active one
	SegmentBytes       int64
	SegmentCreated     time.Time
	Earliest, Offset   int64 // Offset: commit of an active range, end of a sealed one
	Records, Bytes     int64 // 0: not described
	Segments           int

	rated int64 // when its rate was told, in nanoseconds
}

// Segment is one segment.
type Segment struct {
	Version uint64

	ID       sdk.SegmentID
	Range    RangeKey
	State    string // active, sealed, deleting
	Cause    string
	Base     int64
	End      int64
	Bytes    int64
	Replicas []Replica // leader first
	Created  time.Time
	Sealed   time.Time
	GapMs    int64 // before its first ack
	Copies   int   // that hold it whole; -1: unknown
	Want     int   // 0: unknown
	Forced   bool
	Unknown  bool   // no replica answered
	Waits    string // what finding its end waits for
	Repair   *sdk.RepairProgress
}

// Replica is one copy.
type Replica struct {
	Node  sdk.NodeID
	State string // leader, in_sync, behind, missing, restarted, damaged, no_answer; empty: unknown
	End   int64
}

// Short reports whether the segment has fewer whole copies than it should.
func (s *Segment) Short() bool { return s != nil && s.Want > 0 && s.Copies >= 0 && s.Copies < s.Want }

// Group is a consumer group.
type Group struct {
	Version uint64

	sdk.GroupCounters
	Coordinator sdk.NodeID
	Trend       Series // of the lag, one a second, 1 minute
}

// Seal is a segment that ended, and the one that range went on in.
type Seal struct {
	Time     time.Time
	Node     sdk.NodeID // that led the old one, as far as it is known; else who told of it
	Leader   sdk.NodeID // of the new one; empty: not known yet
	Range    RangeKey
	Old, New sdk.SegmentID
	Cause    string
	GapMs    int64 // how long producers stood still; -1: not known yet
	End      int64
	Bytes    int64
	Replicas []sdk.NodeID // of the new one
	Lossy    bool
}

// Letter is the cause as the timeline shows it: P pressure, I idle, F failure, S split, M merge, R repair, A age,
// O operator, D drain, and ? for others.
func (s *Seal) Letter() byte { return letterOf(s.Cause) }

// Change is a split or a merge.
type Change struct {
	Time     time.Time
	Topic    string
	Merge    bool
	Parents  []sdk.RangeID
	Children []sdk.RangeID
	At       uint64 // where a split cut
	Start    uint64 // of all the key space it was about
	End      uint64
	Cause    string
	Streak   int
}

// StreamGap is a time in which a node was not heard, or events of it that are lost. The zero Node means all.
type StreamGap struct {
	Node     sdk.NodeID
	From, To time.Time // To zero: it lasts
	Lost     uint64
	Reason   string
}

// Event is one line of a node's journal, or one of the program's own.
type Event struct {
	sdk.Event
	Boot  uint64
	At    time.Time
	Local bool // of the program that watches: a stream was lost or came back

	arrived uint64 // so many had come with it
}

// LogLine is one line of a node's log.
type LogLine struct {
	sdk.LogLine
	Node sdk.NodeID
	At   time.Time
}

// Health is the last verdict.
type Health struct {
	Version  uint64
	Observer sdk.NodeID
	At       time.Time // zero: never asked
	Worst    sdk.HealthResult
	Checks   []sdk.HealthCheck
}

// History is what sparklines draw: one sample each second, for 15 minutes at most, all ending at End. A negative one
// says that no node was heard.
type History struct {
	Version               uint64
	End                   time.Time
	InBytes, OutBytes     Series
	InRecords, OutRecords Series
	AckP99, FsyncP99      Series // milliseconds
}

// RangesOf are the known ranges of a topic, by id.
func (v *View) RangesOf(topic string) []*Range {
	if v == nil {
		return nil
	}
	from, _ := v.Ranges.find(RangeKey{Topic: topic})
	to := from
	for to < len(v.Ranges.rows) && v.Ranges.keys[to].Topic == topic {
		to++
	}
	return v.Ranges.rows[from:to:to]
}

// KeyspaceOf are the active ranges of a topic in the order of the key space.
func (v *View) KeyspaceOf(topic string) []*Range {
	var active []*Range
	for _, r := range v.RangesOf(topic) {
		if r.State == "active" {
			active = append(active, r)
		}
	}
	slices.SortFunc(active, func(a, b *Range) int { return cmp.Compare(a.Start, b.Start) })
	return active
}

// Stale reports whether what is known of a node may be old.
func (v *View) Stale(node sdk.NodeID) bool {
	if v == nil {
		return true
	}
	n := v.Nodes.Get(node)
	return n == nil || n.Stream != StreamLive
}

// Repairs are the segments of which copies are being made.
func (v *View) Repairs() []*Segment {
	if v == nil {
		return nil
	}
	var list []*Segment
	for _, s := range v.Segments.rows {
		if s.Repair != nil {
			list = append(list, s)
		}
	}
	return list
}
