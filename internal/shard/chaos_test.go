package shard

import (
	"context"
	"fmt"
	"math/rand"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/vfs"
)

func TestAPartitionHealsAndNothingIsLost(t *testing.T) {
	inPlant(t, 5, 2, func(t *testing.T, p *plant) {
		p.seatAll()
		for i := range 10 {
			p.create(i)
		}
		p.converge()
		// n1, which leads, and n2 against the others.
		for _, a := range []string{"n1", "n2"} {
			for _, b := range []string{"n3", "n4", "n5"} {
				p.network.Split(a, b)
			}
		}
		majority := []base.NodeID{"n3", "n4", "n5"}
		p.awaitLeaders(2*time.Second, majority...)
		// The old leader has the bytes of a command, and nobody to commit it.
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		err := create(ctx, p.nodes["n1"].host, 100)
		cancel()
		require.Error(t, err)
		require.Equal(t, base.Unknown, base.OutcomeOf(err))
		// It gives no fresh read either, however new its lease.
		require.Error(t, p.nodes["n1"].host.View(p.within(5*time.Second), base.RootShard, func(*meta.State) error { return nil }))
		for i := 10; i < 20; i++ {
			p.create(i, majority...)
		}
		p.network.Heal()
		p.converge()
		for i := range 20 {
			require.True(t, p.has(i))
		}
	})
}

// TestALeaderThatHearsNobodyIsReplaced: what it says arrives, what it is told does not. It steps down by itself, and the
// others hear that from it.
func TestALeaderThatHearsNobodyIsReplaced(t *testing.T) {
	inPlant(t, 3, 2, func(t *testing.T, p *plant) {
		p.seatAll()
		p.converge()
		p.network.SplitOneWay("n2", "n1")
		p.network.SplitOneWay("n3", "n1")
		took := p.awaitLeaders(15*time.Second, "n2", "n3")
		t.Logf("led elsewhere after %s", took)
		p.create(1, "n2", "n3")
		p.network.Heal()
		p.converge()
	})
}

// TestAFlappingLinkChangesNoLeader: one follower loses its leader again and again, and nobody else does.
func TestAFlappingLinkChangesNoLeader(t *testing.T) {
	inPlant(t, 3, 4, func(t *testing.T, p *plant) {
		p.seatAll()
		p.converge()
		terms := func() (sum uint64) {
			for i := range p.shards {
				_, term := p.leader(base.ShardID{Root: uint16(i)}).Leader(base.ShardID{Root: uint16(i)})
				sum += term
			}
			return sum
		}
		before := terms()
		for began := time.Now(); time.Since(began) < 20*time.Second; {
			p.network.Split("n1", "n2")
			time.Sleep(600 * time.Millisecond)
			p.network.Heal()
			time.Sleep(600 * time.Millisecond)
		}
		p.awaitLeaders(10 * time.Second)
		require.LessOrEqual(t, terms()-before, uint64(2))
		p.create(1)
		p.converge()
	})
}

// TestAFlappingLeaderSettles: the leader itself comes and goes for all, which is the worst that can be asked. Changes are
// damped, and the groups are led when it is over.
func TestAFlappingLeaderSettles(t *testing.T) {
	inPlant(t, 3, 1, func(t *testing.T, p *plant) {
		p.seatAll()
		p.converge()
		_, before := p.leader(base.RootShard).Leader(base.RootShard)
		for began := time.Now(); time.Since(began) < 20*time.Second; {
			h := p.leader(base.RootShard)
			if h == nil {
				time.Sleep(100 * time.Millisecond)
				continue
			}
			p.isolate(h.o.Node)
			time.Sleep(600 * time.Millisecond)
			p.network.Heal()
			time.Sleep(600 * time.Millisecond)
		}
		p.awaitLeaders(20 * time.Second)
		_, after := p.leader(base.RootShard).Leader(base.RootShard)
		t.Logf("%d terms in 20 s", after-before)
		require.LessOrEqual(t, after-before, uint64(16))
		p.create(1)
		p.converge()
	})
}

