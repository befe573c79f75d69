package server

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/config"
	"github.com/eastguard/eastguard/internal/mux"
	"github.com/eastguard/eastguard/internal/wire"
)

// client speaks to one machine of several.
func (m *machine) client() *node {
	m.t.Helper()
	c, err := mux.Dial(m.t.Context(), m.srv.Addr(), mux.ClientOptions{Hello: wire.HelloRequest{ClientName: "test"}})
	require.NoError(m.t, err)
	m.t.Cleanup(func() { _ = c.Close() })
	return &node{Server: m.srv, t: m.t, conn: c}
}

// threeMachines form a cluster in which every shard has three voters.
func threeMachines(t *testing.T, prep ...func(*machine)) []*machine {
	t.Helper()
	var list []*machine
	for i := range 3 {
		m := newMachine(t, i+1)
		for _, f := range prep {
			f(m)
		}
		list = append(list, m)
	}
	seeds(list, func(_ int, c *config.Config) { c.BootstrapExpect = 3 })
	together(list, (*machine).start)
	soon(t, "every shard has three voters", func() bool {
		resp := must[wire.ListShardsResponse](list[0].client(), wire.KindListShards, wire.ListShardsRequest{})
		return len(resp.Missing) == 0 && !slices.ContainsFunc(resp.Shards, func(s wire.ShardStatus) bool { return len(s.Voters) < 3 || s.Trails > 0 })
	})
	return list
}

