package server

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/mux"
	"github.com/eastguard/eastguard/internal/wire"
)

// What one connection may have under way, and the node's pools.
const (
	maxInFlight      = 1024
	maxInFlightBytes = 64 << 20

	metaWorkers  = 16 // metadata requests wait for Raft, not for the CPU
	metaQueue    = 1024
	fetchWorkers = 16 // fetches wait for the disk at most
	fetchQueue   = 4096
	metaTimeout  = 10 * time.Second
)

// Handle gives a request to the file of its kind. It runs on the connection's reader goroutine.
func (s *Server) Handle(ctx context.Context, r *mux.Request) {
	defer s.survive(r)
	s.metrics.request(r.Kind)
	switch r.Kind {
	case wire.KindPing:
		s.ping(ctx, r)
	case wire.KindProduce:
		s.produce(ctx, r)
	case wire.KindFetch:
		s.fetch(ctx, r)
	case wire.KindListOffsets:
		pooled(s, s.fetchPool, ctx, r, s.listOffsets)
	case wire.KindProducerState:
		pooled(s, s.fetchPool, ctx, r, s.producerState)
	case wire.KindLatestByKey:
		s.latestByKey(ctx, r)
	case wire.KindListTopics:
		pooled(s, s.metaPool, ctx, r, s.listTopics)
	case wire.KindClusterStatus:
		pooled(s, s.metaPool, ctx, r, s.clusterStatus)
	case wire.KindClusterHealth:
		pooled(s, s.metaPool, ctx, r, s.clusterHealth)
	case wire.KindDescribeNode:
		pooled(s, s.metaPool, ctx, r, s.describeNode)
	case wire.KindListNodes:
		pooled(s, s.metaPool, ctx, r, s.listNodes)
	case wire.KindNodeRing:
		pooled(s, s.metaPool, ctx, r, s.nodeRing)
	case wire.KindReach:
		pooled(s, s.metaPool, ctx, r, s.reach)
	case wire.KindChangeNode:
		s.changeNode(ctx, r)
	case wire.KindListShards:
		pooled(s, s.metaPool, ctx, r, s.listShards)
	case wire.KindDescribeShard:
		pooled(s, s.metaPool, ctx, r, s.describeShard)
	case wire.KindLocateShard:
		pooled(s, s.metaPool, ctx, r, s.locateShard)
	case wire.KindBalanceShards:
		pooled(s, s.metaPool, ctx, r, s.balanceShards)
	case wire.KindRecoverShard:
		pooledWithin(s, s.metaPool, recoverTimeout, ctx, r, s.recoverShard)
	case wire.KindListSegments:
		s.listSegments(ctx, r)
	case wire.KindWatchNode:
		s.watchNode(ctx, r)
	case wire.KindWatchLogs:
		s.watchLogs(ctx, r)
	case wire.KindHello:
		r.Fail(base.Errorf(base.CodeInvalidArgument, "hello", "this connection has shaken hands already"))
	default:
		if prepare, ok := s.routes[r.Kind]; ok {
			s.routed(ctx, r, prepare)
			return
		}
		r.Fail(base.Errorf(base.CodeUnknownKind, "serve", "request kind %s is not known here", r.Kind))
	}
}

// routeTable lists the requests that are about one shard, and are served by its leader whichever node they come to.
func (s *Server) routeTable() map[wire.Kind]preparer {
	return map[wire.Kind]preparer{
		wire.KindRoute: prepared(s.route, func(q *wire.RouteRequest) subject {
			return subject{name: q.Name, topic: q.Topic}
		}),
		wire.KindLocate: prepared(s.locate, func(q *wire.LocateRequest) subject {
			return subject{name: q.Name, topic: q.Ref.Topic}
		}),
		wire.KindDescribeTopic: prepared(s.describeTopic, func(q *wire.DescribeTopicRequest) subject {
			return subject{name: q.Name, topic: q.Topic}
		}),
		wire.KindListSegments: prepared(s.topicSegments, func(q *wire.ListSegmentsRequest) subject {
			return subject{name: q.Topic}
		}),
		wire.KindDescribeSegment: prepared(s.describeSegment, func(q *wire.DescribeSegmentRequest) subject {
			return subject{shard: s.shardOfSegment(q.Segment)}
		}),
		wire.KindSealSegment: prepared(s.sealSegment, func(q *wire.SealSegmentRequest) subject {
			return subject{shard: s.shardOfSegment(q.Segment), changes: !q.DryRun, request: q.RequestID}
		}),
		wire.KindForceSealSegment: prepared(s.forceSealSegment, func(q *wire.ForceSealSegmentRequest) subject {
			return subject{shard: s.shardOfSegment(q.Segment), changes: !q.DryRun, request: q.RequestID}
		}),
		wire.KindCreateTopic: prepared(s.createTopic, func(q *wire.CreateTopicRequest) subject {
			return subject{name: q.Name, changes: !q.DryRun, request: q.RequestID}
		}),
		wire.KindAlterTopic: prepared(s.alterTopic, func(q *wire.AlterTopicRequest) subject {
			return subject{name: q.Name, topic: q.Topic, changes: !q.DryRun, request: q.RequestID}
		}),
		wire.KindDeleteTopic: prepared(s.deleteTopic, func(q *wire.DeleteTopicRequest) subject {
			return subject{name: q.Name, topic: q.Topic, changes: !q.DryRun, request: q.RequestID}
		}),
		wire.KindChangeNode: prepared(s.changeAtRoot, func(q *wire.ChangeNodeRequest) subject {
			return subject{shard: &base.RootShard, changes: !q.DryRun, request: q.RequestID}
		}),
		wire.KindTransferShard: prepared(s.transferShard, func(q *wire.TransferShardRequest) subject {
			return subject{shard: &q.Shard, changes: !q.DryRun}
		}),
		wire.KindOpenProducer: prepared(s.openProducer, func(q *wire.OpenProducerRequest) subject {
			return subject{name: q.TopicName, topic: q.Topic, changes: true, request: q.RequestID}
		}),
	}
}

// pooled runs a request that may block: decode, serve, answer, on a goroutine of the pool and within its time.
func pooled[Q, A any](s *Server, p *pool, ctx context.Context, r *mux.Request, serve func(context.Context, Q) (A, error)) {
	pooledWithin(s, p, metaTimeout, ctx, r, serve)
}

// pooledWithin is pooled for a request with a time of its own.
func pooledWithin[Q, A any](s *Server, p *pool, within time.Duration, ctx context.Context, r *mux.Request, serve func(context.Context, Q) (A, error)) {
	err := p.run(func() {
		defer s.survive(r)
		var req Q
		if err := wire.Decode(r.Message, &req); err != nil {
			r.Fail(err)
			return
		}
		ctx, cancel := context.WithDeadline(ctx, r.Arrived.Add(within))
		defer cancel()
		answer, err := serve(ctx, req)
		if err != nil {
			r.Fail(err)
			return
		}
		r.Reply(wire.Encode(answer))
	})
	if err != nil {
		r.Fail(err)
	}
}

// survive turns a panic into that request's error: one request's bug must not end the others, nor the broker.
func (s *Server) survive(r *mux.Request) {
	cause := recover()
	if cause == nil {
		return
	}
	s.deps.Logger.Error("request panicked", "kind", r.Kind.String(), "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
	r.Fail(base.Errorf(base.CodeInternal, r.Kind.String(), "the broker met a bug of its own").WithOutcome(base.Unknown))
}
