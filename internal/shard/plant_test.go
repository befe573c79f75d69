package shard

import (
	"context"
	"fmt"
	"maps"
	"math/rand"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/vfs"
)

// plant is a cluster of hosts on a network in memory, in virtual time.
type plant struct {
	t       testing.TB
	network *peer.Network
	shards  int
	names   []base.NodeID
	nodes   map[base.NodeID]*plantNode
	change  func(*Options)
}

// plantNode is one node. Its disk outlives its processes.
type plantNode struct {
	name  base.NodeID
	disk  *vfs.Mem
	meta  base.UUID
	boot  uint64
	host  *Host // nil: it does not run
	peers *peer.Host
	demux *peer.Demux
}

// inPlant runs a test with n nodes that run; n1 has founded the cluster and leads every shard alone.
func inPlant(t *testing.T, n, shards int, test func(t *testing.T, p *plant)) {
	synctestPlant(t, n, shards, nil, test)
}

// synctestPlant is inPlant with options other than usual.
func synctestPlant(t *testing.T, n, shards int, change func(*Options), test func(t *testing.T, p *plant)) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlant(t, n, shards)
		p.change = change
		t.Cleanup(p.stopAll)
		p.startAll()
		p.found()
		test(t, p)
	})
}

func newPlant(t testing.TB, n, shards int) *plant {
	p := &plant{t: t, network: peer.NewNetwork(), shards: shards, nodes: make(map[base.NodeID]*plantNode)}
	for i := range n {
		name := base.NodeID(fmt.Sprintf("n%d", i+1))
		p.names = append(p.names, name)
		p.nodes[name] = &plantNode{name: name, disk: vfs.NewMem(), meta: base.UUID{byte(i + 1), 0, 0, 0, 0, 0, 0x40, 0, 0x80}}
	}
	return p
}

func (p *plant) startAll() {
	for _, name := range p.names {
		p.start(name)
	}
}

func (p *plant) found() {
	n1 := p.nodes[p.names[0]]
	_, err := n1.host.Bootstrap(p.within(20*time.Second), cluster)
	require.NoError(p.t, err)
	for _, name := range p.names[1:] {
		require.NoError(p.t, p.nodes[name].host.Adopt(cluster, p.shards))
	}
	p.eventually(10*time.Second, "the nodes are connected", func() bool {
		for _, n := range p.nodes {
			for _, s := range n.peers.Liveness() {
				if s.Status != peer.Reachable {
					return false
				}
			}
		}
		return true
	})
}

func (p *plant) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	p.t.Cleanup(cancel)
	return ctx
}

func plantAddress(n base.NodeID) string { return string(n) + ":2922" }

// start runs a node, from whatever its disk holds.
func (p *plant) start(name base.NodeID) *Host {
	p.t.Helper()
	h := p.open(name)
	require.NoError(p.t, h.Start(p.within(20*time.Second)))
	return h
}

// open is a start that has not come to the replicas yet: others can ask the node already.
func (p *plant) open(name base.NodeID) *Host {
	p.t.Helper()
	n := p.nodes[name]
	require.Nil(p.t, n.host)
	n.boot++
	l, err := p.network.Listen(plantAddress(name))
	require.NoError(p.t, err)
	n.demux = peer.NewDemux(l, nil)
	n.peers = peer.New(peer.Options{
		Node: name, Boot: n.boot, Instance: base.UUID{byte(n.boot), n.meta[0]}, Cluster: cluster,
		Listen: n.demux.Listener, Dial: p.network.Dialer(string(name)),
		Resolve: func(n base.NodeID) (string, bool) { return plantAddress(n), true },
	})
	o := options(n.disk)
	o.Meta, o.Node, o.Shards, o.Peers = n.meta, name, p.shards, n.peers
	if p.change != nil {
		p.change(&o)
	}
	require.NoError(p.t, o.FS.MkdirAll(o.Dir, 0o700))
	n.host, err = Open(o)
	require.NoError(p.t, err)
	n.host.Register(n.peers)
	n.peers.Start()
	n.demux.Start()
	require.NoError(p.t, n.peers.Keep(p.names))
	return n.host
}

