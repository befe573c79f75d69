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
	"github.com/eastguard/eastguard/internal/task"
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
	Shard        base.ShardID   `cbor:"12,keyasint"`           // of the range's topic
	Relayed      bool           `cbor:"13,keyasint,omitempty"` // it was passed on by who does not coordinate it
	WaitedMs     int64          `cbor:"14,keyasint,omitempty"`
}

const (
	rollTimeout = 10 * time.Second      // for all tries of one request; the leader of the segment asks again
	rollTry     = time.Second           // for one: a coordinator that is silent for so long may have been replaced
	rollPause   = 20 * time.Millisecond // before the same is asked again, doubling
	rollRest    = 160 * time.Millisecond
	rollRelays  = 2 // nodes that are asked to pass a request on
)

// requestRoll asks the range's coordinator, wherever it is. One call follows the shard's leadership for a while; the
// plane repeats the request until it is answered, which is safe, for the request names what it seals.
func (s *Server) requestRoll(ctx context.Context, r dataplane.RollRequest) (answer meta.Assignment, err error) {
	ctx, cancel := context.WithTimeout(ctx, rollTimeout)
	defer cancel()
	shard := s.host.ShardOf(r.Topic)
	m := rollMessageOf(shard, r)
	for rest := rollPause; ; rest = min(2*rest, rollRest) {
		if answer, err = s.rollByAnybody(ctx, m); err == nil || !elsewhere(err) {
			return answer, err
		}
		if !task.Pause(ctx, rest) {
			return meta.Assignment{}, err
		}
	}
}

// rollByAnybody tries who leads the shard, whomever that names instead and, if none of them can be reached, others that
// may reach them.
func (s *Server) rollByAnybody(ctx context.Context, m rollMessage) (answer meta.Assignment, err error) {
	asked := make(map[base.NodeID]bool)
	for to := s.shardLeader(m.Shard); ; to = redirectOf(err) {
		answer, err = s.tryRoll(ctx, to, m)
		if err == nil || !elsewhere(err) {
			return answer, err
		}
		asked[to] = true
		if next := redirectOf(err); next == "" || asked[next] {
			break
		}
	}
	for _, relay := range s.relays(m.Shard, asked) {
		if answer, relayed := s.tryRoll(ctx, relay, m); relayed == nil || !elsewhere(relayed) {
			return answer, relayed
		}
	}
	return answer, err
}

// relays are nodes that this one reaches, and that may reach a shard's leader: its voters.
func (s *Server) relays(shard base.ShardID, asked map[base.NodeID]bool) (list []base.NodeID) {
	voters := s.host.Voters(shard)
	if len(voters) == 0 {
		voters = s.intendedVoters(shard)
	}
	links := routedPeers{s}.Liveness()
	for _, id := range voters {
		if len(list) < rollRelays && id != s.id.Node && !asked[id] && links[id].Status == peer.Reachable {
			list = append(list, id)
		}
	}
	return list
}

func (s *Server) tryRoll(ctx context.Context, to base.NodeID, m rollMessage) (meta.Assignment, error) {
	ctx, cancel := context.WithTimeout(ctx, rollTry)
	defer cancel()
	switch to {
	case "":
		return meta.Assignment{}, base.Errorf(base.CodeNoLeader, "roll segment", "nobody is known to lead shard %s", m.Shard)
	case s.id.Node:
		return s.coordinateRoll(ctx, m)
	}
	return s.forwardRoll(ctx, to, m)
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

func (s *Server) forwardRoll(ctx context.Context, to base.NodeID, m rollMessage) (meta.Assignment, error) {
	m.WaitMs = budgetOf(ctx)
	return callPeer[meta.Assignment](ctx, s.peerCalls(), to, kindRoll, m)
}

// takeRoll serves another node's request. What another node coordinates is passed on, once: who asks may not reach it.
func (s *Server) takeRoll(ctx context.Context, _ *peer.Request, m rollMessage) (meta.Assignment, error) {
	ctx, cancel := withinBudget(ctx, m.WaitMs, rollTimeout)
	defer cancel()
	if leader := s.shardLeader(m.Shard); !m.Relayed && leader != "" && leader != s.id.Node {
		m.Relayed = true
		return s.forwardRoll(ctx, leader, m)
	}
	return s.coordinateRoll(ctx, m)
}

// coordinateRoll asks the coordinator on this node.
func (s *Server) coordinateRoll(ctx context.Context, m rollMessage) (meta.Assignment, error) {
	c := s.coord.Load()
	if c == nil {
		return meta.Assignment{}, base.Errorf(base.CodeNoLeader, "roll segment", "the coordinators have not started yet")
	}
	return c.RequestRoll(ctx, coord.RollRequest{
		Ref: m.Ref, Segment: m.Segment, Epoch: m.Epoch, End: m.End, Cause: m.Cause, Late: m.Late, Lost: m.Lost,
		Bytes: m.Bytes, LastAppendMs: m.LastAppendMs, FrozenMs: m.FrozenMs, WaitedMs: m.WaitedMs,
	})
}

func rollMessageOf(shard base.ShardID, r dataplane.RollRequest) rollMessage {
	return rollMessage{
		Shard: shard, Ref: r.Ref, Segment: r.Segment, Epoch: r.Epoch, End: r.End, Cause: r.Cause, Late: r.Late, Lost: r.Lost,
		Bytes: r.Bytes, LastAppendMs: r.LastAppendMs, FrozenMs: r.FrozenMs, WaitedMs: r.WaitedMs,
	}
}
