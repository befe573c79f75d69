package server

import (
	"slices"

	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/topology"
)

// connected is the view for placement. A node whose connection with this one is broken is suspect in it, whatever
// membership still says: a death is known to the connection at once and to membership after seconds, and a topic that
// is placed on a dead node opens only after that. The same goes for one that has started anew, until membership says so
// too: a segment is placed on a start of a node. Nodes that no connection is kept with are as membership has them.
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
		nodes[i].Liveness = topology.Suspect
	}
	if nodes != nil {
		view.Nodes = nodes
	}
	return view
}