// TestAFollowerFarBehindIsSentASnapshot that takes several chunks, over a connection that breaks.
func TestAFollowerFarBehindIsSentASnapshot(t *testing.T) {
	for _, broken := range []bool{false, true} {
		inPlant(t, 3, 1, func(t *testing.T, p *plant) {
			p.seatAll()
			p.converge()
			p.kill("n3", nil)
			h := p.leader(base.RootShard)
			pad := fmt.Sprintf("%0200d", 1)
			for i := range 2_200 {
				_, cmd := createTopic(i)
				cmd.CreateTopic.Config.Labels = map[string]string{"a": pad, "b": pad, "c": pad, "d": pad, "e": pad, "f": pad}
				_, err := h.Propose(t.Context(), base.RootShard, cmd)
				require.NoError(t, err)
			}
			g, err := h.group(base.RootShard)
			require.NoError(t, err)
			snapshotAll(t, h)
			require.Greater(t, g.snapshots.newestSize(), int64(2*chunkBytes), "more than a chunk")
			chunks := 0
			p.change = func(o *Options) {
				o.FS = vfs.NewFault(o.FS, vfs.Rule{Ops: vfs.OpWrite, Path: "*incoming.tmp", Before: func(vfs.Call) {
					if chunks++; broken && chunks == 2 {
						p.network.Reset(string(h.o.Node), "n3") // after it was sent, before it is answered
					}
				}})
			}
			p.start("n3")
			p.change = nil
			p.converge()
			h3 := p.nodes["n3"].host
			require.Empty(t, h3.incoming.streams)
			g3, err := h3.group(base.RootShard)
			require.NoError(t, err)
			require.Greater(t, chunks, 2)
			require.NotZero(t, g3.snapshots.newestIndex(), "it did not come by the log alone")
			// And it starts from what it was sent.
			p.kill("n3", rand.New(rand.NewSource(1)))
			p.start("n3")
			p.converge()
		})
	}
}

// TestADamagedSnapshotIsNotSent: the leader finds out when a follower needs it, and sends the older one.
func TestADamagedSnapshotIsNotSent(t *testing.T) {
	inPlant(t, 3, 1, func(t *testing.T, p *plant) {
		p.seatAll()
		p.converge()
		p.kill("n3", nil)
		for i := range 900 {
			p.create(i)
			if i%300 == 200 {
				snapshotAll(t, p.leader(base.RootShard))
			}
		}
		h := p.leader(base.RootShard)
		g := other(h, base.RootShard)
		first, err := g.log.FirstIndex()
		require.NoError(t, err)
		require.Greater(t, first, uint64(10))
		disk := p.nodes[h.o.Node].disk
		files := snapshotFiles(t, disk)
		flip(t, disk, files[len(files)-1], 1000)
		p.start("n3")
		p.converge()
		require.Contains(t, snapshotFiles(t, disk), files[len(files)-1]+snapshotDamaged)
	})
}

// TestAnOlderImageOfADiskHasNoVoteInTheRoot: what the node promised since then, it does not know.
func TestAnOlderImageOfADiskHasNoVoteInTheRoot(t *testing.T) {
	inPlant(t, 3, 2, func(t *testing.T, p *plant) {
		p.seatAll()
		n2 := p.nodes["n2"]
		register := func(boot uint64, instance base.UUID) {
			r, err := p.leader(base.RootShard).Propose(t.Context(), base.RootShard, meta.Command{RegisterNode: &meta.RegisterNode{
				Node: "n2", Disk: base.UUID{1}, Meta: n2.meta, Boot: boot, Instance: instance, Address: "n2:2921",
			}})
			require.NoError(t, err)
			require.NoError(t, r.Err("register"))
		}
		register(9, base.UUID{9})
		p.converge()
		p.kill("n1", nil)
		time.Sleep(20 * time.Second)
		require.Nil(t, p.leader(base.RootShard), "two of three, but one of the two is n2 at its first start")
		require.NotNil(t, p.leader(base.ShardID{Root: 1}))
		p.kill("n2", nil)
		n2.boot = 8
		p.start("n2") // as start 9, which somebody else was
		time.Sleep(20 * time.Second)
		require.Nil(t, p.leader(base.RootShard))
		p.kill("n2", nil)
		p.start("n2") // as start 10
		p.awaitLeaders(20 * time.Second)
	})
}

// TestALostMetaDirectoryIsANewServer: a node comes back with nothing. It cannot vote for what it had promised, and what
// was committed stays.
func TestALostMetaDirectoryIsANewServer(t *testing.T) {
	inPlant(t, 3, 2, func(t *testing.T, p *plant) {
		p.seatAll()
		for i := range 20 {
			p.create(i)
		}
		p.converge()
		old := p.nodes["n2"].meta
		p.kill("n2", nil)
		p.nodes["n2"].disk, p.nodes["n2"].meta = vfs.NewMem(), base.UUID{77, 0, 0, 0, 0, 0, 0x40, 0, 0x80}
		h := p.start("n2")
		require.NoError(t, h.Adopt(cluster, p.shards))
		require.Empty(t, h.Status())
		// With n1 gone there is no majority: the new server counts for nothing.
		p.kill("n1", nil)
		time.Sleep(15 * time.Second)
		require.Nil(t, p.leader(base.RootShard))
		p.start("n1")
		p.awaitLeaders(10 * time.Second)
		for i := range p.shards {
			shard := base.ShardID{Root: uint16(i)}
			g, err := p.leader(shard).group(shard)
			require.NoError(t, err)
			require.NoError(t, g.raft.RemoveServer(serverID(old), 0, 0).Error())
			p.seat(shard, "n2")
		}
		p.converge()
		p.kill("n1", nil)
		p.awaitLeaders(5*time.Second, "n2", "n3")
		for i := range 20 {
			require.True(t, p.has(i))
		}
	})
}

