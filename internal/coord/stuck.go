package coord

import (
	"time"

	"github.com/eastguard/eastguard/internal/base"
)

// Stuck is a segment that its leader cannot go on with and that nothing follows yet, and why: its end cannot be told, or there
// are not nodes enough for the next one.
type Stuck struct {
	Ref     base.RangeRef
	Segment base.SegmentID
	Since   time.Time
	Reason  string
	Nodes   bool // it is nodes that are wanting
}

// maxStuck is how many of them a shard names.
const maxStuck = 256

// Stuck lists segments of the shards led here that wait for a replica to say how they end, or for nodes.
func (c *Coord) Stuck() []Stuck {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []Stuck
	for _, l := range c.loops {
		list = append(list, l.inbox.stuckOnes()...)
	}
	return list
}

// stuck lists the recoveries that were judged, and could not be decided. Those that are, and want nodes, are among the
// unplaced.
func (rs *recoveries) stuck() []Stuck {
	if rs.unknown == 0 {
		return nil
	}
	var list []Stuck
	for _, r := range rs.all {
		if r.why != nil && r.why.Code != base.CodeNotEnoughNodes && len(list) < maxStuck {
			list = append(list, Stuck{Ref: r.Ref, Segment: r.Segment, Since: time.UnixMilli(r.SinceMs), Reason: r.why.Msg})
		}
	}
	return list
}
