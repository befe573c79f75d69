package planner

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/ring"
)

// seatCluster is a cluster in which every step takes effect at once: what is left is the order of steps.
type seatCluster struct {
	nodes  map[base.NodeID]*seatClusterNode
	groups []*seatGroup
	serial byte
	age    time.Duration // of the ring
	adds   int
}

type seatClusterNode struct {
	server base.UUID // that its meta directory has now
	table  base.UUID // and that the root knows
	out    bool
	up     bool
}

type seatGroup struct {
	id     base.ShardID
	seats  []Seat // Match is 1 for who has everything
	leader base.UUID
}

func (c *seatCluster) join(node base.NodeID) {
	id := c.mint()
	c.nodes[node] = &seatClusterNode{server: id, table: id, up: true}
	c.age = 0
}

func (c *seatCluster) mint() base.UUID {
	c.serial++
	return base.UUID{c.serial}
}

func (c *seatCluster) ring() *ring.Ring {
	var members []ring.Member
	for id, n := range c.nodes {
		if !n.out {
			members = append(members, ring.Member{Node: id})
		}
	}
	return ring.New(members, 64)
}

// answers reports whether a member's replica runs.
func (c *seatCluster) answers(s Seat) bool {
	n := c.nodes[s.Node]
	return n.up && n.server == s.Server
}

func (c *seatCluster) sound(g *seatGroup) int {
	n := 0
	for _, s := range g.seats {
		if s.Voter && c.answers(s) && s.Match > 0 {
			n++
		}
	}
	return n
}

func (g *seatGroup) voters() int {
	n := 0
	for _, s := range g.seats {
		if s.Voter {
			n++
		}
	}
	return n
}

// elect makes a sound voter leader where a majority is sound, unless one leads already.
func (c *seatCluster) elect(g *seatGroup) bool {
	if c.sound(g) < majority(g.voters()) {
		return false
	}
	for _, s := range g.seats {
		if s.Server == g.leader && s.Voter && c.answers(s) {
			return true
		}
	}
	for _, s := range g.seats {
		if s.Voter && c.answers(s) && s.Match > 0 {
			g.leader = s.Server
			return true
		}
	}
	return false
}

func (c *seatCluster) input(g *seatGroup, r *ring.Ring) SeatInput {
	in := SeatInput{
		Self: g.leader, Intended: Intended(r, g.id, 3), Last: 1000,
		Nodes: make(map[base.NodeID]SeatNode), RingAge: c.age,
	}
	for _, s := range g.seats {
		s.Match *= 1000
		s.Heard, s.Hosted = c.answers(s), c.answers(s)
		in.Seats = append(in.Seats, s)
	}
	for id, n := range c.nodes {
		in.Nodes[id] = SeatNode{Server: n.table, Out: n.out, Fit: n.up && !n.out && n.table == n.server}
	}
	return in
}

// settle takes steps round by round until no group has any left, and checks each.
func (c *seatCluster) settle(t require.TestingT) {
	r := c.ring()
	for round := 0; ; round++ {
		require.Less(t, round, 100, "the steps do not end")
		moved := false
		for _, g := range c.groups {
			if !c.elect(g) {
				continue
			}
			step := Seats(c.input(g, r))
			moved = moved || step.Kind > SeatWait
			c.apply(t, g, step)
			require.True(t, c.elect(g), "shard %s lost its majority by %s of %s", g.id, step.Kind, step.Node)
			require.LessOrEqual(t, g.voters(), 4, "shard %s", g.id)
		}
		if !moved {
			return
		}
	}
}

