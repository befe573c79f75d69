package server

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/gossip"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/task"
	"github.com/eastguard/eastguard/internal/topology"
)

// A start of a node counts once the root shard has admitted it: the root knows the node's disk and how often it has
// started, so that an older image of a disk, or a copy, is turned away before it answers anything.

// registerMessage asks for that; any node takes it and passes it on.
type registerMessage struct {
	Node meta.RegisterNode `cbor:"1,keyasint"`
	Hops int               `cbor:"2,keyasint"`
}

// registerAnswer comes from the root's leader.
type registerAnswer struct {
	Table nodeTable `cbor:"1,keyasint"`
}

const (
	registerHops    = 3
	registerWait    = 2 * time.Second
	registerFirst   = 50 * time.Millisecond
	registerMost    = time.Second
	withoutRoot     = 3 * time.Second // after which the newest node table judges instead of the root's leader
	checkpointEvery = 5 * time.Minute // how often the root learns how far the log has come
)

func (s *Server) registration() *meta.RegisterNode {
	return &meta.RegisterNode{
		Node: s.id.Node, Disk: s.id.Disk, Meta: s.id.Meta, Boot: s.id.Boot, Instance: s.instance,
		WALEnd:  uint64(s.store.Stats().WAL.Durable), // what a crash may take back must not be held against the disk
		Address: s.self.client, Peer: s.self.cluster, Data: s.self.data,
		Rack: s.cfg.Rack, Labels: s.cfg.Labels, Version: s.deps.Version,
	}
}

// admission waits until this start is admitted, by the root's leader or, when there is none for a while, by the newest
// node table among the peers. The root's leader then has the last word later.
func (s *Server) admission(ctx context.Context) error {
	ctx, done := s.untilHalted(ctx)
	defer done()
	s.progress.enter("waits for the root shard to admit this start")
	s.asksRoot.Store(true)
	cmd := s.registration()
	began := time.Now()
	for try := 0; ; try++ {
		err := s.register(ctx, cmd)
		switch {
		case err == nil:
			s.admittedAt.Store(int64(time.Since(s.started)))
			if err := s.sharesKey(ctx); err != nil {
				return err
			}
			return s.admitted(ctx, false)
		case turnedAway(err) && s.twinMet.Load() != 0:
			return s.twinStays("was met") // which says more than that this one is not the node it knows
		case turnedAway(err):
			return err
		case context.Cause(ctx) != nil:
			return context.Cause(ctx)
		}
		if time.Since(began) >= withoutRoot {
			judged, err := s.judgedByTable(ctx, cmd)
			if err != nil {
				return err
			}
			if judged {
				s.deps.Logger.Warn("admitted by the newest node table: the root shard has no leader", "version", s.members.nodeTable().Version)
				return s.admitted(ctx, true)
			}
		}
		if !s.pauseBeforeRetry(ctx, try) {
			return context.Cause(ctx)
		}
	}
}

func (s *Server) pauseBeforeRetry(ctx context.Context, try int) bool {
	bound := min(registerMost, registerFirst<<min(try, 8))
	return task.Pause(ctx, bound/2+rand.N(bound/2))
}

// turnedAway reports whether the root has said no, once and for all.
func turnedAway(err error) bool {
	switch base.CodeOf(err) {
	case base.CodeNotAdmitted, base.CodeInvalidArgument:
		return true
	}
	return false
}

// admitted makes it known, and goes on telling the root what it needs to know of this start.
func (s *Server) admitted(ctx context.Context, provisional bool) error {
	s.readRoot()
	if err := s.members.agent.Load().Update(func(self *gossip.Self) { self.State = gossip.Ready }); err != nil {
		return err
	}
	s.rebuild(ctx)
	s.members.tasks.Go("registration", func(ctx context.Context) error {
		if provisional && !s.registerLate(ctx) {
			return nil
		}
		return s.checkpoint(ctx)
	})
	return nil
}

// registerLate goes on until the root's leader has admitted this start too; a refusal ends the process. It reports
// whether it was admitted.
func (s *Server) registerLate(ctx context.Context) bool {
	for try := 0; ; try++ {
		err := s.register(ctx, s.registration())
		switch {
		case err == nil:
			s.admittedAt.Store(int64(time.Since(s.started)))
			return true
		case turnedAway(err):
			s.stop(err)
			return false
		}
		if !s.pauseBeforeRetry(ctx, try) {
			return false
		}
	}
}