// stop ends a node in order.
func (p *plant) stop(name base.NodeID) {
	n := p.nodes[name]
	if n.host == nil {
		return
	}
	require.NoError(p.t, n.host.Close())
	require.NoError(p.t, n.peers.Close())
	_ = n.demux.Close()
	n.host = nil
}

func (p *plant) stopAll() {
	for _, name := range p.names {
		p.stop(name)
	}
}

// kill ends a node's process: what it had not synced is gone in part.
func (p *plant) kill(name base.NodeID, rng *rand.Rand) {
	n := p.nodes[name]
	p.network.Kill(string(name))
	if rng != nil {
		n.disk = n.disk.CrashClone(rng, rng.Float64())
	}
	p.stop(name)
}

// isolate cuts a node from all others.
func (p *plant) isolate(name base.NodeID) {
	for _, other := range p.names {
		if other != name {
			p.network.Split(string(name), string(other))
		}
	}
}

func (p *plant) eventually(d time.Duration, what string, cond func() bool) time.Duration {
	p.t.Helper()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		if cond() {
			return time.Since(began)
		}
		if time.Since(began) > d {
			p.t.Fatalf("not within %s: %s\n%s", d, what, p)
		}
	}
}

func (p *plant) String() string {
	text := ""
	for _, name := range p.names {
		if h := p.nodes[name].host; h != nil {
			for _, s := range h.Status() {
				text += fmt.Sprintf("%s: shard %s %s of %s term %d commit %d voters %v\n", name, s.ID, s.State, s.Leader, s.Term, s.Commit, s.Voters)
			}
		}
	}
	return text
}

// leader is the host that serves a shard, nil if none does. Of two, while the older has not heard, the newer.
func (p *plant) leader(shard base.ShardID, among ...base.NodeID) *Host {
	var best *Host
	term := uint64(0)
	for _, name := range p.names {
		h := p.nodes[name].host
		if h == nil || len(among) > 0 && !slices.Contains(among, name) {
			continue
		}
		if g, err := h.group(shard); err == nil && g.readyTerm.Load() > term {
			best, term = h, g.readyTerm.Load()
		}
	}
	return best
}

// awaitLeaders waits until each shard is led by one of the nodes.
func (p *plant) awaitLeaders(d time.Duration, among ...base.NodeID) time.Duration {
	p.t.Helper()
	return p.eventually(d, "every shard has a leader", func() bool {
		for i := range p.shards {
			if p.leader(base.ShardID{Root: uint16(i)}, among...) == nil {
				return false
			}
		}
		return true
	})
}

// seat gives a node a voter's seat in a shard: non-voter, order, caught up, voter.
func (p *plant) seat(shard base.ShardID, name base.NodeID) {
	p.t.Helper()
	p.learner(shard, name)
	p.promote(shard, name)
}

// promote makes a non-voter a voter.
func (p *plant) promote(shard base.ShardID, name base.NodeID) {
	p.t.Helper()
	g, err := p.leader(shard).group(shard)
	require.NoError(p.t, err)
	require.NoError(p.t, g.raft.AddVoter(raft.ServerID(p.nodes[name].meta.String()), raft.ServerAddress(name), 0, 0).Error())
}

// learner makes a node a non-voter that has caught up.
func (p *plant) learner(shard base.ShardID, name base.NodeID) {
	p.t.Helper()
	h := p.leader(shard)
	require.NotNil(p.t, h)
	g, err := h.group(shard)
	require.NoError(p.t, err)
	n := p.nodes[name]
	id, addr := raft.ServerID(n.meta.String()), raft.ServerAddress(name)
	f := g.raft.AddNonvoter(id, addr, 0, 0)
	require.NoError(p.t, f.Error())
	require.NoError(p.t, h.order(p.within(10*time.Second), kindHost, g, name, n.meta, f.Index()))
	p.eventually(20*time.Second, "the new replica has caught up", func() bool {
		theirs, err := n.host.group(shard)
		return err == nil && theirs.raft.AppliedIndex() >= f.Index()
	})
}

