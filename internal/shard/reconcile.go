package shard

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/planner"
	"github.com/eastguard/eastguard/internal/topology"
)

// The pace of the reconciler.
const (
	seatsIdle    = time.Second            // between two looks when every seat is where it should be
	seatsWaiting = 250 * time.Millisecond // when some are not, and nothing can be done about it
	seatsBusy    = 50 * time.Millisecond  // while some are on their way
	seatsAtOnce  = 16                     // groups that take a step at the same time
	seatPatience = 5 * time.Second        // for one change of a configuration to commit
	orderPause   = 500 * time.Millisecond
	orderTimeout = 3 * time.Second
	dropsAtOnce  = 1024 // replicas that wait to be given up by their nodes; older ones find out by themselves
)

// seating is what a group needs while it leads: who follows, what is done about its members, whether its leadership
// moves.
type seating struct {
	began    time.Time // when the replica was made
	progress progress
	seated   confirmed
	hold     hold
	seatStep atomic.Pointer[planner.SeatStep] // the last one
}

// stewards keep the members and leaders of the groups where they should be.
type stewards struct {
	seats   *reconciler
	leaders *balancer
	leaving atomic.Bool // this node hands over what it leads
	once    sync.Once
	cancel  context.CancelFunc
}

func newStewards(h *Host) *stewards {
	return &stewards{seats: newReconciler(h), leaders: &balancer{host: h}, cancel: func() {}}
}

func (s *stewards) start(ctx context.Context) {
	s.once.Do(func() {
		ctx, s.cancel = context.WithCancel(ctx)
		s.seats.start(ctx)
		s.leaders.start(ctx)
	})
}

// stop ends the loops and waits for them. Nothing can be started afterwards.
func (s *stewards) stop() {
	s.once.Do(func() {})
	s.cancel()
	s.seats.wait()
	s.leaders.wait()
}

// reconciler brings the members of the groups led here to where the ring wants them: one loop a host, one step a group
// at a time. What a step is, the planner says.
type reconciler struct {
	host *Host
	wake chan struct{} // capacity 1
	loop sync.WaitGroup

	ringHash  uint64
	ringSince time.Time

	orphans orphans

	mu     sync.Mutex
	orders map[order]time.Time // what nodes were told, and when they may be told again
	drops  map[order]uint64    // replicas to give up, and the configuration that says so
}

// order is what a node is told about one replica.
type order struct {
	kind   peer.Kind // kindHost or kindDrop
	shard  base.ShardID
	server base.UUID
	node   base.NodeID
}

func newReconciler(h *Host) *reconciler {
	return &reconciler{
		host: h, wake: make(chan struct{}, 1), orders: make(map[order]time.Time), drops: make(map[order]uint64),
		orphans: newOrphans(),
	}
}

// RingChanged has the host look at once whether seats have to move.
func (h *Host) RingChanged() { h.stewards.seats.mark() }

// mark makes the loop look now.
func (r *reconciler) mark() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *reconciler) start(ctx context.Context) { r.loop.Go(func() { r.run(ctx) }) }

func (r *reconciler) wait() { r.loop.Wait() }

func (r *reconciler) run(ctx context.Context) {
	timer := time.NewTimer(seatsBusy)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-r.wake:
		case <-ctx.Done():
			return
		}
		next := seatsIdle
		r.askForSeats(ctx)
		if !r.host.stewards.leaving.Load() {
			next = r.round(ctx)
		}
		timer.Reset(next)
	}
}

// round plans one step for each group led here, takes those that there are, and says how soon to look again.
func (r *reconciler) round(ctx context.Context) time.Duration {
	table := r.lookAround()
	var steps []func(context.Context)
	next := seatsIdle
	soon := func(d time.Duration) { next = min(next, d) }
	for _, g := range r.host.all() {
		term := g.readyTerm.Load()
		if term == 0 || g.hold.busy() {
			continue
		}
		committed := g.raft.CommitIndex() // before the members are read: what removes one of them lies above
		g.seated.begin(term, committed)
		in, members := r.input(g, term, table)
		step := planner.Seats(in)
		g.seatStep.Store(&step)
		table.count(in, step)
		if step.Kind == planner.SeatWait {
			soon(seatsWaiting)
		}
		if do := r.action(g, term, members, step); do != nil {
			soon(seatsBusy)
			steps = append(steps, do)
		}
		for _, m := range members {
			if !m.voter && m.id != g.serverID {
				soon(seatsBusy)
				r.tell(ctx, g, order{kindHost, g.id, m.server, m.node}, committed)
			}
		}
	}
	if r.tellDrops(ctx) {
		soon(seatsWaiting)
	}
	limit := make(chan struct{}, seatsAtOnce)
	var running sync.WaitGroup
	for _, do := range steps {
		limit <- struct{}{}
		running.Go(func() {
			defer func() { <-limit }()
			ctx, cancel := context.WithTimeoutCause(ctx, seatPatience, base.Errorf(base.CodeTimeout, "change members", "not committed within %s", seatPatience))
			defer cancel()
			do(ctx)
		})
	}
	running.Wait()
	return next
}

// surroundings are the nodes as all groups of one round see them, with the seats on their way to each.
type surroundings struct {
	age   time.Duration // of the ring
	ring  map[base.NodeID]bool
	nodes map[base.NodeID]planner.SeatNode
}

