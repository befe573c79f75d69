package shard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/eastguard/eastguard/internal/base"
)

// Raft's timers. They cost idle time and decide nothing that matters here: a lone voter elects itself at
// once, and the failover of many is driven by the connections.
const (
	heartbeatTimeout = 4 * time.Second
	leaseTimeout     = 2 * time.Second
	commitTimeout    = 2 * time.Second
	applyBatch       = 256 // commands that may share a batch
	trailingLogs     = 256 // kept behind a snapshot, for followers that are a little late
	never            = 1000 * time.Hour
)

// group is one replica: the raft instance of one shard and what stands around it.
type group struct {
	host      *Host
	id        base.ShardID
	hosted    hosted
	serverID  raft.ServerID
	fsm       *fsm
	log       *logTail
	snapshots *snapshotStore
	transport *transport
	raft      *raft.Raft
	up        atomic.Bool // raft is there
	retiring  atomic.Bool // a newer generation has been heard of
	notify    chan bool   // raft's word on our leadership
	watching  sync.WaitGroup

	seating

	readyTerm atomic.Uint64 // the term in which this replica serves as leader; 0: it does not
	changed   chan struct{} // capacity 1: readyTerm has changed
	verifier  verifier
	gate      *gate
	stopped   chan struct{} // raft has stopped
}

func newGroup(h *Host, entry hosted) (*group, error) {
	id := entry.Shard
	g := &group{
		seating: seating{began: time.Now()}, host: h, id: id, hosted: entry, serverID: raft.ServerID(h.o.Meta.String()),
		notify: make(chan bool, 1), changed: make(chan struct{}, 1),
		gate: newGate(), stopped: make(chan struct{}),
	}
	var err error
	g.snapshots, err = openSnapshotStore(h.o.FS, snapshotDir(h.o.Dir, id), h.o.Logger)
	if err != nil {
		return nil, fmt.Errorf("shard %s: %w", id, err)
	}
	g.log = h.log.tail(id)
	if err := g.checkReach(); err != nil {
		return nil, err
	}
	g.log.keepFrom(g.snapshots.olderIndex())
	g.snapshots.older, g.snapshots.continues, g.snapshots.fatal = g.log.keepFrom, g.log.has, h.o.OnFatal
	g.fsm = newFSM(g, h.Shards())
	g.transport = newTransport(g)
	return g, nil
}

// checkReach refuses a log that does not continue the snapshot: raft would find the gap only when it needs the entry,
// and panic.
func (g *group) checkReach() error {
	snapshot := g.snapshots.newestIndex()
	first, _ := g.log.FirstIndex()
	last, _ := g.log.LastIndex()
	lost := func(format string, args ...any) error {
		return base.Errorf(base.CodeCorruptData, "open shard", "shard %s: "+format, append([]any{g.id}, args...)...).
			WithHint("restore the meta directory with its %s, or give the node up for a new one", g.snapshots.dir)
	}
	switch {
	case first > snapshot+1:
		return lost("the log begins at %d, but the newest readable snapshot ends at %d", first, snapshot)
	case last == 0 && snapshot == 0 && g.log.blank() && g.host.current().Done:
		return lost("neither log nor snapshot of it is left")
	case last != 0 && last < snapshot:
		// It was sent the snapshot, and stopped before it cleared the log. Entries behind the snapshot's end must
		// not follow on what lies before it.
		return g.log.DeleteRange(first, last)
	}
	return nil
}

func (g *group) start(ctx context.Context) error {
	r, err := raft.NewRaft(g.config(), g.fsm, g.log, g.log, g.snapshots, g.transport)
	if err != nil {
		return base.Wrap(base.CodeCorruptData, "start shard "+g.id.String(), err)
	}
	g.raft = r
	g.up.Store(true)
	g.watching.Go(func() { g.watch(ctx) })
	return nil
}

func (g *group) config() *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = g.serverID
	c.HeartbeatTimeout, c.ElectionTimeout = heartbeatTimeout, heartbeatTimeout
	c.LeaderLeaseTimeout, c.CommitTimeout = leaseTimeout, commitTimeout
	c.MaxAppendEntries, c.BatchApplyCh = applyBatch, true
	c.TrailingLogs = trailingLogs
	// Snapshots are the host's business: two at a time, when the log has grown, not when a timer fires.
	c.SnapshotInterval, c.SnapshotThreshold = never, 1<<62
	c.ShutdownOnRemove = false
	c.NoLegacyTelemetry = true
	c.NotifyCh = g.notify
	c.Logger = newLogger(g.host.o.Logger.With("shard", g.id.String()))
	return c
}

// watch turns raft's word on leadership into ours: ready only after a barrier, so that whatever earlier terms
// committed is applied before anything is served.
func (g *group) watch(ctx context.Context) {
	served := uint64(0) // the term we serve in
	stop := func() {
		if served != 0 {
			g.setReady(0)
			g.host.o.OnLead(g.id, false, served)
			served = 0
		}
	}
	defer stop()
	for {
		select {
		case leading, open := <-g.notify:
			stop()
			g.host.pulse.beat() // what waits for a follower of an earlier term need not
			if !open {
				return
			}
			if !leading {
				continue
			}
			if term := g.raft.CurrentTerm(); g.barrier(ctx) == nil && g.raft.CurrentTerm() == term {
				served = term
				g.setReady(term)
				g.host.o.OnLead(g.id, true, term)
			}
		case <-ctx.Done():
			return
		}
	}
}

