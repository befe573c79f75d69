package server

import (
	"context"
	"errors"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/coord"
	"github.com/eastguard/eastguard/internal/dataplane"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/peer"
)

// rollMessage is a segment leader's request to its coordinator; see planner.RollRequest.
type rollMessage struct {
	Ref          base.RangeRef  `cbor:"1,keyasint"`
	Segment      base.SegmentID `cbor:"2,keyasint"`
	Epoch        base.Epoch     `cbor:"3,keyasint"`
	End          int64          `cbor:"4,keyasint"`
	Cause        base.Cause     `cbor:"5,keyasint"`
	Late         []base.NodeID  `cbor:"6,keyasint,omitempty"`
	Bytes        int64          `cbor:"7,keyasint,omitempty"`
	LastAppendMs int64          `cbor:"8,keyasint,omitempty"`
	FrozenMs     int64          `cbor:"9,keyasint,omitempty"`
	WaitMs       uint32         `cbor:"10,keyasint,omitempty"` // how long the leader waits for the answer
	Lost         []base.NodeID  `cbor:"11,keyasint,omitempty"`
}

const (
	rollTimeout = 10 * time.Second // for all tries of one request; the leader of the segment asks again
	rollTry     = 2 * time.Second  // for one: a coordinator that is silent for so long may have been replaced
	rollTries   = 4
	rollPause   = 50 * time.Millisecond // before the same is asked again
)

// requestRoll asks the range's coordinator, wherever it is. One call follows the shard's leadership for a while; the
// plane repeats the request until it is answered, which is safe, for the request names what it seals.
func (s *Server) requestRoll(ctx context.Context, r dataplane.RollRequest) (meta.Assignment, error) {
	ctx, cancel := context.WithTimeout(ctx, rollTimeout)
	defer cancel()
	shard := s.host.ShardOf(r.Topic)
	var to base.NodeID
	var err error
	for try := range rollTries {
		if to == "" {
			to = s.shardLeader(shard)
		}
		var answer meta.Assignment
		answer, err = s.tryRoll(ctx, shard, to, r)
		if err == nil || !elsewhere(err) || try == rollTries-1 {
			return answer, err
		}
		next := redirectOf(err)
		if next == "" || next == to {
			if !pauseFor(ctx, rollPause) {
				return meta.Assignment{}, err
			}
			next = ""
		}
		to = next
	}
	return meta.Assignment{}, err
}

func (s *Server) tryRoll(ctx context.Context, shard base.ShardID, to base.NodeID, r dataplane.RollRequest) (meta.Assignment, error) {
	ctx, cancel := context.WithTimeout(ctx, rollTry)
	defer cancel()
	switch to {
	case "":
		return meta.Assignment{}, base.Errorf(base.CodeNoLeader, "roll segment", "nobody is known to lead shard %s", shard)
	case s.id.Node:
		return s.coordinateRoll(ctx, r)
	}
	return s.forwardRoll(ctx, to, r)
}

// elsewhere reports whether another node, or the same a moment later, may do what this one refused.
func elsewhere(err error) bool {
	switch base.CodeOf(err) {
	case base.CodeNotLeader, base.CodeNoLeader, base.CodeUnreachable, base.CodeShuttingDown, base.CodeShardNotFound, base.CodeTimeout:
		return true
	}
	return false
}

func redirectOf(err error) base.NodeID {
	var e *base.Error
	if errors.As(err, &e) {
		return e.Redirect.Node
	}
	return ""
}

// pauseFor waits, and reports whether ctx is still alive.
func pauseFor(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *Server) forwardRoll(ctx context.Context, to base.NodeID, r dataplane.RollRequest) (meta.Assignment, error) {
	m := rollMessage{
		Ref: r.Ref, Segment: r.Segment, Epoch: r.Epoch, End: r.End, Cause: r.Cause, Late: r.Late, Lost: r.Lost,
		Bytes: r.Bytes, LastAppendMs: r.LastAppendMs, FrozenMs: r.FrozenMs, WaitMs: uint32(rollTimeout / time.Millisecond),
	}
	if deadline, ok := ctx.Deadline(); ok {
		m.WaitMs = uint32(max(1, time.Until(deadline)/time.Millisecond))
	}
	return callPeer[meta.Assignment](ctx, s.peerCalls(), to, kindRoll, m)
}

// takeRoll serves another node's request.
func (s *Server) takeRoll(ctx context.Context, _ *peer.Request, m rollMessage) (meta.Assignment, error) {
	if wait := time.Duration(m.WaitMs) * time.Millisecond; wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	return s.coordinateRoll(ctx, dataplane.RollRequest{
		Ref: m.Ref, Segment: m.Segment, Epoch: m.Epoch, End: m.End, Cause: m.Cause, Late: m.Late, Lost: m.Lost,
		Bytes: m.Bytes, LastAppendMs: m.LastAppendMs, FrozenMs: m.FrozenMs,
	})
}

// coordinateRoll asks the coordinator on this node.
func (s *Server) coordinateRoll(ctx context.Context, r dataplane.RollRequest) (meta.Assignment, error) {
	c := s.coord.Load()
	if c == nil {
		return meta.Assignment{}, base.Errorf(base.CodeNoLeader, "roll segment", "the coordinators have not started yet")
	}
	return c.RequestRoll(ctx, coord.RollRequest{
		Ref: r.Ref, Segment: r.Segment, Epoch: r.Epoch, End: r.End, Cause: r.Cause, Late: r.Late, Lost: r.Lost,
		Bytes: r.Bytes, LastAppendMs: r.LastAppendMs, FrozenMs: r.FrozenMs,
	})
}
