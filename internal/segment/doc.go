// Package segment is one segment of a range: its batches in memory and in its file, and the indexes that find them.
//
// The nouns. An [Entry] is one batch in memory. The [Tail] holds a segment's recent entries; one goroutine at a time
// pushes and evicts, any number read it without a lock. A [File] is the segment's open file of batches back to back,
// with its sparse index, its time index and a checksum for each 64 KiB block; one goroutine writes it, any number
// read. Both are read by offset and give what a client gets: whole batches, byte for byte.
//
// One batch travels so: [Tail.Push] when it went to the log; readers find it there once the commit is published; the
// flusher takes it from [Tail.From], writes it with [File.Append], and only then may [Tail.Evict] let it go.
//
// Why a reader needs no lock. An entry never changes after Push, and its slot's pointer is read once, atomically: the
// reader has the entry or it has not, and an evicted entry stays readable as long as somebody holds it. A file's
// figures (how far it is written, its indexes, its block sums) are one immutable view behind one atomic pointer; the
// slices in it only ever grow behind the length that a view shows.
//
// A file's bytes are checked before they are used: each block against its sum on the first read since the file was
// opened. Indexes are never trusted and never needed: what of them is missing or damaged is built again from the
// file, batch by batch, when every batch's CRC holds and its base, epoch, length and magic are the only possible
// ones. FORMAT.md shows the bytes.
package segment
