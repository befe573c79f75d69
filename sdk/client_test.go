package sdk

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/mux"
	"github.com/eastguard/eastguard/internal/task"
	"github.com/eastguard/eastguard/internal/wire"
)

func TestSeeds(t *testing.T) {
	for in, want := range map[string]string{
		"broker":           "broker:2921",
		"broker:1":         "broker:1",
		"10.0.0.1":         "10.0.0.1:2921",
		"::1":              "[::1]:2921",
		"[::1]":            "[::1]:2921",
		"[fe80::1]:9":      "[fe80::1]:9",
		"2001:db8::1":      "[2001:db8::1]:2921",
		"":                 "",
		":2921":            "",
		"broker:":          "",
		"a:b:c":            "",
		"[::1":             "",
		"host.example:900": "host.example:900",
	} {
		got, err := withDefaultPort(in)
		if want == "" {
			require.ErrorIs(t, err, CodeInvalidArgument, "%q", in)
			continue
		}
		require.NoError(t, err, "%q", in)
		require.Equal(t, want, got)
	}
}

func TestOptionsThatDoNotFit(t *testing.T) {
	cl, err := NewClient()
	require.NoError(t, err)
	defer func() { require.NoError(t, cl.Close()) }()
	for _, opts := range [][]ClientOption{
		{WithSeeds("")}, {WithDialTimeout(0)}, {WithRequestTimeout(-1)}, {WithSeeds("a:b:c")}, {WithSeeds("a:22x")}, {WithSeeds("a:65536")}, {WithSeeds("a:0")},
	} {
		_, err := NewClient(opts...)
		require.ErrorIs(t, err, CodeInvalidArgument)
	}
	for _, opts := range [][]ProducerOption{
		{WithLinger(-1)},
		{WithMaxBatchBytes(0)},
		{WithMaxBatchRecords(0)},
		{WithMaxInFlight(6)},
		{WithMaxInFlight(-1)},
		{WithBufferBytes(0)},
		{WithDeliveryTimeout(0)},
		{WithCompression(2)},
		{WithIdempotence(false), WithMaxInFlight(2)},
		{WithIdempotence(false), WithProducerName("p")},
	} {
		_, err := cl.NewProducer("t", opts...)
		require.ErrorIs(t, err, CodeInvalidArgument)
	}
	_, err = cl.NewProducer("not a name")
	require.ErrorIs(t, err, CodeInvalidTopicName)
	one := WithTopics("t")
	for _, opts := range [][]ConsumerOption{
		{},
		{WithTopics("")},
		{one, one},
		{one, WithFetchMaxBytes(0)},
		{one, WithRangeMaxBytes(0)},
		{one, WithPrefetchBytes(0)},
		{one, WithMaxWait(0)},
		{one, WithMaxPollRecords(0)},
		{one, WithReset(9)},
		{one, WithRanges("u", 1)},
		{one, WithStart(AtOffset(1, -1))},
		{one, WithStart(AtPositions(Position{Topic: "u", Range: 1}))},
		{WithTopics("t", "u"), WithStart(AtOffset(1, 1))},
	} {
		_, err := cl.NewConsumer(opts...)
		require.ErrorIs(t, err, CodeInvalidArgument)
	}
	_, err = ParseCompression("gzip")
	require.ErrorIs(t, err, CodeInvalidArgument)
}

func TestNobodyAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &fakeNet{}
		cl, err := NewClient(WithSeeds("n1", "n2"), WithDialer(n.dial))
		require.NoError(t, err)
		began := time.Now()
		_, err = cl.Admin().ClusterStatus(t.Context())
		require.ErrorIs(t, err, CodeUnreachable)
		require.Equal(t, OutcomeNotApplied, OutcomeOf(err))
		require.Less(t, time.Since(began), time.Second, "who gave a wrong address wants to know")
		require.Equal(t, 2*unreachableRounds, n.dials)
		require.NoError(t, cl.Close())
		_, err = cl.Admin().ClusterStatus(t.Context())
		require.ErrorIs(t, err, CodeShuttingDown)
	})
}

