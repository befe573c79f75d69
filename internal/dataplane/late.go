package dataplane

import (
	"slices"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/replica"
)

const (
	lateRolls   = 20               // segments a second that are ended because of one late node, over the whole plane
	lateRecalls = 10 * time.Second // how long a late node is named to the others
)

// lateBook remembers which replicas stood still. Many segments meet a slow disk at once, and to end all of them would
// move their load to the next disk at once: so they are damped, for each late node. Damping is for the late alone: one
// that is gone is waited for by nobody.
type lateBook struct {
	mu    sync.Mutex
	nodes map[base.NodeID]*lateNode
}

type lateNode struct {
	named  time.Time // last
	slow   time.Time // when it was named last while its connection was alive; zero: never
	tokens float64
	filled time.Time // when tokens was counted
}

func (n *lateNode) fill(now time.Time) {
	n.tokens = min(lateRolls, n.tokens+now.Sub(n.filled).Seconds()*lateRolls)
	n.filled = now
}

// name notes that nodes are late. Of those that do not answer at all nobody can say that they are slow.
func (b *lateBook) name(nodes, silent []base.NodeID, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.nodes == nil {
		b.nodes = make(map[base.NodeID]*lateNode)
	}
	for _, node := range nodes {
		n := b.nodes[node]
		if n == nil {
			n = &lateNode{tokens: lateRolls, filled: now}
			b.nodes[node] = n
		}
		n.named = now
		if !slices.Contains(silent, node) {
			n.slow = now
		}
	}
}

// allows reports whether a segment may be ended because these nodes are late, all of which were named.
func (b *lateBook) allows(nodes []base.NodeID, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, node := range nodes {
		n := b.nodes[node]
		if n.fill(now); n.tokens < 1 {
			return false
		}
	}
	for _, node := range nodes {
		b.nodes[node].tokens--
	}
	return true
}

// recent lists who was slow lately, and forgets who has not been late for a while.
func (b *lateBook) recent(now time.Time) []base.NodeID {
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []base.NodeID
	for node, n := range b.nodes {
		if now.Sub(n.named) >= lateRecalls {
			delete(b.nodes, node) // its tokens are all back
			continue
		}
		if now.Sub(n.slow) < lateRecalls {
			list = append(list, node)
		}
	}
	slices.Sort(list)
	return list
}

// LateNodes lists the nodes that stood still, but answered, in a segment led here within the last 10 s, this one among them.
func (p *Plane) LateNodes(now time.Time) []base.NodeID { return p.late.recent(now) }

// suspects adds this node to those that a roll is to replace if it may be the one that is cut off: no follower of the
// segment has given a sign, and none of any other segment has acked anything for a while. Were it to stay the leader, its
// next followers would be silent too.
func (a *actor) suspects(r replica.Roll, now time.Time) []base.NodeID {
	p, l := a.plane, a.lead
	if r.Cause != base.CauseReplicaFailure || len(l.followers) < 2 || slices.Contains(r.Late, p.o.Node) {
		return r.Late
	}
	if p.age(now)-p.heardMs.Load() < p.o.ReplicaTimeout.Milliseconds()/2 {
		return r.Late
	}
	for i := range l.followers {
		if f := &l.followers[i]; !slices.Contains(r.Late, f.node) && !(f.lost && f.silent) {
			return r.Late
		}
	}
	late := append(slices.Clone(r.Late), p.o.Node)
	if p.o.Replaceable != nil && !p.o.Replaceable(a.current, slices.Concat(late, r.Lost)) {
		return r.Late
	}
	return late
}

// silentAfter is when a node that sends nothing is no longer slow, but out of reach: a ping is answered sooner by the
// slowest disk.
const silentAfter = 500 * time.Millisecond

// silentOf lists those of some nodes whose connection has fallen silent.
func (a *actor) silentOf(nodes []base.NodeID, now time.Time) (silent []base.NodeID) {
	for _, node := range nodes {
		if node == a.plane.o.Node {
			continue
		}
		if heard := a.plane.o.Links.DataLink(node).Heard; !heard.IsZero() && now.Sub(heard) > silentAfter {
			silent = append(silent, node)
		}
	}
	return silent
}

// judgeLate decides about replicas that stand still: the segment ends, so that its range goes on without them, if that is
// not done too often on account of one node, and if there is somewhere to go on. It reports whether it ended.
func (a *actor) judgeLate(late []base.NodeID, now time.Time) bool {
	if len(late) == 0 {
		return false
	}
	p := a.plane
	p.late.name(late, a.silentOf(late, now), now)
	// In this order, so that the question is damped too.
	if !p.late.allows(late, now) || p.o.Replaceable != nil && !p.o.Replaceable(a.current, late) {
		return false
	}
	p.metrics.late.Inc()
	a.lead.replica.Freeze(base.CauseReplicaFailure, late, now)
	return true
}
