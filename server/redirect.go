package server

import (
	"errors"

	"github.com/eastguard/eastguard/internal/base"
)

// misplaced tells at once that a range is led elsewhere, when this node was never told of the range and its copy of the
// metadata names another node. Nil when there is nothing to tell: then the request waits, for it may only be early.
func (s *Server) misplaced(op string, ref base.RangeRef) *base.Error {
	if _, told := s.plane.Earliest(ref); told || s.plane.Deleted(ref.Topic) {
		return nil
	}
	node := s.rangeLeader(ref)
	if node == "" || node == s.id.Node {
		return nil
	}
	return base.Errorf(base.CodeNotLeader, op, "range %s is led by %s", ref, node).
		WithRedirect(base.Redirect{Node: node, Address: s.clientAddress(node)})
}

// directed completes an error that sends a client to another node: with who that is, where this node's metadata knows,
// and with its address.
func (s *Server) directed(ref base.RangeRef, err error) error {
	var e *base.Error
	if !errors.As(err, &e) {
		return err
	}
	to := e.Redirect
	if to.Node == "" && (e.Code == base.CodeNotReplica || e.Code == base.CodeNotLeader || e.Code == base.CodeSegmentMoved) {
		if node := s.knownLeader(ref); node != s.id.Node {
			to.Node = node
		}
	}
	if to.Node != "" && to.Address == "" {
		to.Address = s.clientAddress(to.Node)
	}
	if to == e.Redirect {
		return err
	}
	return e.WithRedirect(to)
}

// knownLeader is who leads a range: as its metadata says, where that is here, or as a follower here has heard. "" where
// neither is.
func (s *Server) knownLeader(ref base.RangeRef) base.NodeID {
	if node := s.rangeLeader(ref); node != "" {
		return node
	}
	return s.plane.Followed(ref)
}