func (g *group) barrier(ctx context.Context) error {
	return g.wait(ctx, func() raft.Future { return g.raft.Barrier(0) })
}

func (g *group) setReady(term uint64) {
	g.readyTerm.Store(term)
	select {
	case g.changed <- struct{}{}:
	default:
	}
}

// configured reports whether the group has members.
func (g *group) configured() bool { return len(g.servers()) > 0 }

// electsItself reports whether this replica is the only voter, so that nobody needs to be asked.
func (g *group) electsItself() bool {
	voters := 0
	ours := false
	for _, s := range g.servers() {
		if s.Suffrage == raft.Voter {
			voters++
			ours = ours || s.ID == g.serverID
		}
	}
	return voters == 1 && ours
}

// lead makes the only voter leader now instead of after the election timeout, and waits until it serves.
func (g *group) lead(ctx context.Context) error {
	if g.readyTerm.Load() != 0 {
		return nil // raft obeys a TimeoutNow even as leader, and would start over
	}
	if err := g.transport.timeoutNow(ctx); err != nil {
		return err
	}
	for g.readyTerm.Load() == 0 {
		select {
		case <-g.changed:
		case <-g.stopped: // it was set aside, or the node stops
			return base.Errorf(base.CodeShuttingDown, "lead shard", "shard %s has stopped on this node", g.id)
		case <-ctx.Done():
			return base.Wrap(base.CodeTimeout, "lead shard "+g.id.String(), context.Cause(ctx))
		}
	}
	return nil
}

// closePatience is how long a group waits for proposals that are under way before it stops: longer than a leader without
// its followers goes on waiting for them, so that it is raft that answers.
const closePatience = 3 * leaseTimeout

// close lets go who waits, then detaches the group from the transport, then stops raft: nothing must be left in raft's
// channels, since nobody would answer it.
func (g *group) close() error {
	if !g.up.Load() {
		return nil
	}
	g.verifier.stop()
	g.gate.close(closePatience)
	g.transport.close()
	err := g.raft.Shutdown().Error()
	close(g.stopped)
	close(g.notify) // raft has stopped, so nobody sends any more
	g.watching.Wait()
	if errors.Is(err, raft.ErrRaftShutdown) {
		return nil
	}
	return err
}

func (g *group) status() Status {
	s := Status{ID: g.id, Topics: g.fsm.topics(), Generation: g.hosted.Generation, Voters: g.voters()}
	if !g.up.Load() {
		s.State = "stopped"
		return s
	}
	s.State = stateName(g.raft.State())
	s.Leader, s.Term = g.leader()
	s.Commit, s.Applied = g.raft.CommitIndex(), g.raft.AppliedIndex()
	s.Ready = g.readyTerm.Load() != 0
	return s
}

// leader names the node that leads as far as this replica knows, and the term that it knows.
func (g *group) leader() (base.NodeID, uint64) {
	if !g.up.Load() {
		return "", 0
	}
	term := g.raft.CurrentTerm()
	addr, id := g.raft.LeaderWithID()
	if id == "" {
		return "", term
	}
	return g.nodeOf(id, addr), term
}

// servers are the members of the latest configuration that this replica has, committed or not.
func (g *group) servers() []raft.Server {
	if !g.up.Load() {
		return nil
	}
	f := g.raft.GetConfiguration()
	if f.Error() != nil {
		return nil
	}
	return f.Configuration().Servers
}

func (g *group) voters() []base.NodeID {
	var nodes []base.NodeID
	for _, server := range g.servers() {
		if server.Suffrage == raft.Voter {
			nodes = append(nodes, g.nodeOf(server.ID, server.Address))
		}
	}
	return nodes
}

// leads reports whether this replica leads in a term.
func (g *group) leads(term uint64) bool {
	return g.up.Load() && g.raft.State() == raft.Leader && g.raft.CurrentTerm() == term
}

// lists reports whether the configuration has a server.
func (g *group) lists(id raft.ServerID) bool {
	return slices.ContainsFunc(g.servers(), func(s raft.Server) bool { return s.ID == id })
}

// votes reports whether this replica is a voter.
func (g *group) votes() bool { return g.hasVoter(g.serverID) }

// hasVoter reports whether a server is a voter of the configuration here.
func (g *group) hasVoter(id raft.ServerID) bool {
	return slices.ContainsFunc(g.servers(), func(s raft.Server) bool { return s.ID == id && s.Suffrage == raft.Voter })
}

// nodeOf names the node of a server: its address is the node's id. A configuration of a version whose clusters had one
// node has the server's own id there.
func (g *group) nodeOf(id raft.ServerID, addr raft.ServerAddress) base.NodeID {
	if id == g.serverID {
		return g.host.o.Node
	}
	if string(addr) != string(id) {
		return base.NodeID(addr)
	}
	if server, err := base.ParseUUID(string(id)); err == nil {
		if node, ok := g.host.o.NodeOf(server); ok {
			return node
		}
	}
	return base.NodeID(id)
}

func stateName(s raft.RaftState) string {
	switch s {
	case raft.Follower:
		return "follower"
	case raft.Candidate:
		return "candidate"
	case raft.Leader:
		return "leader"
	case raft.Shutdown:
		return "shutdown"
	}
	return "unknown"
}
