package meta

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/eastguard/eastguard/internal/base"
)

// NodeState is a node's standing, as committed.
type NodeState uint8

// A normal node takes segments; a draining one gives its own away; one that is out counts for nothing, and its
// copies are made again elsewhere.
const (
	NodeNormal NodeState = iota + 1
	NodeDraining
	NodeOut
)

// String prints normal, draining or out.
func (n NodeState) String() string {
	switch n {
	case NodeNormal:
		return "normal"
	case NodeDraining:
		return "draining"
	case NodeOut:
		return "out"
	}
	return fmt.Sprintf("state_%d", uint8(n))
}

// Root is what shard 0 holds beside its topics.
type Root struct {
	Cluster   base.ClusterID `cbor:"1,keyasint,omitzero"`
	CreatedMs int64          `cbor:"2,keyasint,omitempty"`
	Version   base.Version   `cbor:"3,keyasint,omitempty"` // counts its changes
	Nodes     []*Node        `cbor:"4,keyasint,omitempty"` // by id; entries are immutable
}

// Node is one broker as it last registered.
type Node struct {
	ID        base.NodeID       `cbor:"1,keyasint"`
	Disk      base.DiskID       `cbor:"2,keyasint"`
	Meta      base.UUID         `cbor:"3,keyasint"`
	Boot      uint64            `cbor:"4,keyasint"` // the highest it has started with
	Instance  base.UUID         `cbor:"5,keyasint"`
	WALEnd    uint64            `cbor:"6,keyasint,omitempty"`
	Address   string            `cbor:"7,keyasint,omitempty"`
	Rack      string            `cbor:"8,keyasint,omitempty"`
	Labels    map[string]string `cbor:"9,keyasint,omitempty"`
	Version   string            `cbor:"10,keyasint,omitempty"`
	State     NodeState         `cbor:"11,keyasint"`
	JoinedMs  int64             `cbor:"12,keyasint"`
	StartedMs int64             `cbor:"13,keyasint"`
	Peer      string            `cbor:"14,keyasint,omitempty"` // host:port of its cluster port
	Data      string            `cbor:"15,keyasint,omitempty"` // of its data port
	Replaced  bool              `cbor:"16,keyasint,omitempty"` // its disk was given up: the next start may bring another
}

// Node finds a node by id, or returns nil.
func (r *Root) Node(id base.NodeID) *Node {
	if i, ok := r.search(id); ok {
		return r.Nodes[i]
	}
	return nil
}

func (r *Root) search(id base.NodeID) (int, bool) {
	return slices.BinarySearchFunc(r.Nodes, id, func(n *Node, id base.NodeID) int { return strings.Compare(string(n.ID), string(id)) })
}

// put makes n the current entry of its id. The slice is copied: a reader may hold the old one.
func (r *Root) put(n *Node) {
	nodes := slices.Clone(r.Nodes)
	if i, ok := r.search(n.ID); ok {
		nodes[i] = n
	} else {
		nodes = slices.Insert(nodes, i, n)
	}
	r.Nodes = nodes
	r.Version++
}

func (r *Root) clone() *Root {
	c := *r
	return &c
}

func notRoot(op string) Result {
	return refuse(base.Errorf(base.CodeShardNotFound, op, "only shard 0 takes this command"))
}

func (a *applier) initCluster(cmd *InitCluster) Result {
	const op = "create cluster"
	root := a.state.root
	switch {
	case root == nil:
		return notRoot(op)
	case cmd.Cluster.IsZero():
		return refuse(base.Errorf(base.CodeInvalidArgument, op, "the cluster id is empty"))
	case root.Cluster == cmd.Cluster:
		return Result{}
	case !root.Cluster.IsZero():
		return refuse(base.Errorf(base.CodePreconditionFailed, op, "this is cluster %s already", root.Cluster))
	}
	root.Cluster, root.CreatedMs = cmd.Cluster, a.state.nowMs
	root.Version++
	a.emit(Event{Type: EventClusterCreated, Detail: cmd.Cluster.String()})
	return Result{}
}

