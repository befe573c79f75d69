package topology

import (
	"maps"
	"slices"

	"github.com/eastguard/eastguard/internal/base"
)

// Event is one thing that a node has learnt: exactly one of the fields is set.
type Event struct {
	Seen     *Seen
	Listed   *Listed
	Moved    *Moved
	Standing *StandingChange
	Usage    *Usage
	Judged   *Judged
}

// Seen is a node's own description, as it spreads it at each start. It is alive by that.
type Seen struct {
	ID       base.NodeID
	Disk     base.DiskID
	Boot     uint64
	Rename   uint32 // a start that was buried by mistake lives on under the next one
	Instance base.UUID
	Address  string
	Rack     string
	Labels   map[string]string
	Version  string
	Admitted bool
	Leaving  bool // it is stopping gracefully
}

// Listed is a node as the root shard's table has it. Of one that the failure detector knows as well, only the standing
// counts: what a node says of itself is newer.
type Listed struct {
	ID       base.NodeID
	Disk     base.DiskID
	Boot     uint64
	Instance base.UUID
	Address  string
	Rack     string
	Labels   map[string]string
	Version  string
	Standing Standing
	Gone     bool // the failure detector has had time to meet it, and has not: as good as dead
}

// Moved is the failure detector's word on one start of a node.
type Moved struct {
	ID       base.NodeID
	Boot     uint64
	Rename   uint32
	Liveness Liveness
}

// StandingChange is what the root shard committed.
type StandingChange struct {
	ID       base.NodeID
	Standing Standing
}

// Usage is what a node reports of its load; it changes often and decides little.
type Usage struct {
	ID         base.NodeID
	Boot       uint64
	Full       bool
	DiskFree   int64
	DiskTotal  int64
	Segments   int
	Leading    int
	BytesInSec int64
	Leaving    bool // it is stopping gracefully: this word of it comes sooner than the one that spreads
}

// Judged is what this node makes of all that it has heard of another one's start.
type Judged struct {
	ID        base.NodeID
	Boot      uint64
	Slow      bool
	Restarts  int
	SettledMs int64
}

// Reduce folds one event into a view. What is older than what the view knows (a lower start of a node, or a weaker
// word on the same start) changes nothing, so the order in which rumours arrive does not matter for where they end.
func Reduce(v View, e Event) View {
	switch {
	case e.Listed != nil:
		return v.listed(e.Listed)
	case e.Seen != nil:
		return v.seen(e.Seen)
	case e.Moved != nil:
		return v.change(e.Moved.ID, func(n *Node) bool { return n.move(e.Moved) })
	case e.Standing != nil:
		return v.change(e.Standing.ID, func(n *Node) bool {
			changed := n.Standing != e.Standing.Standing
			n.Standing = e.Standing.Standing
			return changed
		})
	case e.Usage != nil:
		return v.change(e.Usage.ID, func(n *Node) bool { return n.use(e.Usage) })
	case e.Judged != nil:
		return v.change(e.Judged.ID, func(n *Node) bool { return n.judge(e.Judged) })
	}
	return v
}

// Build folds many events into a view of their own, which takes a fraction of the time that Reduce would. version is the
// one of the result.
func Build(version uint64, events []Event) View {
	v := View{building: true}
	for i := range events {
		v = Reduce(v, events[i])
	}
	v.building, v.Version = false, version
	return v
}

func (v View) insert(i int, n Node) View {
	if !v.building {
		v.Nodes = slices.Clone(v.Nodes)
	}
	v.Nodes = slices.Insert(v.Nodes, i, n)
	v.Version++
	return v
}

// Equal compares what two views say of the nodes.
func (v View) Equal(o View) bool {
	return slices.EqualFunc(v.Nodes, o.Nodes, func(a, b Node) bool {
		return a.same(&b) && a.ID == b.ID && a.Boot == b.Boot && a.Rename == b.Rename && a.Liveness == b.Liveness &&
			a.Standing == b.Standing && a.Slow == b.Slow && a.Restarts == b.Restarts && a.SettledMs == b.SettledMs && a.Full == b.Full && a.DiskFree == b.DiskFree &&
			a.DiskTotal == b.DiskTotal && a.Segments == b.Segments && a.Leading == b.Leading && a.BytesInSec == b.BytesInSec
	})
}

