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
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/planner"
	"github.com/eastguard/eastguard/internal/ring"
	"github.com/eastguard/eastguard/internal/topology"
	"github.com/eastguard/eastguard/internal/vfs"
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
			d, _ := h.Detail(r.p.t.Context(), shard)
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
		d, err := h.Detail(r.p.t.Context(), shard)
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

func TestAClusterGrowsInPlace(t *testing.T) {
	inTown(t, 5, 8, func(t *testing.T, p *plant, r *registry) {
		for i := range 20 {
			p.create(i)
		}
		r.join("n2")
		r.join("n3")
		took := r.await(20*time.Second, "three voters for every shard", r.right)
		t.Logf("one to three nodes: seats after %s", took)
		require.LessOrEqual(t, took, 2*time.Second)
		took = r.await(time.Minute, "leaders are even", r.even)
		t.Logf("leaders even after %s: %v", took, r.led())
		for i := 20; i < 30; i++ {
			p.create(i)
		}
		r.join("n4")
		r.join("n5")
		took = r.await(2*time.Minute, "seats have moved to five nodes", r.right)
		t.Logf("three to five nodes: seats after %s", took)
		require.GreaterOrEqual(t, took, planner.RingStable)
		r.await(2*time.Minute, "leaders are even", r.even)
		p.converge()
		for i := range 30 {
			require.True(t, p.has(i))
		}
	})
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

// A dead node keeps its seats until the root puts it out; then they move, and it gets others when it is back.
func TestSeatsOfANodeThatIsOutMove(t *testing.T) {
	inTown(t, 4, 8, func(t *testing.T, p *plant, r *registry) {
		r.settled(4)
		r.kill("n4")
		p.awaitLeaders(5 * time.Second)
		before := p.String()
		time.Sleep(30 * time.Second)
		for i := range p.shards {
			h := p.leader(base.ShardID{Root: uint16(i)})
			require.Len(t, h.Voters(base.ShardID{Root: uint16(i)}), 3, "the dead keep their seats: %s", before)
		}
		r.set("n4", func(n *registered) { n.out = true })
		took := r.await(time.Minute, "the seats have moved", r.right)
		t.Logf("seats moved %s after the node went out", took)
		require.LessOrEqual(t, took, 5*time.Second, "who is silent is not waited for")
		for i := range 20 {
			p.create(i)
		}
		// It comes back with what it knew, and is normal again.
		r.start("n4")
		r.await(2*time.Minute, "it has seats again", r.right)
		r.await(2*time.Minute, "leaders are even", r.even)
		p.converge()
		for i := range 20 {
			require.True(t, p.has(i))
		}
	})
}

// A node that was down when its seats moved, and whose leaders of then are gone too, finds out that it has none.
func TestAReplicaThatWasGivenUpFindsOut(t *testing.T) {
	inTown(t, 5, 8, func(t *testing.T, p *plant, r *registry) {
		r.settled(4)
		r.kill("n4")
		r.set("n4", func(n *registered) { n.out = true })
		r.await(time.Minute, "the seats have moved", r.right)
		for _, name := range p.names[:3] { // who had to tell it forgets
			p.stop(name)
			p.start(name)
			p.awaitLeaders(10 * time.Second)
		}
		p.start("n4") // alive, and still out
		require.NotEmpty(t, p.nodes["n4"].host.Status())
		took := r.await(2*time.Minute, "it has given its replicas up", func() bool {
			return len(p.nodes["n4"].host.Status()) == 0
		})
		t.Logf("found out after %s", took)
	})
}

// A meta directory that was lost is another server: it gets the seats of its node once it has caught up, and never
// votes as the one that is gone.
func TestALostMetaDirectoryIsReplaced(t *testing.T) {
	inTown(t, 3, 8, func(t *testing.T, p *plant, r *registry) {
		r.settled(3)
		for i := range 20 {
			p.create(i)
		}
		r.kill("n2")
		p.awaitLeaders(5 * time.Second)
		n := p.nodes["n2"]
		n.disk, n.meta = vfs.NewMem(), base.UUID{99, 0, 0, 0, 0, 0, 0x40, 0, 0x80}
		for i := 20; i < 30; i++ {
			p.create(i)
		}
		r.start("n2")
		require.NoError(t, n.host.Adopt(cluster, p.shards))
		time.Sleep(20 * time.Second)
		require.Empty(t, n.host.Status(), "before the root has admitted it")
		r.set("n2", func(known *registered) { known.meta = n.meta })
		took := r.await(time.Minute, "it has its seats again", r.right)
		t.Logf("replaced after %s", took)
		p.converge()
		for i := range 30 {
			require.True(t, p.has(i))
		}
	})
}

func TestTransfer(t *testing.T) {
	inTown(t, 4, 4, func(t *testing.T, p *plant, r *registry) {
		r.settled(3)
		shard := base.ShardID{Root: 1}
		ctx := p.within(time.Hour)
		for range 6 {
			h := p.leader(shard)
			to := p.names[(slices.Index(p.names, h.o.Node)+1)%3]
			move, err := h.Transfer(ctx, shard, to)
			require.NoError(t, err)
			require.Equal(t, h.o.Node, move.From)
			require.Equal(t, to, move.To)
			require.LessOrEqual(t, move.Leaderless, 50*time.Millisecond)
			p.eventually(time.Second, "it serves", func() bool { return p.leader(shard) == p.nodes[to].host })
		}
		h := p.leader(shard)
		move, err := h.Transfer(ctx, shard, h.o.Node)
		require.NoError(t, err)
		require.Equal(t, h.o.Node, move.To)
		_, err = h.Transfer(ctx, shard, "n4")
		require.ErrorIs(t, err, base.CodePreconditionFailed)
		other := p.nodes[p.names[(slices.Index(p.names, h.o.Node)+1)%3]].host
		_, err = other.Transfer(ctx, shard, "n1")
		require.ErrorIs(t, err, base.CodeNotLeader)
		_, err = h.Transfer(ctx, base.ShardID{Root: 77}, "n1")
		require.ErrorIs(t, err, base.CodeShardNotFound)

		// To one that is away it fails, and the leader goes on, with all that had to wait.
		p.isolate(other.o.Node)
		done := make(chan error, 1)
		go func() {
			_, err := h.Transfer(ctx, shard, other.o.Node)
			done <- err
		}()
		time.Sleep(10 * time.Millisecond)
		began := time.Now()
		i := 0
		for ; meta.ShardOf(topicName(i), p.shards) != shard; i++ {
		}
		require.NoError(t, create(ctx, h, i))
		require.GreaterOrEqual(t, time.Since(began), 500*time.Millisecond, "it waited for the transfer")
		require.Error(t, <-done)
		require.LessOrEqual(t, time.Since(began), 3*time.Second)
		require.Equal(t, h, p.leader(shard, p.names[0], h.o.Node))
		p.network.Heal()
	})
}

func topicName(i int) string {
	name, _ := createTopic(i)
	return name
}

// A node that is stopped gives everything away first: nobody waits for an election.
func TestHandOver(t *testing.T) {
	inTown(t, 3, 16, func(t *testing.T, p *plant, r *registry) {
		r.settled(3)
		for i := range 10 {
			p.create(i)
		}
		h := p.nodes["n1"].host
		led := r.led()["n1"]
		require.Greater(t, led, 3)
		began := time.Now()
		require.NoError(t, h.HandOver(p.within(time.Minute)))
		t.Logf("%d leaderships handed over in %s", led, time.Since(began))
		require.LessOrEqual(t, time.Since(began), time.Second)
		p.awaitLeaders(time.Second, "n2", "n3")
		require.Zero(t, r.led()["n1"])
		time.Sleep(20 * time.Second)
		require.Zero(t, r.led()["n1"], "it takes nothing back")
		p.stop("n1")
		r.set("n1", func(n *registered) { n.dead = true })
		r.await(time.Minute, "leaders are even", r.even)
		for i := 10; i < 20; i++ {
			p.create(i)
		}
	})
}

// When all are stopped at once nobody waits for the others to take over.
func TestHandOverOfAll(t *testing.T) {
	inTown(t, 3, 8, func(t *testing.T, p *plant, r *registry) {
		r.settled(3)
		began := time.Now()
		var leaving sync.WaitGroup
		for _, name := range p.names {
			h := p.nodes[name].host
			leaving.Go(func() { _ = h.HandOver(p.within(time.Minute)) })
		}
		leaving.Wait()
		require.LessOrEqual(t, time.Since(began), time.Second)
	})
}

// Nor does who is left alone.
func TestHandOverToTheDead(t *testing.T) {
	inTown(t, 2, 4, func(t *testing.T, p *plant, r *registry) {
		r.settled(2)
		r.kill("n2")
		began := time.Now()
		err := p.nodes["n1"].host.HandOver(t.Context())
		if len(r.led()) > 0 { // it has not noticed yet that it cannot lead
			require.ErrorIs(t, err, base.CodeUnreachable)
		}
		require.LessOrEqual(t, time.Since(began), 4*time.Second)
	})
}

// A node alone has nobody to hand over to, and does not wait.
func TestHandOverAlone(t *testing.T) {
	inTown(t, 1, 4, func(t *testing.T, p *plant, _ *registry) {
		began := time.Now()
		require.NoError(t, p.nodes["n1"].host.HandOver(t.Context()))
		require.Zero(t, time.Since(began))
	})
}

func TestBalanceOnDemand(t *testing.T) {
	inTown(t, 3, 16, func(t *testing.T, p *plant, r *registry) {
		r.settled(3)
		for i := range p.shards { // all to one
			shard := base.ShardID{Root: uint16(i)}
			if h := p.leader(shard); h.o.Node != "n1" {
				_, err := h.Transfer(p.within(time.Minute), shard, "n1")
				require.NoError(t, err)
			}
		}
		p.eventually(time.Second, "n1 leads all", func() bool { return r.led()["n1"] == p.shards })
		h := p.nodes["n1"].host
		moves, err := h.Balance(t.Context(), true)
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(moves), 10)
		require.Equal(t, p.shards, r.led()["n1"], "a dry run")
		moves, err = h.Balance(t.Context(), false)
		require.NoError(t, err)
		for _, m := range moves {
			require.NoError(t, m.Err)
			require.NotZero(t, m.Term)
		}
		p.eventually(time.Second, "leaders are even", r.even)
		moves, err = h.Balance(t.Context(), false)
		require.NoError(t, err)
		require.Empty(t, moves)
	})
}
