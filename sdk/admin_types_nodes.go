package sdk

import "github.com/eastguard/eastguard/internal/wire"

// What Admin and Watch answer about nodes and shards.
type (
	// NodeList is every node of the cluster.
	//
	//	Cluster    base.ClusterID
	//	Observer   NodeID
	//	ObservedMs int64
	//	Nodes      []NodeStatus
	//	Missing    []NodeID // did not answer for themselves; shown as last heard of
	NodeList = wire.ListNodesResponse
	// NodeRing is the consistent-hash ring as one node has it.
	//
	//	Observer   NodeID
	//	ObservedMs int64
	//	Hash       uint64 // of the sorted members and their tokens
	//	Version    uint64 // of the root's node table that it was made of
	//	Members    []RingMember
	NodeRing = wire.NodeRingResponse
	// RingMember is one node on a NodeRing, or known beside it.
	//
	//	Node           NodeID
	//	State          string // what the observer believes: alive, suspect, dead, left, unknown
	//	Status         string // normal, draining, out
	//	Boot           uint64 // the start it believes in
	//	Vnodes         int    // 0: not on the ring
	//	OwnsPerMillion int
	//	Tokens         []uint64 // ascending
	//	SinceMs        int64    // when it began to believe that
	//	Rack           string
	RingMember = wire.RingMember
	// Reached is how one node reached others.
	//
	//	Observer NodeID
	//	Peers    []PeerReach
	Reached = wire.ReachResponse
	// PeerReach is how it reached one of them.
	//
	//	Node   NodeID
	//	Sent   int
	//	OK     int
	//	RttUs  []int64 // of those answered
	//	Gossip string  // what membership says: alive, suspect, dead, left
	//	Link   string  // what the connection says: reachable, unreachable, refused
	//	Error  string  // of the last ping that failed
	PeerReach = wire.PeerReach
	// ChangedNode is a node's place before and after ChangeNode.
	//
	//	Node     NodeID
	//	Before   string // state and status
	//	After    string
	//	Segments int       // whose only copies are there
	//	Shards   []ShardID // that it votes in
	//	DryRun   bool
	ChangedNode = wire.ChangeNodeResponse
	// ShardList is every metadata shard.
	//
	//	Observer   NodeID
	//	ObservedMs int64
	//	Shards     []ShardStatus
	//	Missing    []ShardID // those whose leader did not answer
	ShardList = wire.ListShardsResponse
	// ShardDetail is everything about one shard.
	//
	//	Status        ShardStatus
	//	Observer      NodeID
	//	Members       []ShardMember
	//	FirstIndex    uint64 // of the log
	//	LastIndex     uint64
	//	SnapshotIndex uint64
	//	SnapshotBytes int64
	//	Generation    uint64  // counts its recoveries that accepted a loss
	//	Events        []Event // the last of this shard, newest last
	//	Seats         string  // what the leader does about its voters, or waits for
	ShardDetail = wire.DescribeShardResponse
	// ShardMember is one replica of a shard.
	//
	//	Node     NodeID
	//	Server   base.UUID // of its meta directory
	//	Voter    bool
	//	Leader   bool
	//	Match    uint64 // the last entry it is known to hold
	//	Intended bool   // by the ring
	//	State    string // what the connection says: reachable, unreachable, refused
	ShardMember = wire.ShardMember
	// LocatedShard is the shard of a topic's name.
	//
	//	Hash   uint64
	//	Shard  ShardID
	//	Voters []NodeID
	//	Leader NodeID
	LocatedShard = wire.LocateShardResponse
	// TransferredShard is a leadership moved, or that would be.
	//
	//	Move   ShardMove
	//	DryRun bool
	TransferredShard = wire.TransferShardResponse
	// BalancedShards are the leaderships moved, or that would be; none when they are even.
	//
	//	Moves   []ShardMove
	//	DryRun  bool
	//	Missing []NodeID // did not answer: of what they lead nothing is known
	BalancedShards = wire.BalanceShardsResponse
	// ShardMove is one leadership moved.
	//
	//	Shard        ShardID
	//	From         NodeID
	//	To           NodeID
	//	Term         uint64
	//	LeaderlessUs int64 // nobody led for so long
	//	Error        string
	ShardMove = wire.ShardMove
	// RecoveredShard names every log of a shard that was found and the one taken, or that would be.
	//
	//	Shard      ShardID
	//	Logs       []ShardLog
	//	Lost       []base.UUID // voters that did not answer
	//	DryRun     bool
	//	Generation uint64 // the new one: replicas of earlier ones set themselves aside
	RecoveredShard = wire.RecoverShardResponse
	// ShardLog is the end of one replica's log.
	//
	//	Node     NodeID
	//	Server   base.UUID
	//	Term     uint64
	//	Index    uint64
	//	Chosen   bool
	//	Archived bool // set aside by an earlier recovery
	ShardLog = wire.ShardLog
	// NodeState is what a node sees and leads, without what only counts up.
	//
	//	Self        NodeStatus
	//	Members     []RingMember
	//	RingHash    uint64
	//	RingVersion uint64
	//	Shards      []ShardStatus // replicas here
	NodeState = wire.WatchedState
)

// NodeChange is what ChangeNode does with a node.
type NodeChange = wire.NodeChange

// The changes.
const (
	// LeaveNode asks a living node to stop in good order. Its data stays and counts when it returns.
	LeaveNode = wire.NodeLeave
	// ForgetNode takes a dead node out at once: its copies count as lost and are made anew elsewhere.
	ForgetNode = wire.NodeForget
	// ReplaceNode admits a node under its old name with another disk. The old disk's copies count as lost.
	ReplaceNode = wire.NodeReplace
)

// Reach says who is to reach whom.
type Reach struct {
	// From does it; empty means whichever node answers.
	From NodeID
	// Nodes are reached; none means all that From knows.
	Nodes []NodeID
	// Count is how often each is pinged, at most 100; 0 means once.
	Count int
}

// ChangeNode says what to do with which node.
type ChangeNode struct {
	Node   NodeID
	Change NodeChange
	// Disk is the one that ReplaceNode gives up, so that a call that comes late gives up no other; zero means the one
	// that the node has.
	Disk   DiskID
	DryRun bool
}

// TransferShard says which leadership to move, and where to.
type TransferShard struct {
	Shard  ShardID
	To     NodeID
	DryRun bool
}

// RecoverShard says which shard to rebuild.
type RecoverShard struct {
	Shard ShardID
	// AcceptLoss accepts that what only the lost voters had is gone. It is recorded for ever.
	AcceptLoss bool
	// DryRun tells which log would win and changes nothing.
	DryRun bool
}
