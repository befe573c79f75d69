package server

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"strconv"
	"syscall"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/gossip"
	"github.com/eastguard/eastguard/internal/mux"
	"github.com/eastguard/eastguard/internal/ring"
	"github.com/eastguard/eastguard/internal/shard"
	"github.com/eastguard/eastguard/internal/store"
	"github.com/eastguard/eastguard/internal/wal"
)

const (
	drainWithin = 10 * time.Second // how long Close waits for requests under way
	idleTimeout = 10 * time.Minute

	handOverWithin = 10 * time.Second
	leaveNotice    = 200 * time.Millisecond // for what others had decided on before they heard that this node stops, and tell it still

	metaStartBytes = 16 << 20 // what opening the shards may need
)

// Start brings the broker up and returns when it takes requests, or with the first error, everything undone. Each step
// rests on those before it; Close undoes them from the last to the first.
func (s *Server) Start(ctx context.Context) error {
	s.started = time.Now()
	for _, step := range []func(context.Context) error{
		s.bind,            // the ports are ours, before anything is made or replayed; nothing is accepted yet
		s.openAdmin,       // probes and scrapes get an answer while the rest is coming
		s.takeIdentity,    // who we are, and that no other process is; the start is counted
		s.openStore,       // the log is replayed: what was acked is readable
		s.fence,           // nothing of an earlier start is ever acked again, before anybody can ask
		s.openRouter,      // before anybody can lead a shard
		s.makePeers,       // what the shards speak through
		s.openShards,      // the metadata that is kept here; nothing runs yet
		s.startPeers,      // other nodes get answers, and we theirs
		s.findCluster,     // the one we belong to; else found one, or wait until there is one to join
		s.startMembership, // they know us, and we who is there, as not admitted yet
		s.startRoot,       // the root's replica alone, if it is here: it may be needed for what comes next
		s.admission,       // the root knows this start, and our disk is the one it knows
		s.startShards,     // the other replicas; with no peers their leadership
		s.watchAbsent,     // as the root's leader: who has been gone for too long is put out
		s.startPlane,      // ready to be told what to lead
		s.startCoord,      // the coordinators tell it: topics open, interrupted segments are sealed
		s.serve,           // last: whoever connects finds everything running
	} {
		err := context.Cause(ctx) // no step begins once the start was given up: Close may be waiting for the last one
		if err == nil {
			err = step(ctx)
		}
		if err != nil {
			return errors.Join(err, s.undo.Close())
		}
	}
	s.progress.done.Store(true)
	s.noteNode(s.id.Node, "NODE_STARTED", "", "", "boot", strconv.FormatUint(s.id.Boot, 10), "version", s.deps.Version)
	return nil
}

// takeIdentity locks both directories and counts this start.
func (s *Server) takeIdentity(context.Context) error {
	id, lock, err := store.OpenIdentity(s.deps.FS, s.cfg.DataDir, s.cfg.MetaDir, store.IdentityRequest{
		Node: base.NodeID(s.cfg.NodeID), Rand: s.deps.Rand,
	})
	if err != nil {
		return explain("open data directory "+s.cfg.DataDir, err)
	}
	s.id = id
	// Released last: until everything is closed no other process may take this identity.
	s.undo.Push("identity lock", lock.Close)
	return nil
}

func (s *Server) openStore(ctx context.Context) error {
	s.progress.enter("the log is being replayed")
	st, err := store.Open(store.Options{
		FS: s.deps.FS, DataDir: s.cfg.DataDir, CacheBytes: s.cfg.CacheBudgetBytes, MaxOpenFiles: s.cfg.MaxOpenFiles,
		ReserveBytes: reserve(s.cfg.ReserveBytes),
		WAL: wal.Options{
			MaxCommitBytes: s.cfg.BatchMaxBytes, MaxCommitRecords: s.cfg.BatchMaxRecords, Linger: s.cfg.BatchLinger(),
			Observe: func(c wal.CommitStats) { s.metrics.fsync.Observe(c.Sync) },
		},
		Logger: s.deps.Logger, OnFatal: s.fail, OnEvent: s.onStoreEvent,
	}, *s.id)
	if err != nil {
		return explain("open data directory "+s.cfg.DataDir, err)
	}
	// After everything that appends or reads; its Close makes the last log entries durable.
	s.undo.Push("store", st.Close)
	s.store = st
	return st.Start(context.WithoutCancel(ctx)) // it runs until Close; ctx bounds the start alone
}

