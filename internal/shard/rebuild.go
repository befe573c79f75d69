package shard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/vfs"
)

// reportLogs describes the replica of a shard here, and those that were set aside.
func (h *Host) reportLogs(shard base.ShardID) *reportAnswer {
	m := h.current()
	has, _ := find(m.Hosted, shard)
	stub, _ := find(m.Stubs, shard)
	a := &reportAnswer{Heard: max(has.Generation, stub.Generation)}
	if g, err := h.group(shard); err == nil {
		a.Logs = append(a.Logs, g.reportLog())
	}
	for _, generation := range h.archives(shard) {
		old, err := h.readArchive(shard, generation)
		if err != nil {
			h.o.Logger.Warn("shard replica set aside cannot be read", "shard", shard.String(), "generation", generation, "error", err)
			continue
		}
		l := LogReport{Node: h.o.Node, Server: h.o.Meta, Generation: generation, Archived: true, Voters: old.voters()}
		l.Term, l.Index = old.end()
		a.Logs = append(a.Logs, l)
	}
	return a
}

func (g *group) reportLog() LogReport {
	l := LogReport{Node: g.host.o.Node, Server: g.host.o.Meta, Generation: g.hosted.Generation, Leads: g.readyTerm.Load() != 0}
	l.Term, l.Index = g.logEnd()
	for _, s := range g.servers() {
		if server, err := base.ParseUUID(string(s.ID)); err == nil && s.Suffrage == raft.Voter {
			l.Voters = append(l.Voters, server)
		}
	}
	return l
}

// logEnd is the term and index of the last entry, be it in the log or in the newest snapshot.
func (g *group) logEnd() (term, index uint64) {
	if last, _ := g.log.LastIndex(); last > 0 {
		var entry raft.Log
		if g.log.GetLog(last, &entry) == nil {
			term, index = entry.Term, last
		}
	}
	if list, _ := g.snapshots.List(); len(list) > 0 && list[0].Index > index {
		term, index = list[0].Term, list[0].Index
	}
	return term, index
}

// archive is a replica that was set aside.
type archive struct {
	log       record
	snapshots []snapshotMeta // newest first
	dir       string
}

const (
	quarantine  = "quarantine"
	archivedLog = "log.record"
)

// archives are the generations of a shard that were set aside here, newest first.
func (h *Host) archives(shard base.ShardID) []uint64 {
	entries, err := h.o.FS.ReadDir(filepath.Join(h.o.Dir, quarantine))
	if err != nil {
		return nil
	}
	var list []uint64
	for _, e := range entries {
		name, number, ok := strings.Cut(e.Name, "-")
		generation, err := strconv.ParseUint(number, 10, 64)
		if ok && err == nil && e.IsDir && name == shard.String() {
			list = append(list, generation)
		}
	}
	slices.Sort(list)
	slices.Reverse(list)
	return list
}

func (h *Host) archiveDir(shard base.ShardID, generation uint64) string {
	return filepath.Join(h.o.Dir, quarantine, shard.String()+"-"+strconv.FormatUint(generation, 10))
}

func (h *Host) readArchive(shard base.ShardID, generation uint64) (*archive, error) {
	a := &archive{dir: h.archiveDir(shard, generation)}
	b, err := vfs.ReadFile(h.o.FS, filepath.Join(a.dir, archivedLog))
	if err != nil {
		return nil, err
	}
	if a.log, err = decodeRecord(recordCheckpoint, b); err != nil {
		return nil, base.Wrap(base.CodeCorruptData, "read log set aside", err)
	}
	store, err := openSnapshotStore(h.o.FS, a.dir, h.o.Logger)
	if err != nil {
		return nil, err
	}
	a.snapshots = store.metas
	return a, nil
}

func (a *archive) end() (term, index uint64) {
	if n := len(a.log.entries); n > 0 {
		term, index = a.log.entries[n-1].Term, a.log.entries[n-1].Index
	}
	if len(a.snapshots) > 0 && a.snapshots[0].Index > index {
		term, index = a.snapshots[0].Term, a.snapshots[0].Index
	}
	return term, index
}

