package meta

import (
	"slices"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/keyspace"
)

// NoEnd is the End of a segment that is still active.
const NoEnd int64 = -1

// Topic is one topic as committed. It is immutable: the state replaces it by a changed copy.
type Topic struct {
	ID            base.TopicID     `cbor:"1,keyasint"`
	Name          string           `cbor:"2,keyasint"`
	Config        base.TopicConfig `cbor:"3,keyasint"`
	Version       base.Version     `cbor:"4,keyasint"` // counts the commands that changed the topic
	ConfigVersion base.Version     `cbor:"5,keyasint"` // the version that last changed Config
	Epoch         base.Epoch       `cbor:"6,keyasint"` // counts the commands that opened a segment
	CreatedMs     int64            `cbor:"7,keyasint"`
	Internal      bool             `cbor:"8,keyasint,omitempty"`
	NextRange     base.RangeID     `cbor:"9,keyasint"`
	Ranges        []*Range         `cbor:"10,keyasint"`           // by id
	Producers     []Producer       `cbor:"11,keyasint,omitempty"` // named ones, by name
	Losses        *Losses          `cbor:"12,keyasint,omitempty"` // what may be gone of it, for ever; nil: nothing
}

// Range is a slice of the key space with its own dense offsets: a chain of segments.
type Range struct {
	ID          base.RangeID   `cbor:"1,keyasint"`
	Span        keyspace.Span  `cbor:"2,keyasint"`
	State       base.State     `cbor:"3,keyasint"`
	Parents     []base.RangeID `cbor:"4,keyasint,omitempty"`
	Children    []base.RangeID `cbor:"5,keyasint,omitempty"`
	Segments    []*Segment     `cbor:"6,keyasint"`           // by base; sealed ones, then at most one active
	TrimmedTo   int64          `cbor:"7,keyasint,omitempty"` // the earliest offset that is kept
	TrimVersion base.Version   `cbor:"8,keyasint,omitempty"` // the version that last trimmed
	Emptied     []*Segment     `cbor:"9,keyasint,omitempty"` // sealed without a record and in the chain no more, the newest few: who has them is still to hear of their ends
}

// MaxEmptied is how many of a range's segments without a record are remembered beside its chain.
const MaxEmptied = 8

// Segment is up to a gigabyte or an hour of one range on one ordered replica set; the first replica leads.
type Segment struct {
	ID           base.SegmentID `cbor:"1,keyasint"`
	Epoch        base.Epoch     `cbor:"2,keyasint"`
	Base         int64          `cbor:"3,keyasint"`
	End          int64          `cbor:"4,keyasint"` // NoEnd while active
	State        base.State     `cbor:"5,keyasint"`
	Cause        base.Cause     `cbor:"6,keyasint,omitempty"` // why it ended
	Replicas     []base.Replica `cbor:"7,keyasint"`
	Prev         base.SegmentID `cbor:"8,keyasint,omitempty"`  // what it continues; 0 at the start of a range
	Bytes        int64          `cbor:"9,keyasint,omitempty"`  // of its file, known once sealed
	CreatedMs    int64          `cbor:"10,keyasint"`           // when it was opened
	SealedMs     int64          `cbor:"11,keyasint,omitempty"` // when it was sealed
	LastAppendMs int64          `cbor:"12,keyasint,omitempty"` // leader append time of its last batch; never falls along a chain
	GapMs        int64          `cbor:"13,keyasint,omitempty"` // how long writers waited for its successor
	Version      base.Version   `cbor:"14,keyasint"`           // the topic's version that opened it
	SealVersion  base.Version   `cbor:"15,keyasint,omitempty"` // the one that sealed it
	Boots        []uint64       `cbor:"16,keyasint,omitempty"` // of Replicas, the starts of their nodes that were placed; a later start of one never leads it nor follows in it. Empty: not known
	Forced       *Forced        `cbor:"17,keyasint,omitempty"` // an operator ended it without knowing its end
	Lossy        bool           `cbor:"18,keyasint,omitempty"` // its end is the longest of restarted copies, in a topic that acks before fsync
}

// Producer is a named producer: its id, and the epoch that OpenProducer handed out last.
type Producer struct {
	Name     string `cbor:"1,keyasint"`
	ID       int64  `cbor:"2,keyasint"`
	Epoch    int16  `cbor:"3,keyasint"`
	OpenedMs int64  `cbor:"4,keyasint"`
}

