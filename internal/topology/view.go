package topology

import (
	"fmt"
	"slices"
	"strings"

	"github.com/eastguard/eastguard/internal/base"
)

// Liveness is what the failure detector says of a node.
type Liveness uint8

// The states, in the order in which a rumour about the same start wins over another. Unknown is a node that the root
// shard lists and that nobody here has met since this process started.
const (
	Unknown Liveness = iota
	Alive
	Suspect
	Dead
	Left
)

// String prints alive, suspect, dead or left.
func (l Liveness) String() string {
	switch l {
	case Unknown:
		return "unknown"
	case Alive:
		return "alive"
	case Suspect:
		return "suspect"
	case Dead:
		return "dead"
	case Left:
		return "left"
	}
	return fmt.Sprintf("liveness_%d", uint8(l))
}

// Standing is what the root shard has committed about a node.
type Standing uint8

// The standings.
const (
	Normal Standing = iota
	Draining
	Out
)

// String prints normal, draining or out.
func (s Standing) String() string {
	switch s {
	case Normal:
		return "normal"
	case Draining:
		return "draining"
	case Out:
		return "out"
	}
	return fmt.Sprintf("standing_%d", uint8(s))
}

// HighWater is the part of its disk above which a node takes new segments only if there is nobody else.
const HighWater = 0.90

// Node is one broker as this node sees it.
type Node struct {
	ID         base.NodeID
	Disk       base.DiskID
	Boot       uint64    // counts its starts
	Rename     uint32    // counts how often this start came back after it had been buried
	Instance   base.UUID // of the process
	Address    string    // host:port of its client port
	Rack       string
	Labels     map[string]string // read only
	Version    string            // of its binary
	Liveness   Liveness
	Standing   Standing
	Admitted   bool  // the root has accepted this start
	Leaving    bool  // it is stopping gracefully, and says so
	Slow       bool  // named by leaders as late, for a while
	Restarts   int   // how often it had started in the ten minutes before this start
	SettledMs  int64 // when it has been up for long enough that segments roll for its sake; 0: it always has
	Full       bool  // refuses produce requests to keep its reserve
	DiskFree   int64
	DiskTotal  int64
	Segments   int // it holds
	Leading    int // of them active, and led
	BytesInSec int64

	unmet bool // the table lists it, and the failure detector has said nothing of it
}

// Unfit says why the node takes no new segment; empty when it does. How full its disk is has no part in that: where
// there is nobody else a crowded node is better than a range that cannot go on (see Crowded).
func (n *Node) Unfit() string {
	switch {
	case n.Liveness != Alive:
		return n.Liveness.String()
	case n.Leaving:
		return "leaving"
	case n.Standing != Normal:
		return n.Standing.String()
	case !n.Admitted:
		return "not admitted"
	}
	return ""
}

// Doubtful says why a node that is fit should take a new segment only where it would be too small otherwise: leaders
// find the node late, or it starts again and again.
func (n *Node) Doubtful(nowMs int64) string {
	switch {
	case n.Slow:
		return "slow"
	case n.Shaky(nowMs):
		return "started again a moment ago"
	}
	return ""
}

// Shaky reports whether the node has started again and not been up for long enough since.
func (n *Node) Shaky(nowMs int64) bool { return n.Restarts > 0 && nowMs < n.SettledMs }

// Crowded says how short of disk the node is: it takes new segments only where those with room do not suffice.
func (n *Node) Crowded() string {
	switch {
	case n.Full:
		return "disk full"
	case n.DiskTotal > 0 && float64(n.DiskTotal-n.DiskFree) > HighWater*float64(n.DiskTotal):
		return fmt.Sprintf("disk over %d %%", int(100*HighWater))
	}
	return ""
}

// Label is a value to spread copies over: "rack", or the name of a label.
func (n *Node) Label(name string) string {
	if name == "" || name == "rack" {
		return n.Rack
	}
	return n.Labels[name]
}

// View is everything a node believes about the others. The zero View knows nobody.
type View struct {
	Version uint64 // counts the changes this process has seen
	Nodes   []Node // by id; read only

	building bool // Nodes is nobody else's yet
}

// Node finds a node by id.
func (v View) Node(id base.NodeID) (Node, bool) {
	i, ok := v.search(id)
	if !ok {
		return Node{}, false
	}
	return v.Nodes[i], true
}

func (v View) search(id base.NodeID) (int, bool) {
	return slices.BinarySearchFunc(v.Nodes, id, func(n Node, id base.NodeID) int { return strings.Compare(string(n.ID), string(id)) })
}

// Counted is how many nodes are not out: what a default replication factor looks at.
func (v View) Counted() int {
	n := 0
	for i := range v.Nodes {
		if v.Nodes[i].Standing != Out {
			n++
		}
	}
	return n
}
