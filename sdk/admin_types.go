package sdk

import "github.com/eastguard/eastguard/internal/wire"

// What Admin answers with.
type (
	// CreatedTopic is a topic made, or that would be.
	//
	//	Topic       TopicDetail
	//	Shard       ShardID
	//	ShardLeader NodeID
	//	DryRun      bool
	//	Explain     []string // why nodes were chosen for the first ranges, or not: "r1 n2: chosen, …"
	CreatedTopic = wire.CreateTopicResponse
	// AlteredTopic shows each changed setting before and after.
	//
	//	Before  map[string]string
	//	After   map[string]string
	//	Version base.Version
	//	Topic   TopicID
	//	DryRun  bool
	AlteredTopic = wire.AlterTopicResponse
	// DeletedTopic counts what goes with a topic.
	//
	//	Topic    TopicID
	//	Ranges   int
	//	Segments int
	//	Bytes    int64
	//	Version  base.Version // that a dry run's plan was made from
	//	Groups   []string     // consumer groups that read it
	//	DryRun   bool
	DeletedTopic = wire.DeleteTopicResponse
	// TopicSummary is a topic's row in a list.
	//
	//	ID                TopicID
	//	Name              string
	//	Version           base.Version
	//	State             base.State
	//	ReplicationFactor int
	//	Ranges            int // active ones
	//	Strategy          Strategy
	//	Segments          int
	//	Records           int64
	//	Bytes             int64 // one copy's
	//	InBytesPerSec     int64
	//	InRecordsPerSec   int64
	//	RetentionMs       int64 // 0 = for ever
	//	RetentionBytes    int64 // 0 = no limit
	//	Compression       string
	//	Labels            map[string]string
	//	CreatedMs         int64
	//	Shard             ShardID
	//	ShardLeader       NodeID
	//	Partial           bool // leaders of active segments did not answer: Records and Bytes lack theirs
	//	UnderReplicated   int  // segments with fewer copies than the factor, as far as metadata and membership show
	TopicSummary = wire.TopicSummary
	// TopicDetail is everything about one topic.
	//
	//	Summary  TopicSummary
	//	Config   TopicConfig
	//	Settings []Setting     // effective values with their sources
	//	Ranges   []RangeDetail // by id; trimmed-away ones are gone
	//	Nodes    []NodeAddress
	//	Copies   int           // how many replicas a segment is to have
	//	Losses   int           // seals above whose ends acked records may be gone, ever
	//	Lost     []SegmentLoss // the last of them, oldest first
	TopicDetail = wire.TopicDetail
	// RangeDetail is everything about one range.
	//
	//	ID              RangeID
	//	Span            keyspace.Span
	//	State           base.State
	//	Parents         []RangeID
	//	Children        []RangeID
	//	Cause           Cause // why it was sealed
	//	Earliest        int64
	//	End             int64 // commit of an active range, end of a sealed one
	//	Records         int64
	//	Bytes           int64
	//	InBytesPerSec   int64
	//	InRecordsPerSec int64
	//	Load            string // unknown, pressure 2, idle, normal
	//	CreatedMs       int64
	//	SealedMs        int64
	//	Leader          NodeID          // of the active segment
	//	Segments        []SegmentDetail // by base
	RangeDetail = wire.RangeDetail
	// SegmentDetail is everything about one segment.
	//
	//	ID           SegmentID
	//	Epoch        Epoch
	//	State        base.State
	//	Cause        Cause // why it was sealed
	//	Base         int64
	//	End          int64 // commit of an active one
	//	Records      int64
	//	Bytes        int64
	//	Replicas     []ReplicaDetail // leader first
	//	CreatedMs    int64
	//	SealedMs     int64
	//	LastAppendMs int64
	//	GapMs        int64  // from the last ack before it to its first
	//	Unknown      bool   // no replica of an active one answered: End, Records and Bytes are not known
	//	Copies       int    // replicas that hold it whole, as far as they answered
	//	Forced       bool   // an operator ended it without knowing its end
	//	Waits        string // its leader cannot go on: what finding its end, or opening the next one, waits for
	SegmentDetail = wire.SegmentDetail
	// ReplicaDetail is one copy of a segment.
	//
	//	Node       NodeID
	//	Disk       DiskID
	//	DurableEnd int64
	//	State      string // leader, in_sync, behind, missing, restarted, damaged, no_answer
	ReplicaDetail = wire.ReplicaDetail
	// Setting is one effective setting and where it comes from.
	//
	//	Key     string
	//	Value   string
	//	Default string
	//	Source  string // default, topic, broker, file, env, flag
	//	Reload  string // live, restart
	//	Help    string
	Setting = wire.Setting
	// NodeAddress is where clients reach a node.
	//
	//	ID      NodeID
	//	Address string // host:port
	//	Rack    string
	NodeAddress = wire.NodeAddress
	// ClusterStatus is the cluster as one node sees it.
	//
	//	Cluster          base.ClusterID
	//	Observer         NodeID // who answered
	//	ObservedMs       int64
	//	Nodes            []NodeStatus
	//	Shards           []ShardStatus
	//	Topics           int
	//	Ranges           int // active ones
	//	Segments         int
	//	Records          int64
	//	Bytes            int64
	//	UnderReplicated  int // segments with fewer copies than the factor
	//	Leaderless       int // shards without a leader
	//	InBytesPerSec    int64
	//	OutBytesPerSec   int64
	//	InRecordsPerSec  int64
	//	OutRecordsPerSec int64
	//	Events           []Event   // the last few, newest last
	//	Missing          []ShardID // shards whose topics are not counted
	//	Groups           int
	ClusterStatus = wire.ClusterStatusResponse
	// ClusterHealth is every check with its verdict.
	//
	//	Cluster    base.ClusterID
	//	Observer   NodeID
	//	ObservedMs int64
	//	Nodes      int // alive ones, for --min-nodes
	//	Checks     []HealthCheck
	ClusterHealth = wire.ClusterHealthResponse
	// HealthCheck is one check.
	//
	//	ID     string
	//	Name   string
	//	Result HealthResult
	//	Detail string // the reason, with numbers
	//	Next   string // the command that shows more or mends it
	HealthCheck = wire.HealthCheck
	// HealthResult is a check's verdict.
	HealthResult = wire.HealthResult
	// NodeStatus is one node in ClusterStatus.
	//
	//	ID               NodeID
	//	Boot             uint64
	//	Address          string // client host:port
	//	State            string // alive, suspect, dead, left
	//	Status           string // normal, draining, leaving
	//	Rack             string
	//	Labels           map[string]string
	//	Version          string
	//	UptimeMs         int64
	//	DiskUsed         int64
	//	DiskTotal        int64
	//	InBytesPerSec    int64
	//	OutBytesPerSec   int64
	//	InRecordsPerSec  int64
	//	OutRecordsPerSec int64
	//	Segments         int // held here
	//	Leaders          int // segments led here
	//	ShardLeaders     int
	//	Vnodes           int
	//	OwnsPerMillion   int // share of the ring
	//	FsyncP99Us       int64
	//	AckP99Us         int64
	//	RttUs            int64
	//	Connections      int
	//	RingHash         uint64
	//	RingVersion      uint64
	//	Replicas         int   // of shards
	//	SinceMs          int64 // when State began
	//	Admitted         bool  // the root has accepted this start
	//	Full             bool  // takes no more records, to keep its reserve of disk
	//	Damaged          int   // segments whose data is not what was written
	//	Quarantined      int   // files put aside because they are damaged or nobody's
	//	Followers        int   // active segments held here that other nodes lead
	//	Short            int   // copies of sealed segments here that lack a part, and count as none
	NodeStatus = wire.NodeStatus
	// ShardStatus is one metadata group.
	//
	//	ID         ShardID
	//	State      string // ok, no_leader, catching_up, recovering
	//	Leader     NodeID
	//	Term       uint64
	//	Commit     uint64
	//	Applied    uint64
	//	Voters     []NodeID
	//	NonVoters  []NodeID
	//	Topics     int
	//	SinceMs    int64  // when its leader began, or was lost
	//	Trails     uint64 // entries that the voter furthest behind lacks
	//	Want       int    // voters it should have
	//	Hosted     bool   // the answering node has a replica
	//	Generation uint64 // counts its recoveries that accepted a loss
	ShardStatus = wire.ShardStatus
	// NodeDetail is everything a node knows about itself.
	//
	//	Status         NodeStatus
	//	Cluster        base.ClusterID
	//	Disk           DiskID
	//	Meta           base.UUID // of the meta directory
	//	ClusterAddress string
	//	DataAddress    string
	//	AdminAddress   string
	//	GoVersion      string
	//	Platform       string // linux/amd64
	//	Pid            int
	//	StartedMs      int64
	//	DataDir        string
	//	MetaDir        string
	//	Settings       []Setting
	//	Counters       map[string]int64 // everything else that is a number, by metric name
	//	RssBytes       int64
	//	WalBytes       int64
	//	WalFiles       int
	//	RingHash       uint64
	//	RingVersion    uint64
	NodeDetail = wire.DescribeNodeResponse
	// Event is one line of a node's journal.
	//
	//	Seq     uint64 // per node and boot, without holes
	//	TimeMs  int64
	//	Node    NodeID
	//	Type    string // ROLL, SEAL, TOPIC, SHARD, NODE, …
	//	Subject string // orders/r9
	//	Cause   string
	//	Detail  string
	//	GapMs   int64
	//	Before  string
	//	After   string
	//	Actor   string
	Event = wire.Event
)

