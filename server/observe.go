package server

import (
	"context"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/topology"
)

// What the parts report, turned into the node's view of the cluster.

// readNodes folds the root shard's nodes into the view.
func (s *Server) readNodes(ctx context.Context) error {
	return s.host.View(ctx, base.RootShard, func(st *meta.State) error {
		s.takeNodes(st)
		return nil
	})
}

func (s *Server) takeNodes(st *meta.State) {
	var v topology.View
	for _, n := range st.Root().Nodes {
		v = topology.Reduce(v, topology.Event{Seen: &topology.Seen{
			ID: n.ID, Disk: n.Disk, Boot: n.Boot, Instance: n.Instance, Address: n.Address, Rack: n.Rack,
			Labels: n.Labels, Version: n.Version, Admitted: true,
		}})
		v = topology.Reduce(v, topology.Event{Standing: &topology.StandingChange{ID: n.ID, Standing: standing(n.State)}})
	}
	s.nodes.Lock()
	defer s.nodes.Unlock()
	s.nodes.view, s.nodes.usageAt = v, time.Time{}
}

// usageAge is how old a node's view of its own disk may be. To look costs a walk over every segment.
const usageAge = time.Second

// view is the cluster as this node sees it: what the root has admitted, and this node's own disk.
func (s *Server) view() topology.View {
	s.nodes.Lock()
	defer s.nodes.Unlock()
	if now := time.Now(); now.Sub(s.nodes.usageAt) >= usageAge {
		s.nodes.usageAt = now
		st := s.store.Stats()
		s.nodes.view = topology.Reduce(s.nodes.view, topology.Event{Usage: &topology.Usage{
			ID: s.id.Node, Boot: s.id.Boot, Full: st.DiskFull, DiskFree: st.DiskFree, DiskTotal: st.DiskTotal,
			Segments: st.Segments, Leading: s.plane.Leads(),
		}})
	}
	return s.nodes.view
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
