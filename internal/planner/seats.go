package planner

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/keyspace"
	"github.com/eastguard/eastguard/internal/ring"
)

// Limits of how fast seats move.
const (
	SeatsGrowing  = 16               // on their way to one node, of shards that lack voters
	SeatsMoving   = 2                // and of shards that have enough, but elsewhere
	RingStable    = 30 * time.Second // the ring has not changed for so long before anything moves for its sake
	seatCaughtUp  = 64               // entries that a member may lack and still count as caught up
	seatsSpreadBy = "rack"
)

// Intended are the nodes that should vote in a shard, by the ring alone: every node computes the same from the same
// table of nodes. The first is the shard's home.
func Intended(r *ring.Ring, shard base.ShardID, voters int) []base.NodeID {
	if r == nil {
		return nil
	}
	return r.Walk(keyspace.HashKey([]byte("shard "+shard.String())), voters, seatsSpreadBy)
}

// Seat is one member of a shard's Raft configuration, as its leader sees it.
type Seat struct {
	Server base.UUID // of the meta directory
	Node   base.NodeID
	Voter  bool
	Match  uint64 // the last entry it is known to hold
	Heard  bool   // it has acknowledged something in this term just now
	Hosted bool   // its node has confirmed, durably, that it has the replica for this seat
}

// SeatNode is what a shard's leader knows of one node in the root's table.
type SeatNode struct {
	Server  base.UUID // of its meta directory, as it registered last
	Out     bool
	Fit     bool // alive, admitted and connected: it can take a seat now
	Growing int  // seats on their way to it, of shards that lack voters
	Moving  int  // and of others
}

// SeatInput is all that decides a shard's next step.
type SeatInput struct {
	Self     base.UUID // the leader's own server
	Intended []base.NodeID
	Seats    []Seat
	Last     uint64 // the leader's last entry
	Nodes    map[base.NodeID]SeatNode
	RingAge  time.Duration // since the ring changed last
}

// SeatKind is what a step does.
type SeatKind uint8

// The kinds of steps. At rest everything is as it should be; waiting, something is not, and cannot be changed now.
const (
	SeatRest SeatKind = iota
	SeatWait
	SeatAdd     // a member without a vote
	SeatPromote // it has caught up and gets its vote
	SeatRemove
	SeatYield // hand leadership to another voter, who takes the next step
)

// String prints rest, wait, add, promote, remove or yield.
func (k SeatKind) String() string {
	switch k {
	case SeatRest:
		return "rest"
	case SeatWait:
		return "wait"
	case SeatAdd:
		return "add"
	case SeatPromote:
		return "promote"
	case SeatRemove:
		return "remove"
	case SeatYield:
		return "yield"
	}
	return fmt.Sprintf("step_%d", uint8(k))
}

// SeatStep is one change of a shard's membership, or why there is none.
type SeatStep struct {
	Kind   SeatKind
	Server base.UUID
	Node   base.NodeID
	Growth bool // of an added seat: the shard lacks voters
	Why    string
}

// Seats decides a shard's next step on the way from its members to the intended ones: one at a time, a newcomer first
// without a vote, then with one, and only then the member it replaces goes. No step leaves less than a majority of
// voters that answer and have caught up.
//
// A voter that is silent keeps its seat for as long as the root says that its node belongs to the cluster: what the
// failure detector believes adds and removes nobody.
func Seats(in SeatInput) SeatStep {
	if len(in.Intended) == 0 {
		return SeatStep{Kind: SeatWait, Why: "the ring is not known yet"}
	}
	p := newSeatPlan(in)
	p.dismissGuests()
	p.dismissReplaced()
	p.dismissSurplus()
	p.promote()
	p.invite()
	p.dismissLost()
	return p.verdict()
}

// seatClass is what becomes of a member.
type seatClass uint8

const (
	seatRight     seatClass = iota // where it should be
	seatUnknown                    // its node is not in the table known here, which must be old: leave it alone
	seatMisplaced                  // works, but should be elsewhere
	seatLost                       // its node is out, and it is silent
	seatReplaced                   // its node has another meta directory now: this server never comes back
)

// seatPlan holds the input sorted out, and the first step that a rule has found.
type seatPlan struct {
	in      SeatInput
	classes []seatClass // of in.Seats
	voters  int
	counted int // voters that will stay or can be waited for
	step    SeatStep
}