func (c *seatCluster) apply(t require.TestingT, g *seatGroup, step SeatStep) {
	at := slices.IndexFunc(g.seats, func(s Seat) bool { return s.Server == step.Server })
	switch step.Kind {
	case SeatRest, SeatWait:
		require.NotEmpty(t, step.Why)
	case SeatAdd:
		c.adds++
		require.False(t, slices.ContainsFunc(g.seats, func(s Seat) bool { return s.Node == step.Node }), "a node twice")
		g.seats = append(g.seats, Seat{Server: step.Server, Node: step.Node})
	case SeatPromote:
		require.False(t, g.seats[at].Voter)
		g.seats[at].Voter = true
	case SeatRemove:
		require.NotEqual(t, g.leader, step.Server)
		if g.seats[at].Voter {
			n := c.nodes[step.Node]
			require.False(t, !n.out && n.table == step.Server && slices.Contains(Intended(c.ring(), g.id, 3), step.Node),
				"%s was removed from shard %s, and belongs there", step.Node, g.id)
		}
		g.seats = slices.Delete(g.seats, at, at+1)
	case SeatYield:
		require.True(t, g.seats[at].Voter)
		g.leader = step.Server
	}
	for i, s := range g.seats { // everybody who answers catches up
		if c.answers(s) {
			g.seats[i].Match = 1
		}
	}
}

// quiet lets the ring be old enough for moves, and settles again.
func (c *seatCluster) quiet(t require.TestingT) {
	c.settle(t)
	c.age = RingStable
	c.settle(t)
}

// requireRight checks that each shard has the voters that the ring names and nobody else.
func (c *seatCluster) requireRight(t require.TestingT) {
	r := c.ring()
	for _, g := range c.groups {
		var voters []base.NodeID
		for _, s := range g.seats {
			require.True(t, s.Voter, "shard %s has a guest", g.id)
			require.Equal(t, c.nodes[s.Node].server, s.Server)
			voters = append(voters, s.Node)
		}
		require.ElementsMatch(t, Intended(r, g.id, 3), voters, "shard %s", g.id)
	}
}

func newSeatCluster(shards, nodes int) *seatCluster {
	c := &seatCluster{nodes: make(map[base.NodeID]*seatClusterNode)}
	for i := range nodes {
		c.join(base.NodeID(fmt.Sprintf("n%d", i+1)))
	}
	for i := range shards {
		c.groups = append(c.groups, &seatGroup{
			id: base.ShardID{Root: uint16(i)}, leader: c.nodes["n1"].server,
			seats: []Seat{{Server: c.nodes["n1"].server, Node: "n1", Voter: true, Match: 1}},
		})
	}
	return c
}

func TestSeatsGrowInPlace(t *testing.T) {
	c := newSeatCluster(32, 1)
	c.settle(t)
	c.requireRight(t)
	c.join("n2")
	c.settle(t)
	c.requireRight(t) // growth does not wait for the ring
	c.join("n3")
	c.settle(t)
	c.requireRight(t)
	require.Equal(t, 64, c.adds)
	c.join("n4")
	c.join("n5")
	c.settle(t)
	require.Equal(t, 64, c.adds, "moves wait for the ring")
	c.quiet(t)
	c.requireRight(t)
}

// Who joins n others gets about its share of the seats, and nothing else moves.
func TestSeatsMoveNoMoreThanTheyMust(t *testing.T) {
	for _, n := range []int{4, 9, 19} {
		c := newSeatCluster(64, n)
		c.quiet(t)
		c.requireRight(t)
		c.adds = 0
		before := c.ring()
		c.join("another")
		c.quiet(t)
		c.requireRight(t)
		must := 0
		for _, g := range c.groups {
			was := Intended(before, g.id, 3)
			for _, node := range Intended(c.ring(), g.id, 3) {
				if !slices.Contains(was, node) {
					must++
				}
			}
		}
		require.Equal(t, must, c.adds)
		require.InDelta(t, 1, float64(must)*float64(n+1)/(64*3), 0.75, "of %d nodes", n+1)
	}
}

func TestSeatsConverge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newSeatCluster(8, rapid.IntRange(1, 5).Draw(t, "nodes"))
		c.quiet(t)
		c.requireRight(t)
		for range rapid.IntRange(1, 12).Draw(t, "changes") {
			names := slices.Sorted(maps.Keys(c.nodes))
			node := c.nodes[rapid.SampledFrom(names).Draw(t, "node")]
			switch rapid.IntRange(0, 5).Draw(t, "change") {
			case 0:
				c.join(base.NodeID(fmt.Sprintf("n%d", len(names)+1)))
			case 1:
				node.up = false
			case 2:
				node.up = true
				if node.out { // its registration ends that
					node.out, c.age = false, 0
				}
				node.table = node.server
			case 3: // only who is gone goes out, and never the last
				if !node.up && !node.out && c.ring().Len() > 1 {
					node.out, c.age = true, 0
				}
			case 4: // its meta directory is lost, and it registers with a new one
				if c.canLose(node) {
					node.server, node.up = c.mint(), true
					node.table = node.server
					node.out = false
				}
			case 5:
				c.age += rapid.SampledFrom([]time.Duration{time.Second, RingStable}).Draw(t, "time")
			}
			c.settle(t)
		}
		// In the end everybody is up: then every shard is as the ring says.
		for _, n := range c.nodes {
			n.up, n.table = true, n.server
			if n.out {
				n.out = false
			}
		}
		c.age = 0
		c.quiet(t)
		c.requireRight(t)
	})
}

