package sdk

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/mux"
	"github.com/eastguard/eastguard/internal/wire"
)

func addresses(nodes ...base.NodeID) (list []wire.NodeAddress) {
	for _, n := range nodes {
		list = append(list, wire.NodeAddress{ID: n, Address: string(n) + ":2921"})
	}
	return list
}

// describeScript answers describes as one cluster of n1 and n2 would, of which one leads, and notes who was asked.
type describeScript struct {
	leader base.NodeID
	asked  []base.NodeID
	refuse bool // whoever does not lead refuses, instead of forwarding
}

func (s *describeScript) answer(node base.NodeID, _ *mux.Request) (any, error) {
	s.asked = append(s.asked, node)
	if s.refuse && node != s.leader {
		return nil, base.Errorf(base.CodeNotLeader, "describe topic", "not here").WithRedirect(base.Redirect{Node: s.leader, Address: string(s.leader) + ":2921"})
	}
	return wire.DescribeTopicResponse{Topic: wire.TopicDetail{
		Summary: wire.TopicSummary{Name: "orders", ShardLeader: s.leader}, Nodes: addresses("n1", "n2"),
	}}, nil
}

// Whoever was named by an answer is asked first from then on, once it is connected; nobody waits for that.
func TestTheLeaderThatAnAnswerNamesIsAskedNext(t *testing.T) {
	s := &describeScript{leader: "n2"}
	withMeta(t, s.answer, func(t *testing.T, _ *fakeNet, cl *Client) {
		for range 20 {
			_, err := cl.Admin().DescribeTopic(t.Context(), "orders")
			require.NoError(t, err)
			synctest.Wait()
		}
		require.Equal(t, base.NodeID("n1"), s.asked[0], "the seed")
		require.Equal(t, slices.Repeat([]base.NodeID{"n2"}, 18), s.asked[2:])
	})
}

// A leadership that moves costs one redirect, and the next request goes to the new leader at once.
func TestALeaderThatChangedIsCorrected(t *testing.T) {
	s := &describeScript{leader: "n1", refuse: true}
	withMeta(t, s.answer, func(t *testing.T, _ *fakeNet, cl *Client) {
		describe := func() {
			_, err := cl.Admin().DescribeTopic(t.Context(), "orders")
			require.NoError(t, err)
		}
		describe()
		s.leader, s.asked = "n2", nil
		start := time.Now()
		describe()
		describe()
		require.Equal(t, []base.NodeID{"n1", "n2", "n2"}, s.asked)
		require.Zero(t, time.Since(start))
	})
}

// A redirect may name a node alone, when the broker that gives it does not know its client address and we do.
func TestARedirectByNode(t *testing.T) {
	var asked []base.NodeID
	withMeta(t, func(node base.NodeID, _ *mux.Request) (any, error) {
		asked = append(asked, node)
		if node == "n1" {
			return nil, base.Errorf(base.CodeNotLeader, "describe topic", "ask n2").WithRedirect(base.Redirect{Node: "n2"})
		}
		return wire.DescribeTopicResponse{}, nil
	}, func(t *testing.T, _ *fakeNet, cl *Client) {
		cl.brokers.learn(addresses("n1", "n2"))
		cl.leaders.learn("orders", "n1")
		_, err := cl.Admin().DescribeTopic(t.Context(), "orders")
		require.NoError(t, err)
		require.Equal(t, []base.NodeID{"n1", "n2"}, asked)
	})
}

// The leader dies: its connection breaks, the next try goes to another broker at once, and so do later requests, although
// nobody has said yet who leads instead.
func TestADeadLeaderIsLeftAtOnce(t *testing.T) {
	s := &describeScript{leader: "n1"}
	withMeta(t, s.answer, func(t *testing.T, n *fakeNet, cl *Client) {
		describe := func() {
			_, err := cl.Admin().DescribeTopic(t.Context(), "orders")
			require.NoError(t, err)
		}
		describe()
		describe()
		n.refuse("n1:2921")
		s.asked = nil
		start := time.Now()
		for range 20 {
			describe()
		}
		require.Equal(t, slices.Repeat([]base.NodeID{"n2"}, 20), s.asked)
		require.Zero(t, time.Since(start), "nobody waits for the pause before a redial")
	})
}

