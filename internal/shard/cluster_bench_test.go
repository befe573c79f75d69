package shard

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/vfs"
)

// trio is three hosts on loopback TCP and real files, every one a voter of every shard. cut ends the connections and
// the port of one, as the end of its process would.
func trio(t testing.TB, shards int) (hosts map[base.NodeID]*Host, cut func(base.NodeID)) {
	names := []base.NodeID{"n1", "n2", "n3"}
	addresses := make(map[base.NodeID]string)
	listeners := make(map[base.NodeID]net.Listener)
	for _, name := range names {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		addresses[name], listeners[name] = l.Addr().String(), l
	}
	hosts = make(map[base.NodeID]*Host)
	peers := make(map[base.NodeID]*peer.Host)
	for i, name := range names {
		demux := peer.NewDemux(listeners[name], nil)
		p := peer.New(peer.Options{
			Node: name, Boot: 1, Instance: base.UUID{byte(i + 1)}, Cluster: cluster, Listen: demux.Listener,
			Resolve: func(n base.NodeID) (string, bool) { return addresses[n], true },
		})
		dir := filepath.Join(t.TempDir(), "meta")
		require.NoError(t, vfs.OS.MkdirAll(dir, 0o700))
		h, err := Open(Options{
			FS: vfs.OS, Dir: dir, Meta: base.UUID{byte(i + 1), 0, 0, 0, 0, 0, 0x40, 0, 0x80}, Node: name, Shards: shards, Peers: p,
		})
		require.NoError(t, err)
		h.Register(p)
		p.Start()
		demux.Start()
		peers[name] = p
		require.NoError(t, h.Start(t.Context()))
		hosts[name] = h
		t.Cleanup(func() {
			require.NoError(t, h.Close())
			require.NoError(t, p.Close())
			_ = demux.Close()
		})
	}
	for _, p := range peers {
		require.NoError(t, p.Keep(names))
	}
	_, err := hosts["n1"].Bootstrap(t.Context(), cluster)
	require.NoError(t, err)
	for _, name := range names[1:] {
		require.NoError(t, hosts[name].Adopt(cluster, shards))
	}
	require.NoError(t, each(hosts["n1"].all(), func(g *group) error {
		for _, name := range names[1:] {
			// A busy machine may cost n1 its leadership, and whoever leads then goes on.
			err := seat(t.Context(), leaderAmong(hosts, g.id), g.id, hosts[name])
			for deadline := time.Now().Add(20 * time.Second); err != nil && time.Now().Before(deadline); {
				time.Sleep(time.Millisecond)
				err = seat(t.Context(), leaderAmong(hosts, g.id), g.id, hosts[name])
			}
			if err != nil {
				return err
			}
		}
		return nil
	}))
	// Leaders even, as they are in a cluster that has run for a while.
	for i, g := range hosts["n1"].all() {
		if name := names[i%3]; name != "n1" {
			require.Eventually(t, func() bool { return g.raft.LastIndex() == other(hosts[name], g.id).raft.LastIndex() }, 20*time.Second, time.Millisecond)
			require.NoError(t, g.transport.TimeoutNow(serverID(hosts[name].o.Meta), raft.ServerAddress(name), nil, &raft.TimeoutNowResponse{}))
			require.Eventually(t, func() bool { return other(hosts[name], g.id).readyTerm.Load() != 0 }, 20*time.Second, time.Millisecond)
		}
	}
	return hosts, func(name base.NodeID) {
		_ = listeners[name].Close()
		require.NoError(t, peers[name].Close())
	}
}

// leaderAmong is the host that leads a shard, or n1 while none does.
func leaderAmong(hosts map[base.NodeID]*Host, shard base.ShardID) *Host {
	for _, h := range hosts {
		if g := other(h, shard); g != nil && g.raft.State() == raft.Leader {
			return h
		}
	}
	return hosts["n1"]
}