// What one cluster is enough for; the last leaves a node that hangs.
func TestAnyNodeAnswersForAnother(t *testing.T) {
	t.Parallel()
	var hang atomic.Bool // n3, when it is asked for its status
	machines := threeMachines(t, func(m *machine) {
		if m.cfg.NodeID != "n3" {
			return
		}
		m.prep = func(s *Server) {
			answer := s.answers[askStatus]
			s.answers[askStatus] = func(ctx context.Context, message []byte) ([]byte, error) {
				if hang.Load() {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return answer(ctx, message)
			}
		}
	})
	t.Run("nodes", func(t *testing.T) { askAnyNode(t, machines) })
	t.Run("shards", func(t *testing.T) { handAShardOver(t, machines) })
	hang.Store(true)
	t.Run("one hangs", func(t *testing.T) { collectDoesNotWait(t, machines) })
}

// Any node answers for any other.
func askAnyNode(t *testing.T, machines []*machine) {
	n2 := machines[1].client()
	ids := []base.NodeID{"n1", "n2", "n3"}

	list := must[wire.ListNodesResponse](n2, wire.KindListNodes, wire.ListNodesRequest{})
	require.Empty(t, list.Missing)
	leaders, hash := 0, list.Nodes[0].RingHash
	for i, st := range list.Nodes {
		require.Equal(t, ids[i], st.ID)
		require.Equal(t, "alive", st.State)
		require.Equal(t, machines[i].srv.Addr(), st.Address)
		require.Equal(t, hash, st.RingHash)
		require.Equal(t, 4, st.Replicas)
		require.Positive(t, st.UptimeMs)
		require.Positive(t, st.SinceMs)
		leaders += st.ShardLeaders
	}
	require.Equal(t, 4, leaders)

	for i, id := range ids {
		d := must[wire.DescribeNodeResponse](n2, wire.KindDescribeNode, wire.DescribeNodeRequest{Node: id})
		require.Equal(t, id, d.Status.ID)
		require.Equal(t, machines[i].srv.id.Disk, d.Disk)
		require.NotEmpty(t, d.Counters)
		r := must[wire.NodeRingResponse](n2, wire.KindNodeRing, wire.NodeRingRequest{Node: id, Tokens: true})
		require.Equal(t, id, r.Observer)
		require.Equal(t, hash, r.Hash)
		require.Len(t, r.Members, 3)
		require.Len(t, r.Members[0].Tokens, machines[0].cfg.VnodesPerNode)
	}

	reach := must[wire.ReachResponse](n2, wire.KindReach, wire.ReachRequest{Count: 5})
	require.Len(t, reach.Peers, 2)
	for _, p := range reach.Peers {
		require.Equal(t, 5, p.OK, p.Error)
		require.Len(t, p.RttUs, 5)
		require.Equal(t, "alive", p.Gossip)
		require.Equal(t, "reachable", p.Link)
	}
}

// A shard is described by its leader, and handed over by it, whichever node is asked.
func handAShardOver(t *testing.T, machines []*machine) {
	one := base.ShardID{Root: 1}
	leaderOf := func() base.NodeID { // by its own word; empty while leaders change
		d, _, err := call[wire.DescribeShardResponse](machines[0].client(), wire.KindDescribeShard, wire.DescribeShardRequest{Shard: one})
		if err != nil || d.Status.Leader != d.Observer {
			return ""
		}
		require.Len(t, d.Members, 3)
		return d.Status.Leader
	}
	var from, to base.NodeID
	soon(t, "every node plans the same move", func() bool {
		if from, to = leaderOf(), "n1"; from == to {
			to = "n2"
		}
		for _, m := range machines {
			plan, _, err := call[wire.TransferShardResponse](m.client(), wire.KindTransferShard, wire.TransferShardRequest{Shard: one, To: to, DryRun: true})
			if err != nil || plan.Move.From != from || plan.Move.To != to {
				return false
			}
		}
		return true
	})
	// Another move may be on its way, or take it on at once; and the journal tells a little later.
	soon(t, "the leadership moves, and the shard's last event says so", func() bool {
		_, _, err := call[wire.TransferShardResponse](machines[2].client(), wire.KindTransferShard, wire.TransferShardRequest{Shard: one, To: to})
		if err != nil || leaderOf() != to {
			return false
		}
		d := must[wire.DescribeShardResponse](machines[2].client(), wire.KindDescribeShard, wire.DescribeShardRequest{Shard: one})
		return len(d.Events) > 0 && d.Events[len(d.Events)-1].Type == "LEADER_CHANGED" && d.Events[len(d.Events)-1].After == string(to)
	})

	_, _, err := call[wire.BalanceShardsResponse](machines[2].client(), wire.KindBalanceShards, wire.BalanceShardsRequest{DryRun: true})
	require.NoError(t, err)
}

// Who does not answer is named at once, and shown as the others have heard of it; once it is dead it can be forgotten.
func TestANodeThatIsGone(t *testing.T) {
	t.Parallel()
	machines := threeMachines(t)
	n1 := machines[0].client()
	plan := must[wire.ChangeNodeResponse](n1, wire.KindChangeNode, wire.ChangeNodeRequest{RequestID: requestID(), Node: "n3", Change: wire.NodeLeave, DryRun: true})
	require.Len(t, plan.Shards, 4)
	told := must[wire.ChangeNodeResponse](n1, wire.KindChangeNode, wire.ChangeNodeRequest{RequestID: requestID(), Node: "n3", Change: wire.NodeLeave})
	require.Equal(t, "leaving, normal", told.After)
	select {
	case <-machines[2].srv.Retired():
	case <-time.After(patience):
		t.Fatal("n3 was not told")
	}

	watch := must[wire.WatchNodeResponse](n1, wire.KindWatchNode, wire.WatchNodeRequest{})
	machines[2].stop()
	soon(t, "n1 sees that n3 has left", func() bool {
		next := must[wire.WatchNodeResponse](n1, wire.KindWatchNode, wire.WatchNodeRequest{Boot: watch.Boot, From: watch.Next, Seen: watch.StateVersion, WaitMs: 1000})
		watch.Next, watch.StateVersion = next.Next, next.StateVersion
		return slices.ContainsFunc(next.Events, func(e wire.Event) bool { return e.Type == "NODE_LEFT" && e.Subject == "n3" })
	})
	list := must[wire.ListNodesResponse](n1, wire.KindListNodes, wire.ListNodesRequest{})
	require.Empty(t, list.Missing, "nobody waits for who said farewell")
	require.Equal(t, "left", list.Nodes[2].State)
	require.Equal(t, "normal", list.Nodes[2].Status)
	require.Zero(t, list.Nodes[2].DiskTotal, "nobody knows its figures of now")
	_, _, err := call[wire.TransferShardResponse](n1, wire.KindTransferShard, wire.TransferShardRequest{Shard: base.ShardID{Root: 1}, To: "n3"})
	require.ErrorIs(t, err, base.CodePreconditionFailed)
	require.ErrorContains(t, err, "it is away (left)")
	_, _, err = call[wire.DescribeNodeResponse](n1, wire.KindDescribeNode, wire.DescribeNodeRequest{Node: "n3"})
	require.ErrorIs(t, err, base.CodeUnreachable)
	require.ErrorContains(t, err, "node n3 is left and cannot be asked")
	reach := must[wire.ReachResponse](n1, wire.KindReach, wire.ReachRequest{Nodes: []base.NodeID{"n3"}, Count: 2})
	require.Equal(t, 2, reach.Peers[0].Sent)
	require.Zero(t, reach.Peers[0].OK)
	require.NotEmpty(t, reach.Peers[0].Error)

	soon(t, "n3 can be forgotten", func() bool { // the root's leader may have to learn of the farewell
		a, _, err := call[wire.ChangeNodeResponse](machines[1].client(), wire.KindChangeNode, wire.ChangeNodeRequest{RequestID: requestID(), Node: "n3", Change: wire.NodeForget})
		return err == nil && a.After == "left, out"
	})
	soon(t, "the ring is one of two", func() bool {
		r := must[wire.NodeRingResponse](n1, wire.KindNodeRing, wire.NodeRingRequest{})
		return r.Members[2].Vnodes == 0 && r.Members[2].Status == "out"
	})
}

// Who would take a shard's quorum along does not leave, also while only the connections know that another is gone.
func TestLeaveKeepsAQuorum(t *testing.T) {
	t.Parallel()
	machines := threeMachines(t)
	n1 := machines[0].client()
	machines[2].stop()
	soon(t, "no shard can do without n2", func() bool {
		breaks := 0
		n1.gather(t.Context(), gatherRequest{Rests: "n2"}, func(a gatherAnswer) {
			for _, r := range a.Rests {
				if r.Breaks {
					breaks++
				}
			}
		})
		return breaks == 4
	})
	rejected(n1, base.CodePreconditionFailed, wire.KindChangeNode, wire.ChangeNodeRequest{RequestID: requestID(), Node: "n2", Change: wire.NodeLeave})
	require.Empty(t, machines[1].srv.Retired(), "it was not told")
}

// A node that hangs must not hold up the others.
func collectDoesNotWait(t *testing.T, machines []*machine) {
	n1 := machines[0].client()
	var list wire.ListNodesResponse
	soon(t, "only n3 is missing, and alive", func() bool { // on a busy machine others may be late, and be suspected
		list = must[wire.ListNodesResponse](n1, wire.KindListNodes, wire.ListNodesRequest{})
		return slices.Equal(list.Missing, []base.NodeID{"n3"}) && list.Nodes[2].State == "alive"
	})
	require.Equal(t, machines[2].srv.Addr(), list.Nodes[2].Address)
	require.Zero(t, list.Nodes[2].UptimeMs, "only it knows")
}

// A node that waits for others to found a cluster with lives and is not ready, and says what it waits for.
func TestReadinessOfANodeThatWaits(t *testing.T) {
	defer http.DefaultClient.CloseIdleConnections()
	m := newMachine(t, 1, withAdmin(t))
	m.cfg.JoinSeedNodes = []string{m.seed(), net.JoinHostPort("127.0.0.1", fmt.Sprint(freePort(t, "127.0.0.1")))}
	m.cfg.BootstrapExpect = 2
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.tryStart(ctx) }()
	site := "http://" + m.cfg.AdminAddress()
	soon(t, "it says what it waits for", func() bool {
		resp, err := http.Get(site + "/readyz")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusServiceUnavailable
	})
	cancel()
	require.Error(t, <-ended)
}

// Who is left of a shard without a quorum knows that it does not lead, whatever was believed before.
func TestListShardsThatNobodyLeads(t *testing.T) {
	t.Parallel()
	machines := threeMachines(t)
	n1 := machines[0].client()
	together(machines[1:], (*machine).stop)
	soon(t, "n1 gives up what it led", func() bool {
		list := must[wire.ListShardsResponse](n1, wire.KindListShards, wire.ListShardsRequest{})
		return len(list.Missing) == 4 && !slices.ContainsFunc(list.Shards, func(s wire.ShardStatus) bool { return s.Leader != "" || s.State != "no_leader" })
	})
	require.NotEmpty(t, n1.readiness())
}