func TestLeadersAreBounded(t *testing.T) {
	var l leaders
	for i := range maxLeaders + 100 {
		l.learn(fmt.Sprint("t", i), "n1")
	}
	require.Len(t, l.m, maxLeaders)
	l.learn("t", "n1")
	l.learn("t", "n2")
	require.Equal(t, base.NodeID("n2"), l.of("t"))
	l.forget("t", "n1")
	require.Equal(t, base.NodeID("n2"), l.of("t"), "somebody has put it right already")
	l.forget("t", "n2")
	require.Empty(t, l.of("t"))
	l.learn("", "n1")
	require.Empty(t, l.of(""))
}

// refuse ends whoever listens at an address as a kill would: its connections break, and new ones are refused.
func (n *fakeNet) refuse(addr string) {
	n.mu.Lock()
	delete(n.listeners, addr)
	n.mu.Unlock()
	n.cut(addr)
}

// A redirect to a broker that has gone costs nothing either: somebody has not heard of its end yet.
func TestARedirectToADeadLeader(t *testing.T) {
	dead := false
	var asked []base.NodeID
	withMeta(t, func(node base.NodeID, _ *mux.Request) (any, error) {
		asked = append(asked, node)
		if dead && len(asked) < 4 {
			return nil, base.Errorf(base.CodeNotLeader, "describe topic", "ask n1").WithRedirect(base.Redirect{Node: "n1", Address: "n1:2921"})
		}
		return wire.DescribeTopicResponse{}, nil
	}, func(t *testing.T, n *fakeNet, cl *Client) {
		cl.brokers.learn(addresses("n1", "n2"))
		_, err := cl.brokers.at("n1:2921").connect(t.Context())
		require.NoError(t, err)
		n.refuse("n1:2921")
		synctest.Wait() // the client has noticed
		_, err = cl.brokers.at("n1:2921").connect(t.Context())
		require.Error(t, err)
		dead = true
		start := time.Now()
		_, err = cl.Admin().DescribeTopic(t.Context(), "orders")
		require.NoError(t, err)
		require.Equal(t, slices.Repeat([]base.NodeID{"n2"}, 4), asked)
		require.Less(t, time.Since(start), time.Second, "only the pauses between rounds")
	})
}

// The process of a leader stands still: its port takes connections, and nothing is answered. What was under way goes
// elsewhere within moments, and what comes later does not ask it at all, whichever topic it is about.
func TestALeaderThatStandsStill(t *testing.T) {
	var still atomic.Bool
	withMeta(t, func(node base.NodeID, _ *mux.Request) (any, error) {
		if still.Load() && node == "n1" {
			return nil, errMute
		}
		return wire.DescribeTopicResponse{Topic: wire.TopicDetail{Summary: wire.TopicSummary{ShardLeader: "n1"}, Nodes: addresses("n1", "n2")}}, nil
	}, func(t *testing.T, _ *fakeNet, cl *Client) {
		for _, n := range []string{"n1:2921", "n2:2921"} {
			_, err := cl.brokers.at(n).connect(t.Context())
			require.NoError(t, err)
		}
		for i := range 10 {
			cl.leaders.learn(fmt.Sprint("t", i), "n1")
		}
		still.Store(true)
		start := time.Now()
		for i := range 10 {
			_, err := cl.Admin().DescribeTopic(t.Context(), fmt.Sprint("t", i))
			require.NoError(t, err)
		}
		require.Equal(t, suspectAfter+silentAfter, time.Since(start), "one request found it out, for all")
	})
}

// A range whose leader is down has no end to tell of; that node is named, however the others refuse meanwhile.
func TestTheLeaderThatIsAwayIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(t, "n1", "n2")
		defer c.close()
		topic := c.addTopic("orders", 1)
		c.move(topic, 1, "n2")
		cl := c.client()
		c.stop("n2")
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		_, err := cl.Admin().Offsets(ctx, "orders", Latest())
		require.ErrorIs(t, err, CodeUnreachable)
		require.ErrorContains(t, err, "node n2")
		require.LessOrEqual(t, time.Since(began), 3*time.Second)
		require.NoError(t, cl.Close())
	})
}
