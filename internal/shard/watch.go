package shard

import (
	"context"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/peer"
)

const (
	watchEvery   = 50 * time.Millisecond  // while something is being decided, and to notice stalls of the process
	watchIdle    = 500 * time.Millisecond // between looks when nothing is
	stallOf      = 250 * time.Millisecond // a step that comes so late says that the process stood still
	askPatience  = 250 * time.Millisecond
	standTimeout = 2 * time.Second
)

// watch drives failover: one goroutine that wakes when the connections change or a voter has answered.
type watch struct {
	host    *Host
	marks   chan struct{} // capacity 1: something has been heard
	running sync.WaitGroup

	mu      sync.Mutex
	core    *failover
	resumed time.Time // silence before does not count
	asking  map[base.NodeID]time.Time
	still   map[base.NodeID]time.Time // nodes whose logs stand still, and when they said so last
}

func newWatch(h *Host) *watch {
	return &watch{host: h, marks: make(chan struct{}, 1), core: newFailover(), asking: make(map[base.NodeID]time.Time), still: make(map[base.NodeID]time.Time)}
}

func (w *watch) start(ctx context.Context) {
	w.mu.Lock() // other nodes may ask already
	w.resumed = time.Now()
	w.mu.Unlock()
	if w.host.o.Peers == nil {
		return
	}
	changed, unsubscribe := w.host.o.Peers.Subscribe()
	w.running.Go(func() {
		defer unsubscribe()
		w.run(ctx, changed)
	})
}

func (w *watch) wait() { w.running.Wait() }

func (w *watch) run(ctx context.Context, changed <-chan struct{}) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	ticked, looked := time.Now(), time.Time{}
	for {
		idle := false
		select {
		case <-changed:
			w.host.pulse.beat()
		case <-w.marks:
		case <-ticker.C:
			now := time.Now()
			if now.Sub(ticked) > stallOf {
				w.mu.Lock()
				w.resumed = now
				w.mu.Unlock()
			}
			ticked = now
			w.mu.Lock()
			idle = w.core.idle()
			w.mu.Unlock()
		case <-ctx.Done():
			return
		}
		if now := time.Now(); !idle || now.Sub(looked) >= watchIdle {
			looked = now
			w.look(ctx, now)
		}
	}
}

func (w *watch) mark() {
	select {
	case w.marks <- struct{}{}:
	default:
	}
}

// look takes one step.
func (w *watch) look(ctx context.Context, now time.Time) {
	var views []replicaView
	byShard := make(map[base.ShardID]*group)
	for _, g := range w.host.all() {
		if g.up.Load() {
			views = append(views, g.look())
			byShard[g.id] = g
		}
	}
	world := w.world(now)
	w.mu.Lock()
	d := w.core.step(now, world, views)
	w.mu.Unlock()
	for node, questions := range d.Ask {
		w.ask(now, node, questions)
	}
	for _, shard := range d.Stand {
		g := byShard[shard]
		w.running.Go(func() { g.stand(ctx) })
	}
}

// look is the replica as it is now.
func (g *group) look() replicaView {
	leader, term := g.leader()
	index, logTerm := g.lastEntry()
	return replicaView{
		Shard: g.id, Generation: g.hosted.Generation, Voters: g.voters(), State: stateName(g.raft.State()),
		Leader: leader, Term: term, LastTerm: logTerm, LastIndex: index, Voting: g.transport.inbox.voting.Load(),
	}
}

// lastEntry is the end of the log, or of the snapshot where the log holds nothing behind it.
func (g *group) lastEntry() (index, term uint64) {
	index, term = g.log.last()
	if i, t := g.snapshots.newest(); i > index {
		return i, t
	}
	return index, term
}

// isBehind reports whether a log that ends so is longer than ours, in the order of votes.
func (g *group) isBehind(term, index uint64) bool {
	i, t := g.lastEntry()
	return t < term || t == term && i < index
}

