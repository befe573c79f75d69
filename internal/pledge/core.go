package pledge

import (
	"fmt"
	"slices"

	"github.com/eastguard/eastguard/internal/base"
)

// Core is one node's part in the founding.
type Core struct {
	self    Founder
	plan    Plan
	held    Pledge             // as durable
	cluster base.ClusterID     // once one is known; then all is over
	got     map[string]Founder // pledges to this node, by address; lost with the process, and asked for again
	refused map[string]string  // the last refusal of each founder, for people
}

// Step is what to do next. Write comes first and must be durable before any of the others is done.
type Step struct {
	Write  *Pledge
	Ask    *Ask
	To     []string // addresses for Ask
	Answer *Answer
	Mint   bool           // make a cluster id, durably, and tell MintedOrJoined
	Join   base.ClusterID // there is one already
}

// New makes the core of a node that belongs to no cluster yet. held is the pledge that it made in an earlier start.
func New(self Founder, plan Plan, held Pledge) (*Core, error) {
	plan.List = slices.Clone(plan.List)
	if err := plan.check(self.Addr); err != nil {
		return nil, err
	}
	return &Core{self: self, plan: plan, held: held, got: make(map[string]Founder), refused: make(map[string]string)}, nil
}

// minter reports whether this node is the one that may mint: the lowest of its list, and pledged to nobody.
func (c *Core) minter() bool { return c.plan.List[0] == c.self.Addr && c.held.IsZero() }

// Tick asks the founders whose pledges are missing.
func (c *Core) Tick() Step {
	switch {
	case !c.cluster.IsZero():
		return Step{Join: c.cluster}
	case !c.minter():
		return Step{}
	case c.complete():
		return Step{Mint: true}
	}
	s := Step{Ask: &Ask{Minter: c.self, List: c.plan.List, Expect: c.plan.Expect}}
	for _, addr := range c.plan.founders() {
		if _, ok := c.got[addr]; !ok && addr != c.self.Addr {
			s.To = append(s.To, addr)
		}
	}
	return s
}

// complete reports whether every founder, this node apart, has pledged to it.
func (c *Core) complete() bool { return len(c.got) == c.plan.Expect-1 }

// OnAsk answers a minter.
func (c *Core) OnAsk(a Ask) Step {
	answer := &Answer{From: c.self, Cluster: c.cluster}
	s := Step{Answer: answer}
	theirs := Plan{List: a.List, Expect: a.Expect}
	switch {
	case !c.cluster.IsZero():
		answer.Refusal = fmt.Sprintf("node %s belongs to cluster %s already: join it", c.self.Node, c.cluster)
	case !c.plan.equal(theirs):
		answer.Refusal = fmt.Sprintf("node %s is configured for %d founders out of %s, the minter %s for %d out of %s: join_seed_nodes and bootstrap_expect must say the same on all founders",
			c.self.Node, c.plan.Expect, commas(c.plan.List), a.Minter.Node, a.Expect, commas(a.List))
	case a.Minter.Addr != c.plan.List[0]:
		answer.Refusal = fmt.Sprintf("node %s at %s may not mint: %s is the lowest address of the list", a.Minter.Node, a.Minter.Addr, c.plan.List[0])
	case !slices.Contains(c.plan.founders(), c.self.Addr):
		answer.Refusal = fmt.Sprintf("node %s is none of the founders %s", c.self.Node, commas(c.plan.founders()))
	case c.self.Addr == a.Minter.Addr:
		answer.Refusal = fmt.Sprintf("node %s has the address %s too", c.self.Node, c.self.Addr)
	case !c.held.IsZero() && !c.held.Minter.same(a.Minter):
		answer.Refusal = fmt.Sprintf("node %s has pledged to %s, which may have founded a cluster: start that one, or, if its disk is lost, start node %s with empty directories too",
			c.self.Node, c.held.Minter, c.self.Node)
	default:
		if p := (Pledge{Minter: a.Minter, Founders: c.plan.founders()}); !p.Equal(c.held) {
			c.held = p
			s.Write = &p
		}
	}
	answer.Pledge = c.held
	return s
}

// OnAnswer takes what a node said, to an Ask or to the question who it is.
func (c *Core) OnAnswer(a Answer) Step {
	switch {
	case !c.cluster.IsZero():
	case !a.Cluster.IsZero():
		c.cluster = a.Cluster
	case c.minter() && slices.Contains(c.plan.founders(), a.From.Addr) && a.From.Addr != c.self.Addr:
		if a.Pledge.Minter == c.self && slices.Equal(a.Pledge.Founders, c.plan.founders()) {
			c.got[a.From.Addr] = a.From
			delete(c.refused, a.From.Addr)
		} else if a.Refusal != "" {
			c.refused[a.From.Addr] = a.Refusal
		}
	}
	if !c.cluster.IsZero() {
		return Step{Join: c.cluster}
	}
	return Step{Mint: c.minter() && c.complete()}
}

// MintedOrJoined says that this node has a cluster id, durably.
func (c *Core) MintedOrJoined(id base.ClusterID) { c.cluster = id }

// Who is the answer to the question who this node is.
func (c *Core) Who() Answer { return Answer{From: c.self, Cluster: c.cluster, Pledge: c.held} }

// Held is the pledge that this node has made.
func (c *Core) Held() Pledge { return c.held }

// Waiting says in a sentence what the founding waits for.
func (c *Core) Waiting() string {
	lowest := c.plan.List[0]
	switch {
	case !c.cluster.IsZero():
		return ""
	case !c.held.IsZero() && lowest == c.self.Addr:
		return fmt.Sprintf("this node has pledged to %s and may not mint itself: start that one, or start this node with empty directories", c.held.Minter)
	case !c.held.IsZero():
		return fmt.Sprintf("this node has pledged to %s, which founds the cluster", c.held.Minter)
	case lowest != c.self.Addr:
		return fmt.Sprintf("the node at %s founds the cluster when it has the pledges of %s", lowest, commas(c.plan.founders()))
	}
	var silent []string
	for _, addr := range c.plan.founders() {
		if why := c.refused[addr]; why != "" {
			return why
		}
		if _, ok := c.got[addr]; !ok && addr != c.self.Addr {
			silent = append(silent, addr)
		}
	}
	return "no pledge yet of " + commas(silent)
}

// PlannedAs reports whether this is the plan that the core follows.
func (c *Core) PlannedAs(p Plan) bool { return c.plan.equal(p) }
