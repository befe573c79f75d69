package shard

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/hashicorp/raft"
)

// snapshotsAtOnce is how many groups may write a snapshot at the same time: they compete with the log for the disk.
const snapshotsAtOnce = 2

// snapshotter takes snapshots of groups whose log has grown. A group is queued at most once, so the queue is bounded
// by their number.
type snapshotter struct {
	logger  *slog.Logger
	work    chan *group
	running sync.WaitGroup

	mu     sync.Mutex
	growth map[*group]*growth
}

// growth is what a group has applied since its last snapshot began.
type growth struct {
	entries uint64
	bytes   int64
	queued  bool
}

func newSnapshotter(logger *slog.Logger) *snapshotter {
	return &snapshotter{logger: logger, work: make(chan *group, MaxShards), growth: make(map[*group]*growth)}
}

func (s *snapshotter) start(ctx context.Context) {
	for range snapshotsAtOnce {
		s.running.Go(func() {
			for {
				select {
				case g := <-s.work:
					s.snapshot(g)
				case <-ctx.Done():
					return
				}
			}
		})
	}
}

func (s *snapshotter) wait() { s.running.Wait() }

// forget drops the count of a group that has ended.
func (s *snapshotter) forget(g *group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.growth, g)
}

// grown counts what was applied and queues the group when it is worth a snapshot: the log has some length, and has
// grown by as much as half the last snapshot, so that a large state is not written again and again.
func (s *snapshotter) grown(g *group, entries int, bytes int64) {
	o := &g.host.o
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.growth[g]
	if n == nil {
		n = &growth{}
		s.growth[g] = n
	}
	n.entries += uint64(entries)
	n.bytes += bytes
	due := n.entries >= o.snapshotEntries || n.bytes >= o.snapshotBytes
	if n.queued || !due || n.bytes < g.snapshots.newestSize()/2 {
		return
	}
	*n = growth{queued: true}
	s.work <- g // has room for every group
}

func (s *snapshotter) snapshot(g *group) {
	err := g.raft.Snapshot().Error()
	s.mu.Lock()
	if n := s.growth[g]; n != nil { // the group may be gone
		n.queued = false
	}
	s.mu.Unlock()
	if err != nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) && !errors.Is(err, raft.ErrRaftShutdown) {
		s.logger.Warn("metadata snapshot not taken", "shard", g.id.String(), "error", err)
	}
}
