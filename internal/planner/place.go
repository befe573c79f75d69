package planner

import (
	"fmt"
	"slices"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/topology"
)

// Source is where random choices come from; *rand.Rand of math/rand/v2 is one.
type Source interface{ IntN(n int) int }

// copies is how many replicas a segment is given, whatever its topic's factor: this version does not replicate records
// yet, and a second replica that nobody sends anything would hold up every seal for nothing. The factor is kept in the
// topic's settings and counts from the first roll under a version that does. Only tests change it: of what such a
// version will ask.
var copies = 1

// Copies is how many replicas this version makes of a segment of a topic with the given factor: what a segment has
// when nothing is wrong with it.
func Copies(factor int) int { return min(factor, copies) }

// Placer chooses replica sets on one view. It remembers what it has placed, so that the many segments of one plan
// spread out although the view does not change under it.
type Placer struct {
	view   topology.View
	rand   Source
	placed map[base.NodeID]int
}

// NewPlacer returns a placer on view.
func NewPlacer(view topology.View, rand Source) *Placer {
	return &Placer{view: view, rand: rand, placed: make(map[base.NodeID]int)}
}

// only is a placer that sees no other nodes than those of on, with the disks that on names. It shares what has been placed.
func (p *Placer) only(on []base.Replica) *Placer {
	narrow := *p
	narrow.view.Nodes = nil
	for _, n := range p.view.Nodes {
		if slices.Contains(on, base.Replica{Node: n.ID, Disk: n.Disk}) {
			narrow.view.Nodes = append(narrow.view.Nodes, n)
		}
	}
	return &narrow
}

// Placement is a replica set, leader first, and why it is that.
type Placement struct {
	Replicas []base.Replica
	Explain  []string // one sentence a node: chosen or not, and why
}

// Place chooses the fit nodes of a segment, as many as the factor says and this version makes: each time the better of two random candidates by load, among
// those that spread the copies over racks (or the label of c.SpreadBy) while such are left. Nodes that are short of
// disk come in only when those with room are fewer than the factor. Fewer than the factor is a valid answer if it is at
// least least; fewer than that is CodeNotEnoughNodes.
func (p *Placer) Place(c base.TopicConfig, least int) (Placement, error) {
	var result Placement
	var roomy, crowded []topology.Node
	for _, n := range p.view.Nodes {
		switch why := n.Unfit(); {
		case why != "":
			result.Explain = append(result.Explain, fmt.Sprintf("%s: not considered, it is %s", n.ID, why))
		case n.Crowded() != "":
			crowded = append(crowded, n)
		default:
			roomy = append(roomy, n)
		}
	}
	if fit := len(roomy) + len(crowded); fit < least {
		return result, base.Errorf(base.CodeNotEnoughNodes, "place segment", "%d of %d nodes can take a segment, %d are needed", fit, len(p.view.Nodes), least)
	}
	var used []string
	for len(result.Replicas) < Copies(c.ReplicationFactor) && len(roomy)+len(crowded) > 0 {
		candidates := &roomy
		if len(roomy) == 0 {
			candidates = &crowded
		}
		pool, spread := spreadOver(*candidates, c.SpreadBy, used)
		n, why := p.better(pool)
		if short := n.Crowded(); short != "" {
			why += ", for want of others: " + short
		}
		result.Replicas = append(result.Replicas, base.Replica{Node: n.ID, Disk: n.Disk})
		result.Explain = append(result.Explain, fmt.Sprintf("%s: chosen, %s%s", n.ID, why, spread))
		used = append(used, n.Label(c.SpreadBy))
		p.placed[n.ID]++
		*candidates = slices.DeleteFunc(*candidates, func(o topology.Node) bool { return o.ID == n.ID })
	}
	for _, n := range crowded {
		result.Explain = append(result.Explain, fmt.Sprintf("%s: not considered, %s", n.ID, n.Crowded()))
	}
	return result, nil
}

// spreadOver keeps the candidates whose label is not used yet, or all of them when none is left.
func spreadOver(candidates []topology.Node, label string, used []string) (pool []topology.Node, note string) {
	for _, n := range candidates {
		if v := n.Label(label); v == "" || !slices.Contains(used, v) {
			pool = append(pool, n)
		}
	}
	if len(pool) == 0 {
		return candidates, ", although its rack or label is used already"
	}
	return pool, ""
}

// better draws two candidates and takes the one with less load: nearly as even as the best of all, without every
// coordinator choosing the same node at the same time.
func (p *Placer) better(pool []topology.Node) (topology.Node, string) {
	if len(pool) == 1 {
		return pool[0], "the only candidate"
	}
	i := p.rand.IntN(len(pool))
	j := p.rand.IntN(len(pool) - 1)
	if j >= i {
		j++
	}
	a, b := pool[i], pool[j]
	if p.load(b) < p.load(a) {
		a, b = b, a
	}
	return a, fmt.Sprintf("load %d against %d of %s", p.load(a), p.load(b), b.ID)
}

// load counts what a node leads and will lead after this plan.
func (p *Placer) load(n topology.Node) int { return n.Leading + p.placed[n.ID] }
