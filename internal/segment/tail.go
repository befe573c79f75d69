package segment

import (
	"sync/atomic"

	"github.com/eastguard/eastguard/internal/keyspace"
)

// Tail holds a segment's recent batches in memory, oldest first. Push, Evict and Cut are for one goroutine at a time;
// everything else may run concurrently with them and takes no lock. The zero Tail is empty and holds no memory.
//
// Entries have sequence numbers, which are not used again (after Cut nothing is pushed). Those resident are [head, next), in a ring of a power of
// two slots. The order of stores is what readers rely on:
//
//	Push:  ring (if it grew), slot, next     a reader that loads next, then the ring, finds every slot below next filled
//	Evict: head, slots                       a slot found empty is below the head loaded afterwards: it was evicted
//	Cut:   next, slots                       ... or it is not, then it was cut off, above every commit
type Tail struct {
	ring       atomic.Pointer[ring]
	head, next atomic.Uint64
}

type ring struct {
	mask  uint64
	slots []atomic.Pointer[Entry]
}

const minRing = 8

func newRing(n int) *ring {
	return &ring{mask: uint64(n - 1), slots: make([]atomic.Pointer[Entry], n)}
}

// at returns the entry numbered seq, nil when it is not resident.
func (r *ring) at(seq uint64) *Entry {
	if e := r.slots[seq&r.mask].Load(); e != nil && e.seq == seq {
		return e
	}
	return nil
}

// Push adds e as the newest entry.
func (t *Tail) Push(e *Entry) {
	head, next := t.head.Load(), t.next.Load()
	r := t.ring.Load()
	if r == nil || next-head == uint64(len(r.slots)) {
		r = t.grow(r, head, next)
	}
	e.seq = next
	r.slots[next&r.mask].Store(e)
	t.next.Store(next + 1)
}

func (t *Tail) grow(old *ring, head, next uint64) *ring {
	if old == nil {
		r := newRing(minRing)
		t.ring.Store(r)
		return r
	}
	r := newRing(2 * len(old.slots))
	for seq := head; seq < next; seq++ {
		r.slots[seq&r.mask].Store(old.at(seq))
	}
	t.ring.Store(r)
	return r
}

// Len is the number of resident entries.
func (t *Tail) Len() int { return int(t.next.Load() - t.head.Load()) }

// Next is the number that the next entry gets.
func (t *Tail) Next() uint64 { return t.next.Load() }

// Head is the number of the oldest resident entry, or Next.
func (t *Tail) Head() uint64 { return t.head.Load() }

// Evict drops the entries numbered below upto and returns how many there were, and their bytes. The caller knows that
// they are in the file, and that the file's view shows them.
func (t *Tail) Evict(upto uint64) (n int, bytes int64) {
	head, next := t.head.Load(), t.next.Load()
	upto = min(upto, next)
	if upto <= head {
		return 0, 0
	}
	t.head.Store(upto)
	return int(upto - head), t.clear(head, upto, upto == next)
}

// Bounds returns the number of the first entry that begins at or above end, and the bytes of the entries numbered from
// that one or from seq on, whichever is later. It is for the goroutine that pushes.
func (t *Tail) Bounds(end int64, seq uint64) (first uint64, bytes int64) {
	head, next := t.head.Load(), t.next.Load()
	r := t.ring.Load()
	first = next
	for first > head && r.at(first-1).Base >= end {
		first--
		if first >= seq {
			bytes += int64(len(r.at(first).Bytes))
		}
	}
	return first, bytes
}

// Cut drops the entries that begin at or above end, and returns how many there were, and their bytes: a seal at end
// made them void.
func (t *Tail) Cut(end int64) (n int, bytes int64) {
	head, next := t.head.Load(), t.next.Load()
	keep, _ := t.Bounds(end, 0)
	if keep == next {
		return 0, 0
	}
	t.next.Store(keep)
	return int(next - keep), t.clear(keep, next, keep == head)
}