func TestEachDialGetsTheName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(t, "n1")
		defer c.close()
		c.addTopic("orders", 1)
		var addrs []string
		cl := c.client(WithDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			addrs = append(addrs, addr)
			return c.net.dial(ctx, addr)
		}))
		for range 3 {
			_, err := cl.Admin().Offsets(t.Context(), "orders", Latest())
			require.NoError(t, err)
			c.net.cut("n1:2921")
			synctest.Wait()
		}
		require.Equal(t, []string{"n1:2921", "n1:2921", "n1:2921"}, addrs, "the dialer resolves it, each time")
		require.NoError(t, cl.Close())
	})
}

func TestOneDialForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(t, "n1")
		defer c.close()
		c.addTopic("orders", 1)
		cl := c.client()
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				_, err := cl.Admin().Offsets(t.Context(), "orders", Latest())
				require.NoError(t, err)
			})
		}
		wg.Wait()
		require.Equal(t, 1, c.net.dials)
		require.NoError(t, cl.Close())
	})
}

func TestACallerThatGivesUpDoesNotEndTheDialOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(t, "n1")
		defer c.close()
		cl := c.client(WithDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			if !task.Pause(ctx, time.Second) {
				return nil, ctx.Err()
			}
			return c.net.dial(ctx, addr)
		}))
		hasty, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		var hastyErr error
		var wg sync.WaitGroup
		wg.Go(func() { _, hastyErr = cl.brokers.at("n1:2921").connect(hasty) })
		conn, err := cl.brokers.at("n1:2921").connect(t.Context())
		require.NoError(t, err)
		require.NotNil(t, conn)
		wg.Wait()
		require.ErrorIs(t, hastyErr, context.DeadlineExceeded)
		require.NoError(t, cl.Close())
	})
}

func TestDialsBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &fakeNet{}
		cl, err := NewClient(WithDialer(n.dial))
		require.NoError(t, err)
		p, err := cl.NewProducer("orders", WithDeliveryTimeout(time.Minute))
		require.NoError(t, err)
		_ = p.SendAsync(Record{}, nil)
		b := cl.brokers.at("n1:2921")
		began := time.Now()
		for range 100 {
			_, err := b.connect(t.Context())
			require.ErrorIs(t, err, CodeUnreachable)
		}
		require.Greater(t, time.Since(began), 30*time.Second, "about a second each, once it has failed often")
		require.NoError(t, cl.Close())
	})
}

func TestBackoffIsFullJitter(t *testing.T) {
	b := backoff{base: 10 * time.Millisecond, cap: 100 * time.Millisecond}
	require.Zero(t, b.wait(0))
	for n := range 40 {
		limit := min(b.cap, b.base<<min(n, 10))
		low := false
		for range 200 {
			w := b.wait(n + 1)
			require.LessOrEqual(t, w, limit)
			low = low || w < limit/4
		}
		require.True(t, low, "short waits come too")
	}
}

// metaBroker answers metadata requests by a function.
type metaBroker struct {
	handle func(r *mux.Request) (any, error)
}

func (m metaBroker) Handle(_ context.Context, r *mux.Request) {
	resp, err := m.handle(r)
	switch {
	case errors.Is(err, errMute):
	case err != nil:
		r.Fail(err)
	default:
		r.Reply(wire.Encode(resp))
	}
}

var errMute = errors.New("no answer")

// withMeta runs a test against brokers that answer by a function.
func withMeta(t *testing.T, handle func(node base.NodeID, r *mux.Request) (any, error), run func(t *testing.T, n *fakeNet, cl *Client)) {
	synctest.Test(t, func(t *testing.T) {
		n := &fakeNet{listeners: make(map[string]*fakeListener)}
		for _, node := range []base.NodeID{"n1", "n2"} {
			srv := mux.NewServer(mux.ServerOptions{
				Handler: metaBroker{func(r *mux.Request) (any, error) { return handle(node, r) }},
				Hello: func(wire.HelloRequest) (wire.HelloResponse, error) {
					return wire.HelloResponse{Cluster: base.ClusterID{1}, Node: node}, nil
				},
			})
			l := n.listen(string(node) + ":2921")
			go func() { _ = srv.Serve(l) }()
			defer func() { _ = srv.Close() }()
		}
		cl, err := NewClient(WithSeeds("n1"), WithDialer(n.dial))
		require.NoError(t, err)
		defer func() { require.NoError(t, cl.Close()) }()
		run(t, n, cl)
	})
}

