package shard

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/planner"
	"github.com/eastguard/eastguard/internal/vfs"
)

func TestChooseLog(t *testing.T) {
	id := func(n byte) base.UUID { return base.UUID{n} }
	three := []base.UUID{id(1), id(2), id(3)}
	report := func(n byte, generation, term, index uint64) LogReport {
		return LogReport{Node: base.NodeID(fmt.Sprintf("n%d", n)), Server: id(n), Generation: generation, Term: term, Index: index, Voters: three}
	}
	archived := func(l LogReport) LogReport {
		l.Archived = true
		return l
	}
	leads := func(l LogReport) LogReport {
		l.Leads = true
		return l
	}
	of := func(l LogReport, voters ...base.UUID) LogReport {
		l.Voters = voters
		return l
	}
	for name, c := range map[string]struct {
		logs       []LogReport
		heard      uint64
		node       base.NodeID // chosen
		lost       []base.UUID
		generation uint64
		code       base.Code
	}{
		"one of three":        {[]LogReport{report(2, 0, 3, 40)}, 0, "n2", []base.UUID{id(1), id(3)}, 1, 0},
		"nothing":             {nil, 0, "", nil, 0, base.CodePreconditionFailed},
		"only an empty one":   {[]LogReport{report(2, 0, 0, 0)}, 0, "", nil, 0, base.CodePreconditionFailed},
		"who does not vote":   {[]LogReport{of(report(4, 0, 9, 99), three...), report(2, 0, 3, 40)}, 0, "n2", []base.UUID{id(1), id(3)}, 1, 0},
		"the later term wins": {[]LogReport{of(report(2, 0, 4, 30), id(1), id(2), id(3), id(4), id(5)), report(3, 0, 3, 40)}, 0, "n2", []base.UUID{id(1), id(4), id(5)}, 1, 0},
		"the later generation wins": {
			[]LogReport{archived(report(1, 0, 9, 90)), of(report(2, 1, 5, 50), id(2), id(7), id(8))}, 1, "n2", []base.UUID{id(7), id(8)}, 2, 0,
		},
		"only one set aside is left": {[]LogReport{archived(report(1, 0, 9, 90))}, 1, "n1", []base.UUID{id(2), id(3)}, 2, 0},
		"somebody leads":             {[]LogReport{leads(of(report(2, 0, 3, 40), id(2)))}, 0, "n2", nil, 1, base.CodePreconditionFailed},
		"a majority answers":         {[]LogReport{report(2, 0, 3, 40), report(1, 0, 3, 39)}, 0, "n2", []base.UUID{id(3)}, 1, base.CodePreconditionFailed},
		"a majority of which one was set aside": {
			[]LogReport{report(2, 0, 3, 40), archived(report(1, 0, 3, 39))}, 1, "n2", []base.UUID{id(3)}, 2, 0,
		},
	} {
		rec, chosen, err := chooseLog(base.RootShard, c.logs, c.heard)
		if c.code == 0 {
			require.NoError(t, err, name)
		} else {
			require.ErrorIs(t, err, c.code, name)
		}
		require.Equal(t, c.node, chosen.Node, name)
		require.Equal(t, c.lost, rec.Lost, name)
		require.Equal(t, c.generation, rec.Generation, name)
	}
}

// pastLeaders counts the replicas that lead in a generation below the one given.
func (p *plant) pastLeaders(generation uint64) int {
	n := 0
	for _, name := range p.names {
		if h := p.nodes[name].host; h != nil {
			for _, g := range h.all() {
				if g.hosted.Generation < generation && g.readyTerm.Load() != 0 {
					n++
				}
			}
		}
	}
	return n
}

func (p *plant) recoverAll(h *Host) {
	p.t.Helper()
	for i := range p.shards {
		shard := base.ShardID{Root: uint16(i)}
		rec, err := h.Recover(p.within(time.Minute), shard, true)
		require.NoError(p.t, err)
		require.False(p.t, rec.Done)
		require.Nil(p.t, p.leader(shard), "a dry run changes nothing")
		rec, err = h.Recover(p.within(time.Minute), shard, false)
		require.NoError(p.t, err)
		require.True(p.t, rec.Done)
		require.Equal(p.t, uint64(1), rec.Generation)
		require.Len(p.t, rec.Lost, 2)
	}
}

