package shard

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/planner"
	"github.com/eastguard/eastguard/internal/ring"
	"github.com/eastguard/eastguard/internal/topology"
)

// registry is what the root's node table and the gossip would say: every host of a plant sees it at once.
type registry struct {
	p *plant

	mu    sync.Mutex
	known map[base.NodeID]registered
}

type registered struct {
	meta base.UUID
	out  bool
	dead bool // by gossip
}

// inTown runs a test in a plant whose hosts keep their seats and leaders by themselves. The first of n nodes has
// founded the cluster and is alone in it.
func inTown(t *testing.T, n, shards int, test func(t *testing.T, p *plant, r *registry)) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlant(t, n, shards)
		r := &registry{p: p, known: make(map[base.NodeID]registered)}
		p.change = r.inform
		first := p.names[0]
		p.names = nil
		r.join(first)
		_, err := p.nodes[first].host.Bootstrap(p.within(20*time.Second), cluster)
		require.NoError(t, err)
		defer p.stopAll()
		test(t, p, r)
	})
}

// join starts a node that the cluster does not know yet.
func (r *registry) join(name base.NodeID) {
	first := len(r.p.names) == 0
	r.p.names = append(slices.Clone(r.p.names), name)
	h := r.p.start(name)
	if !first {
		require.NoError(r.p.t, h.Adopt(cluster, r.p.shards))
	}
	for _, other := range r.p.names {
		if o := r.p.nodes[other]; o.host != nil {
			require.NoError(r.p.t, o.peers.Keep(r.p.names))
		}
	}
	r.set(name, func(n *registered) { *n = registered{meta: r.p.nodes[name].meta} })
}

func (r *registry) set(name base.NodeID, change func(*registered)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.known[name]
	change(&n)
	r.known[name] = n
}

func (r *registry) get(name base.NodeID) (registered, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, ok := r.known[name]
	return n, ok
}

// kill ends a node's process for good, or until it is started again, and has the gossip say so.
func (r *registry) kill(name base.NodeID) {
	r.p.kill(name, nil)
	r.set(name, func(n *registered) { n.dead = true })
}

// start runs a node that is known; its registration makes it normal.
func (r *registry) start(name base.NodeID) *Host {
	r.set(name, func(n *registered) { n.dead, n.out = false, false })
	return r.p.start(name)
}

// inform gives a host its view.
func (r *registry) inform(o *Options) {
	o.Voters = 3
	o.ServerOf = func(name base.NodeID) (base.UUID, bool) {
		n, ok := r.get(name)
		return n.meta, ok
	}
	o.Ring = func() *ring.Ring {
		r.mu.Lock()
		defer r.mu.Unlock()
		var members []ring.Member
		for name, n := range r.known {
			if !n.out {
				members = append(members, ring.Member{Node: name})
			}
		}
		return ring.New(members, 64)
	}
	o.View = func() topology.View {
		r.mu.Lock()
		defer r.mu.Unlock()
		var v topology.View
		for name, n := range r.known {
			v = topology.Reduce(v, topology.Event{Seen: &topology.Seen{ID: name, Boot: 1, Admitted: true}})
			if n.dead {
				v = topology.Reduce(v, topology.Event{Moved: &topology.Moved{ID: name, Boot: 1, Liveness: topology.Dead}})
			}
			if n.out {
				v = topology.Reduce(v, topology.Event{Standing: &topology.StandingChange{ID: name, Standing: topology.Out}})
			}
		}
		return v
	}
}

// await is eventually for what takes seconds.
func (r *registry) await(d time.Duration, what string, cond func() bool) time.Duration {
	r.p.t.Helper()
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		if cond() {
			return time.Since(began)
		}
		if time.Since(began) > d {
			r.p.t.Fatalf("not within %s: %s\n%s%s", d, what, r.p, r)
		}
	}
}

// String is what the leaders think of their members, and what the manifests hold.
func (r *registry) String() string {
	text := ""
	for i := range r.p.shards {
		shard := base.ShardID{Root: uint16(i)}
		if h := r.p.leader(shard); h != nil {
			d, _ := h.Detail(shard)
			text += fmt.Sprintf("shard %s, last %d: %s\n", shard, d.LastIndex, d.Seats)
			for _, m := range d.Members {
				known, _ := r.get(m.Node)
				text += fmt.Sprintf("  %+v known %+v\n", m, known)
			}
		}
	}
	for _, name := range r.p.names {
		if h := r.p.nodes[name].host; h != nil {
			text += fmt.Sprintf("%s: %+v\n", name, h.current())
		}
	}
	return text
}

// right reports whether every shard has the voters that the ring names, all level with the leader, and nobody else.
func (r *registry) right() bool {
	for i := range r.p.shards {
		shard := base.ShardID{Root: uint16(i)}
		h := r.p.leader(shard)
		if h == nil {
			return false
		}
		d, err := h.Detail(shard)
		if err != nil || len(d.Members) != len(d.Intended) {
			return false
		}
		for _, m := range d.Members {
			if !m.Voter || !m.Intended || m.Server != r.server(m.Node) || m.Match < d.LastIndex {
				return false
			}
		}
		for _, name := range r.p.names { // and replicas are where there are seats
			n := r.p.nodes[name]
			if n.host != nil && n.host.Hosts(shard) != slices.Contains(d.Intended, name) {
				return false
			}
		}
	}
	return true
}

func (r *registry) server(name base.NodeID) base.UUID {
	n, _ := r.get(name)
	return n.meta
}

// led counts the shards that each node leads.
func (r *registry) led() map[base.NodeID]int {
	count := map[base.NodeID]int{}
	for i := range r.p.shards {
		if h := r.p.leader(base.ShardID{Root: uint16(i)}); h != nil {
			count[h.o.Node]++
		}
	}
	return count
}

// even reports whether no node leads more than it must, with the voters that there are.
func (r *registry) even() bool {
	var shards []planner.ShardVoters
	for i := range r.p.shards {
		id := base.ShardID{Root: uint16(i)}
		h := r.p.leader(id)
		if h == nil {
			return false
		}
		shards = append(shards, planner.ShardVoters{Shard: id, Voters: h.Voters(id)})
	}
	best, most := map[base.NodeID]int{}, func(m map[base.NodeID]int) (n int) {
		for _, c := range m {
			n = max(n, c)
		}
		return n
	}
	for _, n := range planner.Leaders(shards, func(name base.NodeID) bool {
		n, _ := r.get(name)
		return !n.dead && !n.out
	}) {
		best[n]++
	}
	return most(r.led()) == most(best) && len(r.led()) == len(best)
}

// settled grows a town of n nodes and lets it come to rest.
func (r *registry) settled(n int) {
	r.p.t.Helper()
	for _, name := range []base.NodeID{"n2", "n3", "n4", "n5"}[:n-1] {
		r.join(name)
	}
	r.await(3*time.Minute, "every seat is where it should be", r.right)
	r.await(3*time.Minute, "leaders are even", r.even)
}
