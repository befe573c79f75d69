package shard

import (
	"context"

	"github.com/hashicorp/raft"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
)

// keyTerm is where raft keeps its term in the stable store.
var keyTerm = []byte("CurrentTerm")

// Bootstrapped reports whether this directory belongs to a cluster whose groups exist.
func (h *Host) Bootstrapped() bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.manifest.Done
}

// Adopt makes this directory one of a cluster that exists. It hosts nothing yet: replicas come by the orders of the
// shards' leaders. To adopt the same cluster again changes nothing.
func (h *Host) Adopt(cluster base.ClusterID, shards int) error {
	const op = "adopt cluster"
	if cluster.IsZero() || !validShards(shards) {
		return base.Errorf(base.CodeInvalidArgument, op, "a cluster %s of %d shards cannot be", cluster, shards)
	}
	if err := h.lockHosting(context.Background()); err != nil {
		return err
	}
	defer h.unlockHosting()
	switch m := h.current(); {
	case m.Cluster.IsZero():
		return h.commit(op, manifest{Cluster: cluster, Shards: shards, Done: true, Hosted: []hosted{}})
	case m.Cluster != cluster || m.Shards != shards:
		return base.Errorf(base.CodePreconditionFailed, op, "the meta directory belongs to cluster %s of %d shards, not to %s of %d", m.Cluster, m.Shards, cluster, shards).
			WithHint("give the node an empty meta_dir, or the configuration of its own cluster")
	case !m.Done:
		return base.Errorf(base.CodePreconditionFailed, op, "the meta directory has begun to found cluster %s", m.Cluster)
	}
	return nil
}

// current is the manifest of this moment.
func (h *Host) current() manifest {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.manifest
}

// commit makes a manifest durable, then true. The caller holds hosting.
func (h *Host) commit(op string, m manifest) error {
	if err := m.write(h.o.FS, h.o.Dir); err != nil {
		return base.Wrap(base.CodeInternal, op, err)
	}
	h.mu.Lock()
	h.manifest = m
	h.mu.Unlock()
	return nil
}

// Bootstrap makes this node the only voter of every shard of a new cluster, once. An interrupted bootstrap is
// completed by the next call, under the id it began with, which is the one returned. It returns when all shards serve.
// Start comes before it.
func (h *Host) Bootstrap(ctx context.Context, cluster base.ClusterID) (base.ClusterID, error) {
	const op = "bootstrap"
	if err := h.lockHosting(ctx); err != nil {
		return base.ClusterID{}, err
	}
	defer h.unlockHosting()
	m := h.current()
	if m.Cluster.IsZero() {
		m = manifest{Cluster: cluster, Shards: h.o.Shards}
		m.hostAll()
		if err := h.commit(op, m); err != nil {
			return base.ClusterID{}, err
		}
		if err := h.openGroups(); err != nil {
			return base.ClusterID{}, base.Wrap(base.CodeInternal, op, err)
		}
	}
	err := each(h.all(), func(g *group) error {
		if !g.up.Load() {
			if err := g.start(h.running); err != nil {
				return err
			}
		}
		if err := g.bootstrap(ctx); err != nil {
			return err
		}
		return g.lead(ctx)
	})
	if err != nil {
		return base.ClusterID{}, base.Wrap(base.CodeInternal, op, err)
	}
	r, err := h.Propose(ctx, base.RootShard, meta.Command{InitCluster: &meta.InitCluster{Cluster: m.Cluster}})
	if err == nil {
		err = r.Err(op)
	}
	if err != nil {
		return base.ClusterID{}, err
	}
	m.Done = true
	return m.Cluster, h.commit(op, m)
}

// bootstrap writes the group's first configuration: this node alone. One that has a configuration keeps it.
func (g *group) bootstrap(ctx context.Context) error {
	if g.configured() {
		return nil
	}
	// A crash between the term and the first entry leaves a term that raft takes for an old life. There was none: a
	// group without a configuration has never voted.
	if last, _ := g.log.LastIndex(); last == 0 && g.snapshots.newestIndex() == 0 {
		if term, _ := g.log.GetUint64(keyTerm); term > 0 {
			if err := g.log.SetUint64(keyTerm, 0); err != nil {
				return err
			}
		}
	}
	alone := raft.Configuration{Servers: []raft.Server{{Suffrage: raft.Voter, ID: g.serverID, Address: g.transport.LocalAddr()}}}
	return g.wait(ctx, func() raft.Future { return g.raft.BootstrapCluster(alone) })
}

// wait is future.Error with ways out: raft does not answer what it had not begun when it was stopped. The gate keeps
// that from happening in good order; after a failure a goroutine stays behind, in a process that is about to end.
func (g *group) wait(ctx context.Context, ask func() raft.Future) error {
	if !g.gate.enter() {
		return raft.ErrRaftShutdown
	}
	done := make(chan error, 1)
	go func() {
		defer g.gate.leave()
		done <- ask().Error()
	}()
	select {
	case err := <-done:
		return err
	case <-g.stopped:
		return raft.ErrRaftShutdown
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
