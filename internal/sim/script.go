package sim

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// Script is a seeded choice of faults.
type Script struct {
	Nodes   int // that the cluster begins with; 3
	AtMost  int // nodes join until there are so many; 5
	Steps   int // 12
	Longest time.Duration
	Faults  []action // what can happen; actions
}

// action is one thing that can happen to a cluster.
type action struct {
	name   string
	weight int
	can    func(c *Cluster) bool
	do     func(c *Cluster, s *Script)
}

var actions = []action{
	{"join", 2, always, func(c *Cluster, s *Script) {
		if len(c.nodes) < s.AtMost {
			c.Add().Start()
		}
	}},
	{"leave", 2, anyRuns, func(c *Cluster, _ *Script) { c.someRunning().Stop() }},
	{"kill", 3, anyRuns, func(c *Cluster, _ *Script) { c.someRunning().Kill() }},
	{"crash", 3, anyRuns, func(c *Cluster, _ *Script) { c.someRunning().Crash() }},
	{"power loss", 1, anyRuns, func(c *Cluster, _ *Script) {
		for _, n := range c.Running() {
			n.Crash()
		}
	}},
	{"start", 8, anyDown, func(c *Cluster, _ *Script) { c.someDown().Start() }},
	{"partition", 4, anyRuns, func(c *Cluster, _ *Script) {
		c.Net.Heal()
		near, far := c.halves()
		c.Partition(near, far)
	}},
	{"one way", 1, anyRuns, oneWay},
	{"flap", 1, anyRuns, func(c *Cluster, _ *Script) {
		n := c.someRunning()
		for range 5 {
			c.Partition([]*Node{n}, c.without(n))
			time.Sleep(time.Duration(c.Rand.Int64N(int64(2 * time.Second))))
			c.Check()
			c.Heal()
			time.Sleep(time.Duration(c.Rand.Int64N(int64(2 * time.Second))))
			c.Check()
		}
	}},
	{"loss", 1, always, losePackets},
	{"slow disk", 1, anyRuns, func(c *Cluster, _ *Script) {
		c.someRunning().SlowDisk(time.Duration(c.Rand.Int64N(int64(time.Second))))
	}},
	{"heal", 4, always, func(c *Cluster, _ *Script) { c.mend() }},
}

func always(*Cluster) bool    { return true }
func anyRuns(c *Cluster) bool { return len(c.Running()) > 0 }
func anyDown(c *Cluster) bool { return len(c.Running()) < len(c.nodes) }

func (c *Cluster) someRunning() *Node { return pick(c.Rand, c.Running()) }

func (c *Cluster) someDown() *Node {
	var down []*Node
	for _, n := range c.nodes {
		if n.proc == nil {
			down = append(down, n)
		}
	}
	return pick(c.Rand, down)
}

func pick(rng *rand.Rand, nodes []*Node) *Node { return nodes[rng.IntN(len(nodes))] }

func (c *Cluster) without(n *Node) []*Node {
	return slices.DeleteFunc(slices.Clone(c.nodes), func(other *Node) bool { return other == n })
}

// halves parts the nodes in two, at random.
func (c *Cluster) halves() (near, far []*Node) {
	for _, n := range c.nodes {
		if c.Rand.IntN(2) == 0 {
			near = append(near, n)
		} else {
			far = append(far, n)
		}
	}
	return near, far
}

// Play lets the script happen to a cluster, under load, and checks it after each step. At the end everything is made
// good again, and everything that clients were told must hold.
func (c *Cluster) Play(s Script, o LoadOptions) {
	c.T.Helper()
	s.Nodes = cmp.Or(s.Nodes, 3)
	s.AtMost = cmp.Or(s.AtMost, 5)
	s.Steps = cmp.Or(s.Steps, 12)
	s.Longest = cmp.Or(s.Longest, 6*time.Second)
	if s.Faults == nil {
		s.Faults = actions
	}
	c.Start(s.Nodes)
	c.Quiet(time.Minute)
	load := c.StartLoad(o)
	for range s.Steps {
		c.choose(s.Faults).do(c, &s)
		c.Check()
		c.reap()
		time.Sleep(time.Duration(c.Rand.Int64N(int64(s.Longest))))
		c.Check()
		c.reap()
	}
	c.mend()
	c.reap()
	for _, n := range c.nodes {
		if n.proc == nil {
			n.Start()
		}
	}
	c.Await(time.Minute, "all nodes serve", c.allServe)
	load.Served(time.Minute)
	load.Stop()
	c.Quiet(3 * time.Minute)
	load.Verify()
	c.Check()
}

// choose draws one action among those that are possible.
func (c *Cluster) choose(actions []action) action {
	total := 0
	for _, a := range actions {
		if a.can(c) {
			total += a.weight
		}
	}
	at := c.Rand.IntN(total)
	for _, a := range actions {
		if !a.can(c) {
			continue
		}
		if at -= a.weight; at < 0 {
			return a
		}
	}
	return actions[0]
}
