package coord

import (
	"time"

	"github.com/eastguard/eastguard/internal/base"
)

// Stuck is a segment whose end cannot be told yet, and why.
type Stuck struct {
	Ref     base.RangeRef
	Segment base.SegmentID
	Since   time.Time
	Reason  string
}

// maxStuck is how many of them a shard names.
const maxStuck = 256

// Stuck lists segments of the shards led here that wait for a replica to say how they end.
func (c *Coord) Stuck() []Stuck {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []Stuck
	for _, l := range c.loops {
		list = append(list, l.inbox.stuckOnes()...)
	}
	return list
}

// stuck lists the recoveries that were judged, and could not be decided.
func (rs *recoveries) stuck() []Stuck {
	if rs.unknown == 0 {
		return nil
	}
	var list []Stuck
	for _, r := range rs.all {
		if r.why != nil && len(list) < maxStuck {
			list = append(list, Stuck{Ref: r.Ref, Segment: r.Segment, Since: time.UnixMilli(r.SinceMs), Reason: r.why.Msg})
		}
	}
	return list
}