func (r *reconciler) lookAround() *surroundings {
	h := r.host
	now := time.Now()
	current := h.o.Ring()
	if hash := current.Hash(); hash != r.ringHash || r.ringSince.IsZero() {
		r.ringHash, r.ringSince = hash, now
	}
	s := &surroundings{age: now.Sub(r.ringSince), ring: make(map[base.NodeID]bool), nodes: make(map[base.NodeID]planner.SeatNode)}
	for _, m := range current.Members() {
		s.ring[m.Node] = true
	}
	view := h.o.View()
	var liveness map[base.NodeID]peer.State
	if h.o.Peers != nil {
		liveness = h.o.Peers.Liveness()
	}
	for i := range view.Nodes {
		id := view.Nodes[i].ID
		// In a large cluster a node is connected with those that it shares something with: of the others the gossip
		// knows, and the first order dials.
		link, connected := liveness[id]
		s.add(h, id, canVote(view, id) && (!connected || link.Status == peer.Reachable))
	}
	for id := range s.ring {
		s.add(h, id, false)
	}
	return s
}

// add notes a node that the root's table lists. One that is listed and not on the ring is out.
func (s *surroundings) add(h *Host, id base.NodeID, fit bool) {
	server, listed := h.o.ServerOf(id)
	if _, known := s.nodes[id]; known || !listed {
		return
	}
	s.nodes[id] = planner.SeatNode{Server: server, Out: !s.ring[id], Fit: fit && s.ring[id]}
}

// count adds the seats of one group that are on their way to the nodes, so that the groups after it see them.
func (s *surroundings) count(in planner.SeatInput, step planner.SeatStep) {
	voters := 0
	for _, seat := range in.Seats {
		if seat.Voter {
			voters++
		}
	}
	add := func(id base.NodeID, growth bool) {
		n, known := s.nodes[id]
		if !known {
			return
		}
		if growth {
			n.Growing++
		} else {
			n.Moving++
		}
		s.nodes[id] = n
	}
	for _, seat := range in.Seats {
		if !seat.Voter {
			add(seat.Node, voters < len(in.Intended))
		}
	}
	if step.Kind == planner.SeatAdd {
		add(step.Node, step.Growth)
	}
}

// canVote reports whether a node is alive, admitted and stays. One that is draining is still on the ring, and a shard needs
// its voters.
func canVote(view topology.View, id base.NodeID) bool {
	n, ok := view.Node(id)
	return ok && n.Liveness == topology.Alive && n.Standing != topology.Out && n.Admitted && !n.Leaving
}

// canLead reports whether a node is alive, admitted and normal, and stays.
func canLead(view topology.View, id base.NodeID) bool {
	n, ok := view.Node(id)
	return ok && n.Liveness == topology.Alive && n.Standing == topology.Normal && n.Admitted && !n.Leaving
}

func (r *reconciler) input(g *group, term uint64, table *surroundings) (planner.SeatInput, []member) {
	h := r.host
	members := g.members(term)
	in := planner.SeatInput{
		Self: h.o.Meta, Intended: planner.Intended(h.o.Ring(), g.id, h.o.Voters),
		Last: g.raft.LastIndex(), Nodes: table.nodes, RingAge: table.age,
	}
	now := time.Now()
	for _, m := range members {
		table.add(h, m.node, false) // if it is new
		in.Seats = append(in.Seats, planner.Seat{
			Server: m.server, Node: m.node, Voter: m.voter, Match: m.match, Heard: m.follows(now), Hosted: g.seated.has(m.server),
		})
	}
	return in, members
}

// action is how a step is taken; nil when there is nothing to do but wait.
func (r *reconciler) action(g *group, term uint64, members []member, step planner.SeatStep) func(context.Context) {
	id, addr := raft.ServerID(step.Server.String()), raft.ServerAddress(step.Node)
	for _, m := range members {
		if m.id == g.serverID && m.addr != raft.ServerAddress(r.host.o.Node) {
			// Written by a version whose clusters had one node: others could not tell who leads.
			return r.change(g, "address of this node noted", func() raft.IndexFuture {
				return g.raft.AddVoter(g.serverID, raft.ServerAddress(r.host.o.Node), 0, seatPatience)
			}, nil, "node", r.host.o.Node)
		}
	}
	switch step.Kind {
	case planner.SeatAdd:
		g.progress.forget(id)
		added := func(index uint64) {
			g.seated.added(step.Server, index)
			r.dropDone(order{kindDrop, g.id, step.Server, step.Node})
		}
		return r.change(g, "seat added", func() raft.IndexFuture { return g.raft.AddNonvoter(id, addr, 0, seatPatience) }, added, "node", step.Node, "why", step.Why)
	case planner.SeatPromote:
		return r.change(g, "seat promoted", func() raft.IndexFuture { return g.raft.AddVoter(id, addr, 0, seatPatience) }, nil, "node", step.Node, "why", step.Why)
	case planner.SeatRemove:
		gone := order{kindDrop, g.id, step.Server, step.Node}
		return r.change(g, "seat removed", func() raft.IndexFuture { return g.raft.RemoveServer(id, 0, seatPatience) }, func(index uint64) { r.dropped(gone, index) }, "node", step.Node, "why", step.Why)
	case planner.SeatYield:
		return func(ctx context.Context) {
			for _, m := range members {
				if m.server == step.Server {
					_, err := g.transfer(ctx, term, m)
					r.report(g, "leadership yielded", err, "node", step.Node, "why", step.Why)
				}
			}
		}
	case planner.SeatRest, planner.SeatWait:
	}
	return nil
}
