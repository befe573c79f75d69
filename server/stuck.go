package server

import (
	"fmt"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/coord"
	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/internal/wire"
)

// stuck are the segments that cannot go on and whose ends nobody can tell, of the shards led here. There are few of them,
// or something is badly wrong: the coordinators name no more than some.
func (s *Server) stuck() map[base.SegmentID]coord.Stuck {
	c := s.coord.Load()
	if c == nil {
		return nil
	}
	found := make(map[base.SegmentID]coord.Stuck)
	for _, w := range c.Stuck() {
		found[w.Segment] = w
	}
	return found
}

// stuckSegments counts them, and names a few.
type stuckSegments struct {
	Count int            `cbor:"1,keyasint,omitempty"`
	Named []stuckSegment `cbor:"2,keyasint,omitempty"`
}

type stuckSegment struct {
	Where   string         `cbor:"1,keyasint"` // orders/r9
	Segment base.SegmentID `cbor:"2,keyasint"`
	SinceMs int64          `cbor:"3,keyasint"`
	Why     string         `cbor:"4,keyasint"`
}

func (c *stuckSegments) add(where string, w coord.Stuck) {
	c.Count++
	if len(c.Named) < mostShort {
		c.Named = append(c.Named, stuckSegment{where, w.Segment, w.Since.UnixMilli(), w.Reason})
	}
}

// checkEnds fails when appends of a range wait for a replica that may never come back: somebody has to bring it, or to
// decide.
func checkEnds(sums []shardSum, missing []base.ShardID, now time.Time) wire.HealthCheck {
	c := wire.HealthCheck{ID: "EG141", Name: "it is known where segments end"}
	var named []stuckSegment
	count := 0
	for _, sum := range sums {
		count += sum.Stuck.Count
		named = append(named, sum.Stuck.Named...)
	}
	c.Detail = fmt.Sprintf("%d segments wait for a replica to say how they end", count)
	if count > 0 {
		c.Result = wire.HealthFail
		first := named[0]
		for _, w := range named {
			if w.SinceMs < first.SinceMs {
				first = w
			}
		}
		c.Detail += fmt.Sprintf("; for %s already: %s %s, %s", term.FormatTook(now.Sub(time.UnixMilli(first.SinceMs))), first.Where, first.Segment, first.Why)
		c.Next = fmt.Sprintf("start the nodes that hold it: eg-cli segment describe %s; if they are lost for good: eg-cli segment force-seal %s", first.Segment, first.Segment)
	}
	if len(missing) > 0 || len(sums) == 0 {
		c.Result = wire.HealthFail
		c.Detail += unanswered(missing)
	}
	return c
}