func (a *archive) voters() []base.UUID {
	var voters []base.UUID
	add := func(id string, voter bool) {
		if server, err := base.ParseUUID(id); err == nil && voter {
			voters = append(voters, server)
		}
	}
	for _, l := range slices.Backward(a.log.entries) {
		if l.Type == raft.LogConfiguration {
			for _, s := range raft.DecodeConfiguration(l.Data).Servers {
				add(string(s.ID), s.Suffrage == raft.Voter)
			}
			return voters
		}
	}
	if len(a.snapshots) > 0 {
		for _, s := range a.snapshots[0].Servers {
			add(s.ID, s.Voter)
		}
	}
	return voters
}

// onRebuild makes a shard anew of the log that is here.
func (h *Host) onRebuild(ctx context.Context, r *peer.Request) ([]byte, error) {
	var o rebuildOrder
	if err := decode(r.Body, &o); err != nil {
		return nil, err
	}
	return nil, h.rebuild(ctx, o)
}

// rebuild makes this node the only voter of a shard under a new generation, with the log it has.
//
//  1. The replica stops.
//  2. The manifest gets the new generation. From here on this node takes part in nothing of the old one; a crash
//     leaves a replica without a quorum, which a second recovery finds.
//  3. All the log is applied to one snapshot, which says who the only voter is and that the shard was recovered.
//  4. The replica starts and leads.
func (h *Host) rebuild(ctx context.Context, o rebuildOrder) error {
	const op = "rebuild shard"
	if err := h.meant(o.Order); err != nil {
		return err
	}
	if err := h.lockHosting(ctx); err != nil {
		return err
	}
	g, happened, err := h.rebuildLocked(o)
	h.unlockHosting()
	if err != nil {
		return base.Wrap(base.CodeInternal, op, err)
	}
	if err := g.lead(ctx); err != nil {
		return err
	}
	h.o.OnApply(g.id, happened)
	h.o.Logger.Warn("shard rebuilt", "shard", g.id.String(), "generation", g.hosted.Generation, "term", o.From.Term, "index", o.From.Index)
	return nil
}

func (h *Host) rebuildLocked(o rebuildOrder) (*group, []meta.Event, error) {
	shard, m := o.Order.Shard, h.current()
	if has, ok := find(m.Hosted, shard); ok && has.Generation >= o.Order.Generation {
		return nil, nil, base.Errorf(base.CodePreconditionFailed, "rebuild shard", "shard %s has generation %d here already", shard, has.Generation)
	}
	if !h.started {
		return nil, nil, base.Errorf(base.CodeNotAdmitted, "rebuild shard", "node %s has not joined yet", h.o.Node)
	}
	if err := h.provide(o); err != nil {
		return nil, nil, err
	}
	m = h.current()
	entry := hosted{Shard: shard, Generation: o.Order.Generation}
	m.Hosted, m.Stubs = with(m.Hosted, entry), without(m.Stubs, shard)
	if err := h.commit("rebuild shard", m); err != nil {
		return nil, nil, err
	}
	g, err := newGroup(h, entry)
	if err != nil {
		return nil, nil, err
	}
	happened, err := g.becomeWhole(o)
	if err != nil {
		return nil, nil, err
	}
	if err := g.start(h.running); err != nil {
		return nil, nil, err
	}
	h.mu.Lock()
	h.groups[shard] = g
	h.mu.Unlock()
	return g, happened, nil
}

// provide stops the replica here and sees to it that the log that was reported is what lies in its place.
func (h *Host) provide(o rebuildOrder) error {
	shard := o.Order.Shard
	changed := func(term, index uint64) error {
		if term == o.From.Term && index == o.From.Index {
			return nil
		}
		return base.Errorf(base.CodePreconditionFailed, "rebuild shard", "the log of shard %s ends at entry %d of term %d now, not at %d of %d", shard, index, term, o.From.Index, o.From.Term).
			WithHint("begin the recovery anew")
	}
	if !o.From.Archived {
		g, err := h.group(shard)
		if err != nil {
			return err
		}
		if g.hosted.Generation != o.From.Generation {
			return base.Errorf(base.CodePreconditionFailed, "rebuild shard", "shard %s has generation %d here, not %d", shard, g.hosted.Generation, o.From.Generation)
		}
		if err := h.stop(shard); err != nil {
			h.o.Logger.Warn("shard replica not stopped in order", "shard", shard.String(), "error", err)
		}
		return h.resume(g, changed(g.logEnd()))
	}
	a, err := h.readArchive(shard, o.From.Generation)
	if err != nil {
		return err
	}
	if err := changed(a.end()); err != nil {
		return err
	}
	// A replica that was begun since gives way, and is kept as well. From here to the new entry in the manifest there is
	// none here: a crash leaves nothing that could run with the log of another generation.
	if err := h.retire(shard, o.Order.Generation); err != nil {
		return err
	}
	return h.restore(shard, o.Order.Generation, a)
}