// hear notes what a node says of its log.
func (w *watch) hear(node base.NodeID, still bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !still {
		delete(w.still, node)
		return
	}
	w.still[node] = time.Now()
	w.mark()
}

// standsStill reports whether this node's own log does.
func (w *watch) standsStill(now time.Time) bool {
	w.mu.Lock()
	resumed := w.resumed
	w.mu.Unlock()
	return w.host.log.still.lasts(now, resumed)
}

// stuck is the nodes that are stuck though they can be reached. One that is stuck itself can do nothing about others.
func (w *watch) stuck(now time.Time) map[base.NodeID]bool {
	if w.standsStill(now) {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	nodes := make(map[base.NodeID]bool, len(w.still))
	for node, said := range w.still {
		nodes[node] = now.Sub(said) < stillKept
	}
	return nodes
}

// world is what the connections say at a moment.
func (w *watch) world(now time.Time) world {
	live, stuck := w.host.o.Peers.Liveness(), w.stuck(now)
	w.mu.Lock()
	resumed := w.resumed
	w.mu.Unlock()
	return world{
		Self: w.host.o.Node,
		Lost: func(n base.NodeID) bool {
			s := live[n]
			heard := s.Heard
			if heard.Before(resumed) {
				heard = resumed
			}
			return stuck[n] || s.Status == peer.Refused || now.Sub(heard) >= silentFor
		},
		Down: func(n base.NodeID) bool { return stuck[n] || live[n].Status != peer.Reachable },
	}
}

// watchMessage asks one node about the groups whose leader has been lost; watchAnswer is in the same order.
type watchMessage struct {
	Questions []question `cbor:"1,keyasint"`
}

type watchAnswer struct {
	Opinions []opinion `cbor:"1,keyasint"`
}

// ask asks a node, unless it has still to answer.
func (w *watch) ask(now time.Time, node base.NodeID, questions []question) {
	w.mu.Lock()
	busy := now.Sub(w.asking[node]) < askPatience
	if !busy {
		w.asking[node] = now
	}
	w.mu.Unlock()
	if busy {
		return
	}
	done := func(b []byte, err error) {
		var m watchAnswer
		if err == nil {
			err = decode(b, &m)
		}
		w.mu.Lock()
		if w.asking[node].Equal(now) {
			delete(w.asking, node)
		}
		if err == nil && len(m.Opinions) == len(questions) {
			for i, q := range questions {
				w.core.heard(time.Now(), node, q.Shard, q.Leader, m.Opinions[i])
			}
		}
		w.mu.Unlock()
		w.mark()
	}
	if _, err := w.host.o.Peers.Go(node, kindWatch, 0, encode(&watchMessage{Questions: questions}), done); err != nil {
		w.mu.Lock()
		delete(w.asking, node)
		w.mu.Unlock()
	}
}

// onWatch answers for every group that is asked about. A question says of its asker what an answer would.
func (h *Host) onWatch(_ context.Context, r *peer.Request) {
	var m watchMessage
	if err := decode(r.Body, &m); err != nil {
		r.Fail(err)
		return
	}
	if len(m.Questions) > MaxShards {
		r.Fail(base.Errorf(base.CodeCorruptFrame, "answer about leaders", "%d questions", len(m.Questions)))
		return
	}
	now := time.Now()
	world := h.watch.world(now)
	answer := watchAnswer{Opinions: make([]opinion, len(m.Questions))}
	for i, q := range m.Questions {
		g, err := h.group(q.Shard)
		if err != nil || !g.up.Load() || g.hosted.Generation != q.Generation {
			continue
		}
		answer.Opinions[i] = world.answerTo(q, r.From.Node, g.look())
		h.watch.mu.Lock()
		h.watch.core.heard(now, r.From.Node, q.Shard, q.Leader, opinion{Hosted: true, Lost: true, LastTerm: q.LastTerm, LastIndex: q.LastIndex})
		h.watch.mu.Unlock()
	}
	r.Reply(encode(&answer))
	h.watch.mark()
}
