package shard

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/planner"
	"github.com/eastguard/eastguard/internal/vfs"
)

// hostQueue is how many orders about one group may wait.
const hostQueue = 4

// order tells a node to begin (kindHost) or give up (kindDrop) its replica of a group that is led here, and returns when
// that is durable there. It may be repeated.
func (h *Host) order(ctx context.Context, kind peer.Kind, g *group, node base.NodeID, server base.UUID, index uint64) error {
	m := h.current()
	_, err := h.o.Peers.CallGroup(ctx, node, kind, groupNumber(g.id), encode(&hostMessage{
		Cluster: m.Cluster, Shards: m.Shards, Shard: g.id, Server: server, Generation: g.hosted.Generation, Index: index,
		Growth: len(g.voters()) < len(planner.Intended(h.o.Ring(), g.id, h.o.Voters)),
	}))
	return err
}

// understand decodes an order and checks that it is meant for this node's metadata.
func (h *Host) understand(r *peer.Request) (hostMessage, error) {
	var o hostMessage
	if err := decode(r.Body, &o); err != nil {
		return o, err
	}
	return o, h.meant(o)
}

// meant refuses what was ordered for another directory or cluster.
func (h *Host) meant(o hostMessage) error {
	const op = "change hosted shards"
	m := h.current()
	switch {
	case o.Server != h.o.Meta:
		return base.Errorf(base.CodePreconditionFailed, op, "server %s is not here: the metadata of node %s is that of server %s", o.Server, h.o.Node, h.o.Meta)
	case m.Cluster.IsZero():
		return base.Errorf(base.CodeNotAdmitted, op, "node %s belongs to no cluster yet", h.o.Node)
	case o.Cluster != m.Cluster || o.Shards != m.Shards:
		return base.Errorf(base.CodePreconditionFailed, op, "node %s belongs to cluster %s of %d shards, not to %s of %d", h.o.Node, m.Cluster, m.Shards, o.Cluster, o.Shards)
	}
	return nil
}

// onHost begins a replica on the order of the shard's leader: empty, whatever was here before under an older
// generation. What it voted is kept.
func (h *Host) onHost(ctx context.Context, r *peer.Request) ([]byte, error) {
	o, err := h.understand(r)
	if err == nil {
		err = h.roomFor(o)
	}
	if err != nil {
		return nil, err
	}
	return nil, h.host(ctx, hosted{Shard: o.Shard, Generation: o.Generation, Index: o.Index})
}

// seatSettles is for how long at most a replica that was begun counts as on its way.
const seatSettles = time.Minute

// roomFor turns an order away while as many replicas as may come at once are on their way here. The leaders of shards
// count what they send themselves, but not what others do. The order is repeated.
func (h *Host) roomFor(o hostMessage) error {
	limit := planner.SeatsMoving
	if o.Growth {
		limit = planner.SeatsGrowing
	}
	coming := 0
	for _, g := range h.all() {
		if g.id == o.Shard {
			return nil
		}
		if g.up.Load() && !g.votes() && time.Since(g.began) < seatSettles {
			coming++
		}
	}
	if coming >= limit {
		return base.Errorf(base.CodeBusy, "host shard", "%d replicas are on their way to node %s", coming, h.o.Node)
	}
	return nil
}

func (h *Host) host(ctx context.Context, want hosted) error {
	const op = "host shard"
	if err := h.lockHosting(ctx); err != nil {
		return err
	}
	defer h.unlockHosting()
	m := h.current()
	switch stub, _ := find(m.Stubs, want.Shard); {
	case want.Generation < stub.Generation:
		return base.Errorf(base.CodeFenced, op, "shard %s has been rebuilt: generation %d, not %d", want.Shard, stub.Generation, want.Generation)
	case want.Generation == stub.Generation && want.Index < stub.Index:
		return base.Errorf(base.CodePreconditionFailed, op, "shard %s was taken from here by configuration %d, after %d", want.Shard, stub.Index, want.Index)
	}
	if has, ok := find(m.Hosted, want.Shard); ok {
		if has.Generation == want.Generation {
			return h.hostAgain(op, m, has, want)
		}
		if has.Generation > want.Generation {
			return base.Errorf(base.CodeFenced, op, "shard %s has been rebuilt: generation %d, not %d", want.Shard, has.Generation, want.Generation)
		}
		if err := h.retire(want.Shard, want.Generation); err != nil {
			return err
		}
		m = h.current()
	}
	if err := h.clear(want.Shard); err != nil {
		return base.Wrap(base.CodeInternal, op, err)
	}
	if err := h.log.tail(want.Shard).begin(want.Generation); err != nil {
		return base.Wrap(base.CodeInternal, op, err)
	}
	m.Hosted, m.Stubs = with(m.Hosted, want), without(m.Stubs, want.Shard)
	if err := h.commit(op, m); err != nil {
		return err
	}
	return h.begin(op, want)
}

// hostAgain takes a further order for a replica that the manifest lists. The caller holds hosting.
func (h *Host) hostAgain(op string, m manifest, has, want hosted) error {
	if want.Index > has.Index {
		// It may have been removed and added in between: the order to drop it that belongs to that is a late one now.
		m.Hosted = with(m.Hosted, want)
		if err := h.commit(op, m); err != nil {
			return err
		}
		has = want
	}
	if h.Hosts(has.Shard) {
		return nil
	}
	return h.begin(op, has) // the disk kept it from beginning, or made it stop in vain
}

