package meta

import "github.com/eastguard/eastguard/internal/base"

// ForceSealSegment ends the active segment of a range at End, which nobody could prove, and opens its successor: an
// operator accepts that acked records above End are lost. It takes effect only if (Segment, Epoch) is what is active.
type ForceSealSegment struct {
	Topic    base.TopicID   `cbor:"1,keyasint"`
	Range    base.RangeID   `cbor:"2,keyasint"`
	Segment  base.SegmentID `cbor:"3,keyasint"`
	Epoch    base.Epoch     `cbor:"4,keyasint"`
	End      int64          `cbor:"5,keyasint"`
	Replicas []base.Replica `cbor:"6,keyasint"` // of the successor, leader first
	Boots    []uint64       `cbor:"7,keyasint,omitempty"`
	Reason   string         `cbor:"8,keyasint,omitempty"` // the operator's words
	Silent   []base.Replica `cbor:"9,keyasint,omitempty"` // replicas that did not answer, or not with an intact copy
	Bytes    int64          `cbor:"10,keyasint,omitempty"`
}

// Forced is what is remembered of it, for ever.
type Forced struct {
	Reason string         `cbor:"1,keyasint,omitempty"`
	TimeMs int64          `cbor:"2,keyasint"`
	Silent []base.Replica `cbor:"3,keyasint,omitempty"`
}
