package ledger

import (
	"fmt"
	"sync"

	"github.com/eastguard/eastguard/internal/base"
)

// ID names a record: the producer that sent it and how many it had sent before.
type ID struct {
	Producer uint32
	Number   int64
}

// String prints producer/number.
func (id ID) String() string { return fmt.Sprintf("%d/%d", id.Producer, id.Number) }

// Record is a record as it was sent, or as it was found.
type Record struct {
	ID
	Key string
	Sum uint64 // of key and value
}

// Place is where a record lies.
type Place struct {
	Ref    base.RangeRef
	Offset int64
}

// String prints topic/range@offset.
func (p Place) String() string { return fmt.Sprintf("%v@%d", p.Ref, p.Offset) }

// Ack is what a producer was told. Times are nanoseconds of one clock.
type Ack struct {
	Record
	Place
	Segment      base.SegmentID
	Call, Return int64 // when it was sent for the first time, and when the ack came
}

// Read is one record as a reader saw it.
type Read struct {
	Reader string
	Record
	Place
	Epoch base.Epoch
	At    int64
}

// Pass is everything of one topic as a reader saw it at the end.
type Pass struct {
	Reader string
	Reads  []Read
}

// Segment is one that metadata has committed.
type Segment struct {
	Ref      base.RangeRef
	ID       base.SegmentID
	Epoch    base.Epoch
	Base     int64
	End      int64 // -1 while it is active
	Replicas []base.Replica
	// Its seal was committed not before the one and not after the other; 0 while it is active.
	SealedFrom, SealedBy int64
}

// Sealed reports whether the segment has ended.
func (s *Segment) Sealed() bool { return s.End >= 0 }

// Stored is one record as it lies in a copy.
type Stored struct {
	Record
	Offset int64
	Epoch  base.Epoch
}

// Copy is what one disk holds of one segment.
type Copy struct {
	Replica base.Replica
	Segment base.SegmentID
	Durable int64 // end of what is on stable storage
	Commit  int64 // as the broker had it last; of use while the segment is active
	Damaged bool  // the disk says so itself
	Records []Stored
	Sum     uint32 // of the bytes of all batches below the segment's end
}

// Sighting is what a replica said of its copy while it ran.
type Sighting struct {
	Replica base.Replica
	Segment base.SegmentID
	Durable int64
	At      int64
}

// Recovery compares what is found on a disk that was recovered once with what is found on it recovered again.
type Recovery struct {
	Replica      base.Replica
	Once, Again  string
	Unrecognised string // what the recovery could not make sense of; empty when all is well
}

// History is everything that is known of one run.
type History struct {
	Acks       []Ack
	Reads      []Read
	Passes     []Pass
	Segments   []Segment
	Copies     []Copy
	Sightings  []Sighting
	Recoveries []Recovery
	Lost       map[base.DiskID]bool // disks that were taken away on purpose: nothing is asked of them
}

// Book is where a run writes down its history. Its methods may be called by any number of goroutines.
type Book struct {
	mu sync.Mutex
	h  History
}

// Ack notes what a producer was told.
func (b *Book) Ack(a Ack) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.h.Acks = append(b.h.Acks, a)
}

// Read notes what a reader saw.
func (b *Book) Read(r Read) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.h.Reads = append(b.h.Reads, r)
}

// Lose notes that a disk was taken away on purpose.
func (b *Book) Lose(disk base.DiskID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.h.Lost == nil {
		b.h.Lost = make(map[base.DiskID]bool)
	}
	b.h.Lost[disk] = true
}

// Change lets f add to the history.
func (b *Book) Change(f func(h *History)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(&b.h)
}

// Counts is how many acks and reads there are so far.
func (b *Book) Counts() (acks, reads int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.h.Acks), len(b.h.Reads)
}

// History is what has been written down so far. It must not be used while others write.
func (b *Book) History() *History {
	b.mu.Lock()
	defer b.mu.Unlock()
	return &b.h
}
