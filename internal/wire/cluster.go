package wire

import "github.com/eastguard/eastguard/internal/base"

// ClusterStatusRequest asks for the cluster on one page.
type ClusterStatusRequest struct{}

// ClusterStatusResponse is the cluster as the answering node sees it.
type ClusterStatusResponse struct {
	Cluster          base.ClusterID `cbor:"1,keyasint"`
	Observer         base.NodeID    `cbor:"2,keyasint"` // who answered
	ObservedMs       int64          `cbor:"3,keyasint"`
	Nodes            []NodeStatus   `cbor:"4,keyasint,omitempty"`
	Shards           []ShardStatus  `cbor:"5,keyasint,omitempty"`
	Topics           int            `cbor:"6,keyasint,omitempty"`
	Ranges           int            `cbor:"7,keyasint,omitempty"` // active ones
	Segments         int            `cbor:"8,keyasint,omitempty"`
	Records          int64          `cbor:"9,keyasint,omitempty"`
	Bytes            int64          `cbor:"10,keyasint,omitempty"`
	UnderReplicated  int            `cbor:"11,keyasint,omitempty"` // segments with fewer copies than the factor
	Leaderless       int            `cbor:"12,keyasint,omitempty"` // shards without a leader
	InBytesPerSec    int64          `cbor:"13,keyasint,omitempty"`
	OutBytesPerSec   int64          `cbor:"14,keyasint,omitempty"`
	InRecordsPerSec  int64          `cbor:"15,keyasint,omitempty"`
	OutRecordsPerSec int64          `cbor:"16,keyasint,omitempty"`
	Events           []Event        `cbor:"17,keyasint,omitempty"` // the last few, newest last
	Missing          []base.ShardID `cbor:"18,keyasint,omitempty"` // shards whose topics are not counted
	Groups           int            `cbor:"19,keyasint,omitempty"`
}

// NodeStatus is one node as membership and its own counters show it.
type NodeStatus struct {
	ID               base.NodeID       `cbor:"1,keyasint"`
	Boot             uint64            `cbor:"2,keyasint,omitempty"`
	Address          string            `cbor:"3,keyasint,omitempty"` // client host:port
	State            string            `cbor:"4,keyasint,omitempty"` // alive, suspect, dead, left
	Status           string            `cbor:"5,keyasint,omitempty"` // normal, draining, leaving
	Rack             string            `cbor:"6,keyasint,omitempty"`
	Labels           map[string]string `cbor:"7,keyasint,omitempty"`
	Version          string            `cbor:"8,keyasint,omitempty"`
	UptimeMs         int64             `cbor:"9,keyasint,omitempty"`
	DiskUsed         int64             `cbor:"10,keyasint,omitempty"`
	DiskTotal        int64             `cbor:"11,keyasint,omitempty"`
	InBytesPerSec    int64             `cbor:"12,keyasint,omitempty"`
	OutBytesPerSec   int64             `cbor:"13,keyasint,omitempty"`
	InRecordsPerSec  int64             `cbor:"14,keyasint,omitempty"`
	OutRecordsPerSec int64             `cbor:"15,keyasint,omitempty"`
	Segments         int               `cbor:"16,keyasint,omitempty"` // held here
	Leaders          int               `cbor:"17,keyasint,omitempty"` // segments led here
	ShardLeaders     int               `cbor:"18,keyasint,omitempty"`
	Vnodes           int               `cbor:"19,keyasint,omitempty"`
	OwnsPerMillion   int               `cbor:"20,keyasint,omitempty"` // share of the ring
	FsyncP99Us       int64             `cbor:"21,keyasint,omitempty"`
	AckP99Us         int64             `cbor:"22,keyasint,omitempty"`
	RttUs            int64             `cbor:"23,keyasint,omitempty"`
	Connections      int               `cbor:"24,keyasint,omitempty"`
	RingHash         uint64            `cbor:"25,keyasint,omitempty"`
	RingVersion      uint64            `cbor:"26,keyasint,omitempty"`
	Replicas         int               `cbor:"27,keyasint,omitempty"` // of shards
	SinceMs          int64             `cbor:"28,keyasint,omitempty"` // when State began
	Admitted         bool              `cbor:"29,keyasint,omitempty"` // the root has accepted this start
	Full             bool              `cbor:"30,keyasint,omitempty"` // takes no more records, to keep its reserve of disk
	Damaged          int               `cbor:"31,keyasint,omitempty"` // segments whose data is not what was written
	Quarantined      int               `cbor:"32,keyasint,omitempty"` // files put aside because they are damaged or nobody's
	Followers        int               `cbor:"33,keyasint,omitempty"` // active segments held here that other nodes lead
	Short            int               `cbor:"34,keyasint,omitempty"` // copies of sealed segments here that lack a part, and count as none
}

