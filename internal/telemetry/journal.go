package telemetry

import (
	"context"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/base"
)

// JournalSize is how many events a node keeps.
const JournalSize = 10_000

// Event is something an operator may ask about later: a member or leader changed, a segment was rolled, a
// setting was altered.
type Event struct {
	Seq     uint64            `cbor:"1,keyasint"` // given by the journal, from 1, without gaps
	TimeMs  int64             `cbor:"2,keyasint"` // given by the journal when it is 0
	Node    base.NodeID       `cbor:"3,keyasint,omitempty"`
	Type    string            `cbor:"4,keyasint"`           // upper case: SEGMENT_SEALED
	Subject string            `cbor:"5,keyasint,omitempty"` // what it is about: a topic, a range, a node
	Cause   base.Cause        `cbor:"6,keyasint,omitempty"`
	GapMs   int64             `cbor:"7,keyasint,omitempty"` // how long writes stood still, for rolls
	Detail  map[string]string `cbor:"8,keyasint,omitempty"` // never changed after Append
	Before  string            `cbor:"9,keyasint,omitempty"` // what changed: the value it had
	After   string            `cbor:"10,keyasint,omitempty"`
	Actor   string            `cbor:"11,keyasint,omitempty"` // who asked for it, when somebody did
}

// Journal is a ring of the last events. Appending never blocks and never waits for a reader.
type Journal struct {
	mu    sync.Mutex
	ring  []Event
	next  uint64        // sequence number of the next event
	moved chan struct{} // closed and replaced at each append
}

// NewJournal makes a journal that keeps size events; size 0 means [JournalSize].
func NewJournal(size int) *Journal {
	if size == 0 {
		size = JournalSize
	}
	return &Journal{ring: make([]Event, 0, size), next: 1, moved: make(chan struct{})}
}

// Append gives e the next sequence number, keeps it in place of the oldest, and returns the number.
func (j *Journal) Append(e Event) uint64 {
	if e.TimeMs == 0 {
		e.TimeMs = time.Now().UnixMilli()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	e.Seq = j.next
	j.next++
	if len(j.ring) < cap(j.ring) {
		j.ring = append(j.ring, e)
	} else {
		j.ring[j.slot(e.Seq)] = e
	}
	close(j.moved)
	j.moved = make(chan struct{})
	return e.Seq
}

func (j *Journal) slot(seq uint64) int { return int((seq - 1) % uint64(cap(j.ring))) }

// Page is what a reader gets: consecutive events, and how many before the first it came too late for.
type Page struct {
	Events []Event
	Missed uint64
	Next   uint64 // the sequence number to read from next
}

// Since returns up to limit events from sequence number from on. From 0 is the oldest one kept, and nothing
// counts as missed; from a number not yet given is an empty page.
func (j *Journal) Since(from uint64, limit int) Page {
	p, _ := j.since(from, limit)
	return p
}

func (j *Journal) since(from uint64, limit int) (Page, <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	oldest := j.next - uint64(len(j.ring))
	var p Page
	switch {
	case from == 0:
		from = oldest
	case from < oldest:
		p.Missed = oldest - from
		from = oldest
	}
	p.Next = from
	if from < j.next {
		n := int(min(j.next-from, uint64(max(limit, 0))))
		p.Events = make([]Event, 0, n)
		for range n {
			p.Events = append(p.Events, j.ring[j.slot(p.Next)])
			p.Next++
		}
	}
	return p, j.moved
}

// Last hands out the events kept, newest first, until take has had enough. take must be quick: appending waits for it.
func (j *Journal) Last(take func(Event) bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for seq := j.next; seq > j.next-uint64(len(j.ring)); seq-- {
		if !take(j.ring[j.slot(seq-1)]) {
			return
		}
	}
}

// End is the sequence number that the next event will get.
func (j *Journal) End() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.next
}

// Subscription is a reader's cursor in a journal. It belongs to one goroutine and holds no events of its own: a
// slow reader costs nothing but its own completeness, which Page.Missed admits.
type Subscription struct {
	journal *Journal
	next    uint64
	limit   int
}

// Subscribe starts reading at sequence number from, at most limit events at a time (at least one). From 0 is
// the oldest kept.
func (j *Journal) Subscribe(from uint64, limit int) *Subscription {
	return &Subscription{journal: j, next: from, limit: max(limit, 1)}
}

// Next waits for events after those of the last call. It returns the context's error when that ends first.
func (s *Subscription) Next(ctx context.Context) (Page, error) {
	for {
		p, moved := s.journal.since(s.next, s.limit)
		s.next = p.Next
		if len(p.Events) > 0 {
			return p, nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return p, ctx.Err()
		}
	}
}
