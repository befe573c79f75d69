package coord

import (
	"context"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
)

// ForceRequest is an operator's order to end an active segment at the longest copy that answers, whatever may have been
// acked above it.
type ForceRequest struct {
	Shard   base.ShardID // which this node leads
	Ref     base.RangeRef
	Segment base.SegmentID
	Reason  string
	DryRun  bool // fence and commit nothing, only look
}

// Forced is what a forced seal did or, dry, would do.
type Forced struct {
	Sealed

	Known  []meta.FenceAnswer // what the replicas that answered hold
	Silent []base.Replica     // which did not answer, or not for the disk that was placed
	Lossy  bool               // the end is not certain: acked records above it may be lost
}

// ForceSeal ends a segment whose end nobody can prove. Who answers is fenced; the longest of their copies is the end, of
// a damaged one what is intact, and the segment's base if there is none. It is recorded for ever.
func (c *Coord) ForceSeal(ctx context.Context, req ForceRequest) (Forced, error) {
	return Forced{}, base.Errorf(base.CodeNoLeader, "force-seal segment", "shard %s is not coordinated here", req.Shard)
}