// Two of three voters are lost for good, the third becomes the shard. When the two are back after all, with all they
// had, they are a majority of the past: they must not elect a leader, and become members of the present.
func TestAShardIsRebuiltFromWhatIsLeft(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		inTown(t, 3, 4, func(t *testing.T, p *plant, r *registry) {
			r.settled(3)
			for i := range 60 { // enough for a snapshot
				p.create(i)
			}
			p.converge()
			shard := base.ShardID{Root: 2}
			_, err := p.nodes["n2"].host.Recover(t.Context(), shard, false)
			require.ErrorIs(t, err, base.CodePreconditionFailed, "it has a leader")

			r.kill("n1")
			r.kill("n3")
			p.eventually(30*time.Second, "nobody leads", func() bool { return len(r.led()) == 0 })
			h := p.nodes["n2"].host
			p.recoverAll(h)
			p.awaitLeaders(time.Second, "n2")
			for i := range 60 {
				require.True(t, p.has(i), i)
			}
			for i := 60; i < 80; i++ {
				p.create(i)
			}
			require.NoError(t, h.ViewStale(shard, func(s *meta.State) error {
				require.Len(t, s.Recoveries(), 1)
				require.Equal(t, base.NodeID("n2"), s.Recoveries()[0].Node)
				require.Len(t, s.Recoveries()[0].Lost, 2)
				return s.Check()
			}))
			if restarted {
				p.kill("n2", nil)
				h = p.start("n2")
				p.awaitLeaders(5*time.Second, "n2")
				require.Equal(t, uint64(1), h.Generation(shard))
			}

			r.start("n3")
			r.start("n1")
			p.eventually(2*time.Minute, "they have seats again", func() bool {
				require.Zero(t, p.pastLeaders(1), "a leader of the past\n%s", p)
				return r.right()
			})
			p.converge()
			for i := range 80 {
				require.True(t, p.has(i), i)
			}
			d, err := p.leader(shard).Detail(shard)
			require.NoError(t, err)
			require.Equal(t, uint64(1), d.Generation)
			require.Len(t, d.Recoveries, 1)
			for i := range p.shards {
				require.Equal(t, []uint64{0}, p.nodes["n1"].host.archives(base.ShardID{Root: uint16(i)}), "what it had is kept")
			}
		})
	}
}

// The rebuilt shard is lost too, before it grew. What was set aside when it was rebuilt is all that is left.
func TestAShardIsRebuiltFromWhatWasSetAside(t *testing.T) {
	inTown(t, 3, 4, func(t *testing.T, p *plant, r *registry) {
		r.settled(3)
		for i := range 60 {
			p.create(i)
		}
		p.converge()
		p.kill("n1", nil)
		p.kill("n3", nil)
		p.eventually(30*time.Second, "nobody leads", func() bool { return len(r.led()) == 0 })
		p.recoverAll(p.nodes["n2"].host)
		for _, name := range []base.NodeID{"n1", "n3"} {
			r.set(name, func(n *registered) { n.out = true })
		}
		for i := range p.shards { // n1 hears of it, and gets no seat
			p.nodes["n2"].host.stewards.leaving.Store(true)
			if i == 0 {
				p.start("n1")
			}
			shard := base.ShardID{Root: uint16(i)}
			p.nodes["n1"].host.Heard(shard, 1)
			p.eventually(5*time.Second, "it sets its replica aside", func() bool { return !p.nodes["n1"].host.Hosts(shard) })
		}
		p.kill("n2", nil)
		h := p.nodes["n1"].host
		for i := range p.shards {
			shard := base.ShardID{Root: uint16(i)}
			rec, err := h.Recover(p.within(time.Minute), shard, false)
			require.NoError(t, err)
			require.Equal(t, uint64(2), rec.Generation)
		}
		p.awaitLeaders(time.Second, "n1")
		for i := range 60 {
			require.True(t, p.has(i), i)
		}
		// The one of the generation between comes back too, alone, and so knows no better until it is told.
		r.set("n1", func(n *registered) { n.out = false })
		r.start("n2")
		r.start("n3")
		r.await(2*time.Minute, "all have their seats", func() bool { return r.right() && p.pastLeaders(2) == 0 })
		p.converge()
	})
}