func (v View) seen(s *Seen) View {
	next := Node{
		ID: s.ID, Disk: s.Disk, Boot: s.Boot, Rename: s.Rename, Instance: s.Instance, Address: s.Address, Rack: s.Rack,
		Labels: maps.Clone(s.Labels), Version: s.Version, Liveness: Alive, Admitted: s.Admitted, Leaving: s.Leaving,
	}
	i, known := v.search(s.ID)
	if !known {
		return v.insert(i, next)
	}
	return v.change(s.ID, func(n *Node) bool {
		if n.unmet { // what a node says of itself stands before what the table has
			next.Standing = n.Standing
			*n = next
			return true
		}
		if s.Boot < n.Boot || s.Boot == n.Boot && (s.Rename < n.Rename || s.Rename == n.Rename && n.same(&next)) {
			return false
		}
		next.Standing = n.Standing
		if s.Boot == n.Boot { // the same start, described anew: what was measured and heard of it stands
			if s.Rename == n.Rename {
				next.Liveness = n.Liveness
			}
			next.Slow, next.Restarts, next.SettledMs = n.Slow, n.Restarts, n.SettledMs
			next.Full, next.DiskFree, next.DiskTotal = n.Full, n.DiskFree, n.DiskTotal
			next.Segments, next.Leading, next.BytesInSec = n.Segments, n.Leading, n.BytesInSec
			next.Leaving = next.Leaving || n.Leaving // that is final for a start
		}
		*n = next
		return true
	})
}

func (v View) listed(l *Listed) View {
	next := Node{
		ID: l.ID, Disk: l.Disk, Boot: l.Boot, Instance: l.Instance, Address: l.Address, Rack: l.Rack,
		Labels: maps.Clone(l.Labels), Version: l.Version, Admitted: true, Standing: l.Standing, unmet: true,
	}
	if l.Gone {
		next.Liveness = Dead
	}
	i, known := v.search(l.ID)
	if !known {
		return v.insert(i, next)
	}
	return v.change(l.ID, func(n *Node) bool {
		changed := n.Standing != l.Standing
		n.Standing = l.Standing
		return changed
	})
}

// same compares what a node says of itself.
func (n *Node) same(o *Node) bool {
	return n.Disk == o.Disk && n.Instance == o.Instance && n.Address == o.Address && n.Rack == o.Rack &&
		n.Version == o.Version && n.Admitted == o.Admitted && n.Leaving == o.Leaving && maps.Equal(n.Labels, o.Labels)
}

func (n *Node) move(m *Moved) bool {
	switch {
	case m.Boot != n.Boot, m.Rename != n.Rename, m.Liveness == n.Liveness:
		return false
	case n.Liveness >= Dead && m.Liveness < n.Liveness: // dead is final for a life
		return false
	}
	n.Liveness = m.Liveness
	return true
}

func (n *Node) use(u *Usage) bool {
	if u.Boot != n.Boot {
		return false
	}
	before := *n
	n.Full, n.DiskFree, n.DiskTotal = u.Full, u.DiskFree, u.DiskTotal
	n.Segments, n.Leading, n.BytesInSec = u.Segments, u.Leading, u.BytesInSec
	n.Leaving = n.Leaving || u.Leaving
	return n.Full != before.Full || n.DiskFree != before.DiskFree || n.DiskTotal != before.DiskTotal ||
		n.Segments != before.Segments || n.Leading != before.Leading || n.BytesInSec != before.BytesInSec ||
		n.Leaving != before.Leaving
}

func (n *Node) judge(j *Judged) bool {
	if j.Boot != n.Boot || j.Slow == n.Slow && j.Restarts == n.Restarts && j.SettledMs == n.SettledMs {
		return false
	}
	n.Slow, n.Restarts, n.SettledMs = j.Slow, j.Restarts, j.SettledMs
	return true
}

// change applies f to a copy of the node; the view is a new one only if f says that something changed.
func (v View) change(id base.NodeID, f func(*Node) bool) View {
	i, ok := v.search(id)
	if !ok {
		return v
	}
	n := v.Nodes[i]
	if !f(&n) {
		return v
	}
	if !v.building {
		v.Nodes = slices.Clone(v.Nodes)
	}
	v.Nodes[i] = n
	v.Version++
	return v
}
