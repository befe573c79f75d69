package planner

import (
	"fmt"
	"slices"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/topology"
)

// Source is where random choices come from; *rand.Rand of math/rand/v2 is one.
type Source interface{ IntN(n int) int }

// Want is what a segment's replica set must be.
type Want struct {
	Config base.TopicConfig
	Least  int            // fewer replicas than that are no answer
	Keep   []base.Replica // they stay if they are fit, in this order, so that the first one leads
	Leads  []base.Replica // when not empty, one of these must lead
	Late   []base.NodeID  // taken only where the set would be smaller than Least without them
	Lost   []base.NodeID  // not taken at all
	Room   bool           // nor is a node whose disk is full
}

// Placement is a replica set, leader first, and why it is that.
type Placement struct {
	Replicas []base.Replica
	Boots    []uint64 // of Replicas: the starts of their nodes

	remarks []remark
}

// Explain is one sentence a node: chosen or not, and why.
func (p *Placement) Explain() []string {
	lines := make([]string, len(p.remarks))
	for i, r := range p.remarks {
		lines[i] = r.String()
	}
	return lines
}

// Placer chooses replica sets on one view. It remembers what it has placed, so that the many segments of one plan
// spread out although the view does not change under it.
type Placer struct {
	view     topology.View
	nowMs    int64
	rand     Source
	leads    map[base.NodeID]int // what it has placed
	replicas map[base.NodeID]int
}

// NewPlacer returns a placer on view, as of nowMs.
func NewPlacer(view topology.View, nowMs int64, rand Source) *Placer {
	return &Placer{view: view, nowMs: nowMs, rand: rand, leads: make(map[base.NodeID]int), replicas: make(map[base.NodeID]int)}
}

// Place chooses a segment's replicas, as many as the factor says: first those that stay, then each time the better of
// two random candidates by load, among those that spread the set over racks (or the label of the topic's SpreadBy)
// while such are left. The leader is chosen by what nodes lead, followers by what they hold.
//
// Nodes that are short of disk come in only when those with room are fewer than the factor; those whose disk is full, that
// are slow, start again and again, or were late, only when the others are fewer than Least. (Where a slow one had to be
// taken the set is slow, and the others that are do it no more harm.) Fewer than the factor is a valid answer if it is at
// least Least; fewer than that is CodeNotEnoughNodes.
func (p *Placer) Place(w Want) (Placement, error) {
	c := p.choose(w)
	if n := c.count(); n < w.Least {
		return Placement{remarks: c.remarks}, base.Errorf(base.CodeNotEnoughNodes, "place segment", "%d of %d nodes can take a segment, %d are needed%s", n, len(p.view.Nodes), w.Least, c.reasons())
	}
	if !c.lead(w) {
		return Placement{remarks: c.remarks}, base.Errorf(base.CodeNotEnoughNodes, "place segment", "none of the %d replicas that know what the range remembers can lead", len(w.Leads))
	}
	c.fill(w)
	return c.finish(), nil
}

// leading is what a node leads and will lead after this plan.
func (p *Placer) leading(n *topology.Node) int { return n.Leading + p.leads[n.ID] }

// holds is what a node holds and will hold after this plan.
func (p *Placer) holds(n *topology.Node) int { return n.Segments + p.replicas[n.ID] }

// better draws two candidates and takes the one with less load: nearly as even as the best of all, without every
// coordinator choosing the same node at the same time.
func (p *Placer) better(pool []candidate, load func(*topology.Node) int, verb string) (candidate, string) {
	if len(pool) == 1 {
		return pool[0], "the only candidate"
	}
	i := p.rand.IntN(len(pool))
	j := p.rand.IntN(len(pool) - 1)
	if j >= i {
		j++
	}
	a, b := pool[i], pool[j]
	if load(b.Node) < load(a.Node) || load(b.Node) == load(a.Node) && b.BytesInSec < a.BytesInSec {
		a, b = b, a
	}
	return a, fmt.Sprintf("%s %d against %d of %s", verb, load(a.Node), load(b.Node), b.ID)
}

// able reports whether a replica can lead, as far as is known.
func (p *Placer) able(r base.Replica) bool {
	n, ok := p.view.Node(r.Node)
	return ok && n.Disk == r.Disk && n.Unfit() == "" && !n.Full
}

// led are the replicas with the best leader of them first: the better of two that are fit, the doubtful only when there
// are no others. Without anybody who can lead it is nobody. Of the others those stay whose nodes do not start again and
// again.
func (p *Placer) led(replicas []base.Replica) []base.Replica {
	var fit, doubtful []candidate
	for i := range p.view.Nodes {
		n := &p.view.Nodes[i]
		switch r := (base.Replica{Node: n.ID, Disk: n.Disk}); {
		case !slices.Contains(replicas, r) || !p.able(r):
		case n.Doubtful(p.nowMs) != "":
			doubtful = append(doubtful, candidate{Node: n})
		default:
			fit = append(fit, candidate{Node: n})
		}
	}
	if len(fit) == 0 {
		fit = doubtful
	}
	if len(fit) == 0 {
		return nil
	}
	leader, _ := p.better(fit, p.leading, "leads")
	list := []base.Replica{{Node: leader.ID, Disk: leader.Disk}}
	for _, r := range replicas {
		if n, ok := p.view.Node(r.Node); ok && r.Node != leader.ID && !n.Shaky(p.nowMs) {
			list = append(list, r)
		}
	}
	return list
}