// seat makes a host a voter of a shard, by its leader's hand.
func seat(ctx context.Context, leader *Host, shard base.ShardID, h *Host) error {
	if leader == h {
		return nil
	}
	g, server, addr := other(leader, shard), serverID(h.o.Meta), raft.ServerAddress(h.o.Node)
	f := g.raft.AddNonvoter(server, addr, 0, 0)
	if err := f.Error(); err != nil {
		return err
	}
	if err := leader.order(ctx, kindHost, g, h.o.Node, h.o.Meta, f.Index()); err != nil {
		return err
	}
	return g.raft.AddVoter(server, addr, 0, 0).Error()
}

func other(h *Host, shard base.ShardID) *group {
	g, _ := h.group(shard)
	return g
}

// createAnywhere has a topic created by the leader of its shard.
func createAnywhere(ctx context.Context, hosts map[base.NodeID]*Host, i int) error {
	name, cmd := createTopic(i)
	shard := meta.ShardOf(name, hosts["n1"].Shards())
	for {
		node, _ := hosts["n1"].Leader(shard)
		if h := hosts[node]; h != nil {
			r, err := h.Propose(ctx, shard, cmd)
			if err == nil {
				return r.Err("create topic")
			}
			if !errors.Is(err, base.CodeNotLeader) && !errors.Is(err, base.CodeNoLeader) {
				return err
			}
		}
		runtime.Gosched()
	}
}

// BenchmarkThreeHosts is topic creations with 64 in flight over 32 shards of three voters, all on this machine.
func BenchmarkThreeHosts(b *testing.B) {
	hosts, _ := trio(b, 32)
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for range 64 {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= b.N {
					return
				}
				if err := createAnywhere(b.Context(), hosts, i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "topics/s")
}

// BenchmarkThreeHostsOneByOne is one command after the other: two fsyncs and a round trip.
func BenchmarkThreeHostsOneByOne(b *testing.B) {
	hosts, _ := trio(b, 4)
	b.ResetTimer()
	for i := range b.N {
		require.NoError(b, createAnywhere(b.Context(), hosts, i))
	}
}

// BenchmarkThreeHostsView is a fresh read: one round trip to a majority.
func BenchmarkThreeHostsView(b *testing.B) {
	hosts, _ := trio(b, 1)
	b.ResetTimer()
	for range b.N {
		require.NoError(b, hosts["n1"].View(b.Context(), base.RootShard, func(*meta.State) error { return nil }))
	}
}

// TestATrioLosesALeader is the kill of a node over real connections and files. How long it takes depends on the machine,
// so it is only told.
func TestATrioLosesALeader(t *testing.T) {
	hosts, cut := trio(t, 32)
	var led []base.ShardID
	for _, s := range hosts["n1"].Status() {
		if s.Ready {
			led = append(led, s.ID)
		}
	}
	began := time.Now()
	cut("n1")
	var last time.Duration
	for _, shard := range led {
		require.Eventually(t, func() bool {
			return other(hosts["n2"], shard).readyTerm.Load() != 0 || other(hosts["n3"], shard).readyTerm.Load() != 0
		}, 20*time.Second, time.Millisecond)
		last = time.Since(began)
	}
	t.Logf("%d groups led elsewhere %s after their node was gone", len(led), last)
}

// TestIdleCostOfThreeHosts measures what 96 idle replicas and their connections cost. Its figures depend on the machine,
// so it only prints them, and runs when asked to.
func TestIdleCostOfThreeHosts(t *testing.T) {
	if os.Getenv("EASTGUARD_SOAK") == "" {
		t.Skip("set EASTGUARD_SOAK=1 to measure for 20 seconds")
	}
	trio(t, 32)
	time.Sleep(2 * time.Second) // the end of the beginning
	began, used := time.Now(), cpuTime(t)
	time.Sleep(20 * time.Second) // what is measured is the passing of time
	t.Logf("3 hosts, 32 groups: %.2f %% of a core, %d goroutines",
		100*float64(cpuTime(t)-used)/float64(time.Since(began)), runtime.NumGoroutine())
}