// ShardStatus is one Raft group.
type ShardStatus struct {
	ID         base.ShardID  `cbor:"1,keyasint"`
	State      string        `cbor:"2,keyasint,omitempty"` // ok, no_leader, catching_up, recovering
	Leader     base.NodeID   `cbor:"3,keyasint,omitempty"`
	Term       uint64        `cbor:"4,keyasint,omitempty"`
	Commit     uint64        `cbor:"5,keyasint,omitempty"`
	Applied    uint64        `cbor:"6,keyasint,omitempty"`
	Voters     []base.NodeID `cbor:"7,keyasint,omitempty"`
	NonVoters  []base.NodeID `cbor:"8,keyasint,omitempty"`
	Topics     int           `cbor:"9,keyasint,omitempty"`
	SinceMs    int64         `cbor:"10,keyasint,omitempty"` // when its leader began, or was lost
	Trails     uint64        `cbor:"11,keyasint,omitempty"` // entries that the voter furthest behind lacks
	Want       int           `cbor:"12,keyasint,omitempty"` // voters it should have
	Hosted     bool          `cbor:"13,keyasint,omitempty"` // the answering node has a replica
	Generation uint64        `cbor:"14,keyasint,omitempty"` // counts its recoveries that accepted a loss
}

// Event is one line of a node's journal.
type Event struct {
	Seq     uint64      `cbor:"1,keyasint"` // per node and boot, without holes
	TimeMs  int64       `cbor:"2,keyasint"`
	Node    base.NodeID `cbor:"3,keyasint,omitempty"`
	Type    string      `cbor:"4,keyasint"`           // ROLL, SEAL, TOPIC, SHARD, NODE, …
	Subject string      `cbor:"5,keyasint,omitempty"` // orders/r9
	Cause   string      `cbor:"6,keyasint,omitempty"`
	Detail  string      `cbor:"7,keyasint,omitempty"`
	GapMs   int64       `cbor:"8,keyasint,omitempty"`
	Before  string      `cbor:"9,keyasint,omitempty"`
	After   string      `cbor:"10,keyasint,omitempty"`
	Actor   string      `cbor:"11,keyasint,omitempty"`
}

// ClusterHealthRequest asks for the checks.
type ClusterHealthRequest struct{}

// ClusterHealthResponse is every check with its verdict; the worst one is the cluster's.
type ClusterHealthResponse struct {
	Cluster    base.ClusterID `cbor:"1,keyasint"`
	Observer   base.NodeID    `cbor:"2,keyasint"`
	ObservedMs int64          `cbor:"3,keyasint"`
	Nodes      int            `cbor:"4,keyasint"` // alive ones, for --min-nodes
	Checks     []HealthCheck  `cbor:"5,keyasint"`
}

// HealthResult is a check's verdict; higher is worse.
type HealthResult uint8

// The verdicts.
const (
	HealthPass HealthResult = iota
	HealthWarn
	HealthFail
)

// String prints PASS, WARN or FAIL.
func (r HealthResult) String() string {
	switch r {
	case HealthPass:
		return "PASS"
	case HealthWarn:
		return "WARN"
	case HealthFail:
	}
	return "FAIL"
}

// HealthCheck is one check, by the ids of `eg-cli explain` (EG120).
type HealthCheck struct {
	ID     string       `cbor:"1,keyasint"`
	Name   string       `cbor:"2,keyasint"`
	Result HealthResult `cbor:"3,keyasint,omitempty"`
	Detail string       `cbor:"4,keyasint,omitempty"` // the reason, with numbers
	Next   string       `cbor:"5,keyasint,omitempty"` // the command that shows more or mends it
}

// Worst is the verdict of the whole: that of the worst check.
func (r ClusterHealthResponse) Worst() HealthResult {
	worst := HealthPass
	for _, c := range r.Checks {
		worst = max(worst, c.Result)
	}
	return worst
}

// DescribeNodeRequest asks one node about itself; Node empty means whoever is asked.
type DescribeNodeRequest struct {
	Node base.NodeID `cbor:"1,keyasint,omitempty"`
}

// DescribeNodeResponse is everything the node knows about itself.
type DescribeNodeResponse struct {
	Status         NodeStatus       `cbor:"1,keyasint"`
	Cluster        base.ClusterID   `cbor:"2,keyasint"`
	Disk           base.DiskID      `cbor:"3,keyasint"`
	Meta           base.UUID        `cbor:"4,keyasint"` // of the meta directory
	ClusterAddress string           `cbor:"5,keyasint,omitempty"`
	DataAddress    string           `cbor:"6,keyasint,omitempty"`
	AdminAddress   string           `cbor:"7,keyasint,omitempty"`
	GoVersion      string           `cbor:"8,keyasint,omitempty"`
	Platform       string           `cbor:"9,keyasint,omitempty"` // linux/amd64
	Pid            int              `cbor:"10,keyasint,omitempty"`
	StartedMs      int64            `cbor:"11,keyasint,omitempty"`
	DataDir        string           `cbor:"12,keyasint,omitempty"`
	MetaDir        string           `cbor:"13,keyasint,omitempty"`
	Settings       []Setting        `cbor:"14,keyasint,omitempty"`
	Counters       map[string]int64 `cbor:"15,keyasint,omitempty"` // everything else that is a number, by metric name
	RssBytes       int64            `cbor:"16,keyasint,omitempty"`
	WalBytes       int64            `cbor:"17,keyasint,omitempty"`
	WalFiles       int              `cbor:"18,keyasint,omitempty"`
	RingHash       uint64           `cbor:"19,keyasint,omitempty"`
	RingVersion    uint64           `cbor:"20,keyasint,omitempty"`
}
