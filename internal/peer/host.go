package peer

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/lobby"
	"github.com/eastguard/eastguard/internal/task"
)

// Host is this node's side of all connections between nodes. New makes it, Start runs it; handlers are registered
// before Start. All methods are safe for concurrent use.
type Host struct {
	o        Options
	started  time.Time // what clock counts from
	tasks    *task.Group
	handlers atomic.Pointer[map[Kind]Handler]
	stats    counters
	boot     atomic.Uint64
	sessions atomic.Uint64       // numbers connections
	rooms    map[Tag]*lobby.Room // of connections within their handshake

	mu      sync.Mutex
	closed  bool
	cluster base.ClusterID
	peers   map[base.NodeID]*peer
	marks   map[chan struct{}]bool
	homes   map[netip.Addr]int // addresses where peers live: how many
	loose   map[*conn]bool     // of CallAddr, in no lane
	links   links

	watched int64 // the watch goroutine's: when it looked last, in clock time
	resumed int64 // the same: when this process last woke from a stall
}

type counters struct {
	framesIn, framesOut, bytesIn, bytesOut, busy, dials, dialFailures, silences atomic.Int64
}

// Stats counts what happened since the start.
type Stats struct {
	Peers        int   // known
	Connections  int   // established
	FramesIn     int64 // pings among them
	FramesOut    int64 // calls and sends
	BytesIn      int64 // of all frames
	BytesOut     int64
	Busy         int64 // refusals at a limit, on either side
	Dials        int64
	DialFailures int64
	Silences     int64 // times that a peer became unreachable
	ShownOut     int64 // connections that were closed for others, for they said nothing
}

// New makes a Host that does nothing before Start.
func New(o Options) *Host {
	h := &Host{
		o: o.withDefaults(), started: time.Now(), cluster: o.Cluster,
		tasks: task.NewGroup(context.Background(), "peer"),
		peers: make(map[base.NodeID]*peer), marks: make(map[chan struct{}]bool), homes: make(map[netip.Addr]int),
		loose: make(map[*conn]bool), links: links{wake: make(chan struct{}, 1)},
	}
	h.handlers.Store(&map[Kind]Handler{})
	h.boot.Store(o.Boot)
	h.rooms = make(map[Tag]*lobby.Room)
	for _, tag := range h.tags() {
		h.rooms[tag] = lobby.New(maxGreeting, h.Knows)
	}
	return h
}

// tags are those of the connections that are accepted.
func (h *Host) tags() []Tag {
	if h.o.ResolveData == nil {
		return []Tag{TagMain, TagBulk, TagAsk}
	}
	return []Tag{TagMain, TagBulk, TagAsk, TagData}
}

// Register says who takes the requests of a kind. A kind has one handler; registering a second panics.
func (h *Host) Register(kind Kind, handler Handler) {
	h.mu.Lock()
	defer h.mu.Unlock()
	handlers := maps.Clone(*h.handlers.Load())
	if handlers[kind] != nil || kind.class() == link {
		panic(fmt.Sprintf("peer: a handler for %s, which is taken", kind))
	}
	handlers[kind] = handler
	h.handlers.Store(&handlers)
}

func (h *Host) handler(kind Kind) Handler { return (*h.handlers.Load())[kind] }

// Start accepts connections and dials the peers that are kept.
func (h *Host) Start() {
	h.watched = h.clock()
	if h.o.ResolveData != nil {
		h.tasks.Go("links", h.tellLinks)
	}
	for _, tag := range h.tags() {
		l := h.o.Listen(tag)
		h.tasks.Go("accept "+tag.String(), func(ctx context.Context) error { return h.accept(ctx, l, tag) })
	}
	h.tasks.Go("watch", h.watch)
}

// clock is the time since the host was made, which only goes forward.
func (h *Host) clock() int64 { return int64(time.Since(h.started)) }

// Cluster is the cluster id that this node tells its peers; zero while it has none.
func (h *Host) Cluster() base.ClusterID {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cluster
}

// Boot is the start that this node tells its peers.
func (h *Host) Boot() uint64 { return h.boot.Load() }

// SetBoot changes that for the connections to come: a node whose disk was replaced goes on counting where the old one
// ended, once it has learnt where that is. SetCluster, after it, makes the connections anew.
func (h *Host) SetBoot(boot uint64) { h.boot.Store(boot) }

// SetCluster gives a node that had no cluster yet its own. Its connections are made anew, so that both sides check.
func (h *Host) SetCluster(id base.ClusterID) {
	h.mu.Lock()
	h.cluster = id
	var stale []*conn
	for c := range h.connsLocked() {
		if c.cluster != id {
			stale = append(stale, c)
		}
	}
	h.mu.Unlock()
	for _, c := range stale {
		c.fail(base.Errorf(base.CodeUnreachable, "", "this node has joined cluster %s", id))
	}
}

// connsLocked yields every established connection.
func (h *Host) connsLocked() func(yield func(*conn) bool) {
	return func(yield func(*conn) bool) {
		for _, p := range h.peers {
			for _, l := range p.lanes {
				if l.conn != nil && !yield(l.conn) {
					return
				}
			}
		}
	}
}

// Keep says which nodes to stay connected with, this one left out: their main and data lanes are dialled for ever. With others
// the connections that exist go on until they end.
func (h *Host) Keep(nodes []base.NodeID) error {
	wanted := make(map[base.NodeID]bool, len(nodes))
	for _, n := range nodes {
		wanted[n] = n != h.o.Node
	}
	delete(wanted, h.o.Node)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return shuttingDown("keep peers")
	}
	for _, p := range h.peers {
		if p.kept && !wanted[p.node] {
			p.kept = false
			mark(p.lanes[mainLane].changed)
			mark(p.lanes[dataLane].changed)
			h.dropIfIdleLocked(p)
		}
	}
	var failed error
	for n := range wanted {
		p, err := h.peerLocked(n)
		if err != nil {
			failed = err
			continue
		}
		p.kept = true
		h.keepLocked(p.lanes[mainLane])
		if h.o.ResolveData != nil {
			h.keepLocked(p.lanes[dataLane])
		}
	}
	return failed
}

// Retry ends the pause before the next attempt to reach a node: somebody has heard of it.
func (h *Host) Retry(node base.NodeID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.peers[node]; p != nil {
		mark(p.lanes[mainLane].changed)
		mark(p.lanes[dataLane].changed)
	}
}

// Stats returns the counters.
func (h *Host) Stats() Stats {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := Stats{
		Peers: len(h.peers), FramesIn: h.stats.framesIn.Load(), FramesOut: h.stats.framesOut.Load(), Busy: h.stats.busy.Load(),
		BytesIn: h.stats.bytesIn.Load(), BytesOut: h.stats.bytesOut.Load(),
		Dials: h.stats.dials.Load(), DialFailures: h.stats.dialFailures.Load(), Silences: h.stats.silences.Load(),
	}
	for range h.connsLocked() {
		s.Connections++
	}
	for _, room := range h.rooms {
		s.ShownOut += room.ShownOut()
	}
	return s
}

// Close ends every connection, fails what waits and returns when all goroutines have ended. It may be called twice,
// but not from a handler.
func (h *Host) Close() error {
	h.mu.Lock()
	h.closed = true
	var conns []*conn
	for c := range h.connsLocked() {
		conns = append(conns, c)
	}
	for c := range h.loose {
		conns = append(conns, c)
	}
	h.mu.Unlock()
	for _, c := range conns {
		c.fail(base.Errorf(base.CodeShuttingDown, "", "this node is stopping"))
	}
	return h.tasks.Close()
}
