package wire

import "github.com/eastguard/eastguard/internal/base"

// ListNodesRequest asks for every node of the cluster.
type ListNodesRequest struct{}

// ListNodesResponse is the nodes as the answering node sees them; what they say of themselves was asked of each just now.
type ListNodesResponse struct {
	Cluster    base.ClusterID `cbor:"1,keyasint"`
	Observer   base.NodeID    `cbor:"2,keyasint"`
	ObservedMs int64          `cbor:"3,keyasint"`
	Nodes      []NodeStatus   `cbor:"4,keyasint,omitempty"`
	Missing    []base.NodeID  `cbor:"5,keyasint,omitempty"` // did not answer for themselves; shown as last heard of
}

// NodeRingRequest asks one node for its ring; Node empty means whoever is asked. Another node's is relayed.
type NodeRingRequest struct {
	Node   base.NodeID `cbor:"1,keyasint,omitempty"`
	Tokens bool        `cbor:"2,keyasint,omitempty"` // list them too
}

// NodeRingResponse is the ring, and what the node believes of the others.
type NodeRingResponse struct {
	Observer   base.NodeID  `cbor:"1,keyasint"`
	ObservedMs int64        `cbor:"2,keyasint"`
	Hash       uint64       `cbor:"3,keyasint"` // of the sorted members and their tokens
	Version    uint64       `cbor:"4,keyasint"` // of the root's node table that it was made of
	Members    []RingMember `cbor:"5,keyasint,omitempty"`
}

// RingMember is one node on a ring, or known beside it.
type RingMember struct {
	Node           base.NodeID `cbor:"1,keyasint"`
	State          string      `cbor:"2,keyasint"`           // what the observer believes: alive, suspect, dead, left, unknown
	Status         string      `cbor:"3,keyasint"`           // normal, draining, out
	Boot           uint64      `cbor:"4,keyasint,omitempty"` // the start it believes in
	Vnodes         int         `cbor:"5,keyasint,omitempty"` // 0: not on the ring
	OwnsPerMillion int         `cbor:"6,keyasint,omitempty"`
	Tokens         []uint64    `cbor:"7,keyasint,omitempty"` // ascending
	SinceMs        int64       `cbor:"8,keyasint,omitempty"` // when it began to believe that
	Rack           string      `cbor:"9,keyasint,omitempty"`
}

// ReachRequest asks a node to reach others and say how it went. No Nodes means all it knows.
type ReachRequest struct {
	Nodes []base.NodeID `cbor:"1,keyasint,omitempty"`
	Count int           `cbor:"2,keyasint,omitempty"` // pings to each, at most 100; 0 = 1
}

// ReachResponse answers it.
type ReachResponse struct {
	Observer base.NodeID `cbor:"1,keyasint"`
	Peers    []PeerReach `cbor:"2,keyasint,omitempty"`
}

// PeerReach is how one node reaches another.
type PeerReach struct {
	Node   base.NodeID `cbor:"1,keyasint"`
	Sent   int         `cbor:"2,keyasint"`
	OK     int         `cbor:"3,keyasint,omitempty"`
	RttUs  []int64     `cbor:"4,keyasint,omitempty"` // of those answered
	Gossip string      `cbor:"5,keyasint,omitempty"` // what membership says: alive, suspect, dead, left
	Link   string      `cbor:"6,keyasint,omitempty"` // what the connection says: reachable, unreachable, refused
	Error  string      `cbor:"7,keyasint,omitempty"` // of the last ping that failed
}

// ChangeNodeRequest changes a node's place in the cluster.
type ChangeNodeRequest struct {
	RequestID base.RequestID `cbor:"1,keyasint"`
	Node      base.NodeID    `cbor:"2,keyasint"`
	Change    NodeChange     `cbor:"3,keyasint"`
	Disk      base.DiskID    `cbor:"4,keyasint,omitempty"` // of replace: the one that is given up; zero = the one it has
	DryRun    bool           `cbor:"5,keyasint,omitempty"`
}

// NodeChange is what to do with a node.
type NodeChange uint8

// The changes. Leave asks a living node to stop in good order; forget takes a dead one out at once; replace admits
// a node under its old name with another disk, whose copies count as lost.
const (
	NodeLeave   NodeChange = 1
	NodeForget  NodeChange = 2
	NodeReplace NodeChange = 3
)

// String prints leave, forget or replace.
func (c NodeChange) String() string {
	switch c {
	case NodeLeave:
		return "leave"
	case NodeForget:
		return "forget"
	case NodeReplace:
		return "replace"
	}
	return "unknown"
}

// ChangeNodeResponse says what happened, or would.
type ChangeNodeResponse struct {
	Node     base.NodeID    `cbor:"1,keyasint"`
	Before   string         `cbor:"2,keyasint,omitempty"` // state and status
	After    string         `cbor:"3,keyasint,omitempty"`
	Segments int            `cbor:"4,keyasint,omitempty"` // whose only copies are there
	Shards   []base.ShardID `cbor:"5,keyasint,omitempty"` // that it votes in
	DryRun   bool           `cbor:"6,keyasint,omitempty"`
}