// reserve turns the setting into the store's: 0 there means the default, here none.
func reserve(bytes int64) int64 {
	if bytes == 0 {
		return -1
	}
	return bytes
}

// fence writes one record that covers every segment led by an earlier start.
func (s *Server) fence(ctx context.Context) error {
	done := make(chan error, 1)
	if err := s.store.FenceAllLed(func(err error) { done <- err }); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *Server) openShards(ctx context.Context) error {
	s.progress.enter("the shards are being opened")
	reserve, err := store.OpenReserve(s.deps.FS, s.cfg.MetaDir, s.cfg.ReserveBytes)
	if err != nil {
		return explain("open meta directory "+s.cfg.MetaDir, err)
	}
	if free, _, err := s.deps.FS.Free(s.cfg.MetaDir); err == nil && free < metaStartBytes {
		reserve.Give() // the shards' log begins a new file
	}
	host, err := shard.Open(shard.Options{
		MakeRoom: reserve.Give, // taken again by the next start
		FS:       s.deps.FS, Dir: s.cfg.MetaDir, Meta: s.id.Meta, Node: s.id.Node, Shards: s.cfg.Shards,
		Peers: s.peers, NodeOf: func(server base.UUID) (base.NodeID, bool) { return s.members.nodeTable().nodeOfServer(server) },
		ServerOf: s.serverOf, View: s.view, Ring: func() *ring.Ring { r, _ := s.currentRing(); return r }, Voters: s.cfg.ShardVoters,
		OnLead: s.onLead, OnApply: s.onApply, OnFatal: s.fail, Logger: s.deps.Logger, Metrics: s.registry,
	})
	if err != nil {
		return explain("open meta directory "+s.cfg.MetaDir, err)
	}
	// After the coordinators, which propose until they have stopped.
	s.undo.Push("shards", host.Close)
	s.host = host
	s.visible.Store(true)
	if got := host.Shards(); got != 0 && got != s.cfg.Shards {
		s.deps.Logger.Warn("shards was fixed when the cluster was founded", "shards", got, "configured", s.cfg.Shards)
	}
	return nil
}

// serverOf is the Raft server id of a node, by the root's table.
func (s *Server) serverOf(node base.NodeID) (base.UUID, bool) {
	if n := s.members.nodeTable().node(node); n != nil {
		return n.Meta, true
	}
	return base.UUID{}, false
}

// startRoot runs the root's replica, before this start is admitted: without it there may be no root to admit anybody.
func (s *Server) startRoot(ctx context.Context) error { return s.host.StartRoot(ctx) }

func (s *Server) startShards(ctx context.Context) error {
	s.progress.enter("the shards' replicas start")
	return s.host.Start(ctx)
}