// clear empties the slots numbered [from, to) and returns the bytes of what they held.
func (t *Tail) clear(from, to uint64, empty bool) (bytes int64) {
	r := t.ring.Load()
	if empty {
		t.ring.Store(nil) // an idle segment holds nothing; who loaded the ring before may still read it
	}
	for seq := from; seq < to; seq++ {
		slot := &r.slots[seq&r.mask]
		bytes += int64(len(slot.Load().Bytes))
		if !empty {
			slot.Store(nil)
		}
	}
	return bytes
}

// From appends to dst the entries numbered from seq on that end at or below end, at most maxBytes of them but at least
// one, and returns the number to go on from. It is the flusher's: nothing from seq on may have been evicted, unless the
// segment is being dropped, and all of it was. Then there is nothing.
func (t *Tail) From(dst []*Entry, seq uint64, end int64, maxBytes int) ([]*Entry, uint64) {
	next := t.next.Load()
	r := t.ring.Load()
	if r == nil {
		return dst, seq
	}
	bytes := 0
	for ; seq < next; seq++ {
		e := r.at(seq)
		if e == nil || e.End > end || (bytes > 0 && bytes+len(e.Bytes) > maxBytes) {
			break
		}
		bytes += len(e.Bytes)
		dst = append(dst, e)
	}
	return dst, seq
}

// Found is what a read of a tail or a file comes to: whole batches from the one that holds the offset asked for.
type Found struct {
	Next  int64 // where to read on
	Bytes int
}

// Read appends to dst the entries from the one that holds off, up to limit (the commit), which touch span, at most
// maxBytes of them but at least one. ok is false when off is not resident: then it is in the file.
func (t *Tail) Read(dst []*Entry, off, limit int64, maxBytes int, span *keyspace.Span) (entries []*Entry, found Found, ok bool) {
	next := t.next.Load() // before the ring: see the order of stores above
	r := t.ring.Load()
	if r == nil {
		return dst, Found{}, false
	}
	seq := t.search(r, next, off)
	found.Next = off
	for ; seq < next; seq++ {
		e := r.at(seq)
		if e == nil {
			break // evicted since, or cut off
		}
		if !ok && e.Base > off {
			break
		}
		ok = true
		if e.End > limit || (found.Bytes > 0 && found.Bytes+len(e.Bytes) > maxBytes) {
			break
		}
		found.Next = e.End
		if touches(span, e.Lo, e.Hi) {
			dst = append(dst, e)
			found.Bytes += len(e.Bytes)
		}
	}
	return dst, found, ok
}

// search returns the lowest number below next whose entry ends above off, next if there is none.
func (t *Tail) search(r *ring, next uint64, off int64) uint64 {
	lo, hi := t.head.Load(), next
	for lo < hi {
		mid := lo + (hi-lo)/2
		e := r.at(mid)
		var above bool
		if e != nil {
			above = e.End > off
		} else {
			above = mid >= t.head.Load()
		}
		if above {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

// FirstAtOrAfter returns the oldest entry in [from, limit) whose MaxTimestamp is at least ms, nil if there is none. ok is
// false when from is below limit and not resident: then it is in the file.
func (t *Tail) FirstAtOrAfter(ms, from, limit int64) (e *Entry, ok bool) {
	if from >= limit {
		return nil, true
	}
	next := t.next.Load()
	r := t.ring.Load()
	if r == nil {
		return nil, false
	}
	for seq := t.search(r, next, from); seq < next; seq++ {
		e := r.at(seq)
		if e == nil || (!ok && e.Base > from) {
			return nil, ok
		}
		ok = true
		if e.End > limit {
			break
		}
		if e.MaxTimestamp >= ms {
			return e, true
		}
	}
	return nil, ok
}

// Bytes counts those of the resident entries that lie in [from, end).
func (t *Tail) Bytes(from, end int64) (bytes int64) {
	next := t.next.Load()
	r := t.ring.Load()
	if r == nil {
		return 0
	}
	for seq := t.search(r, next, from); seq < next; seq++ {
		e := r.at(seq)
		if e == nil || e.End > end {
			break
		}
		if e.Base >= from {
			bytes += int64(len(e.Bytes))
		}
	}
	return bytes
}
