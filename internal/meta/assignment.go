package meta

import (
	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/keyspace"
)

// Assignment tells a replica what one segment is, as committed. It is declarative and re-sent until confirmed: a
// node ignores one whose Version is lower than what it confirmed for that segment, and confirms an equal one again.
//
// Active: hold it, and lead it when first in Replicas. Sealed: store {Segment, End} durably before confirming, and
// serve nothing at or above End.
type Assignment struct {
	Ref      base.RangeRef    `cbor:"1,keyasint"`
	Name     string           `cbor:"2,keyasint"` // of the topic
	Config   base.TopicConfig `cbor:"3,keyasint"` // segment limits resolved: never 0
	Version  base.Version     `cbor:"4,keyasint"`
	Span     keyspace.Span    `cbor:"5,keyasint"`
	Segment  base.SegmentID   `cbor:"6,keyasint"`
	Epoch    base.Epoch       `cbor:"7,keyasint"`
	Base     int64            `cbor:"8,keyasint"`
	End      int64            `cbor:"9,keyasint"` // NoEnd while active
	State    base.State       `cbor:"10,keyasint"`
	Cause    base.Cause       `cbor:"11,keyasint,omitempty"`
	Replicas []base.Replica   `cbor:"12,keyasint"`
	Prev     base.SegmentID   `cbor:"13,keyasint,omitempty"` // its committed end is Base; 0 at the start of a range
	Earliest int64            `cbor:"14,keyasint,omitempty"` // the range's, as committed
	OpenedMs int64            `cbor:"15,keyasint"`           // when it was committed as active
	From     *Source          `cbor:"16,keyasint,omitempty"` // of an active one: who knows what the range remembers at Base; nil when that is nothing
	Active   base.NodeID      `cbor:"17,keyasint,omitempty"` // of a sealed one: who led the range when this was sent; a hint
	Boots    []uint64         `cbor:"18,keyasint,omitempty"` // of Replicas; see Segment.Boots
	Forced   bool             `cbor:"19,keyasint,omitempty"` // acked records above End, of an active one above its Base, may have been given up: that is recorded
}

// Source is where a segment's first leader finds what the range remembers at its base: the segment before it that is
// kept, which ends there.
type Source struct {
	Segment  base.SegmentID `cbor:"1,keyasint"`
	Replicas []base.Replica `cbor:"2,keyasint"`
}

// Leader is the replica that leads the segment.
func (a *Assignment) Leader() base.Replica {
	if len(a.Replicas) == 0 {
		return base.Replica{}
	}
	return a.Replicas[0]
}

// Trim tells a node that everything of a range below Earliest has been dropped by a committed decision: every
// segment that ends at or below it goes.
type Trim struct {
	Ref      base.RangeRef `cbor:"1,keyasint"`
	Earliest int64         `cbor:"2,keyasint"`
	Version  base.Version  `cbor:"3,keyasint"`
}

// Orders is one message to one node: what it holds, what is trimmed, which topics are deleted. Everything in it is
// idempotent and may arrive again.
type Orders struct {
	Assignments []Assignment   `cbor:"1,keyasint,omitempty"`
	Trims       []Trim         `cbor:"2,keyasint,omitempty"`
	Deletes     []base.TopicID `cbor:"3,keyasint,omitempty"`
	Rolls       []RollOrder    `cbor:"4,keyasint,omitempty"`
}

// RollOrder asks the leader of an active segment to end it as a planned roll: it drains, freezes and asks for its
// successor. It is a wish: a node that does not lead the segment fails it, and a segment that has ended confirms it.
type RollOrder struct {
	Ref     base.RangeRef  `cbor:"1,keyasint"`
	Segment base.SegmentID `cbor:"2,keyasint"`
	Epoch   base.Epoch     `cbor:"3,keyasint"`
	Cause   base.Cause     `cbor:"4,keyasint"`
}

// Len counts the orders.
func (o *Orders) Len() int { return len(o.Assignments) + len(o.Trims) + len(o.Deletes) + len(o.Rolls) }

// ConfirmKind says which kind of order a confirmation answers.
type ConfirmKind uint8

// The kinds.
const (
	ConfirmSegment ConfirmKind = iota + 1
	ConfirmTrim
	ConfirmDelete
	ConfirmRoll
)

// ConfirmStatus says how a node stands to an order.
type ConfirmStatus uint8

// StatusHeld: done, durably. StatusFenced: the node should lead the active segment but holds it from an earlier
// start (or has been fenced), so it cannot, and the coordinator must seal it. StatusFailed: not done, ask again.
// StatusStateless: not done, for nobody whom the node can reach knows what the range remembers; it tries again when
// told again, and another node may fare better. StatusShort: a sealed segment's end is kept, durably, but the copy here
// ends before it and counts as none.
const (
	StatusHeld ConfirmStatus = iota + 1
	StatusFenced
	StatusFailed
	StatusStateless
	StatusShort
)

