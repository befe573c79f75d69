package sdk

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/mux"
	"github.com/eastguard/eastguard/internal/wire"
)

// listed answers ListNodes of a cluster of n1 and n2 at the addresses of withMeta.
func listed() wire.ListNodesResponse {
	return wire.ListNodesResponse{Nodes: []wire.NodeStatus{
		{ID: "n1", State: "alive", Address: "n1:2921"}, {ID: "n2", State: "alive", Address: "n2:2921"}, {ID: "n3", State: "dead"},
	}}
}

func TestOneNodeIsAskedAndNoOther(t *testing.T) {
	var asked []NodeID
	withMeta(t, func(node base.NodeID, r *mux.Request) (any, error) {
		switch r.Kind {
		case wire.KindListNodes:
			return listed(), nil
		case wire.KindReach, wire.KindPing:
			asked = append(asked, node)
			return wire.ReachResponse{Observer: node}, nil
		}
		return nil, base.CodeUnknownKind
	}, func(t *testing.T, n *fakeNet, cl *Client) {
		for _, id := range []NodeID{"n2", "n1", "n2"} {
			reached, err := cl.Admin().Reach(t.Context(), Reach{From: id})
			require.NoError(t, err)
			require.Equal(t, id, reached.Observer)
		}
		_, err := cl.Admin().Ping(t.Context(), "n2")
		require.NoError(t, err)
		require.Equal(t, []NodeID{"n2", "n1", "n2", "n2"}, asked)

		_, err = cl.Admin().Ping(t.Context(), "n3")
		require.ErrorIs(t, err, CodeUnreachable)
		_, err = cl.Admin().Ping(t.Context(), "n9")
		require.ErrorIs(t, err, CodeNodeNotFound)
	})
}

// A node that came back elsewhere is found there; one that is where it was and does not listen is told of at once.
func TestANodeThatMovedIsLookedUpAgain(t *testing.T) {
	looked := 0
	withMeta(t, func(node base.NodeID, r *mux.Request) (any, error) {
		if r.Kind == wire.KindListNodes {
			looked++
			return listed(), nil
		}
		return wire.PingResponse{Node: node}, nil
	}, func(t *testing.T, n *fakeNet, cl *Client) {
		cl.brokers.learn([]wire.NodeAddress{{ID: "n2", Address: "old:2921"}})
		_, err := cl.Admin().Ping(t.Context(), "n2")
		require.NoError(t, err)
		require.Equal(t, 1, looked)
		require.NoError(t, n.listeners["n2:2921"].Close())
		n.cut("n2:2921")
		synctest.Wait()
		_, err = cl.Admin().Ping(t.Context(), "n2")
		require.ErrorIs(t, err, CodeUnreachable)
		require.Equal(t, 2, looked)
	})
}

// A node that another one does not reach is not asked for until the deadline, and who is not reached has a name.
func TestANodeThatOthersDoNotReach(t *testing.T) {
	withMeta(t, func(node base.NodeID, r *mux.Request) (any, error) {
		if r.Kind == wire.KindDescribeNode {
			return nil, base.Errorf(base.CodeUnreachable, "describe node", "node n3 is dead and cannot be asked")
		}
		return wire.PingResponse{Node: node}, nil
	}, func(t *testing.T, _ *fakeNet, cl *Client) {
		_, err := cl.Admin().DescribeNode(t.Context(), "n3")
		require.ErrorIs(t, err, CodeUnreachable)
		require.ErrorContains(t, err, "node n3 is dead and cannot be asked")
		require.NoError(t, t.Context().Err())
	})
}