// Tombstone is a deleted topic whose replicas have not all confirmed that they removed it.
type Tombstone struct {
	Topic     base.TopicID   `cbor:"1,keyasint"`
	Name      string         `cbor:"2,keyasint"`
	Version   base.Version   `cbor:"3,keyasint"`
	DeletedMs int64          `cbor:"4,keyasint"`
	Waiting   []base.Replica `cbor:"5,keyasint"` // sorted by node, disk; never empty
}

// Range finds a range by id, or returns nil.
func (t *Topic) Range(id base.RangeID) *Range {
	i, ok := slices.BinarySearchFunc(t.Ranges, id, func(r *Range, id base.RangeID) int { return int(r.ID) - int(id) })
	if !ok {
		return nil
	}
	return t.Ranges[i]
}

// Totals counts a topic's segments, the bytes of the sealed ones and the records of the sealed ones.
func (t *Topic) Totals() (segments int, bytes, records int64) {
	for _, r := range t.Ranges {
		segments += len(r.Segments)
		for _, s := range r.Segments {
			bytes += s.Bytes
			if s.State == base.StateSealed {
				records += s.End - s.Base
			}
		}
	}
	return segments, bytes, records
}

// Active is the range's writable segment, or nil when it is sealed.
func (r *Range) Active() *Segment {
	if n := len(r.Segments); n > 0 && r.Segments[n-1].State == base.StateActive {
		return r.Segments[n-1]
	}
	return nil
}

// Sealed lists the sealed segments, oldest first.
func (r *Range) Sealed() []*Segment {
	if r.Active() != nil {
		return r.Segments[:len(r.Segments)-1]
	}
	return r.Segments
}

// Segment finds a segment by id, or returns nil. It looks from the newest on, where all the questions are.
func (r *Range) Segment(id base.SegmentID) *Segment {
	for _, s := range slices.Backward(r.Segments) {
		if s.ID == id {
			return s
		}
	}
	for _, s := range slices.Backward(r.Emptied) {
		if s.ID == id {
			return s
		}
	}
	return nil
}

// Placed lists every segment that some disk may hold: the chain, and what was left out of it.
func (r *Range) Placed() []*Segment { return slices.Concat(r.Emptied, r.Segments) }

// SegmentAt finds the segment that holds offset, or nil. The active segment holds everything from its base on.
func (r *Range) SegmentAt(offset int64) *Segment {
	i, _ := slices.BinarySearchFunc(r.Segments, offset, func(s *Segment, offset int64) int {
		if s.End != NoEnd && s.End <= offset {
			return -1
		}
		return 1
	})
	if i == len(r.Segments) || offset < r.Segments[i].Base {
		return nil
	}
	return r.Segments[i]
}

// Leader is the first replica; the zero Replica when there is none.
func (s *Segment) Leader() base.Replica {
	if len(s.Replicas) == 0 {
		return base.Replica{}
	}
	return s.Replicas[0]
}

// BootOf is the start of a replica's node that was placed; 0 when that is not known.
func (s *Segment) BootOf(r base.Replica) uint64 {
	i := slices.Index(s.Replicas, r)
	if i < 0 || i >= len(s.Boots) {
		return 0
	}
	return s.Boots[i]
}

// Fence asks a replica of the segment to end its epoch.
func (s *Segment) Fence(ref base.RangeRef, r base.Replica) FenceRequest {
	return FenceRequest{Ref: ref, Epoch: s.Epoch, Segment: s.ID, Base: s.Base, Boot: s.BootOf(r)}
}

// Empty reports whether a sealed segment holds no record.
func (s *Segment) Empty() bool { return s.End == s.Base }

// clone copies a topic for a change: the Ranges slice is new, what it points to is shared until replaced.
func (t *Topic) clone() *Topic {
	c := *t
	c.Ranges = slices.Clone(t.Ranges)
	return &c
}

// own replaces the range by a copy of it that the caller may change.
func (t *Topic) own(id base.RangeID) *Range {
	i := slices.IndexFunc(t.Ranges, func(r *Range) bool { return r.ID == id })
	c := *t.Ranges[i]
	t.Ranges[i] = &c
	return &c
}