// What is claimed before a node runs its replicas is heard: those of the past do not begin, and the others do.
func TestAReplicaOfThePastDoesNotBegin(t *testing.T) {
	fs := vfs.NewMem()
	h := start(t, options(fs))
	for i := range 20 {
		require.NoError(t, create(t.Context(), h, i))
	}
	require.NoError(t, h.Close())

	h, err := Open(options(fs))
	require.NoError(t, err)
	t.Cleanup(func() { _ = h.Close() })
	past := base.ShardID{Root: 2}
	h.Heard(past, 3)
	h.Heard(base.ShardID{Root: 1}, 0)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	require.NoError(t, h.Start(ctx))
	require.Eventually(t, func() bool { return !h.Hosts(past) && h.reportLogs(past).Heard == 3 }, 10*time.Second, time.Millisecond)
	for _, s := range h.Status() {
		require.True(t, s.Ready, s.ID)
	}
	require.Len(t, h.Status(), 3)
	// What it had can still be found.
	a := h.reportLogs(past)
	require.Len(t, a.Logs, 1)
	require.True(t, a.Logs[0].Archived)
	require.Equal(t, []base.UUID{metaUUID}, a.Logs[0].Voters)
	require.NotZero(t, a.Logs[0].Index)
}

// Five nodes lose two voters of the root: shards that keep a majority go on, and the rest is rebuilt from what is left,
// by any node.
func TestTwoOfFiveNodesAreLost(t *testing.T) {
	inTown(t, 5, 16, func(t *testing.T, p *plant, r *registry) {
		r.settled(5)
		for i := range 40 {
			p.create(i)
		}
		p.converge()
		lost := planner.Intended(p.nodes["n1"].host.o.Ring(), base.RootShard, 3)[:2]
		kept := make(map[base.ShardID]bool)
		for i := range p.shards {
			id := base.ShardID{Root: uint16(i)}
			n := 0
			for _, v := range p.leader(id).Voters(id) {
				if !slices.Contains(lost, v) {
					n++
				}
			}
			kept[id] = n >= 2
		}
		for _, name := range lost {
			r.kill(name)
		}
		left := slices.DeleteFunc(slices.Clone(p.names), func(n base.NodeID) bool { return slices.Contains(lost, n) })
		time.Sleep(10 * time.Second)
		rebuilt := 0
		for i := range p.shards {
			id := base.ShardID{Root: uint16(i)}
			asked := p.nodes[left[i%len(left)]].host
			if kept[id] {
				require.NotNil(t, p.leader(id), "shard %s keeps its majority and goes on", id)
				_, err := asked.Recover(p.within(time.Minute), id, false)
				require.ErrorIs(t, err, base.CodePreconditionFailed)
				continue
			}
			rebuilt++
			require.Nil(t, p.leader(id))
			rec, err := asked.Recover(p.within(time.Minute), id, false)
			require.NoError(t, err)
			require.Len(t, rec.Lost, 2)
		}
		require.NotZero(t, rebuilt)
		require.Less(t, rebuilt, p.shards)
		p.awaitLeaders(time.Second, left...)
		for i := 40; i < 60; i++ {
			p.create(i)
		}
		for _, name := range lost { // the root can say so again
			r.set(name, func(n *registered) { n.out = true })
		}
		took := r.await(2*time.Minute, "every shard has three voters again", r.right)
		t.Logf("%d of %d shards rebuilt, all in place %s after the two went out", rebuilt, p.shards, took)
		for i := range 60 {
			require.True(t, p.has(i), i)
		}
	})
}

