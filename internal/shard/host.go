package shard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
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

	// OnLead is told when a group begins to serve as leader (everything before is applied) and when it ends. The
	// calls of one group come in order, from its own goroutine.
	OnLead func(shard base.ShardID, leading bool)
	// OnApply is told what a group applied, in order, on the leader and elsewhere alike. It must not block. A
	// snapshot that replaced the state comes as one call without events.
	OnApply func(shard base.ShardID, events []meta.Event)
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
	if o.Shards < 1 || o.Shards > MaxShards || o.Shards&(o.Shards-1) != 0 {
		return base.Errorf(base.CodeInvalidArgument, "open shards", "shards must be a power of two between 1 and %d, not %d", MaxShards, o.Shards)
	}
	if o.OnLead == nil {
		o.OnLead = func(base.ShardID, bool) {}
	}
	if o.OnApply == nil {
		o.OnApply = func(base.ShardID, []meta.Event) {}
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
	def(&o.StoreTimeout, 20*time.Second)
	def(&o.FileBytes, 8<<20)
	def(&o.MaxInFlight, 4096)
	def(&o.snapshotEntries, 1024)
	def(&o.snapshotBytes, 1<<20)
	return nil
}

func def[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// Host is this node's side of all shards.
type Host struct {
	o        Options
	manifest manifest
	log      *sharedLog
	groups   []*group // by shard; not changed after Open
	snaps    *snapshotter
	inFlight chan struct{} // one token a proposal

	cancel    context.CancelFunc
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
	if m.Shards == 0 {
		m.Shards = o.Shards
	}
	h := &Host{o: o, manifest: m, inFlight: make(chan struct{}, o.MaxInFlight)}
	h.log, err = openSharedLog(logOptions{
		WAL: wal.Options{
			FS: o.FS, Dir: filepath.Join(o.Dir, "wal"), UUID: o.Meta, FileBytes: o.FileBytes, OnFatal: o.OnFatal, Logger: o.Logger,
		},
		Timeout: o.StoreTimeout, MakeRoom: o.MakeRoom, Logger: o.Logger,
	})
	if err != nil {
		return nil, base.Wrap(base.CodeInternal, op, err)
	}
	for i := range m.Shards {
		g, err := newGroup(h, base.ShardID{Root: uint16(i)})
		if err != nil {
			return nil, errors.Join(base.Wrap(base.CodeInternal, op, err), h.log.close())
		}
		h.groups = append(h.groups, g)
	}
	h.snaps = newSnapshotter(o.Logger)
	return h, nil
}

// Start runs the groups. A group whose only voter is this node leads at once; Start returns when all of those serve.
// A host that was never bootstrapped starts with groups that do nothing.
func (h *Host) Start(ctx context.Context) error {
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	h.cancel = cancel
	h.log.start(running)
	h.snaps.start(running)
	if err := h.each(func(g *group) error { return g.start(running) }); err != nil {
		return err
	}
	return h.each(func(g *group) error {
		if !g.electsItself() {
			return nil
		}
		return g.lead(ctx)
	})
}

// each runs f for every group at once and waits: the groups share fsyncs only if they go side by side.
func (h *Host) each(f func(*group) error) error {
	errs := make([]error, len(h.groups))
	var wg sync.WaitGroup
	for i, g := range h.groups {
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
		// The groups before the log: they write to the log until they have stopped. The watchers end with their groups, and
		// say so to OnLead, so the context goes last.
		h.closeErr = h.each((*group).close)
		if h.cancel != nil {
			h.cancel()
		}
		h.snaps.wait()
		h.closeErr = errors.Join(h.closeErr, h.log.close())
	})
	return h.closeErr
}

// Shards is how many shards the cluster was bootstrapped with (before that, with how many it would be).
func (h *Host) Shards() int { return h.manifest.Shards }

// ShardOf names the shard that holds a topic.
func (h *Host) ShardOf(topicName string) base.ShardID {
	return meta.ShardOf(topicName, h.manifest.Shards)
}

// group finds the replica of a shard on this node.
func (h *Host) group(shard base.ShardID) (*group, error) {
	if shard.PathLen != 0 || int(shard.Root) >= len(h.groups) {
		return nil, base.Errorf(base.CodeShardNotFound, "find shard", "shard %s is not on this node", shard)
	}
	return h.groups[shard.Root], nil
}

// Status is a moment's figures of one shard.
type Status struct {
	ID      base.ShardID
	State   string // leader, follower, candidate or shutdown
	Leader  base.NodeID
	Term    uint64
	Commit  uint64
	Applied uint64
	Voters  []base.NodeID
	Topics  int
	Ready   bool // leads, and serves fresh reads
}

// Status lists this node's shards.
func (h *Host) Status() []Status {
	list := make([]Status, len(h.groups))
	for i, g := range h.groups {
		list[i] = g.status()
	}
	return list
}

// Leader names the node that leads a shard, as far as this replica knows; empty when it does not.
func (h *Host) Leader(shard base.ShardID) base.NodeID {
	g, err := h.group(shard)
	if err != nil || g.raft == nil {
		return ""
	}
	if _, id := g.raft.LeaderWithID(); id != "" {
		return g.nodeOf(id)
	}
	return ""
}

// LogStats are the figures of the shared log.
func (h *Host) LogStats() wal.Stats { return h.log.wal.Stats() }

// String is for logs.
func (h *Host) String() string {
	return fmt.Sprintf("%d shards of cluster %s", len(h.groups), h.manifest.Cluster)
}