func TestAChangeIsSentAgainUnderItsRequestID(t *testing.T) {
	var ids []base.RequestID
	var net *fakeNet
	withMeta(t, func(node base.NodeID, r *mux.Request) (any, error) {
		var req wire.CreateTopicRequest
		if err := r.Decode(&req); err != nil {
			return nil, err
		}
		ids = append(ids, req.RequestID)
		switch len(ids) {
		case 1:
			net.cut(string(node) + ":2921")
			return nil, errMute
		case 2:
			return nil, base.Errorf(base.CodeNoLeader, "create topic", "an election is on")
		case 3:
			return nil, base.Errorf(base.CodeNotLeader, "create topic", "ask n2").WithRedirect(base.Redirect{Node: "n2", Address: "n2:2921"})
		}
		return wire.CreateTopicResponse{ShardLeader: node}, nil
	}, func(t *testing.T, n *fakeNet, cl *Client) {
		net = n
		made, err := cl.Admin().CreateTopic(t.Context(), CreateTopic{Name: "orders"})
		require.NoError(t, err)
		require.Equal(t, NodeID("n2"), made.ShardLeader)
		require.Len(t, ids, 4)
		for _, id := range ids {
			require.Equal(t, ids[0], id)
		}
	})
}

func TestARefusalIsFinal(t *testing.T) {
	calls := 0
	withMeta(t, func(base.NodeID, *mux.Request) (any, error) {
		calls++
		return nil, base.Errorf(base.CodeTopicExists, "create topic", "topic orders exists").WithHint("choose another")
	}, func(t *testing.T, _ *fakeNet, cl *Client) {
		_, err := cl.Admin().CreateTopic(t.Context(), CreateTopic{Name: "orders"})
		require.ErrorIs(t, err, CodeTopicExists)
		require.Equal(t, 1, calls)
		var e *Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, "choose another", e.HintText())
		require.Equal(t, NodeID("n1"), e.Node)
		_, err = cl.Admin().CreateTopic(t.Context(), CreateTopic{Name: "__x"})
		require.ErrorIs(t, err, CodeInvalidTopicName)
		require.Equal(t, 1, calls, "a bad name is not worth a question")
	})
}

func TestATimeoutOfAChangeIsUnknown(t *testing.T) {
	withMeta(t, func(base.NodeID, *mux.Request) (any, error) { return nil, errMute }, func(t *testing.T, _ *fakeNet, cl *Client) {
		began := time.Now()
		_, err := cl.Admin().DeleteTopic(t.Context(), DeleteTopic{Name: "orders"})
		require.ErrorIs(t, err, CodeTimeout)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, OutcomeUnknown, OutcomeOf(err))
		require.Equal(t, DefaultRequestTimeout, time.Since(began))

		_, err = cl.Admin().DescribeTopic(t.Context(), "orders")
		require.ErrorIs(t, err, CodeTimeout)
		require.Equal(t, OutcomeNotApplied, OutcomeOf(err), "to look changes nothing")

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err = cl.Admin().DeleteTopic(ctx, DeleteTopic{Name: "orders"})
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, OutcomeUnknown, OutcomeOf(err))
	})
}

