package server

import (
	"context"
	"errors"
	"maps"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/gossip"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/planner"
	"github.com/eastguard/eastguard/internal/ring"
	"github.com/eastguard/eastguard/internal/task"
	"github.com/eastguard/eastguard/internal/topology"
)

// What this node believes of the others. Three sources meet here: the gossip (who lives), the root's node table (who
// belongs, and how they stand) and what nodes report of their disks. They are folded into one View and one ring, which
// readers take without a lock.

const (
	rebuildGap   = 50 * time.Millisecond // at most so often: a storm of rumours is one change
	unmetFor     = 10 * time.Second      // after which a listed node that the gossip has not met counts as dead
	keepAll      = 32                    // members up to which everybody stays connected with everybody
	leaveTimeout = time.Second
)

// membership is the state of all this.
type membership struct {
	self  base.NodeID
	tasks *task.Group
	folds turn             // to rebuild
	wake  chan struct{}    // something has changed
	pull  chan base.NodeID // this node says that it has a newer table

	agent atomic.Pointer[gossip.Agent] // nil until the node belongs to a cluster
	table atomic.Pointer[nodeTable]
	view  atomic.Pointer[topology.View]
	ring  atomic.Pointer[versionedRing]

	mu        sync.Mutex
	usages    map[base.NodeID]topology.Usage
	addresses map[base.NodeID]string // where members were last reached, ip:port
	listed    map[base.NodeID]time.Time
	seen      map[base.NodeID]sighting // what the journal was told last
	starts    planner.Starts
	slowness  planner.Slowness
	builtFrom tableVersion // the ring
	unsaved   bool
}

// versionedRing is a ring and the node table that it was made of.
type versionedRing struct {
	ring    *ring.Ring
	version base.Version
}

func (m *membership) init(self base.NodeID) {
	m.self = self
	m.folds = newTurn()
	m.wake, m.pull = make(chan struct{}, 1), make(chan base.NodeID, 1)
	m.usages, m.addresses = make(map[base.NodeID]topology.Usage), make(map[base.NodeID]string)
	m.listed, m.seen = make(map[base.NodeID]time.Time), make(map[base.NodeID]sighting)
	m.table.Store(&nodeTable{})
	m.view.Store(&topology.View{})
	m.ring.Store(&versionedRing{ring: ring.New(nil, 0)})
}

func (m *membership) nodeTable() *nodeTable { return m.table.Load() }

// member is what the gossip says of a node.
func (m *membership) member(id base.NodeID) (gossip.Member, bool) {
	if a := m.agent.Load(); a != nil {
		return a.Snapshot().Member(id)
	}
	return gossip.Member{}, false
}

func (m *membership) lastAddress(id base.NodeID) (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	addr, ok := m.addresses[id]
	return addr, ok
}

// note remembers where a node was reached.
func (m *membership) note(id base.NodeID, addr string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if id != m.self && addr != "" && m.addresses[id] != addr {
		m.addresses[id] = addr
		m.unsaved = true
	}
}

// known are the addresses to look for members at.
func (m *membership) known() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]string, 0, len(m.addresses))
	for _, addr := range m.addresses {
		list = append(list, addr)
	}
	return list
}

func (m *membership) restore(saved savedTable, cluster base.ClusterID) {
	if saved.Table != nil && saved.Table.Cluster == cluster && saved.Table.sound() {
		m.table.Store(saved.Table)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.Copy(m.addresses, saved.Addresses)
	delete(m.addresses, m.self)
}

func (m *membership) saved() savedTable {
	m.mu.Lock()
	defer m.mu.Unlock()
	return savedTable{Table: m.table.Load(), Addresses: maps.Clone(m.addresses)}
}

// setTable takes a newer table and reports whether it was.
func (m *membership) setTable(t *nodeTable) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !t.at().newerThan(m.table.Load().at()) {
		return false
	}
	m.table.Store(t)
	m.unsaved = true
	return true
}

func (m *membership) wakeUp() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// makeGossipNetwork takes the packets and streams of the cluster port.
func (s *Server) makeGossipNetwork(streams net.Listener) error {
	udp := gossip.NewUDP(s.ports.packets, s.self.gossip, func(ctx context.Context, to string) (net.Conn, error) {
		return peer.DialTag(ctx, s.deps.Dial, to, peer.TagGossip)
	})
	udp.Start()
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			c, err := streams.Accept()
			if err != nil {
				return // its end is the demux's
			}
			udp.Accept(c)
		}
	})
	s.gossipNet = udp
	s.undo.Push("gossip network", func() error {
		err := ignoreClosed(udp.Close())
		_ = streams.Close()
		accepting.Wait()
		return err
	})
	return nil
}

