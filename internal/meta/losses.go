package meta

import (
	"fmt"
	"slices"

	"github.com/eastguard/eastguard/internal/base"
)

// MaxLosses is how many of a topic's losses are kept one by one. The others are counted.
const MaxLosses = 32

// Losses are the seals of a topic above whose ends acked records may be gone. They are remembered for ever, also when
// retention has dropped the segments.
type Losses struct {
	Count  int    `cbor:"1,keyasint"` // of all
	Recent []Loss `cbor:"2,keyasint"` // the newest ones, oldest first
}

// Loss is one of them.
type Loss struct {
	Range   base.RangeID   `cbor:"1,keyasint"`
	Segment base.SegmentID `cbor:"2,keyasint"`
	End     int64          `cbor:"3,keyasint"`
	TimeMs  int64          `cbor:"4,keyasint"`
	Forced  *Forced        `cbor:"5,keyasint,omitempty"` // an operator accepted it; nil: see Segment.Lossy
}

// with is the losses and one more.
func (l *Losses) with(loss Loss) *Losses {
	next := &Losses{Count: 1}
	if l != nil {
		next.Count = l.Count + 1
		next.Recent = slices.Clone(l.Recent[max(0, len(l.Recent)-MaxLosses+1):])
	}
	next.Recent = append(next.Recent, loss)
	return next
}

func (l *Losses) check() error {
	if l == nil {
		return nil
	}
	if len(l.Recent) != min(l.Count, MaxLosses) || l.Count < 1 {
		return fmt.Errorf("%d losses, %d of them in detail", l.Count, len(l.Recent))
	}
	if !slices.IsSortedFunc(l.Recent, func(a, b Loss) int { return int(min(max(a.TimeMs-b.TimeMs, -1), 1)) }) {
		return fmt.Errorf("losses are out of order")
	}
	return nil
}