// serve opens the doors.
func (s *Server) serve(context.Context) error {
	s.fetchPool = newPool("fetch", fetchWorkers, fetchQueue)
	s.metaPool = newPool("metadata", metaWorkers, metaQueue)
	s.watches.begin(watchSource{
		node: s.id.Node, boot: s.id.Boot, cluster: s.id.Cluster, journal: s.journal, state: s.watchedState, run: s.metaPool.run,
		counters: s.nodeCounters,
	})
	s.logReaders.begin(s.id.Node, s.id.Boot, &s.logs, s.metaPool.run)
	s.mux = mux.NewServer(mux.ServerOptions{
		Handler: s, Hello: s.hello,
		MaxConns: s.cfg.MaxConnections, MaxInFlightRequests: maxInFlight, MaxInFlightBytes: max(maxInFlightBytes, 2*s.maxBatchBytes()),
		PayloadLimit: int(s.maxBatchBytes()), IdleTimeout: idleTimeout, Logger: s.deps.Logger,
	})
	s.registry.GaugeFunc("eastguard_connections", "Client connections.", func() float64 { return float64(s.mux.Stats().Connections) })
	s.registry.CounterFunc("eastguard_silent_connections_closed_total", "Connections that were closed because they said nothing and others waited.", func() float64 {
		return float64(s.mux.Stats().ShownOut)
	}, "from", "clients")
	s.registry.GaugeFunc("eastguard_watchers", "Watches of this node that wait for news.", func() float64 { return float64(s.watches.len()) })
	s.registry.GaugeFunc("eastguard_parked_fetches", "Fetches that wait for data.", func() float64 { return float64(s.parked.len()) })
	s.registerCluster()
	s.tasks.Go(func() {
		if err := s.mux.Serve(s.listener); err != nil {
			s.deps.Logger.Error("listener failed", "error", err)
		}
	})
	s.undo.Push("requests", s.finishRequests)
	s.undo.Push("leaderships", s.handOver) // first of all, while everything still works
	return nil
}

// handOver gives the leaderships of this node to others, if there are others: what it leads would have none for a while.
func (s *Server) handOver() error {
	agent := s.members.agent.Load()
	if s.halt.Err() != nil || len(s.liveNodes()) < 2 {
		return nil
	}
	if err := agent.Update(func(self *gossip.Self) { self.State = gossip.Leaving }); err != nil {
		s.deps.Logger.Debug("leaving not announced", "error", err)
	}
	s.tellLeaving()
	underway := time.After(leaveNotice)
	ctx, cancel := context.WithTimeout(context.Background(), handOverWithin)
	defer cancel()
	if err := s.host.HandOver(ctx); err != nil {
		s.deps.Logger.Warn("not every leadership was handed over", "error", err)
	}
	<-underway
	s.awaitNothingLed(ctx)
	return nil
}

// finishRequests stops accepting and lets what was taken come to its end: appends on their way to the disk are acked,
// those that still wait for a segment are refused, fetches answer with what they have.
func (s *Server) finishRequests() error {
	s.closing.Store(true)
	s.parked.close()
	s.watches.close()
	s.logReaders.close()
	ctx, cancel := context.WithTimeout(context.Background(), drainWithin)
	defer cancel()
	// Side by side: the connections stay open until every answer is written, and the plane gives the answers.
	drained := make(chan error, 1)
	go func() { drained <- s.mux.Shutdown(ctx) }()
	err := errors.Join(s.plane.Close(), <-drained)
	s.fetchPool.close(ctx)
	s.metaPool.close(ctx)
	s.asks.close(ctx)
	s.gatherPool.close(ctx)
	s.router.Close(ctx)
	s.tasks.Wait()
	return err
}

// fail reports, once, the error after which nothing may be acked: the process must exit with code 74.
func (s *Server) fail(err error) {
	s.fatalOnce.Do(func() {
		s.deps.Logger.Error("stable storage failed, stopping", "error", err)
		s.fatal <- err
	})
}

// explain turns what the file system says at the start into one line with a way out.
func explain(what string, err error) error {
	var e *base.Error
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return base.Errorf(base.CodeDiskFull, what, "%w", err).WithHint("free some space there and start again; nothing that was acknowledged is lost")
	case errors.As(err, &e):
		return err
	case errors.Is(err, fs.ErrPermission):
		return base.Wrap(base.CodeInvalidArgument, what, err).WithHint("give the broker's user the right to write there, or choose another directory")
	case errors.Is(err, syscall.EROFS):
		return base.Wrap(base.CodeInvalidArgument, what, err).WithHint("the file system is read-only; choose another directory")
	}
	return base.Wrap(base.CodeInternal, what, err)
}

// dice are the placement's random choices.
func (s *Server) dice() *rand.Rand { return rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())) }
