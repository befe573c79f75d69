package server

import (
	"context"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/dataplane"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/mux"
	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/internal/wire"
)

// recordOverhead is what a record's framing may add to its key, value and headers before the broker calls it too
// large: lengths, timestamp delta, and those of its headers.
const recordOverhead = 256

// produce appends one batch. It is asynchronous to the end: the ack goes out from whichever goroutine learns that the
// batch is durable on every replica.
func (s *Server) produce(_ context.Context, r *mux.Request) {
	var req wire.ProduceRequest
	if err := wire.Decode(r.Message, &req); err != nil {
		r.Fail(err)
		return
	}
	if err := s.checkRecords(req, r.Payload); err != nil {
		r.Fail(err)
		return
	}
	var deadline time.Time
	if req.TimeoutMs > 0 {
		deadline = r.Arrived.Add(time.Duration(req.TimeoutMs) * time.Millisecond)
	}
	ref := base.RangeRef{Topic: req.Topic, Range: req.Range}
	if err := s.misplaced("produce", ref); err != nil {
		r.Fail(err)
		return
	}
	size := len(r.Payload)
	s.plane.Append(dataplane.AppendRequest{
		Ref:    ref,
		Bytes:  r.Payload,
		SpanLo: req.SpanLo, SpanHi: req.SpanHi,
		Deadline: deadline,
		Trace:    req.Trace,
	}, func(a dataplane.AppendResult, err error) {
		if err != nil {
			r.Fail(s.directed(ref, elsewhereSoon(err)))
			return
		}
		s.rates.in.Add(uint64(size))
		answer := wire.Encode(wire.ProduceResponse{
			Base: a.Base, AppendMs: a.AppendMs, Segment: a.Segment, Epoch: a.Epoch, Duplicate: a.Duplicate, Replicas: a.Replicas,
		})
		if a.Trace != nil {
			r.Reply(answer, vfs.MemPart(wire.Encode(a.Trace)))
			return
		}
		r.Reply(answer)
	})
}

// elsewhereSoon makes an error of this broker's own one that says where to go on. What the log or a range cannot get over
// ends the process; the range goes on at another replica, which knows what became of the batch.
func elsewhereSoon(err error) error {
	if base.CodeOf(err) != base.CodeInternal {
		return err
	}
	return base.Errorf(base.CodeShuttingDown, "produce", "the broker is about to stop: %w", err).WithOutcome(base.OutcomeOf(err))
}

// checkRecords refuses what the batch's header alone shows to be too large. Records are not decoded on the write
// path: of an uncompressed batch it is enough to see that it cannot hold so many records within the limit.
func (s *Server) checkRecords(req wire.ProduceRequest, batch []byte) error {
	const op = "produce"
	h, err := header.Parse(batch)
	if err != nil {
		return err
	}
	if uint8(h.Codec()) != req.Codec {
		return base.Errorf(base.CodeCorruptBatch, op, "the request says codec %d, the batch's header %s", req.Codec, h.Codec())
	}
	limit := s.cfg.MaxRecordBytes + recordOverhead
	if body := int64(len(batch) - header.Size); h.Codec() == header.None && h.Records > 0 && body > int64(h.Records)*limit {
		return base.Errorf(base.CodeRecordTooLarge, op, "%d records in %d bytes: one of them is above %d bytes", h.Records, body, s.cfg.MaxRecordBytes)
	}
	return nil
}

// maxBatchBytes is the largest batch that is taken: one record of the largest size always fits.
func (s *Server) maxBatchBytes() int64 {
	return max(s.cfg.BatchMaxBytes, s.cfg.MaxRecordBytes+header.Size+recordOverhead)
}