// A recovery that a crash interrupts anywhere is found by a second one, or has come to its end; nothing of the log that
// was found is lost, and the record is there.
func TestARecoveryMayBeInterrupted(t *testing.T) {
	keepOneIn := 3
	if os.Getenv("EASTGUARD_SOAK") != "" {
		keepOneIn = 1
	}
	const topics, shards = 60, 2
	inTown(t, 3, shards, func(t *testing.T, p *plant, r *registry) {
		r.settled(3)
		for i := range topics {
			p.create(i)
		}
		p.converge()
		for _, name := range p.names {
			r.kill(name)
		}
		n := p.nodes["n2"]
		o := options(nil)
		o.Meta, o.Node, o.Shards = n.meta, n.name, shards
		revive := func(fs vfs.FS) *Host {
			o.FS = fs
			h, err := Open(o)
			require.NoError(t, err)
			require.NoError(t, h.Start(p.within(20*time.Second)))
			for i := range shards {
				id := base.ShardID{Root: uint16(i)}
				if h.Leading(id) == 0 {
					_, err := h.Recover(p.within(20*time.Second), id, false)
					require.NoError(t, err)
				}
			}
			return h
		}
		mem, rng := n.disk, rand.New(rand.NewSource(5))
		fault := vfs.NewFault(mem)
		var mu sync.Mutex
		var points []crashPoint
		seen := 0
		fault.Add(vfs.Rule{Ops: vfs.OpChanges, Before: func(c vfs.Call) {
			mu.Lock()
			defer mu.Unlock()
			if seen++; seen%keepOneIn == 0 {
				points = append(points, crashPoint{at: c, disk: mem.CrashClone(rng, rng.Float64())})
			}
		}})
		require.NoError(t, revive(fault).Close())
		fault.Clear()
		require.Greater(t, len(points), 10)
		again := 0
		for i, point := range points {
			h := revive(point.disk)
			for k := range topics {
				require.True(t, holds(t, h, k), "crash %d before %v: topic %d is gone", i, point.at, k)
			}
			for k := range shards {
				id := base.ShardID{Root: uint16(k)}
				require.NoError(t, h.ViewStale(id, func(s *meta.State) error {
					require.NotEmpty(t, s.Recoveries(), "crash %d before %v", i, point.at)
					require.Equal(t, h.Generation(id), s.Recoveries()[len(s.Recoveries())-1].Generation)
					return s.Check()
				}))
				if h.Generation(id) > 1 {
					again++
				}
			}
			require.NoError(t, h.Close())
		}
		t.Logf("%d crashes, %d shards recovered a second time", len(points), again)
	})
}

// TestManyRecoveriesAtOnce: a node that is asked for many logs has not lost any, so none may be missing in the choice.
func TestManyRecoveriesAtOnce(t *testing.T) {
	inPlant(t, 3, 8, func(t *testing.T, p *plant) {
		p.seatAll()
		p.converge()
		h := p.nodes["n2"].host
		var asking sync.WaitGroup
		for i := range 256 {
			asking.Go(func() {
				logs, _ := h.gatherLogs(p.within(time.Minute), base.ShardID{Root: uint16(i % p.shards)})
				assert.Len(t, logs, 3)
			})
		}
		asking.Wait()
	})
}

// TestWhatGivesWayToAnArchiveIsKept: a replica that was begun since, and has too little to be chosen, is set aside too.
func TestWhatGivesWayToAnArchiveIsKept(t *testing.T) {
	inPlant(t, 2, 1, func(t *testing.T, p *plant) {
		p.seatAll()
		p.create(1)
		p.converge()
		h := p.nodes["n2"].host
		h.Heard(base.RootShard, 1)
		p.eventually(5*time.Second, "it sets its replica aside", func() bool { return !h.Hosts(base.RootShard) })
		order := p.orderOf(base.RootShard, "n2", 5)
		order.Generation = 1
		require.NoError(t, p.ask("n1", "n2", kindHost, order))
		p.kill("n1", nil)

		rec, err := h.Recover(p.within(time.Minute), base.RootShard, false)
		require.NoError(t, err)
		require.Equal(t, uint64(2), rec.Generation)
		require.True(t, p.has(1))
		require.Equal(t, []uint64{1, 0}, h.archives(base.RootShard))
	})
}