// startMembership joins the gossip, as a node that is not admitted yet, and begins to keep the view.
func (s *Server) startMembership(ctx context.Context) error {
	agent, err := gossip.New(gossip.Options{
		Cluster: s.clusterID(), Network: s.gossipNet, Seeds: s.cfg.JoinSeedNodes, Known: s.members.known(), SecretKey: s.deps.ClusterKey,
		Lookup: s.deps.Lookup, Logger: s.deps.Logger, OnFatal: s.stop,
		Self: gossip.Self{
			Node: s.id.Node, Boot: s.id.Boot, Instance: s.instance, StartedMs: s.started.UnixMilli(), Disk: s.id.Disk,
			Client: s.self.client, Peer: s.self.named(), Data: s.self.data, Admin: s.self.admin,
			Rack: s.cfg.Rack, Labels: s.cfg.Labels, Version: s.deps.Version,
		},
	})
	if err != nil {
		return err
	}
	if err := agent.Start(ctx); err != nil {
		return err
	}
	s.members.agent.Store(agent)
	s.claimLed(agent)
	s.undo.Push("membership", func() error { return errors.Join(s.leaveCluster(), agent.Close()) })
	s.readRoot()
	s.rebuild(ctx)
	s.members.tasks = task.NewGroup(context.WithoutCancel(ctx), "membership")
	s.members.tasks.Go("view", s.keepView)
	s.members.tasks.Go("node table", s.pullTables)
	s.members.tasks.Go("usage", s.reportUsage)
	s.members.tasks.Go("strangers", s.lookForStrangers)
	s.undo.Push("membership tasks", s.members.tasks.Close)
	return nil
}

// claimLed spreads what this node leads already: a founder leads everything before there is anybody to tell.
func (s *Server) claimLed(agent *gossip.Agent) {
	for _, st := range s.host.Status() {
		if st.Leader == s.id.Node && st.Ready {
			agent.Claim(gossip.Claim{Shard: st.ID, Leader: st.Leader, Term: st.Term, Generation: st.Generation})
		}
	}
}

// keepView rebuilds the view when something has changed, and now and then for what changes by itself.
func (s *Server) keepView(ctx context.Context) error {
	rumours, stop := s.members.agent.Load().Subscribe()
	defer stop()
	for {
		select {
		case <-rumours:
		case <-s.members.wake:
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil
		}
		s.readRoot()
		s.rebuild(ctx)
		if !task.Pause(ctx, rebuildGap) {
			return nil
		}
	}
}

// rebuild folds what is known into the view and the ring, and tells those who depend on them.
func (s *Server) rebuild(ctx context.Context) {
	m := &s.members
	if m.folds.take(ctx) != nil {
		return // the node is stopping
	}
	defer m.folds.give()
	agent := m.agent.Load()
	snapshot, table := agent.Snapshot(), m.nodeTable()
	s.hearGenerations(agent)
	news := m.sightings(snapshot)
	s.foldView(snapshot, table)
	pushed := s.foldRing(table)
	for _, n := range news {
		s.noteMember(n)
	}
	for i := range snapshot.Members {
		if member := &snapshot.Members[i]; member.Liveness <= topology.Suspect {
			m.note(member.Node, member.Address)
		}
	}
	s.keepPeers(snapshot)
	if m.forgetStrangers(snapshot, table) {
		s.saveTable()
	}
	if pushed {
		if leader, _ := s.host.Leader(base.RootShard); leader == s.id.Node {
			s.pushTable(table)
		}
	}
	if s.router != nil {
		s.router.Wake()
	}
}