// The verdicts of a HealthCheck; higher is worse.
const (
	HealthPass = wire.HealthPass
	HealthWarn = wire.HealthWarn
	HealthFail = wire.HealthFail
)

// CreateTopic says what topic to make.
type CreateTopic struct {
	Name string
	// Config holds the settings; a ReplicationFactor of 0 means min(3, nodes).
	Config TopicConfig
	// Ranges is how many ranges to begin with, a power of two; 0 means 1.
	Ranges int
	// SplitAt cuts the key space at these hashes, in place of Ranges.
	SplitAt []uint64
	// AllowUnderReplicated makes the topic though fewer nodes live than its factor; it is repaired as nodes join.
	AllowUnderReplicated bool
	// DryRun answers what would be made and changes nothing.
	DryRun bool
}

// AlterTopic says what settings to change, in the words of TopicConfig.Set.
type AlterTopic struct {
	Name  string
	Set   map[string]string
	Unset []string
	// ExpectVersion makes the call fail with CodePreconditionFailed if the topic has changed since; 0 means any.
	ExpectVersion uint64
	// ExpectTopic makes the call fail if the name now means another topic; zero means any.
	ExpectTopic TopicID
	DryRun      bool
}

// DeleteTopic says what topic to remove, with its data.
type DeleteTopic struct {
	Name string
	// ExpectVersion makes the call fail with CodePreconditionFailed if the topic has changed since; 0 means any.
	ExpectVersion uint64
	// ExpectTopic makes the call fail if the name now means another topic; zero means any.
	ExpectTopic TopicID
	DryRun      bool
}

// ListTopics selects topics.
type ListTopics struct {
	// Glob filters names; empty means all.
	Glob string
	// Internal includes system topics.
	Internal bool
	// Limit stops after so many; 0 means all.
	Limit int
}

// TopicList is what ListTopics found.
type TopicList struct {
	Topics []TopicSummary // by name
	// Missing names the parts of the metadata that did not answer: their topics are not in the list.
	Missing []ShardID
}
