package server

import (
	"context"
	"encoding/binary"
	"io"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/wire"
)

// openProducer hands out the next epoch of a named producer. The newer epoch fences the older one in each range where
// it writes.
func (s *Server) openProducer(ctx context.Context, shard base.ShardID, req wire.OpenProducerRequest) (wire.OpenProducerResponse, error) {
	const op = "open producer"
	switch {
	case req.Name == "" || len(req.Name) > meta.MaxProducerName:
		return wire.OpenProducerResponse{}, base.Errorf(base.CodeInvalidArgument, op, "a producer's name has 1 to %d bytes, not %d", meta.MaxProducerName, len(req.Name))
	case req.Fence:
		return wire.OpenProducerResponse{}, base.Errorf(base.CodeInvalidArgument, op, "fencing every range at once is not offered by this version").
			WithHint("open without it: the new epoch fences the old one in each range where it writes")
	}
	f, err := s.topic(ctx, op, shard, "", req.Topic)
	if err != nil {
		return wire.OpenProducerResponse{}, err
	}
	id, err := producerID(s.deps.Rand)
	if err != nil {
		return wire.OpenProducerResponse{}, base.Wrap(base.CodeInternal, op, err)
	}
	result, err := s.propose(ctx, op, f.shard, meta.Command{
		RequestID: req.RequestID, TimeMs: time.Now().UnixMilli(),
		OpenProducer: &meta.OpenProducer{Topic: f.ID, Name: req.Name, ID: id},
	})
	if err != nil {
		return wire.OpenProducerResponse{}, err
	}
	return wire.OpenProducerResponse{ProducerID: result.Producer.ID, Epoch: result.Producer.Epoch}, nil
}

// producerID draws a random id of 63 bits: two of the cluster's producers never meet.
func producerID(r io.Reader) (int64, error) {
	var b [8]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, err
	}
	return int64(binary.BigEndian.Uint64(b[:]) >> 1), nil
}
