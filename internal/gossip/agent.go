package gossip

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/topology"
)

// Options configure an Agent. Cluster, Self and Network are required.
type Options struct {
	Cluster   base.ClusterID
	Self      Self
	Network   Network
	Seeds     []string      // host:port of other nodes' cluster ports; a name may stand for several addresses
	Known     []string      // ip:port of members that an earlier start of this node knew
	SecretKey []byte        // 16, 24 or 32 bytes; without it everyone who knows the cluster id may join
	Rejoin    time.Duration // between two tries to reach who is not there, on average; 10 s
	Lookup    func(ctx context.Context, host string) ([]netip.Addr, error)
	Logger    *slog.Logger
	// OnFatal hears, once, that another process keeps this node's id: this one must stop. It must not block.
	OnFatal func(error)
}

func (o *Options) fill() {
	if o.Rejoin <= 0 {
		o.Rejoin = 10 * time.Second
	}
	if o.Lookup == nil {
		o.Lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.OnFatal == nil {
		o.OnFatal = func(error) {}
	}
}

// How often the loop reads all states: after a change, and anyway. Both grow with the cluster beyond readScale members,
// as the cost of one reading does.
const (
	readGap   = 100 * time.Millisecond
	readEvery = time.Second
	readScale = 64
)

// Agent is a node's membership. Its methods may be called by any number of goroutines.
type Agent struct {
	o     Options
	id    base.NodeID
	label string
	log   *slog.Logger

	ctx    context.Context // of the agent's goroutines
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	current  atomic.Pointer[generation]
	snapshot atomic.Pointer[Snapshot]
	nodes    atomic.Int64 // alive or suspect, for how often a claim is sent
	dropped  atomic.Uint64
	vetoes   atomic.Uint64
	renames  atomic.Uint64

	dirty  chan struct{}      // states changed
	urgent chan struct{}      // there is something in post
	rejoin chan string        // try now, this address first
	leave  chan time.Duration // for how long
	left   chan error

	mu     sync.Mutex // also taken by memberlist's callbacks, under its lock: never call memberlist with it
	book   *book
	claims *claims
	self   Self
	meta   []byte // self, encoded
	post   post
	subs   map[chan struct{}]struct{}
	state  agentState
}

type agentState uint8

const (
	created agentState = iota
	running
	closed
)

// New checks the options. Nothing runs before Start.
func New(o Options) (*Agent, error) {
	o.fill()
	if n := len(o.SecretKey); n != 0 && n != 16 && n != 24 && n != 32 {
		return nil, base.Errorf(base.CodeInvalidArgument, "configure gossip", "the secret key has %d bytes, not 16, 24 or 32", n)
	}
	if o.Network == nil {
		return nil, base.Errorf(base.CodeInvalidArgument, "configure gossip", "there is no network")
	}
	self := o.Self.clone()
	meta, err := self.encode(o.Cluster)
	if err != nil {
		return nil, err
	}
	a := &Agent{
		o: o, id: self.Node, label: string(o.Cluster[:]), log: o.Logger.With("component", "gossip"),
		dirty: make(chan struct{}, 1), urgent: make(chan struct{}, 1), rejoin: make(chan string, 1),
		leave: make(chan time.Duration), left: make(chan error, 1),
		book: newBook(o.Cluster, &self), self: self, meta: meta, post: newPost(), subs: make(map[chan struct{}]struct{}),
	}
	a.claims = newClaims(func() int { return int(a.nodes.Load()) })
	a.snapshot.Store(&Snapshot{})
	a.ctx, a.cancel = context.WithCancel(context.Background())
	return a, nil
}

// Start joins the membership and goes on doing so until Close. It returns at once; nobody may be there yet. The end of
// ctx does not end the agent.
func (a *Agent) Start(context.Context) error {
	a.mu.Lock()
	if a.state != created {
		a.mu.Unlock()
		return base.Errorf(base.CodeShuttingDown, "start gossip", "started or closed before")
	}
	a.state = running
	l := a.book.life
	a.mu.Unlock()
	g, err := a.newGeneration(l)
	if err != nil {
		return base.Wrap(base.CodeInternal, "start gossip", err)
	}
	a.current.Store(g)
	loop := &loop{Agent: a, roll: newRoll()}
	loop.read()
	a.tasks.Go(loop.run)
	a.tasks.Go(a.rejoinForEver)
	return nil
}

// Leave tells the others that this node goes, and returns when it has been said or ctx ends (5 s without a deadline).
// Close comes after it. A node that only closes is found dead.
func (a *Agent) Leave(ctx context.Context) error {
	timeout := 5 * time.Second
	if d, ok := ctx.Deadline(); ok {
		timeout = max(time.Until(d), time.Millisecond)
	}
	select {
	case a.leave <- timeout:
	case <-a.ctx.Done():
		return base.Errorf(base.CodeShuttingDown, "leave the membership", "closed before")
	case <-ctx.Done():
		return base.Wrap(base.CodeTimeout, "leave the membership", ctx.Err())
	}
	select {
	case err := <-a.left:
		return err
	case <-a.ctx.Done():
		return base.Errorf(base.CodeShuttingDown, "leave the membership", "closed meanwhile")
	}
}

// Close ends the agent and waits for its goroutines. memberlist's own follow within ten seconds.
func (a *Agent) Close() error {
	a.mu.Lock()
	wasRunning := a.state == running
	a.state = closed
	a.mu.Unlock()
	a.cancel()
	a.tasks.Wait()
	if g := a.current.Load(); wasRunning && g != nil {
		g.retire()
		a.o.Network.Receive(nil, nil)
	}
	return nil
}

// Snapshot is everyone this process knows of now. Suspicions show within a second, in large clusters a few.
func (a *Agent) Snapshot() *Snapshot { return a.snapshot.Load() }

// Subscribe returns a mark of capacity one that is set after each change of the snapshot or the claims, and how to
// stop it.
func (a *Agent) Subscribe() (changed <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.subs[c] = struct{}{}
	return c, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.subs, c)
	}
}

