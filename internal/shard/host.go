package shard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/ring"
	"github.com/eastguard/eastguard/internal/telemetry"
	"github.com/eastguard/eastguard/internal/topology"
	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/internal/wal"
)

// MaxShards is how many groups a cluster may be bootstrapped with.
const MaxShards = 1000

// Options say where a host lives and whom it tells. Zero values get the defaults named here.
type Options struct {
	FS     vfs.FS
	Dir    string    // meta_dir; must exist
	Meta   base.UUID // of the meta directory: the server id of this node's replicas
	Node   base.NodeID
	Shards int // for a bootstrap: a power of two; afterwards what was bootstrapped holds

	// Peers carries the messages between replicas. nil: a cluster of one.
	Peers *peer.Host
	// NodeOf names the node that a server id belongs to, by the root's node table; ServerOf is its inverse. What the
	// configuration of a group says of its own servers needs neither.
	NodeOf   func(server base.UUID) (base.NodeID, bool)
	ServerOf func(node base.NodeID) (base.UUID, bool)
	// View, Ring and Voters say who should have a seat in which group, and who should lead: shard_voters, 3.
	View   func() topology.View
	Ring   func() *ring.Ring
	Voters int

	// OnLead is told when a group begins to serve as leader (everything before is applied) and when it ends, with the
	// term. The calls of one group come in order, from its own goroutine.
	OnLead func(shard base.ShardID, leading bool, term uint64)
	// OnApply is told what a group applied, in order, on the leader and elsewhere alike. It must not block. A
	// snapshot that replaced the state comes as one call without events.
	OnApply func(shard base.ShardID, events []meta.Event)
	Metrics *telemetry.Registry // none
	// OnFatal is told, once, that the log cannot be written any more. The process must end.
	OnFatal func(error)
	// MakeRoom frees space in meta_dir when the disk is full, and reports whether it had any to free.
	MakeRoom func() bool
	Logger   *slog.Logger

	StoreTimeout time.Duration // a write that takes longer means a hung disk: 20 s
	FileBytes    int64         // size of a log file: 8 MiB
	MaxInFlight  int           // proposals at once, above which Propose answers CodeBusy: 4,096

	snapshotEntries uint64 // tests make snapshots frequent
	snapshotBytes   int64
}

