package sdk

import (
	"fmt"

	"github.com/eastguard/eastguard/internal/base"
)

// ReadFrom says which replica of a segment a consumer reads from: ReadNearest, ReadLeader or ReadNode.
type ReadFrom struct {
	kind readKind
	node base.NodeID
}

type readKind uint8

const (
	readNearest readKind = iota
	readLeader
	readNode
)

// ReadNearest reads from the replica that is nearest: in the same rack (WithRack) if there is one, then the one whose
// connection answers soonest; ties are spread over the replicas. A replica that lags or is away is left for another.
func ReadNearest() ReadFrom { return ReadFrom{kind: readNearest} }

// ReadLeader reads from the replica that takes the writes of the range, or took them last. While it is away the others
// are read.
func ReadLeader() ReadFrom { return ReadFrom{kind: readLeader} }

// ReadNode reads from one node what it holds, and waits while it is away; only what it holds no copy of comes from
// others.
func ReadNode(node NodeID) ReadFrom { return ReadFrom{kind: readNode, node: node} }

// ParseReadFrom reads "nearest", "leader" or the name of a node.
func ParseReadFrom(s string) (ReadFrom, error) {
	switch s {
	case "":
		return ReadFrom{}, base.Errorf(base.CodeInvalidArgument, "read from", "nearest, leader or the name of a node is expected")
	case "nearest":
		return ReadNearest(), nil
	case "leader":
		return ReadLeader(), nil
	}
	return ReadNode(NodeID(s)), nil
}

// String prints what ParseReadFrom reads.
func (r ReadFrom) String() string {
	switch r.kind {
	case readNearest:
		return "nearest"
	case readLeader:
		return "leader"
	case readNode:
		return string(r.node)
	}
	return fmt.Sprintf("read_from_%d", r.kind)
}
