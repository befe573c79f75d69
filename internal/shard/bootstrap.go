package shard

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/hashicorp/raft"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/vfs"
)

// manifest is what a meta directory was bootstrapped as. It is written before the first group is, so that an
// interrupted bootstrap goes on as the same cluster.
type manifest struct {
	Cluster base.ClusterID `json:"cluster"`
	Shards  int            `json:"shards"`
	Done    bool           `json:"done"` // every group has its configuration
}

const manifestName = "groups.json"

// keyTerm is where raft keeps its term in the stable store.
var keyTerm = []byte("CurrentTerm")

func readManifest(fsys vfs.FS, dir string) (manifest, error) {
	const op = "open shards"
	var m manifest
	name := filepath.Join(dir, manifestName)
	b, err := vfs.ReadFile(fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return m, base.Wrap(base.CodeInternal, op, err)
	}
	if err := json.Unmarshal(b, &m); err != nil || m.Shards < 1 || m.Shards > MaxShards || m.Shards&(m.Shards-1) != 0 {
		return m, base.Errorf(base.CodeCorruptData, op, "%s is damaged", name).WithHint("restore the meta directory, or give the node up for a new one")
	}
	return m, nil
}

func (m manifest) write(fsys vfs.FS, dir string) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return vfs.WriteFileAtomic(fsys, filepath.Join(dir, manifestName), append(b, '\n'), 0o600)
}

// Cluster is the id this directory was bootstrapped with; zero when it never was.
func (h *Host) Cluster() base.ClusterID { return h.manifest.Cluster }

// Bootstrapped reports whether the groups exist.
func (h *Host) Bootstrapped() bool { return h.manifest.Done }

// Bootstrap makes this node the only voter of every shard of a new cluster, once. An interrupted bootstrap is
// completed by the next call, under the id it began with, which is the one returned. It returns when all shards serve.
func (h *Host) Bootstrap(ctx context.Context, cluster base.ClusterID) (base.ClusterID, error) {
	const op = "bootstrap"
	if h.manifest.Cluster.IsZero() {
		m := manifest{Cluster: cluster, Shards: h.manifest.Shards}
		if err := m.write(h.o.FS, h.o.Dir); err != nil {
			return base.ClusterID{}, base.Wrap(base.CodeInternal, op, err)
		}
		h.manifest = m
	}
	err := h.each(func(g *group) error {
		if err := g.bootstrap(ctx); err != nil {
			return err
		}
		return g.lead(ctx)
	})
	if err != nil {
		return base.ClusterID{}, base.Wrap(base.CodeInternal, op, err)
	}
	r, err := h.Propose(ctx, base.RootShard, meta.Command{InitCluster: &meta.InitCluster{Cluster: h.manifest.Cluster}})
	if err == nil {
		err = r.Err(op)
	}
	if err != nil {
		return base.ClusterID{}, err
	}
	h.manifest.Done = true
	if err := h.manifest.write(h.o.FS, h.o.Dir); err != nil {
		return base.ClusterID{}, base.Wrap(base.CodeInternal, op, err)
	}
	return h.manifest.Cluster, nil
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
