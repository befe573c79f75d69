package server

import (
	"context"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/peer"
)

// stateMessage asks what a range remembers at the end of a segment that has been sealed there.
type stateMessage struct {
	Ref     base.RangeRef  `cbor:"1,keyasint"`
	Segment base.SegmentID `cbor:"2,keyasint"`
	Disk    base.DiskID    `cbor:"3,keyasint"`
	End     int64          `cbor:"4,keyasint"`
}

type stateAnswer struct {
	State []byte `cbor:"1,keyasint"` // rangestate's encoding
}

// loadState asks a replica of a range's earlier segment for the range's state at its committed end.
func (s *Server) loadState(ctx context.Context, from base.Replica, ref base.RangeRef, seg base.SegmentID, end int64) ([]byte, error) {
	answer, err := callPeer[stateAnswer](ctx, s.peerCalls(), from.Node, kindRangeState, stateMessage{Ref: ref, Segment: seg, Disk: from.Disk, End: end})
	return answer.State, err
}

// takeRangeState answers the leader of a successor.
func (s *Server) takeRangeState(_ context.Context, _ *peer.Request, m stateMessage) (stateAnswer, error) {
	const op = "range state"
	p := s.orders.plane.Load()
	switch {
	case p == nil:
		return stateAnswer{}, notReady(op)
	case m.Disk != s.id.Disk:
		return stateAnswer{}, base.Errorf(base.CodeNotReplica, op, "node %s has another disk", s.id.Node)
	}
	b, err := p.StateAt(m.Ref, m.Segment, m.End)
	return stateAnswer{State: b}, err
}
