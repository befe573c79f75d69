package server

import (
	"fmt"
	"strings"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/coord"
	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/internal/wire"
)

// stuck are the segments that cannot go on, of the shards led here: nobody can tell how they end, or no nodes can take the
// next one. There are few of them, or something is badly wrong: the coordinators name no more than some.
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

// join adds another shard's.
func (c *stuckSegments) join(o stuckSegments) {
	c.Count += o.Count
	c.Named = append(c.Named, o.Named...)
}

// oldest is the one of them that has waited longest.
func oldest(named []stuckSegment) stuckSegment {
	first := named[0]
	for _, w := range named {
		if w.SinceMs < first.SinceMs {
			first = w
		}
	}
	return first
}

// already ends a check's sentence with the segment that has waited longest, and for what.
func (w stuckSegment) already(now time.Time) string {
	return fmt.Sprintf("; for %s already: %s %s, %s", term.FormatTook(now.Sub(time.UnixMilli(w.SinceMs))), w.Where, w.Segment, w.Why)
}

// checkEnds fails when appends of a range wait for a replica that may never come back: somebody has to bring it, or to
// decide.
func checkEnds(sums []shardSum, missing []base.ShardID, now time.Time) wire.HealthCheck {
	c := wire.HealthCheck{ID: "EG141", Name: "it is known where segments end"}
	var stuck stuckSegments
	for _, sum := range sums {
		stuck.join(sum.Stuck)
	}
	c.Detail = counted(stuck.Count, "segment waits for a replica to say how it ends", "segments wait for a replica to say how they end")
	if stuck.Count > 0 {
		first := oldest(stuck.Named)
		c.Result = wire.HealthFail
		c.Detail += first.already(now)
		c.Next = fmt.Sprintf("start the nodes that hold it: eg-cli segment describe %s; if they are lost for good: eg-cli segment force-seal %s", first.Segment, first.Segment)
	}
	if len(missing) > 0 || len(sums) == 0 {
		c.Result = wire.HealthFail
		c.Detail += unanswered(missing)
	}
	return c
}

// checkPlaces fails when appends of a range wait for nodes: fewer than its topic's min_replicas can take the next segment.
func checkPlaces(sums []shardSum, missing []base.ShardID, now time.Time) wire.HealthCheck {
	c := wire.HealthCheck{ID: "EG144", Name: "there are nodes for the next segments"}
	var unplaced stuckSegments
	for _, sum := range sums {
		unplaced.join(sum.Unplaced)
	}
	c.Detail = counted(unplaced.Count, "range waits for nodes that can take its next segment", "ranges wait for nodes that can take their next segment")
	if unplaced.Count > 0 {
		first := oldest(unplaced.Named)
		topic, _, _ := strings.Cut(first.Where, "/")
		c.Result = wire.HealthFail
		c.Detail += first.already(now)
		c.Next = fmt.Sprintf("start the nodes that are down, make room where disks are full, or add nodes: eg-cli node list; to go on with fewer copies: eg-cli topic alter %s min_replicas=…", topic)
	}
	if len(missing) > 0 || len(sums) == 0 {
		c.Result = wire.HealthFail
		c.Detail += unanswered(missing)
	}
	return c
}
