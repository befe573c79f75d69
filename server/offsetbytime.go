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
	Found  bool             `cbor:"1,keyasint"`
	Offset int64            `cbor:"2,keyasint"`
	TimeMs int64            `cbor:"3,keyasint"`
	Holds  []base.SegmentID `cbor:"4,keyasint,omitempty"` // the segments that it has looked through, to their ends
}

// offsetByTime finds the first record of a time or later in a range whose segments may be on several nodes: each finds
// the first among its own, and the lowest of those is the range's. Of each segment below the answer one whole copy must
// have been looked through.
func (s *Server) offsetByTime(ctx context.Context, ref base.RangeRef, ms int64) (offsetsAnswer, error) {
	const op = "find offset by time"
	r, err := s.rangeCopy(ctx, op, ref)
	if err != nil {
		return offsetsAnswer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, byTimeWithin)
	defer cancel()
	answers := s.askByTime(ctx, holdersOf(r), offsetsMessage{Ref: ref, TimeMs: ms})
	return firstOf(r, answers)
}

// firstOf puts the nodes' answers together.
func firstOf(r *meta.Range, answers map[base.NodeID]offsetsOutcome) (best offsetsAnswer, err error) {
	looked := make(map[base.SegmentID]bool)
	for _, a := range answers {
		if a.err != nil {
			continue
		}
		for _, id := range a.Holds {
			looked[id] = true
		}
		if a.Found && (!best.Found || a.Offset < best.Offset) {
			best = offsetsAnswer{Found: true, Offset: a.Offset, TimeMs: a.TimeMs}
		}
	}
	for _, seg := range r.Segments {
		switch {
		case best.Found && (seg.State == base.StateActive || best.Offset < seg.End): // the first in a copy from its base on
			return best, nil
		case looked[seg.ID], seg.State == base.StateSealed && seg.Empty():
		case seg.State == base.StateActive && answers[seg.Leader().Node].err == nil: // it is about to open it
		default:
			return offsetsAnswer{}, base.Errorf(base.CodeNoLeader, "find offset by time", "no whole copy of segment %s, which holds the records from offset %d on, is to be had: %w",
				seg.ID, seg.Base, whyNot(seg, answers))
		}
	}
	return best, nil
}

// whyNot is what one of a segment's holders said, or why it said nothing.
func whyNot(seg *meta.Segment, answers map[base.NodeID]offsetsOutcome) error {
	for _, rep := range seg.Replicas {
		if err := answers[rep.Node].err; err != nil {
			return base.Errorf(base.CodeOf(err), "ask "+string(rep.Node), "%w", err)
		}
	}
	return base.Errorf(base.CodeBehind, "ask its holders", "they lack a part of it")
}

// holdersOf are the nodes that hold a range's segments, each once.
func holdersOf(r *meta.Range) nodeSet {
	var nodes nodeSet
	for _, seg := range r.Segments {
		nodes.add(seg.Replicas)
	}
	return nodes
}

type offsetsOutcome struct {
	offsetsAnswer
	err error
}

// askByTime asks the nodes that are there, side by side.
func (s *Server) askByTime(ctx context.Context, nodes nodeSet, m offsetsMessage) map[base.NodeID]offsetsOutcome {
	answers := make(map[base.NodeID]offsetsOutcome, len(nodes))
	view := s.connected()
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, node := range nodes {
		asking.Go(func() {
			var o offsetsOutcome
			switch {
			case node == s.id.Node:
				o.offsetsAnswer, o.err = s.takeOffsets(ctx, nil, m)
			case !lives(view, node):
				o.err = base.Errorf(base.CodeUnreachable, "find offset by time", "node %s is away", node)
			default:
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
	for _, info := range s.store.Segments(m.Ref) { // before the search: what is added meanwhile may be found, too
		if info.Whole() || info.SealedEnd < 0 && s.hears(m.Ref, info.Segment, info.Commit) {
			a.Holds = append(a.Holds, info.Segment)
		}
	}
	a.Offset, a.TimeMs, a.Found, err = s.store.OffsetByTime(m.Ref, m.TimeMs)
	if base.CodeOf(err) == base.CodeNotReplica {
		err = nil
	}
	return a, err
}
