package wire

import "github.com/eastguard/eastguard/internal/base"

// ListShardsRequest asks for every shard, each as its leader sees it.
type ListShardsRequest struct{}

// ListShardsResponse answers it. A shard whose leader did not answer is listed as far as the answering node knows it.
type ListShardsResponse struct {
	Observer   base.NodeID    `cbor:"1,keyasint"`
	ObservedMs int64          `cbor:"2,keyasint"`
	Shards     []ShardStatus  `cbor:"3,keyasint,omitempty"`
	Missing    []base.ShardID `cbor:"4,keyasint,omitempty"` // those whose leader did not answer
}

// DescribeShardRequest asks for everything about one shard.
type DescribeShardRequest struct {
	Shard base.ShardID `cbor:"1,keyasint"`
}

// DescribeShardResponse is a shard as its leader sees it; without one, as the answering replica does.
type DescribeShardResponse struct {
	Status        ShardStatus   `cbor:"1,keyasint"`
	Observer      base.NodeID   `cbor:"2,keyasint"`
	Members       []ShardMember `cbor:"3,keyasint,omitempty"`
	FirstIndex    uint64        `cbor:"4,keyasint,omitempty"` // of the log
	LastIndex     uint64        `cbor:"5,keyasint,omitempty"`
	SnapshotIndex uint64        `cbor:"6,keyasint,omitempty"`
	SnapshotBytes int64         `cbor:"7,keyasint,omitempty"`
	Generation    uint64        `cbor:"8,keyasint,omitempty"`  // counts its recoveries that accepted a loss
	Events        []Event       `cbor:"9,keyasint,omitempty"`  // the last of this shard, newest last
	Seats         string        `cbor:"10,keyasint,omitempty"` // what the leader does about its voters, or waits for
}

// ShardMember is one replica of a shard.
type ShardMember struct {
	Node     base.NodeID `cbor:"1,keyasint"`
	Server   base.UUID   `cbor:"2,keyasint,omitempty"` // of its meta directory
	Voter    bool        `cbor:"3,keyasint,omitempty"`
	Leader   bool        `cbor:"4,keyasint,omitempty"`
	Match    uint64      `cbor:"5,keyasint,omitempty"` // the last entry it is known to hold
	Intended bool        `cbor:"6,keyasint,omitempty"` // by the ring
	State    string      `cbor:"7,keyasint,omitempty"` // what the connection says: reachable, unreachable, refused
}

// LocateShardRequest asks which shard holds a topic of this name, whether there is one or not.
type LocateShardRequest struct {
	Topic string `cbor:"1,keyasint"`
}

// LocateShardResponse answers it.
type LocateShardResponse struct {
	Hash   uint64        `cbor:"1,keyasint"`
	Shard  base.ShardID  `cbor:"2,keyasint"`
	Voters []base.NodeID `cbor:"3,keyasint,omitempty"`
	Leader base.NodeID   `cbor:"4,keyasint,omitempty"`
}

// TransferShardRequest moves a shard's leadership to a voter.
type TransferShardRequest struct {
	Shard  base.ShardID `cbor:"1,keyasint"`
	To     base.NodeID  `cbor:"2,keyasint"`
	DryRun bool         `cbor:"3,keyasint,omitempty"`
}

// TransferShardResponse is the move made, or that would be.
type TransferShardResponse struct {
	Move   ShardMove `cbor:"1,keyasint"`
	DryRun bool      `cbor:"2,keyasint,omitempty"`
}

// ShardMove is one leadership that moved.
type ShardMove struct {
	Shard        base.ShardID `cbor:"1,keyasint"`
	From         base.NodeID  `cbor:"2,keyasint,omitempty"`
	To           base.NodeID  `cbor:"3,keyasint"`
	Term         uint64       `cbor:"4,keyasint,omitempty"`
	LeaderlessUs int64        `cbor:"5,keyasint,omitempty"` // nobody led for so long
	Error        string       `cbor:"6,keyasint,omitempty"`
}

// BalanceShardsRequest spreads the leaderships evenly over the nodes.
type BalanceShardsRequest struct {
	DryRun bool `cbor:"1,keyasint,omitempty"`
}

// BalanceShardsResponse lists the moves made, or that would be; none when they are even.
type BalanceShardsResponse struct {
	Moves   []ShardMove   `cbor:"1,keyasint,omitempty"`
	DryRun  bool          `cbor:"2,keyasint,omitempty"`
	Missing []base.NodeID `cbor:"3,keyasint,omitempty"` // did not answer: of what they lead nothing is known
}

// RecoverShardRequest rebuilds a shard that lost its quorum for good from the newest log that is left. What only the
// lost replicas had is gone; that it was accepted is recorded for ever.
type RecoverShardRequest struct {
	Shard      base.ShardID `cbor:"1,keyasint"`
	AcceptLoss bool         `cbor:"2,keyasint,omitempty"` // without it only DryRun is answered
	DryRun     bool         `cbor:"3,keyasint,omitempty"`
}

// RecoverShardResponse names every log found and the one that was taken, or would be.
type RecoverShardResponse struct {
	Shard      base.ShardID `cbor:"1,keyasint"`
	Logs       []ShardLog   `cbor:"2,keyasint,omitempty"`
	Lost       []base.UUID  `cbor:"3,keyasint,omitempty"` // voters that did not answer
	DryRun     bool         `cbor:"4,keyasint,omitempty"`
	Generation uint64       `cbor:"5,keyasint,omitempty"` // the new one: replicas of earlier ones set themselves aside
}

// ShardLog is the end of one replica's log.
type ShardLog struct {
	Node     base.NodeID `cbor:"1,keyasint"`
	Server   base.UUID   `cbor:"2,keyasint,omitempty"`
	Term     uint64      `cbor:"3,keyasint,omitempty"`
	Index    uint64      `cbor:"4,keyasint,omitempty"`
	Chosen   bool        `cbor:"5,keyasint,omitempty"`
	Archived bool        `cbor:"6,keyasint,omitempty"` // set aside by an earlier recovery
}
