package routing

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/task"
	"github.com/eastguard/eastguard/internal/telemetry"
	"github.com/eastguard/eastguard/internal/wire"
)

// Request is one client request about one shard.
type Request struct {
	Kind    wire.Kind
	Message []byte // as the client sent it
	Shard   base.ShardID
	Changes bool           // something, if it is answered
	ID      base.RequestID // by which the shard recognises a change that is tried again; zero: it does not
	// Serve answers it from the replica here. A replica that does not lead refuses with a code that says so.
	Serve func(ctx context.Context) ([]byte, error)
}

// repeatable reports whether the request may be tried again after an answer was lost.
func (q *Request) repeatable() bool { return !q.Changes || !q.ID.IsZero() }

// Replicas are this node's shards: *shard.Host.
type Replicas interface {
	// Leader is who leads, as the replica here knows; "" when it does not, or when there is none.
	Leader(shard base.ShardID) (base.NodeID, uint64)
	// Voters are those of the replica's configuration; none when there is no replica.
	Voters(shard base.ShardID) []base.NodeID
}

// Peers are the connections to the other nodes: *peer.Host.
type Peers interface {
	Call(ctx context.Context, node base.NodeID, kind peer.Kind, msg []byte) ([]byte, error)
	Liveness() map[base.NodeID]peer.State
}

// Options say whom a Router asks. All functions are called often and must not block; those of Gossip, Intended, Nodes
// and Address may be nil.
type Options struct {
	Self     base.NodeID
	Replicas Replicas
	Peers    Peers                                                  // nil: there are no others
	Gossip   func(base.ShardID) (Claim, bool)                       // what membership has spread
	Intended func(base.ShardID) []base.NodeID                       // a shard's voters by the ring
	Nodes    func() []base.NodeID                                   // all that are alive
	Address  func(base.NodeID) string                               // of the client port
	Prepare  func(wire.Kind, []byte, base.ShardID) (Request, error) // reads a request that another node forwarded
	Logger   *slog.Logger
	Metrics  *telemetry.Registry

	MaxRequests      int // under way at once: 4,096
	MaxShardRequests int // of one shard: 1,024
}

// Router finds the leaders of shards. All methods are safe for concurrent use.
type Router struct {
	o      Options
	claims *claims
	gate   *gate

	watcher watcher
	tasks   sync.WaitGroup
	stop    chan struct{}
	stopped sync.Once

	metrics metrics
}

// New makes a Router. Start runs its watcher; without it, requests under way are not moved to a newer leader.
func New(o Options) *Router {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = telemetry.NewRegistry()
	}
	if o.MaxRequests == 0 {
		o.MaxRequests = 4096
	}
	if o.MaxShardRequests == 0 {
		o.MaxShardRequests = 1024
	}
	r := &Router{
		o: o, claims: newClaims(), gate: newGate(o.MaxRequests, o.MaxShardRequests), stop: make(chan struct{}),
		metrics: newMetrics(o.Metrics),
	}
	r.watcher.init()
	return r
}

// Start begins to watch the requests under way.
func (r *Router) Start() { r.tasks.Go(r.watch) }

// Close refuses new requests, waits for those under way, at most until ctx ends, and ends the watcher.
func (r *Router) Close(ctx context.Context) {
	r.gate.close(ctx)
	r.stopped.Do(func() { close(r.stop) })
	r.tasks.Wait()
}

// Wake says that claims, leaderships or connections have changed: requests that wait look again.
func (r *Router) Wake() {
	r.claims.wake()
	r.watcher.wake()
}

// Learn takes over what somebody said about who leads a shard.
func (r *Router) Learn(shard base.ShardID, c Claim) { r.claims.learn(shard, c) }

// Spawn runs work about a shard on a goroutine of its own, unless too much is under way.
func (r *Router) Spawn(shard base.ShardID, work func()) error {
	if err := r.gate.enter(shard); err != nil {
		return err
	}
	go func() {
		defer r.gate.leave(shard)
		work()
	}()
	return nil
}

// Leader is who is believed to lead a shard.
func (r *Router) Leader(shard base.ShardID) (Claim, bool) {
	var here, spread Claim
	here.Leader, here.Term = r.o.Replicas.Leader(shard)
	if r.o.Gossip != nil {
		spread, _ = r.o.Gossip(shard)
	}
	if here.Leader != "" && here.Term >= spread.Term {
		here.Generation = spread.Generation // a replica of an earlier generation does not run
	}
	return r.claims.best(shard, here, spread)
}

// Redirect is the believed leader as an error names it.
func (r *Router) Redirect(shard base.ShardID) base.Redirect {
	c, ok := r.Leader(shard)
	if !ok || c.Leader == r.o.Self {
		return base.Redirect{}
	}
	to := base.Redirect{Node: c.Leader}
	if r.o.Address != nil {
		to.Address = r.o.Address(c.Leader)
	}
	return to
}

// othersARound is how many nodes that are neither leader nor voter are asked before a pause.
const othersARound = 2

// likeliest is where the leader is believed to be.
func (r *Router) likeliest(shard base.ShardID) []base.NodeID {
	if c, ok := r.Leader(shard); ok {
		return []base.NodeID{c.Leader}
	}
	return nil
}

// others lists whom to ask when the likeliest is not known or was wrong: the voters, some who may know, and at last whom
// there is a doubt about. This node is among them only as the last.
func (r *Router) others(shard base.ShardID, asked []base.NodeID) (list []base.NodeID) {
	voters := r.o.Replicas.Voters(shard)
	if len(voters) == 0 && r.o.Intended != nil {
		voters = r.o.Intended(shard)
	}
	var liveness map[base.NodeID]peer.State
	if r.o.Peers != nil {
		liveness = r.o.Peers.Liveness()
	}
	useful := func(n base.NodeID) bool {
		state, known := liveness[n]
		return n != r.o.Self && (!known || state.Status == peer.Reachable) && !slices.Contains(asked, n) && !slices.Contains(list, n)
	}
	for _, n := range voters {
		if useful(n) {
			list = append(list, n)
		}
	}
	if r.o.Nodes != nil {
		nodes := slices.Clone(r.o.Nodes())
		rand.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
		for most := len(list) + othersARound; len(nodes) > 0 && len(list) < most; nodes = nodes[1:] {
			if useful(nodes[0]) {
				list = append(list, nodes[0])
			}
		}
	}
	if c, sure := r.Leader(shard); !sure && c.Leader != "" && !slices.Contains(list, c.Leader) && !slices.Contains(asked, c.Leader) {
		list = append(list, c.Leader)
	}
	return list
}

// The pauses between rounds in which nobody led.
const (
	firstPause = 20 * time.Millisecond
	mostPause  = 250 * time.Millisecond
	leastPause = 5 * time.Millisecond // also when a change wakes us
)

// pause waits for a change, or for a time that grows with the rounds. It reports false when ctx has ended.
func pause(ctx context.Context, round int, changed <-chan struct{}) bool {
	d := min(firstPause<<min(round, 8), mostPause)
	d = d/2 + rand.N(d/2+1)
	if !task.Pause(ctx, leastPause) {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-changed:
	case <-ctx.Done():
		return false
	}
	return true
}
