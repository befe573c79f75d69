package segment

import (
	"math"
	"sort"
)

// IndexEntry describes a chunk: the batches that begin within indexInterval of Pos. 24 bytes in memory and on disk.
type IndexEntry struct {
	Rel    uint32 // offset of the chunk's first record, from the segment's base
	Pos    uint32 // its position in the file
	Lo, Hi uint64 // routing hashes of all its records, both inclusive
}

// TimeEntry describes a larger chunk by time. 24 bytes in memory and on disk.
type TimeEntry struct {
	MaxTimestamp int64 // the highest of all batches up to the chunk's end: it never falls
	AppendMs     int64 // leader's append time of the chunk's last batch
	Rel          uint32
	Pos          uint32
}

// growing is a slice whose last element still changes. Closed elements never do: a copy of a growing sees what it saw,
// however the original goes on, because elements are only ever written behind the length that the copy knows.
type growing[T any] struct {
	closed []T
	open   T
	isOpen bool
}

func (g *growing[T]) len() int {
	if g.isOpen {
		return len(g.closed) + 1
	}
	return len(g.closed)
}

func (g *growing[T]) at(i int) *T {
	if i < len(g.closed) {
		return &g.closed[i]
	}
	return &g.open
}

// close makes the open element final.
func (g *growing[T]) close() {
	if g.isOpen {
		g.closed = append(g.closed, g.open)
		g.isOpen = false
	}
}

// begin closes the open element and opens another.
func (g *growing[T]) begin(v T) {
	g.close()
	g.open, g.isOpen = v, true
}

// index is the sparse index and the time index of one file.
type index struct {
	chunks growing[IndexEntry]
	times  growing[TimeEntry]
}

// addChunk notes a batch's position and routing hashes in the sparse index.
func (x *index) addChunk(rel, pos uint32, lo, hi uint64) {
	if lo > hi {
		lo, hi = 0, math.MaxUint64
	}
	if o := &x.chunks.open; x.chunks.isOpen && pos-o.Pos < indexInterval {
		o.Lo, o.Hi = min(o.Lo, lo), max(o.Hi, hi)
		return
	}
	x.chunks.begin(IndexEntry{Rel: rel, Pos: pos, Lo: lo, Hi: hi})
}

// addTime notes a batch's times in the time index.
func (x *index) addTime(rel, pos uint32, maxTimestamp, appendMs int64) {
	if n := x.times.len(); n > 0 {
		last := x.times.at(n - 1)
		maxTimestamp, appendMs = max(maxTimestamp, last.MaxTimestamp), max(appendMs, last.AppendMs)
	}
	if o := &x.times.open; x.times.isOpen && pos-o.Pos < timeInterval {
		o.MaxTimestamp, o.AppendMs = maxTimestamp, appendMs
		return
	}
	x.times.begin(TimeEntry{MaxTimestamp: maxTimestamp, AppendMs: appendMs, Rel: rel, Pos: pos})
}

// chunkOf returns the number of the chunk that holds the relative offset. The index must not be empty, and begin at 0.
func (x *index) chunkOf(rel uint32) int {
	return sort.Search(x.chunks.len(), func(i int) bool { return x.chunks.at(i).Rel > rel }) - 1
}

// chunkAtOrBefore returns the number of the last chunk that begins at or before pos.
func (x *index) chunkAtOrBefore(pos int64) int {
	return sort.Search(x.chunks.len(), func(i int) bool { return int64(x.chunks.at(i).Pos) > pos }) - 1
}

// appendMsAt is the append time that the time index has for the chunk at pos.
func (x *index) appendMsAt(pos int64) int64 {
	i := sort.Search(x.times.len(), func(i int) bool { return int64(x.times.at(i).Pos) > pos }) - 1
	if i < 0 {
		return 0
	}
	return x.times.at(i).AppendMs
}

// timeOf returns the first time entry that reaches ms, nil when none does.
func (x *index) timeOf(ms int64) *TimeEntry {
	n := x.times.len()
	i := sort.Search(n, func(i int) bool { return x.times.at(i).MaxTimestamp >= ms })
	if i == n {
		return nil
	}
	return x.times.at(i)
}
