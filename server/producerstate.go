package server

import (
	"context"

	"github.com/eastguard/eastguard/internal/wire"
)

// producerState tells what a range remembers of a producer: the SDK asks before it gives up on a batch.
func (s *Server) producerState(ctx context.Context, req wire.ProducerStateRequest) (wire.ProducerStateResponse, error) {
	st, err := s.plane.ProducerState(ctx, req.Ref, req.ProducerID)
	if err != nil {
		return wire.ProducerStateResponse{}, s.directed(req.Ref, err)
	}
	resp := wire.ProducerStateResponse{Known: st.Known, Epoch: st.Epoch, Commit: st.Commit}
	for _, b := range st.Batches {
		resp.Batches = append(resp.Batches, wire.ProducerBatch{BaseSequence: b.FirstSequence, LastSequence: b.LastSequence, Base: b.Base})
	}
	return resp, nil
}
