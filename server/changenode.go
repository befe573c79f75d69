package server

import (
	"context"
	"slices"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/mux"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/topology"
	"github.com/eastguard/eastguard/internal/wire"
)

// changeNode changes a node's place in the cluster. To leave is a matter of the node itself, and needs no quorum of the
// root shard; the rest is a decision of the root shard.
func (s *Server) changeNode(ctx context.Context, r *mux.Request) {
	var req wire.ChangeNodeRequest
	if err := r.Decode(&req); err != nil {
		r.Fail(err)
		return
	}
	if req.Change == wire.NodeLeave {
		pooled(s, s.metaPool, ctx, r, s.leaveNode)
		return
	}
	s.routed(ctx, r, s.routes[wire.KindChangeNode])
}

// leaveNode asks a living node to stop in good order, unless a shard would be left without a quorum.
func (s *Server) leaveNode(ctx context.Context, req wire.ChangeNodeRequest) (wire.ChangeNodeResponse, error) {
	const op = "node leave"
	resp, n, err := s.planChange(ctx, op, req)
	if err != nil {
		return resp, err
	}
	if gone(n) {
		return resp, base.Errorf(base.CodePreconditionFailed, op, "node %s is %s already", n.ID, livenessName(n.Liveness)).
			WithHint("eg-cli node forget %s takes it out of the cluster", n.ID)
	}
	resp.After = "leaving, " + n.Standing.String()
	if req.DryRun {
		return resp, nil
	}
	return resp, s.ask(ctx, n.ID, askLeave, nil, nil)
}

// leaveHere is a node's own part of leaving: it tells the process to stop in good order, as a signal would.
func (s *Server) leaveHere(context.Context, nothing) (nothing, error) {
	s.noteNode(s.id.Node, "NODE_LEAVES", "", "", "detail", "asked by an operator")
	select {
	case s.retired <- struct{}{}:
	default: // it has been told
	}
	return nothing{}, nil
}

// Retired delivers when an operator has asked this node to leave the cluster: Close it and end.
func (s *Server) Retired() <-chan struct{} { return s.retired }

// changeAtRoot decides about a node that does not run, where the root shard leads.
func (s *Server) changeAtRoot(ctx context.Context, shard base.ShardID, req wire.ChangeNodeRequest) (wire.ChangeNodeResponse, error) {
	op := "node " + req.Change.String()
	cmd := meta.Command{RequestID: req.RequestID, TimeMs: time.Now().UnixMilli()}
	var after string
	switch req.Change {
	case wire.NodeForget:
		cmd.SetNodeState, after = &meta.SetNodeState{Node: req.Node, State: meta.NodeOut}, topology.Out.String()
	case wire.NodeReplace:
		cmd.ReplaceNode, after = &meta.ReplaceNode{Node: req.Node, Disk: req.Disk}, "awaits another disk"
	case wire.NodeLeave: // is not routed here
		fallthrough
	default:
		return wire.ChangeNodeResponse{}, base.Errorf(base.CodeInvalidArgument, "change node", "change %d is not known", req.Change)
	}
	resp, n, err := s.planChange(ctx, op, req)
	if err != nil {
		return resp, err
	}
	if err := s.mustBeGone(op, n); err != nil {
		return resp, err
	}
	resp.After = livenessName(n.Liveness) + ", " + after
	if req.DryRun {
		return resp, nil
	}
	_, err = s.propose(ctx, op, shard, cmd)
	return resp, err
}

// mustBeGone refuses to decide about a node that lives. One that was killed a moment ago is silent, and believed alive
// until membership is certain: whoever asks is to ask again, which clients do by themselves until their time is up.
func (s *Server) mustBeGone(op string, n topology.Node) error {
	if n.Liveness != topology.Alive && n.Liveness != topology.Suspect {
		return nil
	}
	if link, kept := (routedPeers{s}).Liveness()[n.ID]; kept && link.Status != peer.Reachable {
		return base.Errorf(base.CodeUnreachable, op, "node %s does not answer, and is not yet believed dead", n.ID).
			WithHint("that takes the failure detector about 7 s: try again then; if the node runs, stop it first")
	}
	return base.Errorf(base.CodePreconditionFailed, op, "node %s is %s", n.ID, livenessName(n.Liveness)).
		WithHint("stop it first: eg-cli node leave %s", n.ID)
}