// Who knows the cluster is told which of its nodes does not answer, and not that the seeds may be wrong.
func TestTheNodeThatDoesNotAnswerIsNamed(t *testing.T) {
	withMeta(t, func(node base.NodeID, _ *mux.Request) (any, error) {
		return wire.PingResponse{Node: node}, nil
	}, func(t *testing.T, _ *fakeNet, cl *Client) {
		_, err := cl.brokers.at("n9:2921").connect(t.Context())
		require.ErrorIs(t, err, CodeUnreachable)
		require.NotContains(t, err.Error(), "node")
		cl.brokers.learn([]wire.NodeAddress{{ID: "n9", Address: "n9:2921"}})
		_, err = cl.brokers.at("n9:2921").connect(t.Context())
		var e *Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, CodeUnreachable, e.Code)
		require.Equal(t, OutcomeNotApplied, e.Outcome)
		require.Contains(t, e.Msg, "node n9 does not answer: ")
		require.Contains(t, e.HintText(), "eg-cli node list")
	})
}

// A change without a request id is not sent again when nobody knows whether it happened; a look is.
func TestAMoveIsNotSentTwice(t *testing.T) {
	var mu sync.Mutex // pings come at any time
	calls := map[wire.Kind]int{}
	of := func(kind wire.Kind) int {
		mu.Lock()
		defer mu.Unlock()
		return calls[kind]
	}
	withMeta(t, func(_ base.NodeID, r *mux.Request) (any, error) {
		mu.Lock()
		defer mu.Unlock()
		calls[r.Kind]++
		if calls[r.Kind] == 1 && r.Kind != wire.KindPing { // the broker lives, and takes its time
			return nil, errMute
		}
		return wire.ListShardsResponse{}, nil
	}, func(t *testing.T, _ *fakeNet, cl *Client) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		_, err := cl.Admin().BalanceShards(ctx, false)
		require.ErrorIs(t, err, CodeTimeout)
		require.Equal(t, OutcomeUnknown, OutcomeOf(err))
		require.Equal(t, 1, of(wire.KindBalanceShards))
		require.Equal(t, 10*time.Second, time.Since(began), "it has the whole time")
		_, err = cl.Admin().ListShards(t.Context())
		require.NoError(t, err)
		require.Equal(t, 2, of(wire.KindListShards))
	})
}

func TestAdminSaysWhatItIsAsked(t *testing.T) {
	var got any
	withMeta(t, func(_ base.NodeID, r *mux.Request) (any, error) {
		decode := func(req any) { require.NoError(t, r.Decode(req)); got = req }
		switch r.Kind {
		case wire.KindChangeNode:
			decode(new(wire.ChangeNodeRequest))
			return wire.ChangeNodeResponse{Node: "n3"}, nil
		case wire.KindNodeRing:
			decode(new(wire.NodeRingRequest))
		case wire.KindDescribeShard:
			decode(new(wire.DescribeShardRequest))
		case wire.KindLocateShard:
			decode(new(wire.LocateShardRequest))
		case wire.KindTransferShard:
			decode(new(wire.TransferShardRequest))
		case wire.KindRecoverShard:
			decode(new(wire.RecoverShardRequest))
		}
		return nil, nil
	}, func(t *testing.T, _ *fakeNet, cl *Client) {
		admin, ctx, twelve := cl.Admin(), t.Context(), ShardID{Root: 12}
		changed, err := admin.ChangeNode(ctx, ChangeNode{Node: "n3", Change: ReplaceNode, Disk: DiskID{7}, DryRun: true})
		require.NoError(t, err)
		require.Equal(t, NodeID("n3"), changed.Node)
		req := got.(*wire.ChangeNodeRequest)
		require.False(t, req.RequestID.IsZero(), "its tries are one change")
		req.RequestID = base.RequestID{}
		require.Equal(t, &wire.ChangeNodeRequest{Node: "n3", Change: wire.NodeReplace, Disk: DiskID{7}, DryRun: true}, req)

		_, err = admin.NodeRing(ctx, "n2", true)
		require.NoError(t, err)
		require.Equal(t, &wire.NodeRingRequest{Node: "n2", Tokens: true}, got)
		_, err = admin.DescribeShard(ctx, twelve)
		require.NoError(t, err)
		require.Equal(t, &wire.DescribeShardRequest{Shard: twelve}, got)
		_, err = admin.LocateShard(ctx, "orders")
		require.NoError(t, err)
		require.Equal(t, &wire.LocateShardRequest{Topic: "orders"}, got)
		_, err = admin.LocateShard(ctx, "a/b")
		require.ErrorIs(t, err, CodeInvalidTopicName)
		_, err = admin.TransferShard(ctx, TransferShard{Shard: twelve, To: "n2"})
		require.NoError(t, err)
		require.Equal(t, &wire.TransferShardRequest{Shard: twelve, To: "n2"}, got)
		_, err = admin.RecoverShard(ctx, RecoverShard{Shard: twelve, AcceptLoss: true})
		require.NoError(t, err)
		require.Equal(t, &wire.RecoverShardRequest{Shard: twelve, AcceptLoss: true}, got)
	})
}

func TestRouteKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(t, "n1", "n2")
		topic := c.addTopic("orders", 4)
		cl := c.client()
		seen := map[RangeID]bool{}
		for i := range 64 {
			key := []byte{byte(i)}
			r, err := cl.Admin().RouteKey(t.Context(), "orders", key)
			require.NoError(t, err)
			seen[r.Range] = true
			require.LessOrEqual(t, r.Start, r.Hash)
			require.True(t, r.End == 0 || r.Hash < r.End)
			require.Equal(t, topic.find(r.Range).leader, r.Replicas[0].ID)
			require.Equal(t, string(r.Replicas[0].ID)+":2921", r.Replicas[0].Address)
		}
		require.Len(t, seen, 4)
		c.move(topic, 1, "n2")
		before, err := cl.Admin().RouteKey(t.Context(), "orders", []byte{0})
		require.NoError(t, err)
		require.Equal(t, uint64(topic.version), before.Version, "it is asked for anew each time")
		_, err = cl.Admin().RouteKey(t.Context(), "nope", nil)
		require.ErrorIs(t, err, CodeTopicNotFound)
		require.NoError(t, cl.Close())
		c.close()
	})
}

// A broker that takes the connection and says nothing, as one that is stopped does, does not hold up whoever knows others.
func TestAMuteBrokerIsPassedOver(t *testing.T) {
	withMeta(t, func(node base.NodeID, _ *mux.Request) (any, error) {
		return wire.ListNodesResponse{Observer: node}, nil
	}, func(t *testing.T, n *fakeNet, cl *Client) {
		for range 20 {
			cl, err := NewClient(WithSeeds("mute1", "mute2", "n1"), WithDialer(func(ctx context.Context, addr string) (net.Conn, error) {
				if addr == "n1:2921" {
					return n.dial(ctx, addr)
				}
				here, there := net.Pipe()
				t.Cleanup(func() { _ = there.Close() })
				return here, nil
			}))
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			list, err := cl.Admin().ListNodes(ctx)
			cancel()
			require.NoError(t, err)
			require.Equal(t, NodeID("n1"), list.Observer)
			require.NoError(t, cl.Close())
		}
	})
}

// That one broker is not there says less than why another refuses.
func TestAnAnswerTellsMoreThanAMissingBroker(t *testing.T) {
	withMeta(t, func(base.NodeID, *mux.Request) (any, error) {
		return nil, base.Errorf(base.CodeNoLeader, "describe topic", "shard 3 has no leader")
	}, func(t *testing.T, _ *fakeNet, cl *Client) {
		cl.brokers.learn([]wire.NodeAddress{{ID: "n8", Address: "gone1:2921"}, {ID: "n9", Address: "gone2:2921"}})
		for range 10 {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			_, err := cl.Admin().DescribeTopic(ctx, "orders")
			cancel()
			require.ErrorIs(t, err, CodeNoLeader)
		}
	})
}
