package server

import (
	"fmt"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/internal/wire"
)

const (
	gapsWithin = 10 * time.Minute // which seals are looked at
	gapTarget  = time.Second      // nearly all of them should keep writers waiting for less
)

// sealGaps are the last minutes' seals, and how many of them kept writers waiting for too long: what is needed to say
// whether their 99th percentile is above the target, and adds up over shards.
type sealGaps struct {
	Seals   int    `cbor:"1,keyasint,omitempty"`
	Long    int    `cbor:"2,keyasint,omitempty"`
	WorstMs int64  `cbor:"3,keyasint,omitempty"`
	Worst   string `cbor:"4,keyasint,omitempty"` // orders/r9 s881, REPLICA_FAILURE
}

func (g *sealGaps) add(seg placed) {
	if seg.State != base.StateSealed {
		return
	}
	g.Seals++
	if seg.GapMs > gapTarget.Milliseconds() {
		g.Long++
	}
	if seg.GapMs > g.WorstMs {
		g.WorstMs, g.Worst = seg.GapMs, fmt.Sprintf("%s %s, %s", seg.where(), seg.ID, seg.Cause)
	}
}

func (g *sealGaps) join(o sealGaps) {
	g.Seals += o.Seals
	g.Long += o.Long
	if o.WorstMs > g.WorstMs {
		g.WorstMs, g.Worst = o.WorstMs, o.Worst
	}
}

// late reports whether more than one in a hundred took too long.
func (g sealGaps) late() bool { return g.Long > g.Seals/100 }

func checkGaps(sums []shardSum, missing []base.ShardID) wire.HealthCheck {
	c := wire.HealthCheck{ID: "EG143", Name: "seals keep writers waiting for less than " + term.FormatTook(gapTarget)}
	var all sealGaps
	for _, sum := range sums {
		all.join(sum.Gaps)
	}
	c.Detail = fmt.Sprintf("%s in the last %.0f minutes", counted(all.Seals, "seal", "seals"), gapsWithin.Minutes())
	if all.WorstMs > 0 {
		c.Detail += fmt.Sprintf(", %d of them with a longer gap; the longest: %s (%s)", all.Long, term.FormatTook(time.Duration(all.WorstMs)*time.Millisecond), all.Worst)
	}
	if all.late() {
		c.Result, c.Next = wire.HealthWarn, "eg-cli events --type SEGMENT_SEALED"
	}
	if len(missing) > 0 || len(sums) == 0 {
		c.Result = wire.HealthFail
		c.Detail += unanswered(missing)
	}
	return c
}
