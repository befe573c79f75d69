package wire

import (
	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/keyspace"
)

// MaxFetchRanges is the most ranges one fetch may name.
const MaxFetchRanges = 4096

// FetchRequest reads whole batches from several ranges of one node. It is answered when MinBytes are there, when
// a range has something to tell (sealed, moved, an error), or after MaxWaitMs.
type FetchRequest struct {
	MaxWaitMs uint32
	MinBytes  uint32 // 0 answers at once
	MaxBytes  uint32 // of the whole answer; a first batch larger than it is sent all the same
	Ranges    []FetchRange
}

// FetchRange is one range of a FetchRequest.
type FetchRange struct {
	Topic      base.TopicID
	Range      base.RangeID
	Offset     int64  // the first record wanted; the answer begins with the batch that holds it
	MaxBytes   uint32 // of this range
	SeenCommit int64  // the highest commit this client was told: a replica that cannot prove it answers Behind
	Span       keyspace.Span
}

// FetchResponse answers the ranges in the order they were asked; the payload is their batches back to back.
type FetchResponse struct {
	Ranges []FetchRangeResult
}

// FetchState says what lies behind the bytes of a FetchRangeResult.
type FetchState uint8

// FetchActive: more will be appended at Next. FetchNext: this segment ended at End, which is where its successor
// begins; ask again (this node or, on NotReplica, the one that Locate names). FetchSealed: the range itself ended
// at End; its successors are in the route.
const (
	FetchActive FetchState = iota + 1
	FetchNext
	FetchSealed
)

// String prints active, next or sealed.
func (s FetchState) String() string {
	switch s {
	case FetchActive:
		return "active"
	case FetchNext:
		return "next"
	case FetchSealed:
		return "sealed"
	}
	return "unknown"
}

// FetchRangeResult is one range's part of the answer.
type FetchRangeResult struct {
	Topic      base.TopicID
	Range      base.RangeID
	Code       base.Code // CodeOK, or why this range has no bytes
	State      FetchState
	Commit     int64 // what is readable ends here
	Earliest   int64 // the oldest offset kept
	End        int64 // of the segment (FetchNext) or range (FetchSealed), else 0
	Next       int64 // where to go on: behind the last batch sent, or of those the Span left out
	Segment    base.SegmentID
	PayloadLen uint32 // this range's share of the payload
}