func newSeatPlan(in SeatInput) *seatPlan {
	p := &seatPlan{in: in, classes: make([]seatClass, len(in.Seats))}
	for i, s := range in.Seats {
		p.classes[i] = p.classify(s)
		if s.Voter {
			p.voters++
			if p.classes[i] < seatLost {
				p.counted++
			}
		}
	}
	return p
}

func (p *seatPlan) classify(s Seat) seatClass {
	n, known := p.in.Nodes[s.Node]
	heard := s.Heard || s.Server == p.in.Self
	switch {
	case !known:
		return seatUnknown
	case n.Server != s.Server && !heard: // one that answers has not been lost: the table is old
		return seatReplaced
	case n.Out && !heard:
		return seatLost
	case n.Out || !slices.Contains(p.in.Intended, s.Node):
		return seatMisplaced
	}
	return seatRight
}

// short reports whether the shard has fewer voters than it should: then nothing waits for the ring to settle.
func (p *seatPlan) short() bool { return p.counted < len(p.in.Intended) }

func (p *seatPlan) decided() bool { return p.step.Kind > SeatWait }

// do takes the first step found. wait notes the first reason to wait; a later rule may still find something to do.
func (p *seatPlan) do(kind SeatKind, server base.UUID, node base.NodeID, why string) {
	if !p.decided() {
		p.step = SeatStep{Kind: kind, Server: server, Node: node, Growth: kind == SeatAdd && p.short(), Why: why}
	}
}

func (p *seatPlan) wait(format string, args ...any) {
	if p.step.Kind == SeatRest {
		p.step = SeatStep{Kind: SeatWait, Why: fmt.Sprintf(format, args...)}
	}
}

func (p *seatPlan) verdict() SeatStep {
	if p.step.Kind == SeatRest {
		p.step.Why = "every seat is where it should be"
	}
	return p.step
}

// healthy counts the voters that answer and have caught up, leaving out one server.
func (p *seatPlan) healthy(without base.UUID) int {
	n := 0
	for _, s := range p.in.Seats {
		if s.Voter && s.Server != without && p.sound(s) {
			n++
		}
	}
	return n
}

func (p *seatPlan) sound(s Seat) bool {
	return s.Server == p.in.Self || s.Heard && s.Match > 0 && s.Match+seatCaughtUp >= p.in.Last
}

func majority(voters int) int { return voters/2 + 1 }

// canSpare reports whether the voters that are left after a removal include a sound majority.
func (p *seatPlan) canSpare(s Seat) bool {
	left := p.voters - 1
	return left > 0 && p.healthy(s.Server) >= majority(left)
}

// dismissGuests removes members without a vote that will not get one.
func (p *seatPlan) dismissGuests() {
	for i, s := range p.in.Seats {
		if !s.Voter && p.classes[i] > seatUnknown {
			p.do(SeatRemove, s.Server, s.Node, "it is not to vote here any more")
		}
	}
}

// dismissReplaced removes voters whose meta directory is gone for good. It comes before the new directory of the same
// node is invited, since a configuration cannot name a node twice.
func (p *seatPlan) dismissReplaced() {
	for i, s := range p.in.Seats {
		if !s.Voter || p.classes[i] != seatReplaced {
			continue
		}
		if p.canSpare(s) {
			p.do(SeatRemove, s.Server, s.Node, "its meta directory was lost or replaced")
		} else {
			p.wait("node %s lost its replica, but without it too few voters would answer", s.Node)
		}
	}
}

// dismissSurplus removes a voter when there are more than intended, the one that is of least use first.
func (p *seatPlan) dismissSurplus() {
	if p.voters <= len(p.in.Intended) {
		return
	}
	i := p.leastUseful()
	if i < 0 {
		return
	}
	s := p.in.Seats[i]
	switch {
	case p.sound(s) && p.healthy(s.Server) < len(p.in.Intended), !p.canSpare(s):
		p.wait("node %s should not vote here, but too few of the others answer", s.Node)
	case s.Server == p.in.Self:
		p.yield()
	default:
		p.do(SeatRemove, s.Server, s.Node, "others have taken its place")
	}
}