// TestAnythingMayHappen kills, cuts and heals at random under load. No acknowledged command may be lost, and all
// replicas must end up the same.
func TestAnythingMayHappen(t *testing.T) {
	for seed := range int64(runs(8)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			n := 3 + 2*int(seed%2)
			// Disks take their time, each its own, so that things happen while others are under way.
			slow := rand.New(rand.NewSource(seed))
			synctestPlant(t, n, 4, func(o *Options) {
				o.FS = vfs.NewFault(o.FS, vfs.Rule{Ops: vfs.OpSyncData, Delay: time.Duration(slow.Intn(30)) * time.Millisecond})
			}, func(t *testing.T, p *plant) { p.anything(seed) })
		})
	}
}

// readsOwn reports whether a fresh read, if it is answered at all, finds a topic.
func readsOwn(ctx context.Context, h *Host, i int) bool {
	name, _ := createTopic(i)
	found := false
	err := h.View(ctx, h.ShardOf(name), func(s *meta.State) error {
		found = s.TopicByName(name) != nil
		return nil
	})
	return err != nil || found
}

func (p *plant) anything(seed int64) {
	rng := rand.New(rand.NewSource(seed))
	p.seatAll()
	var (
		mu    sync.Mutex
		acked []int
		hosts []*Host // that run
		stop  = make(chan struct{})
		load  sync.WaitGroup
	)
	pick := func(r *rand.Rand) *Host {
		mu.Lock()
		defer mu.Unlock()
		if len(hosts) == 0 {
			return nil
		}
		return hosts[r.Intn(len(hosts))]
	}
	running := func(h *Host) {
		mu.Lock()
		defer mu.Unlock()
		hosts = append(hosts, h)
	}
	for _, name := range p.names {
		running(p.nodes[name].host)
	}
	for worker := range 4 {
		r := rand.New(rand.NewSource(seed*100 + int64(worker)))
		load.Go(func() {
			for i := worker * 100_000; ; i++ {
				select {
				case <-stop:
					return
				case <-time.After(time.Duration(1+r.Intn(20)) * time.Millisecond):
				}
				h := pick(r)
				if h == nil {
					continue
				}
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				if create(ctx, h, i) == nil {
					mu.Lock()
					acked = append(acked, i)
					mu.Unlock()
					if h := pick(r); h != nil && !readsOwn(ctx, h, i) {
						p.t.Errorf("seed %d: a fresh read on %s missed topic %d, which was acknowledged before", seed, h.o.Node, i)
					}
				}
				cancel()
			}
		})
	}
	down := 0
	for range 25 {
		time.Sleep(time.Duration(rng.Intn(1500)) * time.Millisecond)
		name := p.names[rng.Intn(len(p.names))]
		other := p.names[rng.Intn(len(p.names))]
		switch rng.Intn(7) {
		case 0, 1:
			if p.nodes[name].host != nil && down < len(p.names)/2 {
				mu.Lock()
				h := p.nodes[name].host
				hosts = slices.DeleteFunc(hosts, func(o *Host) bool { return o == h })
				mu.Unlock()
				down++
				p.kill(name, rng)
			}
		case 2:
			for _, name := range p.names {
				if p.nodes[name].host == nil {
					running(p.start(name))
					down--
					break
				}
			}
		case 3:
			p.isolate(name)
		case 4:
			if name != other {
				p.network.SplitOneWay(string(name), string(other))
			}
		case 5:
			if name != other {
				p.network.Reset(string(name), string(other))
			}
		case 6:
			p.network.Heal()
		}
	}
	p.network.Heal()
	for _, name := range p.names {
		if p.nodes[name].host == nil {
			running(p.start(name))
		}
	}
	took := p.awaitLeaders(30 * time.Second)
	close(stop)
	load.Wait()
	p.converge()
	synctest.Wait()
	for _, i := range acked {
		require.True(p.t, p.has(i), "seed %d: topic %d was acknowledged and is gone", seed, i)
	}
	p.t.Logf("%d commands acknowledged; led %s after the end of it", len(acked), took)
	require.NotEmpty(p.t, acked)
}

// TestAClosedHostKeepsNoFileOpen: a snapshot of which a part has come ends with the host.
func TestAClosedHostKeepsNoFileOpen(t *testing.T) {
	inPlant(t, 2, 1, func(t *testing.T, p *plant) {
		p.seatAll()
		h := p.nodes["n2"].host
		term := p.leader(base.RootShard).Leading(base.RootShard)
		first := chunkMessage{
			Envelope: envelope{From: p.nodes["n1"].meta, To: p.nodes["n2"].meta, Term: term}, Stream: 1, Data: []byte("a"), Size: 2,
		}
		require.NoError(t, p.ask("n1", "n2", kindChunk, first))
		require.Len(t, h.incoming.streams, 1)
		p.stop("n2")
		require.Empty(t, h.incoming.streams)
	})
}
