package planner

import (
	"fmt"
	"slices"
	"strings"

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
}

// Placement is a replica set, leader first, and why it is that.
type Placement struct {
	Replicas []base.Replica
	Boots    []uint64 // of Replicas: the starts of their nodes
	Explain  []string // one sentence a node: chosen or not, and why
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
// Nodes that are short of disk come in only when those with room are fewer than the factor; those that are slow, start
// again and again, or were late, only when the others are fewer than Least. Fewer than the factor is a valid answer if
// it is at least Least; fewer than that is CodeNotEnoughNodes.
func (p *Placer) Place(w Want) (Placement, error) {
	c := p.choose(w)
	if n := c.count(); n < w.Least {
		return Placement{Explain: c.explain}, base.Errorf(base.CodeNotEnoughNodes, "place segment", "%d of %d nodes can take a segment, %d are needed%s", n, len(p.view.Nodes), w.Least, c.reasons())
	}
	if !c.lead(w) {
		return Placement{Explain: c.explain}, base.Errorf(base.CodeNotEnoughNodes, "place segment", "none of the %d replicas that know what the range remembers can lead", len(w.Leads))
	}
	for len(c.set) < w.Config.ReplicationFactor {
		pool := c.next(len(c.set) < w.Least)
		if len(pool) == 0 {
			break
		}
		c.take(pool, p.holds, "holds")
	}
	return c.finish(), nil
}

// leading is what a node leads and will lead after this plan.
func (p *Placer) leading(n *topology.Node) int { return n.Leading + p.leads[n.ID] }

// holds is what a node holds and will hold after this plan.
func (p *Placer) holds(n *topology.Node) int { return n.Segments + p.replicas[n.ID] }

// rank says how gladly a node is taken: the lowest first.
type rank int

const (
	stays   rank = iota // it is a replica already
	roomy               // nothing speaks against it
	crowded             // only to reach the factor
	doubted             // only to reach the least
	late                // the same, when even the doubtful do not suffice
	ranks
)

// choice is one set in the making.
type choice struct {
	placer  *Placer
	label   string // to spread over
	ranked  [ranks][]*topology.Node
	doubt   map[base.NodeID]string // why a node is not taken gladly
	set     []*topology.Node
	explain []string
}

// choose ranks the nodes.
func (p *Placer) choose(w Want) *choice {
	c := &choice{placer: p, label: w.Config.SpreadBy, doubt: make(map[base.NodeID]string)}
	for i := range p.view.Nodes {
		n := &p.view.Nodes[i]
		why, doubt, short := n.Unfit(), n.Doubtful(p.nowMs), n.Crowded()
		switch {
		case why != "":
			c.note(n, "not considered, it is %s", why)
		case slices.Contains(w.Lost, n.ID):
			c.note(n, "not considered, it is lost to the leader")
		case slices.Contains(w.Late, n.ID):
			c.doubt[n.ID] = "late"
			c.ranked[late] = append(c.ranked[late], n)
		case w.mayStay(n):
			c.ranked[stays] = append(c.ranked[stays], n)
		case doubt != "":
			c.doubt[n.ID] = doubt
			c.ranked[doubted] = append(c.ranked[doubted], n)
		case short != "":
			c.doubt[n.ID] = short
			c.ranked[crowded] = append(c.ranked[crowded], n)
		default:
			c.ranked[roomy] = append(c.ranked[roomy], n)
		}
	}
	slices.SortFunc(c.ranked[stays], func(a, b *topology.Node) int { return w.kept(a) - w.kept(b) })
	return c
}

// kept is the place of a node among those that stay, or -1.
func (w *Want) kept(n *topology.Node) int {
	return slices.Index(w.Keep, base.Replica{Node: n.ID, Disk: n.Disk})
}

// mayStay reports whether a replica stays. A slow one does only as the leader, which knows better who is late.
func (w *Want) mayStay(n *topology.Node) bool {
	i := w.kept(n)
	return i == 0 && !n.Full || i > 0 && !n.Full && !n.Slow
}

func (c *choice) note(n *topology.Node, format string, args ...any) {
	c.explain = append(c.explain, string(n.ID)+": "+fmt.Sprintf(format, args...))
}

// reasons says why nodes were not considered, of the first few.
func (c *choice) reasons() string {
	const few = 5
	var list []string
	for _, line := range c.explain {
		list = append(list, strings.Replace(line, ": not considered, it", "", 1))
	}
	switch n := len(list); {
	case n == 0:
		return ""
	case n > few:
		list = append(list[:few], fmt.Sprintf("and %d more", n-few))
	}
	return " (" + strings.Join(list, ", ") + ")"
}

// count is how many nodes could be taken.
func (c *choice) count() int {
	sum := 0
	for _, nodes := range c.ranked {
		sum += len(nodes)
	}
	return sum
}

// lead puts the leader and the others that stay into the set. It fails when nobody of w.Leads can be had.
func (c *choice) lead(w Want) bool {
	may := func(n *topology.Node) bool {
		return len(w.Leads) == 0 || slices.Contains(w.Leads, base.Replica{Node: n.ID, Disk: n.Disk})
	}
	if i := slices.IndexFunc(c.ranked[stays], may); i >= 0 {
		c.keep(c.ranked[stays][i], "stays, and leads")
	} else if pool := c.best(may); len(pool) > 0 {
		c.take(pool, c.placer.leading, "leads")
	} else {
		return false
	}
	for len(c.set) < w.Config.ReplicationFactor && len(c.ranked[stays]) > 0 {
		c.keep(c.ranked[stays][0], "stays")
	}
	return true
}

func (c *choice) keep(n *topology.Node, how string) {
	c.add(n)
	c.note(n, "%s", how)
}

func (c *choice) add(n *topology.Node) {
	c.set = append(c.set, n)
	for r := range c.ranked {
		c.ranked[r] = slices.DeleteFunc(c.ranked[r], func(o *topology.Node) bool { return o == n })
	}
}

// best is the lowest rank with nodes that may be taken, and those of them.
func (c *choice) best(may func(*topology.Node) bool) []*topology.Node {
	for _, nodes := range c.ranked {
		var pool []*topology.Node
		for _, n := range nodes {
			if may(n) {
				pool = append(pool, n)
			}
		}
		if len(pool) > 0 {
			return pool
		}
	}
	return nil
}

// next are the candidates for a follower's place. Where the set is large enough to open, the doubtful are none.
func (c *choice) next(short bool) []*topology.Node {
	for r, nodes := range c.ranked {
		if len(nodes) > 0 && (short || rank(r) < doubted) {
			return nodes
		}
	}
	return nil
}

// take adds the better of two of the pool.
func (c *choice) take(pool []*topology.Node, load func(*topology.Node) int, verb string) {
	pool, spread := c.spread(pool)
	n, why := c.placer.better(pool, load, verb)
	if doubt := c.doubt[n.ID]; doubt != "" {
		why += ", for want of others: " + doubt
	}
	c.add(n)
	c.note(n, "chosen, %s%s", why, spread)
}

// spread keeps the candidates whose rack or label is not in the set yet, or all of them when none is left.
func (c *choice) spread(candidates []*topology.Node) (pool []*topology.Node, note string) {
	for _, n := range candidates {
		label := n.Label(c.label)
		if label == "" || !slices.ContainsFunc(c.set, func(o *topology.Node) bool { return o.Label(c.label) == label }) {
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
func (p *Placer) better(pool []*topology.Node, load func(*topology.Node) int, verb string) (*topology.Node, string) {
	if len(pool) == 1 {
		return pool[0], "the only candidate"
	}
	i := p.rand.IntN(len(pool))
	j := p.rand.IntN(len(pool) - 1)
	if j >= i {
		j++
	}
	a, b := pool[i], pool[j]
	if load(b) < load(a) || load(b) == load(a) && b.BytesInSec < a.BytesInSec {
		a, b = b, a
	}
	return a, fmt.Sprintf("%s %d against %d of %s", verb, load(a), load(b), b.ID)
}

// finish counts the set as placed and says why the others are not in it.
func (c *choice) finish() Placement {
	result := Placement{}
	for i, n := range c.set {
		result.Replicas = append(result.Replicas, base.Replica{Node: n.ID, Disk: n.Disk})
		result.Boots = append(result.Boots, n.Boot)
		c.placer.replicas[n.ID]++
		if i == 0 {
			c.placer.leads[n.ID]++
		}
	}
	for _, nodes := range c.ranked {
		for _, n := range nodes {
			if doubt := c.doubt[n.ID]; doubt != "" {
				c.note(n, "not needed: %s", doubt)
			} else {
				c.note(n, "not needed")
			}
		}
	}
	result.Explain = c.explain
	return result
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
	var fit, doubtful []*topology.Node
	for i := range p.view.Nodes {
		n := &p.view.Nodes[i]
		switch r := (base.Replica{Node: n.ID, Disk: n.Disk}); {
		case !slices.Contains(replicas, r) || !p.able(r):
		case n.Doubtful(p.nowMs) != "":
			doubtful = append(doubtful, n)
		default:
			fit = append(fit, n)
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
