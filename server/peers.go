package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/dataplane"
	"github.com/eastguard/eastguard/internal/lobby"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/topology"
)

// The messages between nodes that boot and membership are made of.
const (
	kindTable    = peer.Control + 6  // the root's node table: told, or asked for
	kindRegister = peer.Control + 7  // admit a start of a node
	kindPledge   = peer.Control + 8  // found a cluster with me
	kindWho      = peer.Control + 9  // who are you, and of which cluster
	kindUsage    = peer.Control + 10 // what my disk is like
)

// maxSilentStreams is how many of gossip's streams may be silent; of more, some are closed.
const maxSilentStreams = 64

// makePeers makes the connections to other nodes, which begin with startPeers: what takes their messages has to be there
// first, and some of it is given the connections when it is made.
func (s *Server) makePeers(context.Context) error {
	instance, err := base.NewUUID(s.deps.Rand)
	if err != nil {
		return base.Wrap(base.CodeInternal, "start", err)
	}
	s.instance = instance
	s.members.init(s.id.Node)
	if err := s.loadTable(); err != nil {
		return err
	}
	s.peers = peer.New(peer.Options{
		Node: s.id.Node, Boot: s.id.Boot, Instance: instance, StartedMs: s.started.UnixMilli(), Cluster: s.id.Cluster,
		Listen: s.listenTag, Resolve: s.resolveNode, Dial: s.deps.Dial, Logger: s.deps.Logger, OnTwin: s.onTwin,
		ResolveData: s.resolveData, OnLink: s.onLink,
	})
	s.demux, s.dataDemux = peer.NewDemux(s.ports.cluster, s.peers.Knows), peer.NewDemux(s.ports.data, s.peers.Knows)
	return nil
}

// startPeers answers other nodes from now on.
func (s *Server) startPeers(context.Context) error {
	streams := lobby.New(maxSilentStreams, s.peers.Knows).Guard(s.demux.Listener(peer.TagGossip))
	s.host.Register(s.peers)
	s.registerOrders(s.peers)
	s.registerMembership(s.peers)
	s.registerAsks(s.peers)
	s.registerRouting(s.peers)
	dataplane.Register(s.peers, s.orders.plane.Load)
	s.peers.Start()
	s.demux.Start()
	s.dataDemux.Start()
	// After everything that calls other nodes; before what their messages reach.
	s.undo.Push("peers", func() error {
		return errors.Join(ignoreClosed(s.demux.Close()), ignoreClosed(s.dataDemux.Close()), s.peers.Close())
	})
	return s.makeGossipNetwork(streams)
}

// listenTag is where connections with a tag arrive.
func (s *Server) listenTag(tag peer.Tag) net.Listener {
	if tag == peer.TagData {
		return s.dataDemux.Listener(tag)
	}
	return s.demux.Listener(tag)
}

// onLink tells the data plane of a data lane that came or went. One that is not there yet asks for their states.
func (s *Server) onLink(l peer.Link) {
	if p := s.orders.plane.Load(); p != nil {
		p.OnLink(l)
	}
}

func (s *Server) registerMembership(p *peer.Host) {
	p.Register(kindTable, served(s, s.serveTable))
	p.Register(kindRegister, served(s, s.serveRegister))
	p.Register(kindPledge, served(s, s.servePledge))
	p.Register(kindWho, served(s, s.serveWho))
	p.Register(kindUsage, s.takeUsage)
}

// resolveNode is the address book of the peers: what a living member says, else what the root's table says, else what
// was known of the node when it was last seen. It must not block.
func (s *Server) resolveNode(node base.NodeID) (string, bool) {
	member, met := s.members.member(node)
	if met && member.Liveness <= topology.Suspect {
		return member.Address, true
	}
	if n := s.members.nodeTable().node(node); n != nil && n.Peer != "" {
		return n.Peer, true
	}
	if addr, ok := s.members.lastAddress(node); ok {
		return addr, true
	}
	return member.Address, met
}

// resolveData is the address book of the data ports.
func (s *Server) resolveData(node base.NodeID) (string, bool) {
	member, met := s.members.member(node)
	if met && member.Liveness <= topology.Suspect && member.Data != "" {
		return member.Data, true
	}
	if n := s.members.nodeTable().node(node); n != nil && n.Data != "" {
		return n.Data, true
	}
	return member.Data, member.Data != ""
}

// onTwin hears that another process runs as this node. Exactly one of the two must end: the one with the later start
// stays, of two clones with the same start the one that the root admits or, without a root, the elder. Who was turned away
// by a third node is the one that ends.
func (s *Server) onTwin(t peer.Twin) {
	own := peer.Hello{Node: s.id.Node, Boot: s.peers.Boot(), StartedMs: s.started.UnixMilli(), Instance: s.instance}
	if t.By == "" && own.Outranks(t.Seen) {
		s.deps.Logger.Warn("another process runs as this node; it has to end", "boot", t.Seen.Boot, "instance", t.Seen.Instance.String())
		return
	}
	// Who is turned away before it asks the root is nobody yet, and must not come so far that others meet it.
	if (s.asksRoot.Load() || t.By == "" && t.Seen.Boot == own.Boot) && s.verdictIsDue() {
		return
	}
	by := "was met"
	if t.By != "" && t.By != s.id.Node {
		by = fmt.Sprintf("is connected to node %s", t.By)
	}
	s.stop(s.twinStays(by))
}

// twinStays is why this process ends for another one of its node.
func (s *Server) twinStays(by string) error {
	return base.Errorf(base.CodeFenced, "run node "+string(s.id.Node), "another process of this node %s: this one ends", by).
		WithHint("stop one of the two; or, if this is to be another node, give it another node_id and directories of its own")
}

const (
	verdictWithin = 3 * time.Second  // in which the root tells one of two processes of a node that it is not admitted
	verdictHolds  = 10 * time.Second // after an admission the other process may still be on its way out
)

// verdictIsDue reports whether the root may still decide between this process and another that started beside it. Each
// node that the two meet has met one of them first; if that decided, both could be turned away.
func (s *Server) verdictIsDue() bool {
	now := time.Since(s.started)
	if at := s.admittedAt.Load(); at != 0 && now-time.Duration(at) > verdictHolds {
		return false
	}
	s.twinMet.CompareAndSwap(0, int64(now))
	return now-time.Duration(s.twinMet.Load()) < verdictWithin
}

// reachablePeers are the nodes that a message would reach now.
func (s *Server) reachablePeers() []base.NodeID {
	var list []base.NodeID
	for node, state := range s.peers.Liveness() {
		if state.Status == peer.Reachable {
			list = append(list, node)
		}
	}
	return list
}

// stop reports, once, why this process may not go on as this node: it must exit, without a farewell that would speak for
// the other process. Waits of the start end.
func (s *Server) stop(err error) {
	s.stopOnce.Do(func() {
		s.deps.Logger.Error("this process has to end", "error", err, "hint", hintOf(err))
		s.haltNow(err)
		s.stopped <- err
	})
}

func hintOf(err error) string {
	var e *base.Error
	if errors.As(err, &e) {
		return strings.TrimSpace(e.HintText())
	}
	return ""
}