func TestABrokerThatDoesNotAnswerIsLeftForAnother(t *testing.T) {
	vanished := false
	var asked atomic.Bool
	withMeta(t, func(node base.NodeID, r *mux.Request) (any, error) {
		if vanished && node == "n1" { // not even pings: the other end of the connection is no more
			asked.Store(true)
			return nil, errMute
		}
		return wire.ClusterStatusResponse{Observer: node}, nil
	}, func(t *testing.T, n *fakeNet, cl *Client) {
		cl.brokers.learn([]wire.NodeAddress{{ID: "n2", Address: "n2:2921"}})
		_, err := cl.brokers.at("n2:2921").connect(t.Context())
		require.NoError(t, err)
		_, err = cl.brokers.at("n1:2921").connect(t.Context())
		require.NoError(t, err)
		vanished = true
		ask := func() {
			status, err := cl.Admin().ClusterStatus(t.Context())
			require.NoError(t, err)
			require.Equal(t, NodeID("n2"), status.Observer)
		}
		for !asked.Load() { // which of the two is asked first is chance
			ask()
		}
		for range 10 {
			ask()
		}
		time.Sleep(probeTimeout)
		require.Equal(t, 2, n.dials)
		require.Nil(t, cl.brokers.at("n1:2921").live())
	})
}

func TestBrokersThatPointAtEachOtherAreNotAskedWithoutAPause(t *testing.T) {
	calls := 0
	withMeta(t, func(node base.NodeID, _ *mux.Request) (any, error) {
		calls++
		other := base.NodeID("n1")
		if node == "n1" {
			other = "n2"
		}
		return nil, base.Errorf(base.CodeNotLeader, "describe topic", "ask %s", other).WithRedirect(base.Redirect{Node: other, Address: string(other) + ":2921"})
	}, func(t *testing.T, _ *fakeNet, cl *Client) {
		_, err := cl.Admin().DescribeTopic(t.Context(), "orders")
		require.ErrorIs(t, err, CodeNotLeader)
		require.Less(t, calls, 200)
	})
}

func TestListTopicsFollowsPages(t *testing.T) {
	pages := map[string]wire.ListTopicsResponse{
		"":  {Topics: []wire.TopicSummary{{Name: "a"}, {Name: "b"}}, Next: "b", Missing: []base.ShardID{{Root: 3}}},
		"b": {Topics: []wire.TopicSummary{{Name: "c"}}, Next: "c", Missing: []base.ShardID{{Root: 3}}},
		"c": {Topics: []wire.TopicSummary{{Name: "d"}}},
	}
	withMeta(t, func(_ base.NodeID, r *mux.Request) (any, error) {
		var req wire.ListTopicsRequest
		if err := r.Decode(&req); err != nil {
			return nil, err
		}
		return pages[req.After], nil
	}, func(t *testing.T, _ *fakeNet, cl *Client) {
		list, err := cl.Admin().ListTopics(t.Context(), ListTopics{})
		require.NoError(t, err)
		require.Len(t, list.Topics, 4)
		require.Equal(t, []ShardID{{Root: 3}}, list.Missing)
		list, err = cl.Admin().ListTopics(t.Context(), ListTopics{Limit: 3})
		require.NoError(t, err)
		require.Len(t, list.Topics, 3)
	})
}

func TestEveryCodeHasARemedy(t *testing.T) {
	for code, info := range base.Codes() {
		r := remedyFor(&base.Error{Code: code})
		if info.Retryable {
			require.NotEqual(t, giveUp, r, "%s says that it may be retried", code)
		}
	}
	require.Equal(t, giveUp, remedyFor(errors.New("not ours")))
}

func TestErrorsReadWell(t *testing.T) {
	for want, err := range map[string]error{
		"find topic a: topic a not found":              about("find topic a", about("route", base.Errorf(base.CodeTopicNotFound, "route", "topic a not found"))),
		"send: the broker is at a limit":               about("send", &base.Error{Code: base.CodeBusy, Op: "produce"}),
		"find topic a: connect to b:1: no route":       about("find topic a", dialError("b:1", base.Errorf(base.CodeUnreachable, "connect to b:1", "no route"))),
		"new consumer: parse seed: \"\" is not a seed": about("new consumer", base.Errorf(base.CodeInvalidArgument, "parse seed", "%q is not a seed", "")),
	} {
		require.EqualError(t, err, want)
	}
}