func (o *Options) ensureDefaults() error {
	if !validShards(o.Shards) {
		return base.Errorf(base.CodeInvalidArgument, "open shards", "shards must be a power of two between 1 and %d, not %d", MaxShards, o.Shards)
	}
	if o.OnLead == nil {
		o.OnLead = func(base.ShardID, bool, uint64) {}
	}
	if o.OnApply == nil {
		o.OnApply = func(base.ShardID, []meta.Event) {}
	}
	if o.NodeOf == nil {
		o.NodeOf = func(base.UUID) (base.NodeID, bool) { return "", false }
	}
	if o.ServerOf == nil {
		o.ServerOf = func(base.NodeID) (base.UUID, bool) { return base.UUID{}, false }
	}
	if o.View == nil {
		o.View = func() topology.View { return topology.View{} }
	}
	if o.Ring == nil {
		empty := ring.New(nil, 0)
		o.Ring = func() *ring.Ring { return empty }
	}
	fatal := o.OnFatal
	if fatal == nil {
		fatal = func(error) {}
	}
	var once sync.Once // the wal tells of its end too
	o.OnFatal = func(err error) { once.Do(func() { fatal(err) }) }
	if o.MakeRoom == nil {
		o.MakeRoom = func() bool { return false }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Voters = cmp.Or(o.Voters, 3)
	o.StoreTimeout = cmp.Or(o.StoreTimeout, 20*time.Second)
	o.FileBytes = cmp.Or(o.FileBytes, 8<<20)
	o.MaxInFlight = cmp.Or(o.MaxInFlight, 4096)
	o.snapshotEntries = cmp.Or(o.snapshotEntries, 1024)
	o.snapshotBytes = cmp.Or(o.snapshotBytes, 1<<20)
	return nil
}

// Host is this node's side of all shards.
type Host struct {
	o        Options
	log      *sharedLog
	snaps    *snapshotter
	inFlight chan struct{} // one token a proposal
	stewards *stewards
	metrics  metrics

	// hosting is held, as a channel of capacity one, by whoever begins or ends groups or writes the manifest; not
	// while groups elect.
	hosting chan struct{}

	mu       sync.RWMutex
	manifest manifest
	groups   map[base.ShardID]*group

	pulse    pulse // something changed in who can be reached or leads
	beats    *heartbeats
	streams  chan struct{} // one token a snapshot that is being sent
	streamID atomic.Uint64
	incoming incoming

	retirements sync.WaitGroup
	watch       *watch // of the leaders of the groups here

	running   context.Context // what the groups run under; nil before the first start
	cancel    context.CancelFunc
	started   bool // Start has been called: groups that come later run at once
	closing   chan struct{}
	closeOnce sync.Once
	closeErr  error
}

// Open recovers the log and checks the snapshots. Nothing runs yet but the log itself.
func Open(o Options) (*Host, error) {
	const op = "open shards"
	if err := o.ensureDefaults(); err != nil {
		return nil, err
	}
	m, err := readManifest(o.FS, o.Dir)
	if err != nil {
		return nil, err
	}
	h := &Host{
		o: o, manifest: m, metrics: newMetrics(o.Metrics), groups: make(map[base.ShardID]*group),
		inFlight: make(chan struct{}, o.MaxInFlight), hosting: make(chan struct{}, 1),
		streams:  make(chan struct{}, streamsOut),
		incoming: incoming{streams: make(map[base.ShardID]*arriving)},
		closing:  make(chan struct{}),
	}
	h.watch = newWatch(h)
	h.beats = newHeartbeats(o.Peers, func() bool { return h.watch.standsStill(time.Now()) })
	h.stewards = newStewards(h)
	h.streamID.Store(rand.Uint64()) // one of an earlier process is another
	h.log, err = openSharedLog(logOptions{
		WAL: wal.Options{
			FS: o.FS, Dir: filepath.Join(o.Dir, "wal"), UUID: o.Meta, FileBytes: o.FileBytes, OnFatal: o.OnFatal, Logger: o.Logger,
			Observe: func(c wal.CommitStats) { h.metrics.fsync.Observe(c.Sync) },
		},
		Timeout: o.StoreTimeout, MakeRoom: o.MakeRoom, Logger: o.Logger,
	})
	if err != nil {
		return nil, base.Wrap(base.CodeInternal, op, err)
	}
	if err := h.openGroups(); err != nil {
		return nil, errors.Join(base.Wrap(base.CodeInternal, op, err), h.log.close())
	}
	h.snaps = newSnapshotter(o.Logger)
	return h, nil
}

// openGroups makes the groups of the manifest.
func (h *Host) openGroups() error {
	m := h.current()
	if m.Cluster.IsZero() && !h.log.empty() {
		return base.Errorf(base.CodeCorruptData, "open shards", "%s is missing, but there is a metadata log beside it", filepath.Join(h.o.Dir, manifestName)).
			WithHint("restore the meta directory, or give the node up for a new one")
	}
	for _, hosted := range m.Hosted {
		g, err := newGroup(h, hosted)
		if err != nil {
			return err
		}
		h.mu.Lock()
		h.groups[hosted.Shard] = g
		h.mu.Unlock()
	}
	for _, stub := range m.Stubs { // what a crash left of replicas that were being given up
		if err := h.clear(stub.Shard); err != nil {
			return err
		}
	}
	return nil
}

// StartRoot runs only the root's replica, if there is one here: a node that the cluster has not admitted yet has no
// other business.
func (h *Host) StartRoot(ctx context.Context) error {
	return h.start(ctx, func() []*group {
		if g, err := h.group(base.RootShard); err == nil {
			return []*group{g}
		}
		return nil
	})
}

// Start runs the groups, and from now on each that comes. A group whose only voter is this node leads at once; Start
// returns when all of those serve.
func (h *Host) Start(ctx context.Context) error {
	err := h.start(ctx, func() []*group {
		h.started = true
		return h.all()
	})
	if err == nil {
		h.stewards.start(h.running)
	}
	return err
}

// start runs those of the groups that do not run yet.
func (h *Host) start(ctx context.Context, groups func() []*group) error {
	if err := h.lockHosting(ctx); err != nil {
		return err
	}
	if h.running == nil {
		h.running, h.cancel = context.WithCancel(context.WithoutCancel(ctx))
		h.log.start(h.running)
		h.snaps.start(h.running)
		h.watch.start(h.running)
	}
	fresh := slices.DeleteFunc(groups(), func(g *group) bool { return g.up.Load() })
	err := each(fresh, func(g *group) error { return g.start(h.running) })
	h.unlockHosting()
	if err != nil {
		return err
	}
	return each(fresh, func(g *group) error {
		if !g.electsItself() {
			return nil
		}
		if err := g.lead(ctx); err != nil && !g.retiring.Load() { // which ends it, and means no harm
			return err
		}
		return nil
	})
}

// lockHosting waits for the right to begin and end groups. It is a channel because whoever has it waits for the disk.
func (h *Host) lockHosting(ctx context.Context) error {
	select {
	case h.hosting <- struct{}{}:
		return nil
	case <-h.closing:
		return base.Errorf(base.CodeShuttingDown, "change hosted shards", "the node is stopping")
	case <-ctx.Done():
		return base.Wrap(base.CodeTimeout, "change hosted shards", context.Cause(ctx))
	}
}

func (h *Host) unlockHosting() { <-h.hosting }

// all are the groups of this moment, in the order of their ids.
func (h *Host) all() []*group {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return slices.SortedFunc(maps.Values(h.groups), func(a, b *group) int { return a.id.Compare(b.id) })
}

// each runs f for every group at once and waits: the groups share fsyncs only if they go side by side.
func each(groups []*group, f func(*group) error) error {
	errs := make([]error, len(groups))
	var wg sync.WaitGroup
	for i, g := range groups {
		wg.Go(func() { errs[i] = f(g) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Close stops the groups and then the log. It may be called twice.
func (h *Host) Close() error {
	h.closeOnce.Do(func() {
		// Whoever waits for a disk that failed would keep its group from stopping.
		h.log.release()
		close(h.closing)
		h.stewards.stop()       // they change members and leaders of groups that run
		h.hosting <- struct{}{} // for good: no group begins any more
		// The groups before the log: they write to the log until they have stopped. The watchers end with their groups, and
		// say so to OnLead, so the context goes last.
		h.closeErr = each(h.all(), (*group).close)
		if h.cancel != nil {
			h.cancel()
		}
		h.watch.wait()
		h.retirements.Wait()
		h.snaps.wait()
		h.dropAllArriving()
		h.closeErr = errors.Join(h.closeErr, h.log.close())
	})
	return h.closeErr
}

// Shards is how many shards the cluster has; 0 as long as this node knows of no cluster.
func (h *Host) Shards() int {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.manifest.Shards
}

// Cluster is the cluster that this directory belongs to; zero as long as it belongs to none.
func (h *Host) Cluster() base.ClusterID {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.manifest.Cluster
}

// Hosts reports whether this node has a replica of a shard.
func (h *Host) Hosts(shard base.ShardID) bool {
	_, err := h.group(shard)
	return err == nil
}

// ShardOf names the shard that holds a topic.
func (h *Host) ShardOf(topicName string) base.ShardID {
	return meta.ShardOf(topicName, max(h.Shards(), 1))
}

// group finds the replica of a shard on this node.
func (h *Host) group(shard base.ShardID) (*group, error) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if g := h.groups[shard]; g != nil {
		return g, nil
	}
	return nil, base.Errorf(base.CodeShardNotFound, "find shard", "shard %s is not on this node", shard)
}

// Status is a moment's figures of one shard.
type Status struct {
	ID         base.ShardID
	State      string // leader, follower, candidate, shutdown, or stopped before the start
	Leader     base.NodeID
	Term       uint64
	Commit     uint64
	Applied    uint64
	Voters     []base.NodeID
	Topics     int
	Ready      bool // leads, and serves fresh reads
	Generation uint64
}

// Status lists the replicas on this node.
func (h *Host) Status() []Status {
	groups := h.all()
	list := make([]Status, len(groups))
	for i, g := range groups {
		list[i] = g.status()
	}
	return list
}

// Leader names the node that leads a shard and its term, as far as the replica here knows; empty when it does not.
func (h *Host) Leader(shard base.ShardID) (base.NodeID, uint64) {
	g, err := h.group(shard)
	if err != nil {
		return "", 0
	}
	return g.leader()
}

// Voters are the nodes that vote in a shard, by the configuration of the replica here.
func (h *Host) Voters(shard base.ShardID) []base.NodeID {
	g, err := h.group(shard)
	if err != nil {
		return nil
	}
	return g.voters()
}

// LogStats are the figures of the shared log.
func (h *Host) LogStats() wal.Stats { return h.log.wal.Stats() }

// String is for logs.
func (h *Host) String() string {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return fmt.Sprintf("%d of %d shards of cluster %s", len(h.groups), h.manifest.Shards, h.manifest.Cluster)
}

// rolledBack reports whether a node that the root knows runs with an older image of its disk, as far as the connection
// with it says. Only votes of the root's own group are counted so: a node runs no other before it is admitted.
func (h *Host) rolledBack(g *group, node base.NodeID) bool {
	if g.id != base.RootShard || h.o.Peers == nil {
		return false
	}
	s, ok := h.o.Peers.Liveness()[node]
	return ok && h.rolledBackStart(g, node, s.Boot, s.Instance)
}

// rolledBackStart is the same of one process: its start was counted before the one that registered last, or is a
// second one of that number.
func (h *Host) rolledBackStart(g *group, node base.NodeID, boot uint64, instance base.UUID) bool {
	if g.id != base.RootShard || boot == 0 {
		return false
	}
	old := false
	_ = g.fsm.view(func(s *meta.State) error {
		if root := s.Root(); root != nil {
			if n := root.Node(node); n != nil {
				old = boot < n.Boot || boot == n.Boot && instance != n.Instance
			}
		}
		return nil
	})
	return old
}