// seatAll makes every node a voter of every shard.
func (p *plant) seatAll() {
	p.t.Helper()
	for i := range p.shards {
		for _, name := range p.names[1:] {
			p.seat(base.ShardID{Root: uint16(i)}, name)
		}
	}
}

// create has a topic created by whoever leads, for as long as it takes.
func (p *plant) create(i int, among ...base.NodeID) {
	p.t.Helper()
	name, _ := createTopic(i)
	shard := meta.ShardOf(name, p.shards)
	p.eventually(30*time.Second, "topic "+name+" is created", func() bool {
		h := p.leader(shard, among...)
		if h == nil {
			return false
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		err := create(ctx, h, i)
		return err == nil
	})
}

// converge waits until all replicas have applied the same, and proves that they are the same.
func (p *plant) converge() {
	p.t.Helper()
	for i := range p.shards {
		shard := base.ShardID{Root: uint16(i)}
		p.eventually(60*time.Second, "the replicas are level", func() bool {
			h := p.leader(shard)
			if h == nil {
				return false
			}
			g, _ := h.group(shard)
			for _, name := range p.names {
				n := p.nodes[name]
				if n.host == nil {
					continue
				}
				o, err := n.host.group(shard)
				if err == nil && (o.raft.AppliedIndex() != g.raft.LastIndex() || o.raft.CommitIndex() != g.raft.LastIndex()) {
					return false
				}
			}
			return true
		})
		var first []byte
		for _, name := range p.names {
			n := p.nodes[name]
			if n.host == nil || !n.host.Hosts(shard) {
				continue
			}
			state := p.encoded(n.host, shard)
			if first == nil {
				first = state
			}
			require.Equal(p.t, first, state, "shard %s on %s", shard, name)
		}
		p.checkLogs(shard)
	}
}

// checkLogs proves that entries of one index and term are the same everywhere.
func (p *plant) checkLogs(shard base.ShardID) {
	p.t.Helper()
	seen := make(map[uint64]raft.Log)
	for _, name := range p.names {
		n := p.nodes[name]
		if n.host == nil || !n.host.Hosts(shard) {
			continue
		}
		g, _ := n.host.group(shard)
		first, _ := g.log.FirstIndex()
		last, _ := g.log.LastIndex()
		for i := max(first, 1); i <= last; i++ {
			var l raft.Log
			require.NoError(p.t, g.log.GetLog(i, &l))
			if o, ok := seen[i]; ok && o.Term == l.Term {
				require.Equal(p.t, o.Type, l.Type, "shard %s, entry %d of term %d on %s", shard, i, l.Term, name)
				require.Equal(p.t, o.Data, l.Data, "shard %s, entry %d of term %d on %s", shard, i, l.Term, name)
			}
			seen[i] = l
		}
	}
}

func (p *plant) encoded(h *Host, shard base.ShardID) []byte {
	var state writer
	require.NoError(p.t, h.ViewStale(shard, func(s *meta.State) error {
		if err := s.Check(); err != nil {
			return err
		}
		return s.Encode(&state)
	}))
	return state
}

type writer []byte

func (w *writer) Write(b []byte) (int, error) {
	*w = append(*w, b...)
	return len(b), nil
}

// has reports whether the leader of its shard has a topic, by a fresh read.
func (p *plant) has(i int) bool {
	name, _ := createTopic(i)
	shard := meta.ShardOf(name, p.shards)
	found := false
	p.eventually(30*time.Second, "topic "+name+" is read", func() bool {
		h := p.leader(shard)
		if h == nil {
			return false
		}
		return h.View(p.within(5*time.Second), shard, func(s *meta.State) error {
			found = s.TopicByName(name) != nil
			return nil
		}) == nil
	})
	return found
}

// runs is how many runs a random test makes: more when there is time, and half under the race detector, where each
// costs many times as much.
func runs(usual int) int {
	switch {
	case os.Getenv("EASTGUARD_SOAK") != "":
		return 20 * usual
	case underRace:
		return usual / 2
	}
	return usual
}

func serverID(meta base.UUID) raft.ServerID { return raft.ServerID(meta.String()) }

func nothing(*meta.State) error { return nil }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
