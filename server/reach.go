package server

import (
	"context"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/wire"
)

// kindReach is a message that is answered at once: the way there and back, and nothing else.
const kindReach = peer.Control + 12

const (
	maxPings   = 100
	pingWithin = time.Second // one of them
)

// reach says how this node reaches others, by pings made now and by what membership and the connections say.
func (s *Server) reach(ctx context.Context, req wire.ReachRequest) (wire.ReachResponse, error) {
	const op = "reach"
	resp := wire.ReachResponse{Observer: s.id.Node}
	if req.Count < 0 || req.Count > maxPings {
		return resp, base.Errorf(base.CodeInvalidArgument, op, "count is %d, it can be 1 to %d", req.Count, maxPings)
	}
	nodes := req.Nodes
	for _, node := range nodes {
		if err := s.mustKnow(op, node); err != nil {
			return resp, err
		}
	}
	if len(nodes) == 0 {
		for _, n := range s.view().Nodes {
			if n.ID != s.id.Node {
				nodes = append(nodes, n.ID)
			}
		}
	}
	resp.Peers = make([]wire.PeerReach, len(nodes))
	var pinging sync.WaitGroup
	places := make(chan struct{}, collectAtOnce)
	for i, node := range nodes {
		places <- struct{}{}
		pinging.Go(func() {
			defer func() { <-places }()
			resp.Peers[i] = s.reachOne(ctx, node, max(req.Count, 1))
		})
	}
	pinging.Wait()
	return resp, nil
}

// reachOne pings a node, one ping after the other, as long as there is time.
func (s *Server) reachOne(ctx context.Context, node base.NodeID, count int) wire.PeerReach {
	p := wire.PeerReach{Node: node}
	for p.Sent < count && ctx.Err() == nil {
		p.Sent++
		start := time.Now()
		if err := s.pingPeer(ctx, node); err != nil {
			p.Error = err.Error()
			continue
		}
		p.OK++
		p.RttUs = append(p.RttUs, time.Since(start).Microseconds())
	}
	if n, ok := s.view().Node(node); ok {
		p.Gossip = livenessName(n.Liveness)
	}
	if state, ok := (routedPeers{s}).Liveness()[node]; ok {
		p.Link = state.Status.String()
	}
	return p
}

func (s *Server) pingPeer(ctx context.Context, node base.NodeID) error {
	if node == s.id.Node {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, pingWithin)
	defer cancel()
	_, err := routedPeers{s}.Call(ctx, node, kindReach, nil)
	return err
}
