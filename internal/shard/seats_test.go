package shard

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/planner"
	"github.com/eastguard/eastguard/internal/vfs"
)

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

// Whoever founded a cluster leads everything at first.
func TestLeadersOfAFoundedClusterAreEvenSoon(t *testing.T) {
	inTown(t, 3, 32, func(t *testing.T, p *plant, r *registry) {
		r.join("n2")
		r.join("n3")
		r.await(20*time.Second, "three voters for every shard", r.right)
		took := r.await(time.Minute, "leaders are even", r.even)
		t.Logf("even %s after the seats: %v", took, r.led())
		require.LessOrEqual(t, took, planner.LeaderFar+2*balanceEvery)
	})
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
		move, err = h.Transfer(ctx, shard, "n4")
		require.ErrorIs(t, err, base.CodePreconditionFailed)
		require.Equal(t, Move{Shard: shard, From: h.o.Node, To: "n4"}, move, "what was not made is named")
		other := p.nodes[p.names[(slices.Index(p.names, h.o.Node)+1)%3]].host
		move, err = other.Transfer(ctx, shard, "n1")
		require.ErrorIs(t, err, base.CodeNotLeader)
		require.Equal(t, Move{Shard: shard, From: other.o.Node, To: "n1"}, move)
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
		err = <-done
		require.ErrorIs(t, err, base.CodeUnreachable)
		require.ErrorContains(t, err, "is away")
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

// A node takes two seats at once from shards that have their voters elsewhere, whoever sends them.
func TestANodeTakesFewSeatsAtOnce(t *testing.T) {
	inPlant(t, 2, 4, func(t *testing.T, p *plant) {
		n1, n2 := p.nodes["n1"], p.nodes["n2"]
		guest := func(i int) error {
			g, err := n1.host.group(base.ShardID{Root: uint16(i)})
			require.NoError(t, err)
			f := g.raft.AddNonvoter(raft.ServerID(n2.meta.String()), "n2", 0, 0)
			require.NoError(t, f.Error())
			return n1.host.order(p.within(10*time.Second), kindHost, g, "n2", n2.meta, f.Index())
		}
		require.NoError(t, guest(0))
		require.NoError(t, guest(1))
		require.ErrorIs(t, guest(2), base.CodeBusy)
		require.NoError(t, guest(1), "an order that is repeated")
		g, err := n1.host.group(base.ShardID{Root: 0})
		require.NoError(t, err)
		require.NoError(t, g.raft.AddVoter(raft.ServerID(n2.meta.String()), "n2", 0, 0).Error())
		p.eventually(10*time.Second, "it knows that it votes", func() bool {
			g, err := n2.host.group(base.ShardID{Root: 0})
			return err == nil && g.votes()
		})
		require.NoError(t, guest(2))
		require.ErrorIs(t, guest(3), base.CodeBusy)
		time.Sleep(2 * seatSettles)
		require.NoError(t, guest(3), "those that never come to their end do not block the others")
	})
}

// Clusters of one node, as earlier versions made them, name the server itself as its address: nobody else could tell
// where the leader is.
func TestAnOldAddressIsMended(t *testing.T) {
	inTown(t, 3, 2, func(t *testing.T, p *plant, r *registry) {
		for _, g := range p.nodes["n1"].host.all() {
			require.NoError(t, g.raft.AddVoter(g.serverID, raft.ServerAddress(g.serverID), 0, 0).Error())
			require.Equal(t, []base.NodeID{"n1"}, g.voters())
		}
		r.settled(3)
		for _, name := range p.names {
			for _, g := range p.nodes[name].host.all() {
				for _, s := range g.servers() {
					require.NotEqual(t, string(s.ID), string(s.Address))
				}
			}
		}
	})
}

// TestWhatASeatsAnswerSpeaksOf: a leader answers about its log as it was when it was asked. A seat that is given while it
// makes sure must not be taken by the answer.
func TestWhatASeatsAnswerSpeaksOf(t *testing.T) {
	inPlant(t, 2, 1, func(t *testing.T, p *plant) {
		g, err := p.leader(base.RootShard).group(base.RootShard)
		require.NoError(t, err)
		asked := g.raft.LastIndex()
		b, err := p.nodes["n2"].peers.CallGroup(p.within(5*time.Second), "n1", kindSeat, groupNumber(base.RootShard),
			encode(&seatQuestion{Order: p.orderOf(base.RootShard, "n2", 0)}))
		require.NoError(t, err)
		var a seatAnswer
		require.NoError(t, decode(b, &a))
		require.Equal(t, seatAnswer{Index: asked}, a)
	})
}
