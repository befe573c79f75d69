package server

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/config"
	"github.com/eastguard/eastguard/internal/coord"
	"github.com/eastguard/eastguard/internal/dataplane"
	"github.com/eastguard/eastguard/internal/gossip"
	"github.com/eastguard/eastguard/internal/mux"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/routing"
	"github.com/eastguard/eastguard/internal/shard"
	"github.com/eastguard/eastguard/internal/store"
	"github.com/eastguard/eastguard/internal/task"
	"github.com/eastguard/eastguard/internal/telemetry"
	"github.com/eastguard/eastguard/internal/wire"
)

// Server is one broker. The fields of each group are set by the step of boot.go that it is named after, before anything
// that runs later, and not changed afterwards.
type Server struct {
	cfg      config.Config
	deps     Deps
	registry *telemetry.Registry
	journal  *telemetry.Journal
	metrics  metrics
	rates    rates

	id         *store.Identity
	store      *store.Store
	instance   base.UUID   // of this process
	demux      *peer.Demux // of the cluster port
	dataDemux  *peer.Demux // of the data port
	peers      *peer.Host  // connections to the other nodes
	gossipNet  gossip.Network
	members    membership
	founding   founding
	host       *shard.Host
	plane      *dataplane.Plane
	coord      atomic.Pointer[coord.Coord]
	ports      ports
	self       addresses    // as others reach this node
	listener   net.Listener // of the client port
	advertised string       // host:port of the client port, as others reach it
	mux        *mux.Server
	fetchPool  *pool
	metaPool   *pool
	gatherPool *pool

	router *routing.Router // to the leaders of shards
	routes map[wire.Kind]preparer
	topics topicIndex
	orders orderDesk // what other nodes ask of this one's coordinators and data plane

	usageAt  atomic.Int64  // when this node looked at its own disk last, in Unix nanoseconds
	diskNews chan struct{} // of capacity one: the disk has filled up, or has room again

	leads struct {
		sync.Mutex
		shards map[base.ShardID]struct{} // that this node leads
	}
	parked   parkingLot
	watches  watches
	counting *counting
	logs     logRing

	logReaders logReaders
	answers    map[askTopic]answerer // read only
	asks       crew                  // answer other nodes' questions
	leadAt     leadTimes
	leaders    leaderWatch
	told       eventCounts
	words      sealWords
	cuts       lossCache
	alone      isolation
	retired    chan struct{} // an operator wants this node to leave
	started    time.Time
	progress   progress
	visible    atomic.Bool // id and host are there; for Inspect, which may come at any time
	closing    atomic.Bool

	undo      task.Closer // what Start has done so far
	tasks     sync.WaitGroup
	fatal     chan error
	fatalOnce sync.Once

	halt     context.Context // ends when this process may not go on as this node
	haltNow  context.CancelCauseFunc
	stopped  chan error
	stopOnce sync.Once

	asksRoot   atomic.Bool  // has begun to ask to be admitted
	admittedAt atomic.Int64 // by the root, after s.started; 0: not yet
	twinMet    atomic.Int64 // when another process of this node was heard of, likewise
}

// kinds are the requests that are counted by name.
var kinds = []wire.Kind{
	wire.KindHello, wire.KindPing, wire.KindProduce, wire.KindFetch, wire.KindListOffsets, wire.KindProducerState,
	wire.KindLatestByKey, wire.KindRoute, wire.KindLocate, wire.KindCreateTopic, wire.KindAlterTopic,
	wire.KindDeleteTopic, wire.KindListTopics, wire.KindDescribeTopic, wire.KindOpenProducer,
	wire.KindClusterStatus, wire.KindClusterHealth, wire.KindDescribeNode,
	wire.KindListNodes, wire.KindNodeRing, wire.KindReach, wire.KindChangeNode, wire.KindWatchNode, wire.KindWatchLogs,
	wire.KindListShards, wire.KindDescribeShard, wire.KindLocateShard, wire.KindTransferShard, wire.KindBalanceShards,
	wire.KindRecoverShard,
	wire.KindListSegments, wire.KindDescribeSegment, wire.KindSealSegment, wire.KindForceSealSegment,
}

// New makes a broker of a configuration. It touches no file and starts nothing.
func New(cfg config.Config, deps Deps) (*Server, error) {
	deps.ensureDefaults()
	r := telemetry.NewRegistry()
	s := &Server{
		cfg: cfg, deps: deps, registry: r, journal: telemetry.NewJournal(0), metrics: newMetrics(r, kinds),
		rates: rates{
			in:         r.Counter("eastguard_produced_bytes_total", "Bytes of batches acknowledged to clients."),
			out:        r.Counter("eastguard_fetched_bytes_total", "Bytes of batches sent to clients."),
			inRecords:  r.Counter("eastguard_append_records_total", "Records acknowledged."),
			outRecords: r.Counter("eastguard_fetched_records_total", "Records of batches sent to clients."),
		},
		fatal: make(chan error, 1), stopped: make(chan error, 1), diskNews: make(chan struct{}, 1),
	}
	s.deps.Logger = slog.New(&ringHandler{ring: &s.logs, next: deps.Logger.Handler()})
	s.counting = newCounting(r, &s.metrics)
	s.halt, s.haltNow = context.WithCancelCause(context.Background())
	s.founding.turn = newTurn()
	registerProcess(r, deps.Version)
	s.routes = s.routeTable()
	s.answers = s.answerers()
	s.retired = make(chan struct{}, 1)
	s.asks = crew{name: "answer", limit: asksAtOnce}
	s.leads.shards = make(map[base.ShardID]struct{})
	return s, nil
}

// Addr is the address of the client listener, once started.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Fatal delivers the error after which nothing may be acked any more: the process must exit with code 74.
func (s *Server) Fatal() <-chan error { return s.fatal }

// Stopped delivers the error after which this process may not go on as this node: another one runs with its identity, or
// the root shard has refused this start. It must exit, with code 1, without a farewell in the node's name.
func (s *Server) Stopped() <-chan error { return s.stopped }

// Close stops the broker: requests that were taken are finished, then everything is closed in the reverse order of
// the start. It may be called twice, and returns when nothing of the broker runs any more.
func (s *Server) Close() error { return s.undo.Close() }
