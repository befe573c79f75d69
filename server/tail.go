package server

import (
	"context"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/dataplane"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/store"
)

// tailMessage asks for batches of a sealed segment that the asker's copy is short of.
type tailMessage struct {
	Ref      base.RangeRef  `cbor:"1,keyasint"`
	Segment  base.SegmentID `cbor:"2,keyasint"`
	Disk     base.DiskID    `cbor:"3,keyasint"`
	From     int64          `cbor:"4,keyasint"`
	End      int64          `cbor:"5,keyasint"`
	MaxBytes int            `cbor:"6,keyasint"`
}

// tailAnswer has at least the first of them.
type tailAnswer struct {
	Batches []tailBatch `cbor:"1,keyasint"`
	Left    int64       `cbor:"2,keyasint"` // bytes from the first batch to the segment's end
}

type tailBatch struct {
	Bytes    []byte `cbor:"1,keyasint"`
	AppendMs int64  `cbor:"2,keyasint"`
	SpanLo   uint64 `cbor:"3,keyasint"`
	SpanHi   uint64 `cbor:"4,keyasint"`
}

// maxTailPiece bounds what is read at once for another node.
const maxTailPiece = 4 << 20

// fetchTail asks a replica of a sealed segment for what this node's copy lacks.
func (s *Server) fetchTail(ctx context.Context, from base.Replica, q dataplane.TailRequest) (store.Tail, error) {
	answer, err := callPeer[tailAnswer](ctx, s.peerCalls(), from.Node, kindTail, tailMessage{
		Ref: q.Ref, Segment: q.Segment, Disk: from.Disk, From: q.From, End: q.End, MaxBytes: q.MaxBytes,
	})
	t := store.Tail{Left: answer.Left}
	for _, b := range answer.Batches {
		t.Batches = append(t.Batches, store.Batch{Bytes: b.Bytes, AppendMs: b.AppendMs, SpanLo: b.SpanLo, SpanHi: b.SpanHi})
	}
	return t, err
}

// takeTail answers a replica whose copy is short.
func (s *Server) takeTail(_ context.Context, _ *peer.Request, m tailMessage) (tailAnswer, error) {
	const op = "read tail"
	if m.Disk != s.id.Disk {
		return tailAnswer{}, base.Errorf(base.CodeNotReplica, op, "node %s has another disk", s.id.Node)
	}
	if info, ok := s.store.Info(m.Segment); !ok || info.Ref != m.Ref {
		return tailAnswer{}, base.Errorf(base.CodeNotReplica, op, "segment %s of range %s is not on this node", m.Segment, m.Ref)
	}
	tail, err := s.store.Tail(m.Segment, m.From, m.End, min(max(m.MaxBytes, 1), maxTailPiece))
	if err != nil {
		return tailAnswer{}, err
	}
	if len(tail.Batches) == 0 {
		return tailAnswer{}, base.Errorf(base.CodeInvalidArgument, op, "segment %s has no batch from %d that ends by %d", m.Segment, m.From, m.End)
	}
	answer := tailAnswer{Left: tail.Left}
	for _, b := range tail.Batches {
		answer.Batches = append(answer.Batches, tailBatch{Bytes: b.Bytes, AppendMs: b.AppendMs, SpanLo: b.SpanLo, SpanHi: b.SpanHi})
	}
	if first := len(tail.Batches[0].Bytes); first > peer.MaxBody/2 {
		return tailAnswer{}, base.Errorf(base.CodeBatchTooLarge, op, "a batch of %d bytes is not carried so", first)
	}
	return answer, nil
}
