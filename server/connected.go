package server

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/task"
	"github.com/eastguard/eastguard/internal/topology"
)

// connected is the view for placement. A node whose connection with this one is broken is suspect in it, whatever
// membership still says: a death is known to the connection at once and to membership after seconds, and a topic that
// is placed on a dead node opens only after that. Nor does membership know at once of a node that has started anew: a
// segment is placed on a start of a node. Nodes that no connection is kept with are as membership has them.
func (s *Server) connected() topology.View {
	view := s.view()
	links := routedPeers{s}.Liveness()
	var nodes []topology.Node // a copy, once one is needed: views are shared
	for i, n := range view.Nodes {
		state, kept := links[n.ID]
		if !kept || n.ID == s.id.Node || n.Liveness != topology.Alive || state.Status == peer.Reachable && state.Boot <= n.Boot {
			continue
		}
		if nodes == nil {
			nodes = slices.Clone(view.Nodes)
		}
		if state.Status == peer.Reachable {
			nodes[i] = startedAnew(n, state.Boot, s.members.nodeTable().node(n.ID), time.Now())
		} else {
			nodes[i].Liveness = topology.Suspect
		}
	}
	if nodes != nil {
		view.Nodes = nodes
	}
	return view
}

// anewFor is how long a node counts as just started, until membership can say for how long it has been up.
const anewFor = 10 * time.Second

// startedAnew is a node of which the connection knows a later start than membership. Once the root has admitted that, it
// is as good as known.
func startedAnew(n topology.Node, boot uint64, listed *meta.Node, now time.Time) topology.Node {
	if listed == nil || listed.Boot < boot || listed.Disk != n.Disk {
		n.Liveness = topology.Suspect
		return n
	}
	n.Boot, n.Leaving = boot, false
	n.SettledMs = max(n.SettledMs, now.Add(anewFor).UnixMilli())
	return n
}

// Nodes that have just started take segments a moment after they say that they are ready: the others hear of the start by
// rumour. Whoever needs them waits for that moment rather than be refused.
const (
	comingFor   = 3 * time.Second
	comingEvery = 25 * time.Millisecond
)

// withComing tries, and tries again for as long as there are too few nodes and some are about to come.
func (s *Server) withComing(ctx context.Context, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, comingFor)
	defer cancel()
	for {
		err := try()
		if !errors.Is(err, base.CodeNotEnoughNodes) || !coming(s.connected(), routedPeers{s}.Liveness()) || !task.Pause(ctx, comingEvery) {
			return err
		}
	}
}

// coming reports whether a node that takes no segments yet is connected, so that only news of it are missing.
func coming(view topology.View, links map[base.NodeID]peer.State) bool {
	return slices.ContainsFunc(view.Nodes, func(n topology.Node) bool {
		state, kept := links[n.ID]
		anew := state.Boot > n.Boot
		return kept && state.Status == peer.Reachable && n.Standing == topology.Normal && n.Unfit() != "" && (anew || !n.Leaving)
	})
}