// Confirmation is a node's answer to one order: for a segment its Version, for a trim its Earliest as Offset.
type Confirmation struct {
	Kind    ConfirmKind    `cbor:"1,keyasint"`
	Status  ConfirmStatus  `cbor:"2,keyasint"`
	Ref     base.RangeRef  `cbor:"3,keyasint"` // Topic alone for a delete
	Segment base.SegmentID `cbor:"4,keyasint,omitempty"`
	Version base.Version   `cbor:"5,keyasint,omitempty"`
	Offset  int64          `cbor:"6,keyasint,omitempty"`
	Empty   bool           `cbor:"7,keyasint,omitempty"` // StatusFenced: it holds no record, so nobody is in a hurry
	Message string         `cbor:"8,keyasint,omitempty"` // StatusFailed: why
}

// FenceRequest asks a replica to promise, durably, that nothing of this epoch or below is ever acked again for the range.
type FenceRequest struct {
	Ref     base.RangeRef  `cbor:"1,keyasint"`
	Epoch   base.Epoch     `cbor:"2,keyasint"`
	Segment base.SegmentID `cbor:"3,keyasint"`
	Base    int64          `cbor:"4,keyasint"`
	Boot    uint64         `cbor:"5,keyasint,omitempty"` // the start of the replica's node that was placed; see Segment.Boots
}

// ExtentKind is what a fenced replica can say about its copy.
type ExtentKind uint8

// Extent: intact up to End. Damaged: intact up to End, and something was there above it. NotMine: another disk than
// the one named, which proves nothing.
const (
	Extent ExtentKind = iota + 1
	Damaged
	NotMine
)

// FenceAnswer is a replica's answer, given after the fsync that covers the fence.
type FenceAnswer struct {
	Segment      base.SegmentID `cbor:"1,keyasint"`
	Replica      base.Replica   `cbor:"2,keyasint"` // who answers, with the disk it has
	Kind         ExtentKind     `cbor:"3,keyasint"`
	End          int64          `cbor:"4,keyasint"`
	Unbroken     bool           `cbor:"5,keyasint,omitempty"` // has run without a restart since the segment was assigned to it
	Bytes        int64          `cbor:"6,keyasint,omitempty"` // of its file
	LastAppendMs int64          `cbor:"7,keyasint,omitempty"`
	Err          string         `cbor:"8,keyasint,omitempty"` // could not fence: this is no answer
	Unlisted     bool           `cbor:"9,keyasint,omitempty"` // it never had the segment: the extent is its base
}

// Held is what one disk holds of one range.
type Held struct {
	Ref      base.RangeRef `cbor:"1,keyasint"`
	Segments []HeldSegment `cbor:"2,keyasint"`
}

// HeldSegment is one of them. End is how far the copy goes: to the sealed end, if it is whole.
type HeldSegment struct {
	Segment base.SegmentID `cbor:"1,keyasint"`
	Base    int64          `cbor:"2,keyasint"`
	End     int64          `cbor:"3,keyasint"`
	Damaged bool           `cbor:"4,keyasint,omitempty"` // bytes at and above Intact are missing or do not match their sums
	Intact  int64          `cbor:"5,keyasint,omitempty"` // of a damaged one
}

// Inventory is a page of what a disk holds, by range. Next is where the following page begins; More says that there is one.
// Of a lossy disk, which has lost records of its log, what is not listed proves nothing.
type Inventory struct {
	Disk   base.DiskID   `cbor:"1,keyasint"`
	Ranges []Held        `cbor:"2,keyasint,omitempty"`
	Next   base.RangeRef `cbor:"3,keyasint"`
	More   bool          `cbor:"4,keyasint,omitempty"`
	Lossy  bool          `cbor:"5,keyasint,omitempty"`
}

// Limits are the brokers' defaults for what a topic leaves at 0.
type Limits struct {
	SegmentBytes int64
	SegmentAgeMs int64
}

// Assignment derives what the replicas of one segment must know.
func (t *Topic) Assignment(r *Range, s *Segment, limits Limits) Assignment {
	a := Assignment{
		Ref: base.RangeRef{Topic: t.ID, Range: r.ID}, Name: t.Name, Config: limits.resolve(t.Config),
		Span: r.Span, Segment: s.ID, Epoch: s.Epoch, Base: s.Base, End: s.End, State: s.State, Cause: s.Cause,
		Replicas: s.Replicas, Boots: s.Boots, Prev: s.Prev, Earliest: r.TrimmedTo, OpenedMs: s.CreatedMs,
	}
	// The version moves exactly when what is told about this segment does.
	if s.State == base.StateSealed {
		a.Version, a.Forced = s.SealVersion, s.givenUp()
		if active := r.Active(); active != nil {
			a.Active = active.Leader().Node
		}
		return a
	}
	a.Version = max(s.Version, t.ConfigVersion)
	if n := len(r.Segments); n > 1 {
		before := r.Segments[n-2]
		a.Forced = before.givenUp()
		if s.Base > 0 { // below offset 0 there is nothing to remember
			a.From = &Source{Segment: before.ID, Replicas: before.Replicas}
		}
	}
	return a
}

// givenUp reports whether acked records above the segment's end may be gone, with somebody's knowledge.
func (s *Segment) givenUp() bool { return s.Forced != nil || s.Lossy }
