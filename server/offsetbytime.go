package server

import (
	"context"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/peer"
)

// byTimeWithin bounds the question to the other holders of a range.
const byTimeWithin = 3 * time.Second

// offsetsMessage asks a node for the first record of a time or later among the segments that it holds of a range.
type offsetsMessage struct {
	Ref    base.RangeRef `cbor:"1,keyasint"`
	TimeMs int64         `cbor:"2,keyasint"`
}

type offsetsAnswer struct {
	Found  bool  `cbor:"1,keyasint"`
	Offset int64 `cbor:"2,keyasint"`
	TimeMs int64 `cbor:"3,keyasint"`
}

// offsetByTime finds the first record of a time or later in a range whose segments may be on several nodes: each finds
// the first among its own, and the lowest of those is the range's. A segment that nobody could answer for makes an
// answer only below its base.
func (s *Server) offsetByTime(ctx context.Context, ref base.RangeRef, ms int64) (offsetsAnswer, error) {
	const op = "find offset by time"
	t, err := s.topicCopy(ctx, op, ref.Topic)
	if err != nil {
		return offsetsAnswer{}, err
	}
	r := t.Range(ref.Range)
	if r == nil {
		return offsetsAnswer{}, base.Errorf(base.CodeRangeNotFound, op, "topic %s has no range %s", t.Name, ref.Range)
	}
	ctx, cancel := context.WithTimeout(ctx, byTimeWithin)
	defer cancel()
	answers := s.askByTime(ctx, holdersOf(r), offsetsMessage{Ref: ref, TimeMs: ms})
	var best offsetsAnswer
	for _, a := range answers {
		if a.err == nil && a.Found && (!best.Found || a.Offset < best.Offset) {
			best = a.offsetsAnswer
		}
	}
	for _, seg := range r.Segments {
		if best.Found && seg.Base >= best.Offset {
			break
		}
		if seg.State == base.StateSealed && seg.Empty() {
			continue
		}
		if a := answers[seg.Leader().Node]; a.err != nil {
			return offsetsAnswer{}, base.Errorf(base.CodeNoLeader, op, "node %s, which holds the records from offset %d on, does not answer: %w", seg.Leader().Node, seg.Base, a.err)
		}
	}
	return best, nil
}

// holdersOf are the nodes that hold a range's segments, each once.
func holdersOf(r *meta.Range) nodeSet {
	var nodes nodeSet
	for _, seg := range r.Segments {
		nodes.addNode(seg.Leader().Node)
	}
	return nodes
}

type offsetsOutcome struct {
	offsetsAnswer
	err error
}

func (s *Server) askByTime(ctx context.Context, nodes nodeSet, m offsetsMessage) map[base.NodeID]offsetsOutcome {
	answers := make(map[base.NodeID]offsetsOutcome, len(nodes))
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, node := range nodes {
		asking.Go(func() {
			var o offsetsOutcome
			if node == s.id.Node {
				o.offsetsAnswer, o.err = s.takeOffsets(ctx, nil, m)
			} else {
				o.offsetsAnswer, o.err = callPeer[offsetsAnswer](ctx, s.peerCalls(), node, kindOffsets, m)
			}
			mu.Lock()
			defer mu.Unlock()
			answers[node] = o
		})
	}
	asking.Wait()
	return answers
}

// takeOffsets looks among the segments held here. A node that holds none of the range has none that fits.
func (s *Server) takeOffsets(_ context.Context, _ *peer.Request, m offsetsMessage) (a offsetsAnswer, err error) {
	a.Offset, a.TimeMs, a.Found, err = s.store.OffsetByTime(m.Ref, m.TimeMs)
	if base.CodeOf(err) == base.CodeNotReplica {
		err = nil
	}
	return a, err
}