// checkpoint tells the root now and then how far the log has come, so that an older image of the disk is recognized.
func (s *Server) checkpoint(ctx context.Context) error {
	told := uint64(0)
	for task.Pause(ctx, checkpointEvery) {
		cmd := s.registration()
		if cmd.WALEnd == told {
			continue
		}
		if err := s.register(ctx, cmd); err == nil {
			told = cmd.WALEnd
		} else if turnedAway(err) {
			s.stop(err)
			return nil
		}
	}
	return nil
}

// register asks the root's leader, wherever it is, once.
func (s *Server) register(ctx context.Context, cmd *meta.RegisterNode) error {
	m := registerMessage{Node: *cmd}
	if leader, _ := s.host.Leader(base.RootShard); leader == s.id.Node {
		_, err := s.registerHere(ctx, m)
		return err
	}
	err := error(base.Errorf(base.CodeNoLeader, "register node", "no other node is known"))
	for _, node := range s.doors() {
		var answer registerAnswer
		if answer, err = s.passRegister(ctx, node, m); err == nil {
			s.takeTable(&answer.Table)
			return nil
		}
		if turnedAway(err) || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// doors are the nodes to register through, the likeliest first: the root's leader, its voters, who is reachable, and
// then everybody.
func (s *Server) doors() []base.NodeID {
	list := append([]base.NodeID{s.shardLeader(base.RootShard)}, s.host.Voters(base.RootShard)...)
	reachable := s.reachablePeers()
	rand.Shuffle(len(reachable), func(i, j int) { reachable[i], reachable[j] = reachable[j], reachable[i] })
	list = append(list, reachable...)
	if len(reachable) == 0 {
		for _, n := range s.members.nodeTable().Nodes {
			list = append(list, n.ID)
		}
		list = append(list, s.members.everMet()...)
	}
	var doors []base.NodeID
	for _, id := range list {
		if id != "" && id != s.id.Node && !slices.Contains(doors, id) && s.mayLive(id) {
			doors = append(doors, id)
		}
	}
	return doors
}

// mayLive is false for a member that the gossip knows to be gone.
func (s *Server) mayLive(id base.NodeID) bool {
	m, met := s.members.member(id)
	return !met || m.Liveness <= topology.Suspect
}

func (s *Server) passRegister(ctx context.Context, to base.NodeID, m registerMessage) (registerAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, registerWait)
	defer cancel()
	m.Hops++
	return callPeer[registerAnswer](ctx, s.peers, to, kindRegister, m)
}

// serveRegister admits where the root is led, or passes the request on.
func (s *Server) serveRegister(ctx context.Context, r *peer.Request, m registerMessage) (registerAnswer, error) {
	const op = "register node"
	switch leader := s.shardLeader(base.RootShard); {
	case leader == s.id.Node:
		return s.registerHere(ctx, m)
	case leader != "" && leader != r.From.Node && m.Hops < registerHops:
		return s.passRegister(ctx, leader, m)
	}
	return registerAnswer{}, base.Errorf(base.CodeNoLeader, op, "node %s knows no leader of the root shard", s.id.Node)
}

func (s *Server) registerHere(ctx context.Context, m registerMessage) (registerAnswer, error) {
	_, err := s.propose(ctx, "register node", base.RootShard, meta.Command{TimeMs: time.Now().UnixMilli(), RegisterNode: &m.Node})
	if err != nil {
		return registerAnswer{}, err
	}
	s.readRoot()
	s.members.wakeUp()
	return registerAnswer{Table: *s.members.nodeTable()}, nil
}

// judgedByTable lets the newest node table among the peers that answer judge this start. This node's own copy is as old
// as its disk, so it needs another one beside it; and a table that does not list the node says nothing about it: without
// the root nobody joins.
func (s *Server) judgedByTable(ctx context.Context, cmd *meta.RegisterNode) (bool, error) {
	answered := 0
	for _, node := range s.doors() {
		if s.pullTable(ctx, node) == nil {
			answered++
		}
	}
	t := s.members.nodeTable()
	if answered == 0 || t.node(cmd.Node) == nil {
		return false, nil
	}
	if err := meta.Admit(t.Nodes, cmd); err != nil {
		return false, err
	}
	return true, nil
}

// everMet are the nodes whose address is known from this start or an earlier one.
func (m *membership) everMet() []base.NodeID {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]base.NodeID, 0, len(m.addresses))
	for id := range m.addresses {
		list = append(list, id)
	}
	return list
}