// leastUseful is the index of the voter to remove first, -1 when all are where they should be.
func (p *seatPlan) leastUseful() int {
	candidates := make([]int, 0, len(p.in.Seats))
	for i, s := range p.in.Seats {
		if s.Voter && p.classes[i] > seatUnknown {
			candidates = append(candidates, i)
		}
	}
	if len(candidates) == 0 {
		return -1
	}
	return slices.MinFunc(candidates, func(a, b int) int {
		x, y := p.in.Seats[a], p.in.Seats[b]
		return cmp.Or(
			cmp.Compare(p.classes[b], p.classes[a]),
			base.CompareBools(x.Server == p.in.Self, y.Server == p.in.Self),
			base.CompareBools(p.sound(x), p.sound(y)),
			cmp.Compare(x.Node, y.Node),
		)
	})
}

// yield hands leadership to the first intended voter that is sound: a leader does not remove itself.
func (p *seatPlan) yield() {
	for _, node := range p.in.Intended {
		for i, s := range p.in.Seats {
			if s.Node == node && s.Voter && s.Server != p.in.Self && p.classes[i] == seatRight && p.sound(s) {
				p.do(SeatYield, s.Server, s.Node, "the leader should not vote here")
				return
			}
		}
	}
	p.wait("the leader should not vote here, but nobody who should has caught up")
}

// promote gives a vote to a member that has caught up.
func (p *seatPlan) promote() {
	for i, s := range p.in.Seats {
		switch {
		case s.Voter || p.classes[i] != seatRight:
		case !s.Hosted:
			// It may answer all the same, with a replica of an earlier seat that it is about to be told to give up. Once it
			// votes it must not lose what it has acknowledged.
			p.wait("node %s has not confirmed that it has a replica", s.Node)
		case !p.sound(s):
			p.wait("node %s is catching up", s.Node)
		case p.voters > len(p.in.Intended):
			p.wait("node %s has caught up, and another goes before it votes", s.Node)
		case p.healthy(base.UUID{})+1 < majority(p.voters+1):
			p.wait("node %s has caught up, but too few voters answer", s.Node)
		default:
			p.do(SeatPromote, s.Server, s.Node, "it has caught up")
		}
	}
}

// invite adds a member for the first intended node that has no seat and can take one. A shard that lacks voters
// invites all that it lacks at once; one that only has them elsewhere goes one by one.
func (p *seatPlan) invite() {
	lacking, underway := len(p.in.Intended)-p.counted, p.underway()
	switch {
	case p.voters > len(p.in.Intended),
		p.short() && underway >= lacking,
		!p.short() && underway > 0:
		return
	}
	for _, node := range p.in.Intended {
		n := p.in.Nodes[node]
		switch {
		case p.seated(node):
		case !n.Fit || n.Server.IsZero():
			p.wait("node %s should vote here, but cannot be reached", node)
		case p.short() && n.Growing >= SeatsGrowing, !p.short() && n.Moving >= SeatsMoving:
			p.wait("node %s is taking other seats", node)
		case !p.short() && p.in.RingAge < RingStable:
			p.wait("the ring has changed %s ago", p.in.RingAge.Round(time.Second))
		default:
			p.do(SeatAdd, n.Server, node, "the ring names it")
			return
		}
	}
}

// underway counts the members that are catching up and can be waited for.
func (p *seatPlan) underway() int {
	n := 0
	for i, s := range p.in.Seats {
		if !s.Voter && p.classes[i] == seatRight && p.in.Nodes[s.Node].Fit {
			n++
		}
	}
	return n
}

func (p *seatPlan) seated(node base.NodeID) bool {
	return slices.ContainsFunc(p.in.Seats, func(s Seat) bool { return s.Node == node })
}

// dismissLost removes a voter of a node that is out when nobody can take its place: then it only raises the majority.
func (p *seatPlan) dismissLost() {
	if p.underway() > 0 {
		return
	}
	for i, s := range p.in.Seats {
		if !s.Voter || p.classes[i] != seatLost {
			continue
		}
		if p.canSpare(s) {
			p.do(SeatRemove, s.Server, s.Node, "its node is out")
		} else {
			p.wait("node %s is out, but without it too few voters would answer", s.Node)
		}
	}
}