// canLose reports whether every shard would keep a majority without the node's replica, for good.
func (c *seatCluster) canLose(node *seatClusterNode) bool {
	for _, g := range c.groups {
		intact := 0
		for _, s := range g.seats {
			if s.Voter && s.Match > 0 && s.Server != node.server && c.nodes[s.Node].server == s.Server {
				intact++
			}
		}
		if intact < majority(g.voters()) {
			return false
		}
	}
	return true
}

func TestSeatsRefuse(t *testing.T) {
	id := func(n byte) base.UUID { return base.UUID{n} }
	voter := func(n byte, heard bool) Seat {
		return Seat{Server: id(n), Node: base.NodeID(fmt.Sprintf("n%d", n)), Voter: true, Match: 1000, Heard: heard}
	}
	guest := func(n byte, match uint64, heard bool) Seat {
		return Seat{Server: id(n), Node: base.NodeID(fmt.Sprintf("n%d", n)), Match: match, Heard: heard, Hosted: true}
	}
	unconfirmed := func(s Seat) Seat {
		s.Hosted = false
		return s
	}
	nodes := func(change func(map[base.NodeID]SeatNode)) map[base.NodeID]SeatNode {
		m := make(map[base.NodeID]SeatNode)
		for i := byte(1); i <= 4; i++ {
			m[base.NodeID(fmt.Sprintf("n%d", i))] = SeatNode{Server: id(i), Fit: true}
		}
		if change != nil {
			change(m)
		}
		return m
	}
	three, moved := []base.NodeID{"n1", "n2", "n3"}, []base.NodeID{"n2", "n3", "n4"}
	for name, c := range map[string]struct {
		in   SeatInput
		want SeatKind
		node base.NodeID
		why  string
	}{
		"no ring":       {SeatInput{Seats: []Seat{voter(1, true)}}, SeatWait, "", "the ring is not known yet"},
		"all is well":   {SeatInput{Intended: three, Seats: []Seat{voter(1, true), voter(2, true), voter(3, true)}, Nodes: nodes(nil)}, SeatRest, "", "every seat is where it should be"},
		"a silent node": {SeatInput{Intended: three, Seats: []Seat{voter(1, true), voter(2, true), voter(3, false)}, Nodes: nodes(nil), RingAge: time.Hour}, SeatRest, "", "every seat is where it should be"},
		"a new voter would make a majority of the silent": {SeatInput{
			Intended: three, Seats: []Seat{voter(1, true), voter(2, false), guest(3, 1000, false)}, Nodes: nodes(nil),
		}, SeatWait, "", "node n3 is catching up"},
		"caught up, but most voters are silent": {SeatInput{
			Intended: three, Seats: []Seat{voter(1, true), voter(2, false), voter(4, false), guest(3, 1000, true)}, Nodes: nodes(nil),
		}, SeatWait, "", "node n3 has caught up, but too few voters answer"},
		"caught up": {SeatInput{Intended: three, Seats: []Seat{voter(1, true), voter(2, true), guest(3, 950, true)}, Nodes: nodes(nil)}, SeatPromote, "n3", "it has caught up"},
		"answers for another seat": {SeatInput{
			Intended: three, Seats: []Seat{voter(1, true), voter(2, true), unconfirmed(guest(3, 1000, true))}, Nodes: nodes(nil),
		}, SeatWait, "", "node n3 has not confirmed that it has a replica"},
		"heard of, but has nothing": {SeatInput{Intended: three, Last: 10, Seats: []Seat{voter(1, true), voter(2, true), guest(3, 0, true)}, Nodes: nodes(nil)}, SeatWait, "", "node n3 is catching up"},
		"a node with another directory": {SeatInput{
			Intended: three, Seats: []Seat{voter(1, true), voter(2, true), voter(3, false)},
			Nodes: nodes(func(m map[base.NodeID]SeatNode) { m["n3"] = SeatNode{Server: id(9), Fit: true} }),
		}, SeatRemove, "n3", "its meta directory was lost or replaced"},
		"the table is older than the member": {SeatInput{
			Intended: three, Seats: []Seat{voter(1, true), voter(2, true), voter(3, true)},
			Nodes: nodes(func(m map[base.NodeID]SeatNode) { m["n3"] = SeatNode{Server: id(9)} }),
		}, SeatRest, "", "every seat is where it should be"},
		"a member that the table lacks": {SeatInput{
			Intended: []base.NodeID{"n1", "n2", "n4"}, Seats: []Seat{voter(1, true), voter(2, true), voter(3, false)},
			Nodes: nodes(func(m map[base.NodeID]SeatNode) { delete(m, "n3") }), RingAge: time.Second,
		}, SeatWait, "", "the ring has changed 1s ago"},
		"too few would be left": {SeatInput{
			Intended: three, Seats: []Seat{voter(1, true), voter(2, false), voter(3, false)},
			Nodes: nodes(func(m map[base.NodeID]SeatNode) { m["n3"] = SeatNode{Server: id(9)} }),
		}, SeatWait, "", "node n3 lost its replica, but without it too few voters would answer"},
		"who is out goes last": {SeatInput{
			Intended: moved, Seats: []Seat{voter(1, false), voter(2, true), voter(3, true)}, Self: id(2),
			Nodes: nodes(func(m map[base.NodeID]SeatNode) { m["n1"] = SeatNode{Server: id(1), Out: true} }),
		}, SeatAdd, "n4", "the ring names it"},
		"who is out goes when nobody comes": {SeatInput{
			Intended: three[1:], Seats: []Seat{voter(1, false), voter(2, true), voter(3, true)}, Self: id(2),
			Nodes: nodes(func(m map[base.NodeID]SeatNode) { m["n1"] = SeatNode{Server: id(1), Out: true} }),
		}, SeatRemove, "n1", "others have taken its place"},
		"the leader hands over before it goes": {SeatInput{
			Intended: moved, Seats: []Seat{voter(1, true), voter(2, true), voter(3, true), voter(4, true)}, Nodes: nodes(nil),
		}, SeatYield, "n2", "the leader should not vote here"},
		"a sound voter stays while an intended one is silent": {SeatInput{
			Intended: moved, Seats: []Seat{voter(1, true), voter(2, true), voter(3, true), voter(4, false)}, Self: id(2), Nodes: nodes(nil),
		}, SeatWait, "", "node n1 should not vote here, but too few of the others answer"},
		"seats move one by one": {SeatInput{
			Intended: []base.NodeID{"n3", "n4", "n5"}, Seats: []Seat{voter(1, true), voter(2, true), voter(3, true), guest(4, 10, true)},
			Nodes: nodes(func(m map[base.NodeID]SeatNode) { m["n5"] = SeatNode{Server: id(5), Fit: true} }), RingAge: time.Hour,
		}, SeatWait, "", "node n4 is catching up"},
		"a busy node": {SeatInput{
			Intended: three, Seats: []Seat{voter(1, true), voter(2, true)},
			Nodes: nodes(func(m map[base.NodeID]SeatNode) { m["n3"] = SeatNode{Server: id(3), Fit: true, Growing: SeatsGrowing} }),
		}, SeatWait, "", "node n3 is taking other seats"},
	} {
		if c.in.Self.IsZero() {
			c.in.Self = id(1)
		}
		if c.in.Last == 0 {
			c.in.Last = 1000
		}
		step := Seats(c.in)
		require.Equal(t, c.want, step.Kind, "%s: %s", name, step.Why)
		require.Equal(t, c.why, step.Why, name)
		require.Equal(t, c.node, step.Node, name)
	}
}