// begin makes the group of a replica that the manifest lists, and runs it unless Start is still to come. The caller holds
// hosting.
func (h *Host) begin(op string, entry hosted) error {
	g, err := newGroup(h, entry)
	if err != nil {
		return base.Wrap(base.CodeInternal, op, err)
	}
	if h.started {
		if err := g.start(h.running); err != nil {
			return err
		}
	}
	h.mu.Lock()
	h.groups[entry.Shard] = g
	h.mu.Unlock()
	h.o.Logger.Debug("shard replica begun", "shard", entry.Shard.String(), "generation", entry.Generation)
	return nil
}

// onDrop gives a replica up that the configuration no longer lists.
func (h *Host) onDrop(ctx context.Context, r *peer.Request) ([]byte, error) {
	o, err := h.understand(r)
	if err != nil {
		return nil, err
	}
	return nil, h.drop(ctx, hosted{Shard: o.Shard, Generation: o.Generation, Index: o.Index})
}

func (h *Host) drop(ctx context.Context, order hosted) error {
	const op = "drop shard"
	if err := h.lockHosting(ctx); err != nil {
		return err
	}
	defer h.unlockHosting()
	m := h.current()
	has, ok := find(m.Hosted, order.Shard)
	switch {
	case !ok || has.Generation < order.Generation:
		return nil // gone already, or about to hear of its generation
	case has.Generation > order.Generation || has.Index > order.Index:
		return base.Errorf(base.CodePreconditionFailed, op, "shard %s came here by configuration %d of generation %d, after %d of %d",
			order.Shard, has.Index, has.Generation, order.Index, order.Generation)
	}
	if err := h.stop(order.Shard); err != nil {
		h.o.Logger.Warn("shard replica not stopped in order", "shard", order.Shard.String(), "error", err)
	}
	m.Hosted, m.Stubs = without(m.Hosted, order.Shard), with(m.Stubs, order)
	// The manifest first: what a crash leaves behind of the replica is removed when it comes again.
	if err := h.commit(op, m); err != nil {
		return err
	}
	if err := h.clear(order.Shard); err != nil {
		return base.Wrap(base.CodeInternal, op, err)
	}
	h.o.Logger.Debug("shard replica given up", "shard", order.Shard.String(), "configuration", order.Index)
	return nil
}

// stop ends a group and takes it out of the list. The caller holds hosting.
func (h *Host) stop(shard base.ShardID) error {
	h.mu.Lock()
	g := h.groups[shard]
	delete(h.groups, shard)
	h.mu.Unlock()
	if g == nil {
		return nil
	}
	err := g.close()
	h.snaps.forget(g)
	h.dropArriving(shard)
	return err
}

// clear removes what a replica had but its term and vote.
func (h *Host) clear(shard base.ShardID) error {
	if tail := h.log.tail(shard); tail.holdsEntries() {
		if err := tail.clear(); err != nil {
			return err
		}
	}
	dir := snapshotDir(h.o.Dir, shard)
	if _, err := h.o.FS.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := h.o.FS.RemoveAll(dir); err != nil {
		return err
	}
	return h.o.FS.SyncDir(filepath.Dir(dir))
}

// outdated hears that a group has been rebuilt after the loss of its quorum: the replica here is one of the past, and
// together with another such could elect a leader of the past. It stops, and waits for the order of the new leader.
func (h *Host) outdated(g *group, generation uint64) {
	if !g.retiring.CompareAndSwap(false, true) {
		return
	}
	h.retirements.Go(func() {
		if err := h.lockHosting(context.Background()); err != nil {
			return // the host is closing
		}
		defer h.unlockHosting()
		if now, err := h.group(g.id); err != nil || now != g {
			return
		}
		if err := h.retire(g.id, generation); err != nil {
			h.o.Logger.Error("shard replica of an older generation not set aside", "shard", g.id.String(), "error", err)
		}
	})
}

// retire stops a replica of an older generation and sets its state aside, for people. The caller holds hosting.
func (h *Host) retire(shard base.ShardID, generation uint64) error {
	const op = "set shard replica aside"
	m := h.current()
	has, ok := find(m.Hosted, shard)
	if !ok || has.Generation >= generation {
		return nil
	}
	if err := h.stop(shard); err != nil {
		h.o.Logger.Warn("shard replica not stopped in order", "shard", shard.String(), "error", err)
	}
	if err := h.archive(has); err != nil {
		return base.Wrap(base.CodeInternal, op, err)
	}
	m.Hosted, m.Stubs = without(m.Hosted, shard), with(m.Stubs, hosted{Shard: shard, Generation: generation})
	if err := h.commit(op, m); err != nil {
		return err
	}
	if err := h.clear(shard); err != nil {
		return base.Wrap(base.CodeInternal, op, err)
	}
	h.o.Logger.Warn("shard has been rebuilt elsewhere, the replica here was set aside", "shard", shard.String(),
		"generation", has.Generation, "newer", generation)
	return nil
}

// archive copies a replica's log and snapshots to meta_dir/quarantine/<shard>-<generation>: the log as one record of
// kind checkpoint.
func (h *Host) archive(one hosted) error {
	dir := h.archiveDir(one.Shard, one.Generation)
	if err := h.o.FS.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	entries, err := h.o.FS.ReadDir(snapshotDir(h.o.Dir, one.Shard))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		b, err := vfs.ReadFile(h.o.FS, filepath.Join(snapshotDir(h.o.Dir, one.Shard), e.Name))
		if err != nil {
			return err
		}
		if err := vfs.WriteFileAtomic(h.o.FS, filepath.Join(dir, e.Name), b, os.FileMode(0o600)); err != nil {
			return err
		}
	}
	return vfs.WriteFileAtomic(h.o.FS, filepath.Join(dir, archivedLog), h.log.tail(one.Shard).checkpoint(), 0o600)
}
