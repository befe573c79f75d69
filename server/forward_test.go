package server

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/config"
	"github.com/eastguard/eastguard/internal/mux"
	"github.com/eastguard/eastguard/internal/wire"
)

// connect is a client of one machine's broker.
func (m *machine) connect(t *testing.T) *node {
	t.Helper()
	c, err := mux.Dial(t.Context(), m.srv.Addr(), mux.ClientOptions{Hello: wire.HelloRequest{ClientName: "test"}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return &node{Server: m.srv, t: t, cfg: m.cfg, conn: c}
}

// cluster is three brokers that have formed, with every shard on all of them, and a client of each.
func cluster(t *testing.T) ([]*machine, []*node) {
	t.Helper()
	machines := three(t, func(_ int, c *config.Config) { c.BootstrapExpect = 3 })
	together(machines, (*machine).start)
	formed(t, machines)
	soon(t, "every shard has three voters that follow", func() bool {
		sums, missing := machines[0].srv.sums(t.Context(), false)
		full := len(missing) == 0
		for _, sum := range sums {
			full = full && len(sum.Status.Voters) == 3 && sum.Behind == 0
		}
		return full
	})
	var clients []*node
	for _, m := range machines {
		clients = append(clients, m.connect(t))
	}
	return machines, clients
}

// Every metadata request does the same whichever node it is put to.
func TestAnyNodeServesAnyRequest(t *testing.T) {
	t.Parallel()
	machines, clients := cluster(t)
	var names []string
	topics := make(map[string]base.TopicID)
	for i := range 24 {
		name := fmt.Sprintf("topic-%02d", i)
		made := must[wire.CreateTopicResponse](clients[i%3], wire.KindCreateTopic, wire.CreateTopicRequest{RequestID: requestID(), Name: name})
		require.NotEmpty(t, made.ShardLeader)
		names, topics[name] = append(names, name), made.Topic.Summary.ID
	}
	for i, name := range names {
		for _, c := range clients {
			route := must[wire.RouteResponse](c, wire.KindRoute, wire.RouteRequest{Name: name}).Topic
			require.Equal(t, topics[name], route.ID)
			require.Equal(t, machines[0].srv.host.ShardOf(name), route.Shard)
			require.NotEmpty(t, route.ShardLeader)
			named := make(map[base.NodeID]string)
			for _, n := range route.Nodes {
				named[n.ID] = n.Address
			}
			require.NotEmpty(t, named[route.ShardLeader], "whom to ask next time, and where")
			require.NotEmpty(t, named[route.Ranges[0].Active.Replicas[0]], "where to produce")

			// By the id alone.
			byID := must[wire.DescribeTopicResponse](c, wire.KindDescribeTopic, wire.DescribeTopicRequest{Topic: topics[name]})
			require.Equal(t, name, byID.Topic.Summary.Name)
			at := must[wire.LocateResponse](c, wire.KindLocate, wire.LocateRequest{Ref: base.RangeRef{Topic: topics[name], Range: 1}})
			require.NotEmpty(t, at.Segment.Replicas)
		}
		altered := must[wire.AlterTopicResponse](clients[(i+1)%3], wire.KindAlterTopic, wire.AlterTopicRequest{
			RequestID: requestID(), Name: name, Set: map[string]string{"retention": "2h"},
		})
		require.Equal(t, topics[name], altered.Topic)
		must[wire.OpenProducerResponse](clients[(i+2)%3], wire.KindOpenProducer, wire.OpenProducerRequest{RequestID: requestID(), Topic: topics[name], Name: "p"})
	}
	for _, c := range clients {
		list := must[wire.ListTopicsResponse](c, wire.KindListTopics, wire.ListTopicsRequest{})
		require.Empty(t, list.Missing)
		require.Len(t, list.Topics, len(names))
		for i, row := range list.Topics {
			require.Equal(t, names[i], row.Name)
		}
		status := must[wire.ClusterStatusResponse](c, wire.KindClusterStatus, wire.ClusterStatusRequest{})
		require.Equal(t, len(names), status.Topics)
		require.Len(t, status.Shards, 4)
		require.Len(t, status.Nodes, 3)
		require.Zero(t, status.Leaderless)
	}
	soon(t, "healthy by every node's word", func() bool {
		well := true
		for _, c := range clients {
			health := must[wire.ClusterHealthResponse](c, wire.KindClusterHealth, wire.ClusterHealthRequest{})
			if health.Worst() == wire.HealthFail {
				t.Log(health.Checks)
				well = false
			}
		}
		return well
	})
	for i, name := range names {
		must[wire.DeleteTopicResponse](clients[(i+1)%3], wire.KindDeleteTopic, wire.DeleteTopicRequest{RequestID: requestID(), Name: name})
		_, _, err := call[wire.RouteResponse](clients[i%3], wire.KindRoute, wire.RouteRequest{Name: name})
		require.ErrorIs(t, err, base.CodeTopicNotFound)
	}
	_, _, err := call[wire.DescribeTopicResponse](clients[0], wire.KindDescribeTopic, wire.DescribeTopicRequest{Topic: base.TopicID{9}})
	require.ErrorIs(t, err, base.CodeTopicNotFound)
}

// The same request id put to all nodes at once makes one topic, and all of them hear of it.
func TestOneRequestThroughAllNodes(t *testing.T) {
	t.Parallel()
	_, clients := cluster(t)
	for i := range 8 {
		id := requestID()
		answers := make([]wire.CreateTopicResponse, len(clients))
		errs := make([]error, len(clients))
		var all sync.WaitGroup
		for j, c := range clients {
			all.Go(func() {
				answers[j], _, errs[j] = call[wire.CreateTopicResponse](c, wire.KindCreateTopic, wire.CreateTopicRequest{RequestID: id, Name: fmt.Sprint("t", i)})
			})
		}
		all.Wait()
		for j := range answers {
			require.NoError(t, errs[j])
			require.Equal(t, answers[0].Topic.Summary.ID, answers[j].Topic.Summary.ID)
		}
	}
}

// Requests go on while a node goes: none fails, and each change is seen by whoever asks next, wherever.
func TestRequestsSurviveANodeThatStops(t *testing.T) {
	t.Parallel()
	machines, clients := cluster(t)
	const topics = 16
	for i := range topics {
		must[wire.CreateTopicResponse](clients[0], wire.KindCreateTopic, wire.CreateTopicRequest{RequestID: requestID(), Name: fmt.Sprint("t", i)})
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var changes [2]atomic.Int64
	more := func(what string) { // some changes of each, from now on
		before := [2]int64{changes[0].Load(), changes[1].Load()}
		soon(t, what, func() bool {
			return t.Failed() || changes[0].Load() > before[0]+20 && changes[1].Load() > before[1]+20
		})
	}
	for j, c := range clients[:2] {
		all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				name := fmt.Sprint("t", 2*(i%(topics/2))+j) // each has its own
				altered, _, err := call[wire.AlterTopicResponse](c, wire.KindAlterTopic, wire.AlterTopicRequest{
					RequestID: requestID(), Name: name, Set: map[string]string{"label.round": fmt.Sprint(i)},
				})
				if err != nil {
					t.Errorf("alter %s: %v, %s", name, err, base.OutcomeOf(err))
					return
				}
				route, _, err := call[wire.RouteResponse](clients[1-j], wire.KindRoute, wire.RouteRequest{Name: name})
				if err != nil || route.Topic.Version < altered.Version {
					t.Errorf("route of %s: version %d after %d, %v", name, route.Topic.Version, altered.Version, err)
					return
				}
				changes[j].Add(1)
			}
		})
	}
	more("changes with three nodes")
	machines[2].stop()
	soon(t, "two nodes lead all shards", func() bool {
		_, missing := machines[0].srv.sums(t.Context(), false)
		return len(missing) == 0
	})
	more("changes with two nodes")
	cancel()
	all.Wait()
}

// What another node sends on has to be for the shard that it says: a shard takes any topic.
func TestForwardedToTheWrongShard(t *testing.T) {
	t.Parallel()
	m := newMachine(t, 1)
	m.start()
	message := wire.Encode(wire.CreateTopicRequest{Name: "orders", RequestID: requestID()})
	own := m.srv.host.ShardOf("orders")
	_, err := m.srv.prepareForwarded(wire.KindCreateTopic, message, own)
	require.NoError(t, err)
	_, err = m.srv.prepareForwarded(wire.KindCreateTopic, message, base.ShardID{Root: own.Root ^ 1})
	require.ErrorIs(t, err, base.CodeInvalidArgument)
	_, err = m.srv.prepareForwarded(wire.KindChangeNode, wire.Encode(wire.ChangeNodeRequest{Node: "n1"}), base.ShardID{Root: 1})
	require.ErrorIs(t, err, base.CodeInvalidArgument)
	// Of a topic that is named by its id alone, the shard was searched for.
	_, err = m.srv.prepareForwarded(wire.KindDescribeTopic, wire.Encode(wire.DescribeTopicRequest{Topic: base.TopicID{1}}), base.ShardID{Root: 1})
	require.NoError(t, err)
}
