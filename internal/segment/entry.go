package segment

import (
	"math"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/keyspace"
)

// The sizes that the formats are made of.
const (
	BlockBytes    = 64 << 10 // file bytes under one checksum
	indexInterval = 4 << 10  // file bytes under one index entry, at least
	timeInterval  = 64 << 10 // and under one time index entry

	MaxBytes   = math.MaxUint32 // positions and relative offsets are 32 bits in the index
	MaxRecords = math.MaxUint32
)

// Entry is one batch in memory. It does not change once it has been pushed.
type Entry struct {
	Bytes        []byte
	Base, End    int64  // offsets [Base, End)
	AppendMs     int64  // leader's append time
	MaxTimestamp int64  // of the batch's header
	Lo, Hi       uint64 // routing hashes of its records, both inclusive

	seq uint64 // position in its tail
}

// touches reports whether hashes in [lo, hi] may lie in span; nil is the whole key space.
func touches(span *keyspace.Span, lo, hi uint64) bool {
	return span == nil || (lo <= span.Last() && span.Start <= hi)
}

// Spec is what a file must be of. Every byte that is read is held against it.
type Spec struct {
	Segment base.SegmentID
	Epoch   base.Epoch
	Base    int64
}

// Extent is how far a file reaches: its last offset and its length.
type Extent struct {
	End int64 // offset behind the last batch
	Pos int64 // bytes
}
