package server

import (
	"context"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/ring"
	"github.com/eastguard/eastguard/internal/topology"
	"github.com/eastguard/eastguard/internal/wire"
)

// ringNow is the ring of the nodes that are not out, and its version.
func (s *Server) ringNow() (*ring.Ring, uint64) {
	r, version := s.currentRing()
	return r, uint64(version)
}

// nodeRing shows a node's ring: this one's, or another's by asking it.
func (s *Server) nodeRing(ctx context.Context, req wire.NodeRingRequest) (wire.NodeRingResponse, error) {
	const op = "node ring"
	node := req.Node
	if node == "" {
		node = s.id.Node
	}
	if err := s.mustKnow(op, node); err != nil {
		return wire.NodeRingResponse{}, err
	}
	var resp wire.NodeRingResponse
	err := s.ask(ctx, node, askRing, req, &resp)
	return resp, err
}

// describeRing is this node's ring, and what it believes of everyone on it or beside it.
func (s *Server) describeRing(tokens bool) wire.NodeRingResponse {
	r, version := s.ringNow()
	resp := wire.NodeRingResponse{Observer: s.id.Node, ObservedMs: time.Now().UnixMilli(), Hash: r.Hash(), Version: version}
	for _, n := range s.view().Nodes {
		resp.Members = append(resp.Members, s.ringMember(r, &n, tokens))
	}
	return resp
}

func (s *Server) ringMember(r *ring.Ring, n *topology.Node, tokens bool) wire.RingMember {
	m := wire.RingMember{
		Node: n.ID, State: livenessName(n.Liveness), Status: n.Standing.String(), Boot: n.Boot, Rack: n.Rack, SinceMs: s.sinceMs(n.ID),
		OwnsPerMillion: perMillion(r.Share(n.ID)),
	}
	if m.OwnsPerMillion > 0 {
		m.Vnodes = s.cfg.VnodesPerNode
	}
	if tokens {
		m.Tokens = r.Tokens(n.ID)
	}
	return m
}

// sinceMs is when this node began to believe of another what it does; 0 if it has not met it.
func (s *Server) sinceMs(node base.NodeID) int64 {
	if m, ok := s.members.member(node); ok {
		return m.Since.UnixMilli()
	}
	return 0
}

func perMillion(share float64) int { return int(share*1_000_000 + 0.5) }

// livenessName is what the failure detector says; a node that it has never met is known from the root shard alone.
func livenessName(l topology.Liveness) string {
	if l == 0 {
		return "unknown"
	}
	return l.String()
}

// mustKnow refuses a node that nobody has heard of.
func (s *Server) mustKnow(op string, node base.NodeID) error {
	if _, ok := s.view().Node(node); !ok {
		return base.Errorf(base.CodeNodeNotFound, op, "node %s not found", node).WithHint("see what is there: eg-cli node list")
	}
	return nil
}