// planChange says what rests on a node.
func (s *Server) planChange(ctx context.Context, op string, req wire.ChangeNodeRequest) (wire.ChangeNodeResponse, topology.Node, error) {
	resp := wire.ChangeNodeResponse{Node: req.Node, DryRun: req.DryRun}
	if err := s.mustKnow(op, req.Node); err != nil {
		return resp, topology.Node{}, err
	}
	n, _ := s.view().Node(req.Node)
	resp.Before = livenessName(n.Liveness) + ", " + n.Standing.String()
	var breaks []base.ShardID
	silent := s.gather(ctx, gatherRequest{Rests: req.Node}, func(a gatherAnswer) {
		for _, r := range a.Rests {
			resp.Segments += r.Alone
			if !r.Votes {
				continue
			}
			resp.Shards = append(resp.Shards, r.Shard)
			if r.Breaks {
				breaks = append(breaks, r.Shard)
			}
		}
	})
	slices.SortFunc(resp.Shards, base.ShardID.Compare)
	if req.Change == wire.NodeLeave && !req.DryRun {
		return resp, n, spared(op, n.ID, breaks, silent)
	}
	return resp, n, nil
}

// spared refuses that a node leaves as long as a shard needs it, or may: a shard without an answer has no leader to say.
func spared(op string, node base.NodeID, breaks, silent []base.ShardID) error {
	slices.SortFunc(breaks, base.ShardID.Compare)
	slices.SortFunc(silent, base.ShardID.Compare)
	var e *base.Error
	switch {
	case len(breaks) > 0:
		e = base.Errorf(base.CodePreconditionFailed, op, "without node %s no majority is left of %s", node, someShards(breaks))
	case len(silent) > 0:
		e = base.Errorf(base.CodePreconditionFailed, op, "nobody can say whether a majority is left without node %s of %s", node, someShards(silent))
	default:
		return nil
	}
	return e.WithHint("wait until others vote there (eg-cli shard list); a signal to its process stops it all the same")
}

// rest is what of one shard rests on a node.
type rest struct {
	Shard  base.ShardID `cbor:"1,keyasint"`
	Alone  int          `cbor:"2,keyasint,omitempty"` // segments with no other copy on a living disk
	Votes  bool         `cbor:"3,keyasint,omitempty"`
	Breaks bool         `cbor:"4,keyasint,omitempty"` // without it no majority of the voters lives
}

// restsOn looks at one shard that this node leads.
func (s *Server) restsOn(ctx context.Context, shard base.ShardID, node base.NodeID) (rest, error) {
	r := rest{Shard: shard}
	var topics []*meta.Topic
	err := s.host.View(ctx, shard, func(st *meta.State) error {
		topics = slices.AppendSeq(make([]*meta.Topic, 0, st.Len()), st.All())
		return nil
	})
	if err != nil {
		return r, err
	}
	view := s.view()
	alive := livingDisks(view)
	for _, t := range topics {
		for _, rg := range t.Ranges {
			for _, seg := range rg.Segments {
				if alone(seg, node, alive) {
					r.Alone++
				}
			}
		}
	}
	voters := s.host.Voters(shard)
	r.Votes = slices.Contains(voters, node)
	r.Breaks = r.Votes && s.votersLeft(voters, node) < len(voters)/2+1
	return r, nil
}

// votersLeft counts the voters but one that this node, their leader, reaches now: membership learns of a death seconds
// after the connections do.
func (s *Server) votersLeft(voters []base.NodeID, but base.NodeID) int {
	links := routedPeers{s}.Liveness()
	left := 0
	for _, v := range voters {
		if v != but && (v == s.id.Node || links[v].Status == peer.Reachable) {
			left++
		}
	}
	return left
}

// alone reports whether a segment has a copy on a node and none on another living disk.
func alone(seg *meta.Segment, node base.NodeID, alive living) bool {
	here := false
	for _, rep := range seg.Replicas {
		if rep.Node == node {
			here = true
		} else if alive.has(rep) {
			return false
		}
	}
	return here
}