func (a *applier) registerNode(cmd *RegisterNode) Result {
	root := a.state.root
	if root == nil {
		return notRoot("register node")
	}
	old := root.Node(cmd.Node)
	if err := root.admit(cmd, old); err != nil {
		a.emit(Event{Type: EventNodeRefused, Node: cmd.Node, Detail: err.Msg})
		return refuse(err)
	}
	n := &Node{
		ID: cmd.Node, Disk: cmd.Disk, Meta: cmd.Meta, Boot: cmd.Boot, Instance: cmd.Instance, WALEnd: cmd.WALEnd,
		Address: cmd.Address, Rack: cmd.Rack, Labels: maps.Clone(cmd.Labels), Version: cmd.Version,
		Peer: cmd.Peer, Data: cmd.Data, State: NodeNormal, JoinedMs: a.state.nowMs, StartedMs: a.state.nowMs,
	}
	if old != nil {
		n.JoinedMs = old.JoinedMs
		if old.Disk == cmd.Disk {
			n.WALEnd = max(old.WALEnd, cmd.WALEnd)
		}
		if old.State == NodeDraining {
			n.State = NodeDraining // a drain survives a restart; having been out does not
		}
		if old.Instance == cmd.Instance {
			n.StartedMs = old.StartedMs
		}
		if n.sameButWAL(old) { // a checkpoint of the log's end: nothing that other nodes want to hear of
			if n.WALEnd != old.WALEnd {
				root.put(n)
				root.Version--
			}
			return Result{Node: n}
		}
	}
	root.put(n)
	a.emit(Event{Type: EventNodeRegistered, Node: n.ID, Detail: fmt.Sprintf("boot %d, %s", n.Boot, n.Address)})
	return Result{Node: n}
}

// sameButWAL compares all that a node says of itself but how far its log has come.
func (n *Node) sameButWAL(o *Node) bool {
	return n.ID == o.ID && n.Disk == o.Disk && n.Meta == o.Meta && n.Boot == o.Boot && n.Instance == o.Instance &&
		n.Address == o.Address && n.Peer == o.Peer && n.Data == o.Data && n.Rack == o.Rack && n.Version == o.Version &&
		n.State == o.State && n.Replaced == o.Replaced && maps.Equal(n.Labels, o.Labels)
}

// Admit judges one start of a node by a list of nodes, as the root shard would by its own.
func Admit(nodes []*Node, cmd *RegisterNode) error {
	r := &Root{Nodes: nodes}
	if err := r.admit(cmd, r.Node(cmd.Node)); err != nil {
		return err
	}
	return nil
}

