package cli

import (
	"context"

	"github.com/eastguard/eastguard/sdk"
)

// ackHolders finds out who has the records whose acks name nobody: those that an earlier try had stored, and that lie in a
// segment before the one of the broker that answered.
type ackHolders struct {
	admin segmentLister
	rows  []sdk.SegmentRow // as last asked for: the records of a batch lie in one segment
}

// complete is the ack with its replicas, by the word of each on its copy. Where nobody says it stays as it is: the record is
// stored all the same.
func (h *ackHolders) complete(ctx context.Context, ack sdk.Ack) sdk.Ack {
	if len(ack.Replicas) > 0 {
		return ack
	}
	row := h.find(ack.Position)
	if row == nil {
		list, err := h.admin.ListSegments(ctx, sdk.ListSegments{Topic: ack.Topic, Range: ack.Range})
		if err != nil {
			return ack
		}
		h.rows = list.Segments
		if row = h.find(ack.Position); row == nil {
			return ack
		}
	}
	ack.Segment = row.Segment.ID
	for _, r := range row.Segment.Replicas {
		if r.DurableEnd > ack.Offset {
			ack.Replicas = append(ack.Replicas, r.Node)
		}
	}
	return ack
}

func (h *ackHolders) find(at sdk.Position) *sdk.SegmentRow {
	for i := range h.rows {
		r := &h.rows[i]
		if r.Topic == at.Topic && r.Range == at.Range && r.Segment.Base <= at.Offset && at.Offset < r.Segment.End {
			return r
		}
	}
	return nil
}