// forgetStrangers drops what is kept of nodes that are neither listed nor met, and reports whether the file is behind.
func (m *membership) forgetStrangers(snapshot *gossip.Snapshot, table *nodeTable) (unsaved bool) {
	stranger := func(id base.NodeID) bool {
		_, met := snapshot.Member(id)
		return !met && table.node(id) == nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(table.Nodes) > 0 { // before there is a table, the addresses are the way to it
		maps.DeleteFunc(m.addresses, func(id base.NodeID, _ string) bool { return stranger(id) })
	}
	maps.DeleteFunc(m.usages, func(id base.NodeID, _ topology.Usage) bool { return stranger(id) })
	m.starts.Forget(stranger)
	maps.DeleteFunc(m.listed, func(id base.NodeID, _ time.Time) bool { return table.node(id) == nil })
	unsaved, m.unsaved = m.unsaved, false
	return unsaved
}

// foldView makes the next view and publishes it if it says something new.
func (s *Server) foldView(snapshot *gossip.Snapshot, table *nodeTable) {
	m := &s.members
	now := time.Now()
	var events []topology.Event
	for i := range snapshot.Members {
		events = append(events, memberEvents(&snapshot.Members[i], table)...)
	}
	m.mu.Lock()
	for _, n := range table.Nodes {
		since, ok := m.listed[n.ID]
		if !ok {
			since = now
			m.listed[n.ID] = now
		}
		events = append(events, topology.Event{Listed: listedNode(n, now.Sub(since) >= unmetFor)})
	}
	for _, u := range m.usages {
		events = append(events, topology.Event{Usage: &u})
	}
	events = append(events, m.judge(snapshot, now)...)
	m.mu.Unlock()
	before := m.view.Load()
	next := topology.Build(before.Version+1, events)
	if next.Equal(*before) {
		return
	}
	m.view.Store(&next)
	s.viewChanged()
	s.watches.changed()
}

// memberEvents is a member as the gossip has it. It is admitted when the root lists this start of it; or a later one
// says of itself that it was, for when the root has no leader the newest table admits.
func memberEvents(member *gossip.Member, table *nodeTable) []topology.Event {
	events := member.Events()
	listed := table.node(member.Node)
	events[0].Seen.Admitted = listed != nil && listed.Disk == member.Disk &&
		(listed.Boot == member.Boot || listed.Boot < member.Boot && member.State != gossip.Starting)
	return events
}

func listedNode(n *meta.Node, gone bool) *topology.Listed {
	return &topology.Listed{
		ID: n.ID, Disk: n.Disk, Boot: n.Boot, Instance: n.Instance, Address: n.Address, Rack: n.Rack, Labels: n.Labels,
		Version: n.Version, Standing: standing(n.State), Gone: gone,
	}
}

func standing(s meta.NodeState) topology.Standing {
	switch s {
	case meta.NodeDraining:
		return topology.Draining
	case meta.NodeOut:
		return topology.Out
	case meta.NodeNormal:
	}
	return topology.Normal
}

// foldRing makes the ring of the nodes that are listed and not out, and reports whether the table is a new one. It is
// the table's alone, so that every node with the same table has the same ring.
func (s *Server) foldRing(table *nodeTable) (changed bool) {
	m := &s.members
	if m.builtFrom == table.at() {
		return false
	}
	m.builtFrom = table.at()
	var list []ring.Member
	for _, n := range table.Nodes {
		if n.State != meta.NodeOut {
			list = append(list, ring.Member{Node: n.ID, Labels: withRack(n.Labels, n.Rack)})
		}
	}
	before, next := m.ring.Load(), &versionedRing{ring: ring.New(list, s.cfg.VnodesPerNode), version: table.Version}
	m.ring.Store(next)
	s.host.RingChanged()
	s.noteRing(before, next)
	return true
}

func withRack(labels map[string]string, rack string) map[string]string {
	if rack == "" {
		return labels
	}
	all := maps.Clone(labels)
	if all == nil {
		all = make(map[string]string, 1)
	}
	all["rack"] = rack
	return all
}

// currentRing is the ring, and the version of the node table that it was made of.
func (s *Server) currentRing() (*ring.Ring, base.Version) {
	r := s.members.ring.Load()
	return r.ring, r.version
}

// keepPeers stays connected with everybody in a small cluster; in a large one with those that share a shard.
func (s *Server) keepPeers(snapshot *gossip.Snapshot) {
	var living []base.NodeID
	for i := range snapshot.Members {
		if m := &snapshot.Members[i]; m.Liveness <= topology.Suspect {
			living = append(living, m.Node)
		}
	}
	if len(living) > keepAll {
		living = s.neighbours(living)
	}
	if err := s.peers.Keep(living); err != nil {
		s.deps.Logger.Debug("peers not kept", "error", err)
	}
}

// neighbours are those of the living that vote in a shard that is hosted here.
func (s *Server) neighbours(living []base.NodeID) []base.NodeID {
	near := make(map[base.NodeID]bool)
	for _, st := range s.host.Status() {
		for _, v := range st.Voters {
			near[v] = true
		}
	}
	var list []base.NodeID
	for _, id := range living {
		if near[id] {
			list = append(list, id)
		}
	}
	return list
}

// leaveCluster says farewell. After it nobody waits for signs of life of this process.
func (s *Server) leaveCluster() error {
	agent := s.members.agent.Load()
	if agent == nil || s.halt.Err() != nil {
		return nil // the other process of this node goes on
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	if err := agent.Leave(ctx); err != nil {
		s.deps.Logger.Debug("farewell not said", "error", err)
	}
	return nil
}
