package server

import (
	"context"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/coord"
	"github.com/eastguard/eastguard/internal/dataplane"
	"github.com/eastguard/eastguard/internal/meta"
)

// The coordinators need the data plane, and the shards they coordinate lead before there is one: who leads is
// remembered until then.

func (s *Server) startCoord(context.Context) error {
	c := coord.New(coord.Options{
		Shards: s.host, Nodes: localNodes{s.plane, s.id.Node}, View: s.view,
		Limits: meta.Limits{SegmentBytes: s.cfg.SegmentSizeLimitBytes, SegmentAgeMs: s.cfg.MaxSegmentAge().Milliseconds()},
		Logger: s.deps.Logger,
	})
	// Before the data plane and the shards, both of which the loops use until they have ended.
	s.undo.Push("coordinators", c.Close)
	s.leads.Lock()
	defer s.leads.Unlock()
	s.coord.Store(c)
	for shard := range s.leads.shards {
		c.Lead(shard, true)
	}
	return nil
}

// onLead hears that a shard serves here as leader, or no longer does.
func (s *Server) onLead(shard base.ShardID, leading bool, term uint64) {
	s.leadChanged(shard, leading, term)
	s.leads.Lock()
	defer s.leads.Unlock()
	if leading {
		s.leads.shards[shard] = struct{}{}
	} else {
		delete(s.leads.shards, shard)
	}
	if c := s.coord.Load(); c != nil {
		c.Lead(shard, leading)
	}
}

// requestRoll asks the range's coordinator, which in a cluster of one node is here.
func (s *Server) requestRoll(ctx context.Context, r dataplane.RollRequest) (meta.Assignment, error) {
	c := s.coord.Load()
	if c == nil {
		return meta.Assignment{}, base.Errorf(base.CodeNoLeader, "roll segment", "the coordinators have not started yet")
	}
	return c.RequestRoll(ctx, coord.RollRequest{
		Ref: r.Ref, Segment: r.Segment, Epoch: r.Epoch, End: r.End, Cause: r.Cause,
		Bytes: r.Bytes, LastAppendMs: r.LastAppendMs, FrozenMs: r.FrozenMs,
	})
}

// localNodes carries the coordinators' orders to the one node there is.
type localNodes struct {
	plane *dataplane.Plane
	self  base.NodeID
}

func (n localNodes) Tell(ctx context.Context, node base.NodeID, orders meta.Orders) ([]meta.Confirmation, error) {
	if err := n.check(node); err != nil {
		return nil, err
	}
	return n.plane.Tell(ctx, orders)
}

func (n localNodes) Fence(ctx context.Context, node base.NodeID, requests []meta.FenceRequest) ([]meta.FenceAnswer, error) {
	if err := n.check(node); err != nil {
		return nil, err
	}
	return n.plane.Fence(ctx, requests)
}

func (n localNodes) check(node base.NodeID) error {
	if node != n.self {
		return base.Errorf(base.CodeUnreachable, "tell node", "node %s is not known here", node)
	}
	return nil
}
