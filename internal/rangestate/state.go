package rangestate

import "github.com/eastguard/eastguard/internal/header"

// The bounds of what is remembered.
const (
	MaxProducers = 4096
	Window       = 5             // batches a producer, which is what a client may have in flight
	TTLMs        = 24 * 3600_000 // a producer silent for longer is forgotten at the next roll
)

// State is what one range remembers. The zero State is empty and ready; it is not safe for concurrent use.
type State struct {
	producers map[int64]*producer // committed
	// oldest and newest end a list of the producers in the order of their last committed batch.
	oldest, newest *producer
	forgot         bool // a producer has been dropped, by age or by number

	// pending is a queue of the batches appended above commit, in offset order; batches of producers only. Its elements
	// have numbers that never change: pending[0] is number first.
	pending []batch
	first   int
	tips    map[int64]int // producer -> number of its newest pending batch

	commit int64 // everything below is in producers
	end    int64 // everything below has been appended. Invariant: commit <= end
}

// producer is one producer's committed part.
type producer struct {
	id           int64
	epoch        int16
	lastMs       int64 // leader's append time of the last batch
	n            int8  // batches in window; 0 = knows the epoch only, sequence 0 comes next
	window       [Window]batch
	older, newer *producer
}

// batch is one batch as its header and the leader told it.
type batch struct {
	id    int64
	base  int64 // offset of the first record
	ms    int64 // leader's append time
	first int32 // sequence numbers, inclusive
	last  int32
	prev  int // pending only: number of the same producer's batch before; below first = committed, or none
	epoch int16
}

// New returns the state of a range without a past.
func New() *State { return &State{} }

// NewForgetful returns the state of a range whose memory was lost: an id that it does not know proves nothing.
func NewForgetful() *State { return &State{forgot: true} }

// End is the offset up to which batches have been appended; Append ignores what lies below.
func (s *State) End() int64 { return s.end }

// Committed is the offset up to which the committed part reaches.
func (s *State) Committed() int64 { return s.commit }

// Len is the number of producers in the committed part.
func (s *State) Len() int { return len(s.producers) }

// Empty reports whether there is nothing to remember, so that nothing needs to be stored.
func (s *State) Empty() bool { return len(s.producers) == 0 && len(s.pending) == 0 && !s.forgot }

// ForgotAny reports whether a producer has ever been dropped: then an id that is not known proves nothing.
func (s *State) ForgotAny() bool { return s.forgot }

// Producer tells what is known of one producer, pending batches included: its epoch and the sequence number that must
// come next.
func (s *State) Producer(id int64) (epoch int16, nextSequence int32, ok bool) {
	t, ok := s.tip(id)
	return t.epoch, t.next, ok
}

// Append tells the state of a batch that got its offsets. It stays pending until Commit. A batch below End has been told
// before, by a log that is replayed: it changes nothing.
func (s *State) Append(h header.Header, base, nowMs int64) {
	if base < s.end {
		return
	}
	s.end = base + int64(h.LastOffsetDelta) + 1
	if !h.HasProducer() {
		return
	}
	s.push(batch{
		id: h.ProducerID, epoch: h.ProducerEpoch,
		base: base, ms: nowMs,
		first: h.BaseSequence, last: h.LastSequence(),
	})
}

func (s *State) push(b batch) {
	b.prev = -1
	if i, ok := s.tips[b.id]; ok {
		b.prev = i
	}
	if s.tips == nil {
		s.tips = make(map[int64]int)
	}
	s.tips[b.id] = s.first + len(s.pending)
	s.pending = append(s.pending, b)
}

// Commit moves the batches below end into the committed part.
func (s *State) Commit(end int64) {
	if end <= s.commit {
		return
	}
	s.commit = end
	s.end = max(s.end, end)
	n := 0
	for n < len(s.pending) && s.pending[n].base < end {
		b := s.pending[n]
		if s.tips[b.id] == s.first+n {
			delete(s.tips, b.id)
		}
		s.apply(b)
		n++
	}
	s.first += n
	s.pending = s.pending[n:]
	if len(s.pending) == 0 {
		s.pending = nil // what a burst had grown goes with it; one batch in flight costs one small allocation
	}
}

// Rollback drops the pending batches at and above end: the segment was sealed there. What is committed stays.
func (s *State) Rollback(end int64) {
	end = max(end, s.commit)
	if end >= s.end {
		return
	}
	s.end = end
	n := len(s.pending)
	for n > 0 && s.pending[n-1].base >= end {
		n--
		b := s.pending[n]
		if b.prev >= s.first {
			s.tips[b.id] = b.prev
		} else {
			delete(s.tips, b.id)
		}
	}
	s.pending = s.pending[:n]
}

// apply commits one batch: the sixth of a window drops the first, a producer too many drops the oldest.
func (s *State) apply(b batch) {
	p := s.producers[b.id]
	if p == nil {
		p = &producer{id: b.id, epoch: b.epoch}
		if s.producers == nil {
			s.producers = make(map[int64]*producer)
		}
		s.producers[b.id] = p
	} else {
		s.unlink(p)
	}
	s.link(p)
	if b.epoch != p.epoch {
		p.epoch, p.n = b.epoch, 0
	}
	if p.n == Window {
		copy(p.window[:], p.window[1:])
		p.n--
	}
	b.prev = -1
	p.window[p.n] = b
	p.n++
	p.lastMs = b.ms
	if len(s.producers) > MaxProducers {
		s.forget(s.oldest)
	}
}

// Expire forgets the producers silent for longer than TTLMs. It is asked at rolls, with the time of the roll's command, so
// that every replica forgets the same ones.
func (s *State) Expire(nowMs int64) {
	for p := s.oldest; p != nil; {
		next := p.newer
		// Append times only grow within a segment, not from one leader to the next: look at all of them.
		if nowMs-p.lastMs > TTLMs {
			s.forget(p)
		}
		p = next
	}
}

func (s *State) forget(p *producer) {
	s.unlink(p)
	delete(s.producers, p.id)
	s.forgot = true
}

func (s *State) link(p *producer) {
	p.older, p.newer = s.newest, nil
	if s.newest == nil {
		s.oldest = p
	} else {
		s.newest.newer = p
	}
	s.newest = p
}

func (s *State) unlink(p *producer) {
	if p.older == nil {
		s.oldest = p.newer
	} else {
		p.older.newer = p.newer
	}
	if p.newer == nil {
		s.newest = p.older
	} else {
		p.newer.older = p.older
	}
}

// Clone returns a copy that shares nothing.
func (s *State) Clone() *State {
	c := &State{forgot: s.forgot, commit: s.commit, end: s.end}
	for p := s.oldest; p != nil; p = p.newer {
		q := *p
		c.insert(&q)
	}
	for _, b := range s.pending {
		c.push(b)
	}
	return c
}

func (s *State) insert(p *producer) {
	if s.producers == nil {
		s.producers = make(map[int64]*producer)
	}
	s.producers[p.id] = p
	s.link(p)
}
