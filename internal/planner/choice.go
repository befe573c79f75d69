package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/topology"
)

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

// candidate is a node that can be taken, and what speaks against it.
type candidate struct {
	*topology.Node

	rank  rank
	doubt string
}

// choice is one set in the making.
type choice struct {
	placer  *Placer
	label   string // to spread over
	ranked  [ranks][]candidate
	set     []*topology.Node
	remarks []remark
}

// choose ranks the nodes.
func (p *Placer) choose(w Want) *choice {
	c := &choice{placer: p, label: w.Config.SpreadBy}
	for i := range p.view.Nodes {
		n := &p.view.Nodes[i]
		if why := n.Unfit(); why != "" {
			c.note(n, "not considered, it is %s", why)
			continue
		}
		if slices.Contains(w.Lost, n.ID) {
			c.note(n, "not considered, it is lost to the leader")
			continue
		}
		if w.Room && n.Full {
			c.note(n, "not considered, it has no room on its disk")
			continue
		}
		at := candidate{Node: n, rank: roomy}
		switch doubt, short := n.Doubtful(p.nowMs), n.Crowded(); {
		case slices.Contains(w.Late, n.ID):
			at.rank, at.doubt = late, "late"
		case w.mayStay(n):
			at.rank = stays
		case n.Full: // it would refuse its first batch, and cost another roll
			at.rank, at.doubt = doubted, short
		case doubt != "":
			at.rank, at.doubt = doubted, doubt
		case short != "":
			at.rank, at.doubt = crowded, short
		}
		c.ranked[at.rank] = append(c.ranked[at.rank], at)
	}
	slices.SortFunc(c.ranked[stays], func(a, b candidate) int { return w.kept(a.Node) - w.kept(b.Node) })
	return c
}

// kept is the place of a node among those that stay, or -1.
func (w *Want) kept(n *topology.Node) int {
	return slices.Index(w.Keep, base.Replica{Node: n.ID, Disk: n.Disk})
}

// mayStay reports whether a replica stays. A slow one does only as the leader, which knows better who is late.
func (w *Want) mayStay(n *topology.Node) bool {
	i := w.kept(n)
	return !n.Full && (i == 0 || i > 0 && !n.Slow)
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
	may := func(n candidate) bool {
		return len(w.Leads) == 0 || slices.Contains(w.Leads, base.Replica{Node: n.ID, Disk: n.Disk})
	}
	if i := slices.IndexFunc(c.ranked[stays], may); i >= 0 {
		c.keep(c.ranked[stays][i].Node, "stays, and leads")
	} else if pool := c.best(may); len(pool) > 0 {
		c.take(pool, c.placer.leading, "leads")
	} else {
		return false
	}
	for len(c.set) < w.Config.ReplicationFactor && len(c.ranked[stays]) > 0 {
		c.keep(c.ranked[stays][0].Node, "stays")
	}
	return true
}

// fill adds followers up to the factor, the doubtful only up to the least. But where a slow one had to be taken the set
// is slow, and the others that are do it no more harm.
func (c *choice) fill(w Want) {
	for len(c.set) < w.Config.ReplicationFactor {
		short := len(c.set) < w.Least
		slow := slices.ContainsFunc(c.set, func(n *topology.Node) bool { return n.Slow })
		pool := c.best(func(n candidate) bool { return short || n.rank < doubted || n.rank == doubted && n.Slow && slow })
		if len(pool) == 0 {
			return
		}
		c.take(pool, c.placer.holds, "holds")
	}
}

// best is the lowest rank with nodes that may be taken, and those of them.
func (c *choice) best(may func(candidate) bool) []candidate {
	for _, nodes := range c.ranked {
		var pool []candidate
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

// take adds the better of two of the pool.
func (c *choice) take(pool []candidate, load func(*topology.Node) int, verb string) {
	pool, spread := c.spread(pool)
	n, why := c.placer.better(pool, load, verb)
	if n.doubt != "" {
		why += ", for want of others: " + n.doubt
	}
	c.add(n.Node)
	c.note(n.Node, "chosen, %s%s", why, spread)
}

func (c *choice) keep(n *topology.Node, how string) {
	c.add(n)
	c.note(n, "%s", how)
}

func (c *choice) add(n *topology.Node) {
	c.set = append(c.set, n)
	for r := range c.ranked {
		c.ranked[r] = slices.DeleteFunc(c.ranked[r], func(o candidate) bool { return o.Node == n })
	}
}

// spread keeps the candidates whose rack or label is not in the set yet, or all of them when none is left.
func (c *choice) spread(candidates []candidate) (pool []candidate, note string) {
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

// finish counts the set as placed and says why the others are not in it.
func (c *choice) finish() Placement {
	p := c.placer
	result := Placement{Replicas: make([]base.Replica, len(c.set)), Boots: make([]uint64, len(c.set))}
	for i, n := range c.set {
		result.Replicas[i], result.Boots[i] = base.Replica{Node: n.ID, Disk: n.Disk}, n.Boot
		p.replicas[n.ID]++
	}
	p.leads[c.set[0].ID]++
	for _, nodes := range c.ranked {
		for _, n := range nodes {
			if n.doubt != "" {
				c.note(n.Node, "not needed: %s", n.doubt)
			} else {
				c.note(n.Node, "not needed")
			}
		}
	}
	result.remarks = c.remarks
	return result
}

// remark is a sentence on a node. It is put into words when somebody asks for it: hardly anybody does.
type remark struct {
	node   base.NodeID
	format string
	args   []any
}

func (r remark) String() string { return string(r.node) + ": " + fmt.Sprintf(r.format, r.args...) }

func (c *choice) note(n *topology.Node, format string, args ...any) {
	c.remarks = append(c.remarks, remark{n.ID, format, args})
}

// reasons says why nodes were not considered, of the first few.
func (c *choice) reasons() string {
	const few = 5
	if len(c.remarks) == 0 {
		return ""
	}
	var list []string
	for _, r := range c.remarks[:min(len(c.remarks), few)] {
		list = append(list, strings.Replace(r.String(), ": not considered, it", "", 1))
	}
	if more := len(c.remarks) - few; more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	return " (" + strings.Join(list, ", ") + ")"
}
