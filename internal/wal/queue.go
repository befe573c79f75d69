package wal

import (
	"hash/crc32"
	"time"
)

// entry is one Append on its way.
type entry struct {
	parts   [][]byte
	done    func(LSN, error)
	length  uint32
	body    uint32 // CRC32C of the parts, computed by whoever appends, so that they do it in parallel
	records int32
	kind    uint8
}

func (e *entry) bytes() int64 { return frameBytes(int64(e.length)) }

func newEntry(e Entry, length int64, done func(LSN, error)) entry {
	crc := uint32(0)
	for _, p := range e.Parts {
		crc = crc32.Update(crc, castagnoli, p)
	}
	return entry{parts: e.Parts, done: done, length: uint32(length), body: crc, records: int32(max(e.Records, 1)), kind: e.Kind}
}

// queue holds what was appended and is not part of a commit yet, in order. It is guarded by Log.mu.
type queue struct {
	entries []entry
	head    int // entries below it are gone
	bytes   int64
	records int
	oldest  time.Time // when the entry at head, or one before it, was appended
}

func (q *queue) len() int { return len(q.entries) - q.head }

func (q *queue) empty() bool { return q.len() == 0 }

func (q *queue) push(e entry) {
	if q.empty() {
		q.oldest = time.Now()
	}
	q.entries = append(q.entries, e)
	q.bytes += e.bytes()
	q.records += int(e.records)
}

// moveTo moves entries to c until a limit is reached; room is what they may take in the file. A first entry that
// alone is over MaxCommitBytes is a commit of its own, one that is over room is not taken.
func (q *queue) moveTo(c *commit, o *Options, room int64) {
	c.oldest = q.oldest
	room = min(room, max(o.MaxCommitBytes, q.first()))
	if q.head == 0 && q.bytes <= room && q.records <= o.MaxCommitRecords { // the usual case: all, by swapping
		c.entries, q.entries = q.entries, c.entries[:0]
		c.bytes, c.records = q.bytes, q.records
		q.bytes, q.records = 0, 0
		return
	}
	n := q.head
	for ; n < len(q.entries); n++ {
		e := &q.entries[n]
		if c.bytes+e.bytes() > room || n > q.head && c.records+int(e.records) > o.MaxCommitRecords {
			break
		}
		c.bytes += e.bytes()
		c.records += int(e.records)
	}
	c.entries = append(c.entries, q.entries[q.head:n]...)
	clear(q.entries[q.head:n])
	q.bytes -= c.bytes
	q.records -= c.records
	q.head = n
	q.compact()
}

// moveFirst moves the n entries that come first to c.
func (q *queue) moveFirst(c *commit, n int) {
	end := q.head + n
	for i := q.head; i < end; i++ {
		c.bytes += q.entries[i].bytes()
		c.records += int(q.entries[i].records)
	}
	c.entries = append(c.entries, q.entries[q.head:end]...)
	clear(q.entries[q.head:end])
	q.bytes -= c.bytes
	q.records -= c.records
	q.head = end
	q.compact()
}

// first is the size of the entry that comes next, 0 without one.
func (q *queue) first() int64 {
	if q.empty() {
		return 0
	}
	return q.entries[q.head].bytes()
}

// compact keeps the slice from creeping through memory: what is left moves to the front once it is the smaller part.
func (q *queue) compact() {
	if q.head < len(q.entries)/2 {
		return
	}
	n := copy(q.entries, q.entries[q.head:])
	clear(q.entries[n:])
	q.entries, q.head = q.entries[:n], 0
}

// commit is a group of entries that is written together.
type commit struct {
	entries []entry
	bytes   int64 // of frames
	records int
	end     LSN // of the last entry
	oldest  time.Time
	err     error // why it is not durable
	stats   CommitStats
}

// reset makes c ready for reuse and lets go of what the callers gave.
func (c *commit) reset() {
	clear(c.entries)
	*c = commit{entries: c.entries[:0]}
}