// resume begins a replica again that was stopped in vain. Without a reason it stays stopped.
func (h *Host) resume(old *group, reason error) error {
	if reason == nil {
		return nil
	}
	return errors.Join(reason, h.begin("rebuild shard", old.hosted))
}

// restore puts a replica that was set aside back into its place.
func (h *Host) restore(shard base.ShardID, generation uint64, a *archive) error {
	if err := h.clear(shard); err != nil {
		return err
	}
	dir := snapshotDir(h.o.Dir, shard)
	if err := h.o.FS.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, s := range a.snapshots {
		name := snapshotName(s.Index, s.Term)
		b, err := vfs.ReadFile(h.o.FS, filepath.Join(a.dir, name))
		if err != nil {
			return err
		}
		if err := vfs.WriteFileAtomic(h.o.FS, filepath.Join(dir, name), b, fs.FileMode(0o600)); err != nil {
			return err
		}
	}
	tail := h.log.tail(shard)
	if err := tail.begin(generation); err != nil {
		return err
	}
	for entries := a.log.entries; len(entries) > 0; {
		n := min(len(entries), applyBatch)
		logs := make([]*raft.Log, n)
		for i := range logs {
			logs[i] = &entries[i]
		}
		if err := tail.StoreLogs(logs); err != nil {
			return err
		}
		entries = entries[n:]
	}
	return nil
}

// becomeWhole turns the log of a group that does not run into one snapshot whose only voter is this node.
func (g *group) becomeWhole(o rebuildOrder) ([]meta.Event, error) {
	f := &rebuildFSM{id: g.id, shards: g.host.Shards(), state: meta.New(g.id, g.host.Shards()), record: meta.Command{
		TimeMs: time.Now().UnixMilli(), RecordRecovery: &meta.RecordRecovery{
			Generation: o.Order.Generation, Node: g.host.o.Node, Server: g.host.o.Meta, Term: o.From.Term, Index: o.From.Index, Lost: o.Lost,
		},
	}}
	alone := raft.Configuration{Servers: []raft.Server{{Suffrage: raft.Voter, ID: g.serverID, Address: g.transport.LocalAddr()}}}
	err := raft.RecoverCluster(g.config(), f, g.log, g.log, g.snapshots, g.transport, alone)
	if err != nil {
		return nil, fmt.Errorf("shard %s: %w", g.id, err)
	}
	return f.happened, nil
}

// rebuildFSM applies a log to a state that nobody serves, and ends with the record of the recovery.
type rebuildFSM struct {
	id       base.ShardID
	shards   int
	state    *meta.State
	record   meta.Command
	happened []meta.Event
}

// Apply executes one command of the log. One that cannot be read changes nothing, here as in any replica.
func (f *rebuildFSM) Apply(l *raft.Log) any {
	if cmd, err := meta.DecodeCommand(l.Data); err == nil {
		f.state.Apply(l.Index, cmd)
	}
	return nil
}

// Snapshot adds the record: the state without it never exists.
func (f *rebuildFSM) Snapshot() (raft.FSMSnapshot, error) {
	r, happened := f.state.Apply(f.state.Applied()+1, f.record)
	if err := r.Err("record recovery"); err != nil {
		return nil, err
	}
	f.happened = happened
	return &frozenState{state: f.state}, nil
}

// Restore begins from a snapshot.
func (f *rebuildFSM) Restore(r io.ReadCloser) error {
	state, err := meta.Decode(r, f.id, f.shards)
	if err == nil {
		f.state = state
	}
	return err
}