// Update changes what this node says of itself; its identity (node, boot, instance, start) stays. Nothing changes when
// the result does not fit into MaxMeta.
func (a *Agent) Update(change func(*Self)) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	next := a.self.clone()
	change(&next)
	next.Node, next.Boot, next.Instance, next.StartedMs = a.self.Node, a.self.Boot, a.self.Instance, a.self.StartedMs
	next = next.clone() // the caller may keep the map it put in
	meta, err := next.encode(a.o.Cluster)
	if err != nil {
		return err
	}
	a.self, a.meta, a.post.update = next, meta, true
	mark(a.urgent)
	return nil
}

// Claim spreads that a node leads a shard. A claim of a lower term than the one known changes nothing.
func (a *Agent) Claim(c Claim) { a.mergeClaim(c) }

// Claims lists the best claim on each shard, by shard.
func (a *Agent) Claims() []Claim {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.claims.all()
}

// ClaimOn is the best claim on one shard.
func (a *Agent) ClaimOn(shard base.ShardID) (Claim, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c, ok := a.claims.best[shard]
	return c, ok
}

// Stats counts since the start of the process.
type Stats struct {
	Members, Suspects, Dead int
	Claims                  int
	Vetoes                  uint64 // alive messages refused
	Renames                 uint64 // false burials of this process
	Dropped                 uint64 // packets and streams for which memberlist was too slow
	Health                  int    // memberlist's awareness: 0 is best
}

// Stats are for metrics and for people.
func (a *Agent) Stats() Stats {
	snap := a.Snapshot()
	s := Stats{
		Members: len(snap.Members), Suspects: snap.Count(topology.Suspect), Dead: snap.Count(topology.Dead),
		Vetoes: a.vetoes.Load(), Renames: a.renames.Load(), Dropped: a.dropped.Load(),
	}
	a.mu.Lock()
	s.Claims = len(a.claims.best)
	a.mu.Unlock()
	if g := a.current.Load(); g != nil {
		s.Health = g.list.GetHealthScore()
	}
	return s
}

// What follows is called by memberlist's callbacks, in part under its lock.

func (a *Agent) admit(w word) verdict {
	a.mu.Lock()
	defer a.mu.Unlock()
	v := a.book.admit(w)
	if v.veto != "" {
		a.vetoes.Add(1)
	}
	if v.fatal {
		a.post.fail(v.taken)
	}
	if a.post.add(v, time.Now()) {
		mark(a.urgent)
	}
	return v
}

func (a *Agent) bury(id base.NodeID, l life) {
	a.mu.Lock()
	a.book.bury(id, l)
	a.mu.Unlock()
	a.markDirty()
}

// hear takes a notice that somebody sent to us.
func (a *Agent) hear(n *notice) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case n.ID != a.id:
		return
	case n.Instance.IsZero():
		a.post.buried = n
	case n.Instance == a.self.Instance && n.Winner != a.self.Instance:
		a.post.fail(n)
	}
	mark(a.urgent)
}

func (a *Agent) mergeClaim(c Claim) {
	a.mu.Lock()
	changed := a.claims.merge(c)
	a.mu.Unlock()
	if changed {
		a.notify()
	}
}

// notify marks every subscriber.
func (a *Agent) notify() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for c := range a.subs {
		mark(c)
	}
}

func (a *Agent) markDirty() { mark(a.dirty) }

func mark(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
