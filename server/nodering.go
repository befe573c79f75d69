package server

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/ring"
	"github.com/eastguard/eastguard/internal/topology"
	"github.com/eastguard/eastguard/internal/wire"
)

// ringOfView keeps the ring of the last view it was asked for: making one takes tens of milliseconds with many nodes.
type ringOfView struct {
	mu      sync.Mutex
	members []ring.Member
	ring    *ring.Ring
	version uint64 // counts the rings
}

func (c *ringOfView) of(view topology.View, vnodes int) (*ring.Ring, uint64) {
	var members []ring.Member
	for i := range view.Nodes {
		if n := &view.Nodes[i]; n.Standing != topology.Out {
			members = append(members, ring.Member{Node: n.ID, Labels: ringLabels(n)})
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ring == nil || !slices.EqualFunc(members, c.members, sameMember) {
		c.members, c.ring = members, ring.New(members, vnodes)
		c.version++
	}
	return c.ring, c.version
}

func ringLabels(n *topology.Node) map[string]string {
	if n.Rack == "" {
		return n.Labels
	}
	labels := maps.Clone(n.Labels)
	if labels == nil {
		labels = make(map[string]string, 1)
	}
	labels["rack"] = n.Rack
	return labels
}

func sameMember(a, b ring.Member) bool { return a.Node == b.Node && maps.Equal(a.Labels, b.Labels) }

// ringNow is the ring of the nodes that are not out, and its version.
func (s *Server) ringNow() (*ring.Ring, uint64) { return s.ring.of(s.view(), s.cfg.VnodesPerNode) }

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
		Node: n.ID, State: livenessName(n.Liveness), Status: n.Standing.String(), Boot: n.Boot, Rack: n.Rack,
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
