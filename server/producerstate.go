package server

import (
	"context"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/rangestate"
	"github.com/eastguard/eastguard/internal/wire"
)

// producerState tells what a range remembers of a producer: the SDK asks before it gives up on a batch. Of an active
// range its leader knows; of one that has ended, every whole copy of its last segment.
func (s *Server) producerState(ctx context.Context, req wire.ProducerStateRequest) (wire.ProducerStateResponse, error) {
	st, err := s.plane.ProducerState(ctx, req.Ref, req.ProducerID)
	if err != nil {
		if resp, ok := s.sealedProducerState(ctx, req); ok {
			return resp, nil
		}
		return wire.ProducerStateResponse{}, s.directed(req.Ref, err)
	}
	return wire.ProducerStateResponse{Known: st.Known, Epoch: st.Epoch, Commit: st.Commit, Batches: wireBatches(st.Batches)}, nil
}

func wireBatches(appended []rangestate.Appended) (list []wire.ProducerBatch) {
	for _, b := range appended {
		list = append(list, wire.ProducerBatch{BaseSequence: b.FirstSequence, LastSequence: b.LastSequence, Base: b.Base})
	}
	return list
}

// sealedProducerState answers for a range that has ended, if its last segment is here. What the range remembered then is
// all that it will ever know.
func (s *Server) sealedProducerState(ctx context.Context, req wire.ProducerStateRequest) (wire.ProducerStateResponse, bool) {
	at, ok := s.lastSegmentHere(req.Ref)
	if !ok || !at.Whole() {
		return wire.ProducerStateResponse{}, false
	}
	r, err := s.rangeCopy(ctx, "producer state", req.Ref)
	if err != nil || !endsWith(r, at.Segment) {
		return wire.ProducerStateResponse{}, false
	}
	state, err := s.store.RangeState(at.Segment)
	if err != nil {
		return wire.ProducerStateResponse{}, false
	}
	epoch, batches, known := state.Window(req.ProducerID)
	return wire.ProducerStateResponse{Known: known, Epoch: epoch, Commit: at.SealedEnd, Sealed: true, Batches: wireBatches(batches)}, true
}

// endsWith reports whether a range has ended with a segment.
func endsWith(r *meta.Range, seg base.SegmentID) bool {
	n := len(r.Segments)
	return r.State == base.StateSealed && n > 0 && r.Segments[n-1].ID == seg
}
