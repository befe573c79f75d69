package shard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/vfs"
)

func TestThreeHostsShareTheirShards(t *testing.T) {
	inPlant(t, 3, 4, func(t *testing.T, p *plant) {
		for i := range 20 {
			p.create(i)
		}
		p.seatAll()
		for i := 20; i < 40; i++ {
			p.create(i)
		}
		p.converge()
		for i := range 40 {
			require.True(t, p.has(i))
		}
		for _, name := range p.names {
			for _, s := range p.nodes[name].host.Status() {
				require.ElementsMatch(t, p.names, s.Voters)
				require.Equal(t, base.NodeID("n1"), s.Leader)
			}
		}
		_, err := p.nodes["n2"].host.Propose(t.Context(), base.RootShard, meta.Command{})
		require.ErrorIs(t, err, base.CodeNotLeader)
		var e *base.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, base.NodeID("n1"), e.Redirect.Node)
	})
}

// TestAKilledLeaderIsReplaced: its port refuses, so nobody waits for a timer.
func TestAKilledLeaderIsReplaced(t *testing.T) {
	for _, n := range []int{3, 5} {
		inPlant(t, n, 8, func(t *testing.T, p *plant) {
			p.seatAll()
			for i := range 20 {
				p.create(i)
			}
			p.converge()
			p.kill("n1", nil)
			took := p.awaitLeaders(5 * time.Second)
			t.Logf("%d nodes: all led %s after the kill", n, took)
			require.LessOrEqual(t, took, 150*time.Millisecond)
			led := map[*Host]int{}
			for i := range p.shards {
				led[p.leader(base.ShardID{Root: uint16(i)})]++
			}
			require.Len(t, led, n-1, "the groups spread over the others: %v", led)
			for i := 20; i < 30; i++ {
				p.create(i)
			}
			p.start("n1")
			p.converge()
			for i := range 30 {
				require.True(t, p.has(i))
			}
		})
	}
}

// TestAKilledLeaderIsReplacedOnSlowDisks: an election is some six syncs, one after the other, and whoever stands is left
// alone for as long as it takes.
func TestAKilledLeaderIsReplacedOnSlowDisks(t *testing.T) {
	for _, c := range []struct{ sync, within time.Duration }{
		{10 * time.Millisecond, 500 * time.Millisecond}, // where votes are split the next stands 300 ms later
		{50 * time.Millisecond, 2 * time.Second},
		{150 * time.Millisecond, 10 * time.Second},
		{400 * time.Millisecond, 30 * time.Second},
	} {
		slow := func(o *Options) { o.FS = vfs.NewFault(o.FS, vfs.Rule{Ops: vfs.OpSyncData, Delay: c.sync}) }
		synctestPlant(t, 3, 32, slow, func(t *testing.T, p *plant) {
			p.seatAll()
			p.kill("n1", nil)
			took := p.awaitLeaders(time.Minute)
			t.Logf("syncs of %s: 32 groups led %s after the kill", c.sync, took)
			require.LessOrEqual(t, took, c.within)
		})
	}
}

// TestASilentLeaderIsReplaced: nobody refuses, the machine is just gone.
func TestASilentLeaderIsReplaced(t *testing.T) {
	for _, n := range []int{3, 5} {
		inPlant(t, n, 8, func(t *testing.T, p *plant) {
			p.seatAll()
			for i := range 20 {
				p.create(i)
			}
			p.converge()
			p.isolate("n1")
			took := p.awaitLeaders(10*time.Second, p.names[1:]...)
			t.Logf("%d nodes: all led %s after the silence", n, took)
			require.LessOrEqual(t, took, 900*time.Millisecond)
			for i := 20; i < 30; i++ {
				p.create(i, p.names[1:]...)
			}
			p.network.Heal()
			p.converge()
			for i := range 30 {
				require.True(t, p.has(i))
			}
		})
	}
}

// TestAReplicaThatTheOthersDoNotKnowYetIsElected: the newest configuration is on the lost leader and on the replica that
// it made a voter, and nowhere else.
func TestAReplicaThatTheOthersDoNotKnowYetIsElected(t *testing.T) {
	inPlant(t, 3, 1, func(t *testing.T, p *plant) {
		p.seat(base.RootShard, "n2")
		p.converge()
		p.learner(base.RootShard, "n3")
		p.converge()
		p.network.Split("n1", "n2")
		p.network.Split("n3", "n2")
		p.promote(base.RootShard, "n3") // a configuration of three needs two of them: n1 and n3
		p.kill("n1", nil)
		p.network.Heal()
		p.awaitLeaders(5*time.Second, "n3")
	})
}

func TestAllHostsRestart(t *testing.T) {
	inPlant(t, 3, 8, func(t *testing.T, p *plant) {
		p.seatAll()
		for i := range 30 {
			p.create(i)
		}
		for _, name := range p.names {
			p.kill(name, nil)
		}
		for _, name := range p.names {
			p.start(name)
		}
		took := p.awaitLeaders(10 * time.Second)
		t.Logf("all led %s after the restart", took)
		require.LessOrEqual(t, took, time.Second)
		p.converge()
		for i := range 30 {
			require.True(t, p.has(i))
		}
	})
}
