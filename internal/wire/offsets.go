package wire

import "github.com/eastguard/eastguard/internal/base"

// OffsetSpec says which offset ListOffsets looks for.
type OffsetSpec uint8

// OffsetEarliest is the oldest kept, OffsetLatest the commit, OffsetAtTime the first record appended at or after
// a time.
const (
	OffsetEarliest OffsetSpec = iota + 1
	OffsetLatest
	OffsetAtTime
)

// ListOffsetsRequest asks a replica for one position in each of some ranges.
type ListOffsetsRequest struct {
	Queries []OffsetQuery `cbor:"1,keyasint"`
}

// OffsetQuery is one position asked for.
type OffsetQuery struct {
	Ref    base.RangeRef `cbor:"1,keyasint"`
	At     OffsetSpec    `cbor:"2,keyasint"`
	TimeMs int64         `cbor:"3,keyasint,omitempty"` // with OffsetAtTime
}

// ListOffsetsResponse has one answer a query, in the same order.
type ListOffsetsResponse struct {
	Offsets []OffsetAnswer `cbor:"1,keyasint"`
}

// OffsetAnswer is the position found. With OffsetAtTime and no record that late it is the commit, TimeMs 0.
type OffsetAnswer struct {
	Ref      base.RangeRef `cbor:"1,keyasint"`
	Error    *ErrorMessage `cbor:"2,keyasint,omitempty"`
	Offset   int64         `cbor:"3,keyasint,omitempty"`
	TimeMs   int64         `cbor:"4,keyasint,omitempty"`
	Earliest int64         `cbor:"5,keyasint,omitempty"`
	Commit   int64         `cbor:"6,keyasint,omitempty"`
	Sealed   bool          `cbor:"7,keyasint,omitempty"` // the range has ended; Commit is its end for ever
}