// admit judges one start of a node. A disk that went back in time, or another disk under a known name, would answer
// a fence with less than it once acked: such a node must never be counted, so it is refused before it serves.
func (r *Root) admit(cmd *RegisterNode, old *Node) *base.Error {
	const op = "register node"
	if err := cmd.Node.Check(); err != nil {
		return base.Wrap(base.CodeInvalidArgument, op, err)
	}
	if cmd.Disk.IsZero() || cmd.Meta.IsZero() || cmd.Instance.IsZero() || cmd.Boot == 0 {
		return base.Errorf(base.CodeInvalidArgument, op, "node %s names no disk, meta directory, process or start", cmd.Node)
	}
	for _, n := range r.Nodes {
		if n.ID != cmd.Node && (n.Disk == cmd.Disk || n.Meta == cmd.Meta) {
			return base.Errorf(base.CodeNotAdmitted, op, "node %s comes with the disk of node %s", cmd.Node, n.ID).
				WithHint("a copied data directory cannot be a second node: start node %s with an empty one", cmd.Node)
		}
	}
	if old == nil || !old.Replaced && old.Boot == cmd.Boot && old.Instance == cmd.Instance && old.Disk == cmd.Disk && old.Meta == cmd.Meta {
		return nil
	}
	replace := func(format string, args ...any) *base.Error {
		return base.Errorf(base.CodeNotAdmitted, op, format, args...).
			WithHint("bring back the disk as it was, or give the node up for a new one: eg-cli node replace %s", cmd.Node)
	}
	switch {
	case old.Replaced && old.Disk == cmd.Disk:
		return base.Errorf(base.CodeNotAdmitted, op, "disk %s of node %s was given up", cmd.Disk, cmd.Node).
			WithHint("start node %s with empty directories", cmd.Node)
	case old.Replaced && old.Meta == cmd.Meta:
		return base.Errorf(base.CodeNotAdmitted, op, "the meta directory of node %s was given up with its disk", cmd.Node).
			WithHint("start node %s with empty directories", cmd.Node)
	case old.Replaced && cmd.Boot <= old.Boot:
		return base.Errorf(base.CodeNotAdmitted, op, "node %s comes with start %d on its new disk, but start %d has been seen", cmd.Node, cmd.Boot, old.Boot).
			WithHint("start it with join_seed_nodes, so that it learns where to go on")
	case old.Replaced:
		return nil
	case old.Disk != cmd.Disk:
		return replace("node %s is known with disk %s, but this is disk %s", cmd.Node, old.Disk, cmd.Disk)
	case old.Meta != cmd.Meta:
		return replace("node %s is known with meta directory %s, but this is %s", cmd.Node, old.Meta, cmd.Meta)
	case cmd.Boot <= old.Boot:
		return replace("node %s comes with start %d, but start %d has been seen: its disk is an older image, or runs twice", cmd.Node, cmd.Boot, old.Boot)
	case cmd.WALEnd < old.WALEnd:
		return replace("the log of node %s ends at %d, but %d has been seen: its disk is an older image", cmd.Node, cmd.WALEnd, old.WALEnd)
	}
	return nil
}

func (a *applier) setNodeState(cmd *SetNodeState) Result {
	const op = "set node state"
	root := a.state.root
	if root == nil {
		return notRoot(op)
	}
	old := root.Node(cmd.Node)
	switch {
	case old == nil:
		return refuse(base.Errorf(base.CodeNodeNotFound, op, "node %q not found", string(cmd.Node)))
	case cmd.State < NodeNormal || cmd.State > NodeOut:
		return refuse(base.Errorf(base.CodeInvalidArgument, op, "node state %d is not known", cmd.State))
	case old.State == cmd.State:
		return Result{Node: old}
	}
	n := *old
	n.State = cmd.State
	root.put(&n)
	a.emit(Event{Type: EventNodeState, Node: n.ID, Detail: n.State.String(), Before: old.State.String(), After: n.State.String()})
	return Result{Node: &n}
}

// replaceNode gives a node's disk up. Its log's end and its disk stand until another disk has come, so that the old one
// is recognized if it comes back first.
func (a *applier) replaceNode(cmd *ReplaceNode) Result {
	const op = "replace node"
	root := a.state.root
	if root == nil {
		return notRoot(op)
	}
	old := root.Node(cmd.Node)
	switch {
	case old == nil:
		return refuse(base.Errorf(base.CodeNodeNotFound, op, "node %q not found", string(cmd.Node)))
	case !cmd.Disk.IsZero() && cmd.Disk != old.Disk:
		return refuse(base.Errorf(base.CodePreconditionFailed, op, "node %s has disk %s, not %s", cmd.Node, old.Disk, cmd.Disk).
			WithHint("it has been replaced meanwhile: see eg-cli node describe %s", cmd.Node))
	case old.Replaced:
		return Result{Node: old}
	}
	n := *old
	n.Replaced = true
	root.put(&n)
	a.emit(Event{Type: EventNodeReplaced, Node: n.ID, Detail: "disk " + n.Disk.String() + " is given up"})
	return Result{Node: &n}
}
