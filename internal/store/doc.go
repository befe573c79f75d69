// Package store is a node's local log: every segment that the node holds a copy of, over one write-ahead log. It knows
// offsets, epochs and fences, and no replicas.
//
// The nouns. A [Store] is one data directory. It holds ranges (what is known of a range whatever its segments: its
// fence, how far it was trimmed, who waits for it) and segments (see package segment: tail, file, indexes). The
// catalogue is the list of them; it lives in the file `catalogue` as of the last checkpoint, and in the log since. The
// flusher is the one goroutine that writes segment files, syncs them, checkpoints and unlinks.
//
// One batch travels so: [Store.Append] checks it against its segment, hands the very buffer to the log and to the
// segment's tail, and returns; the log syncs and calls back; the caller says with [Store.Publish] how far readers may
// see, and [Store.Read] finds it in the tail; the flusher writes it to the segment's file, and then the tail may let go
// of it; a checkpoint syncs the file, writes the catalogue, and only then the log below it is trimmed.
//
// A copy of a segment grows in the process that opened it, and ends at a seal. One that is shorter than that is short: what
// it has is served, and [Store.Mend] gives it batches that [Store.Tail] read on another node.
//
// The files, one for each verb: append.go, opensegment.go, fence.go, seal.go, drop.go, mend.go, tail.go, read.go,
// offsetbytime.go, notify.go, state.go (what a range remembered), copy.go (what an operator is shown) and stats.go. Beneath
// them: types.go and options.go; catalogue.go and catalogfile.go (the list in memory and on disk), records.go
// and codec.go (what the log carries); flush.go, finish.go, checkpoint.go, names.go and unlink.go (the flusher's work);
// filecache.go, space.go, reserve.go; tombstones.go (what was dropped stays so); identity.go and identityfile.go; and for
// a start recover.go, replay.go, judge.go and quarantine.go. FORMAT.md shows the bytes and lists the steps of recovery.
//
// Locks, in this order, none held across I/O: Store.mu guards the maps; rangeLog.mu everything that changes in a range
// and its segments; flushQueue.mu and fileCache.mu are leaves. The flusher's own fields belong to whoever holds the
// flusher's token. Callbacks are made with no lock held.
//
// Not obvious:
//   - A batch is pushed to the tail after it was queued in the log, under the range's lock; the log's callback takes
//     the same lock before it tells anybody. Else a commit could be published before the batch can be found.
//   - Records change the memory's state when they are durable, in the log's order, so that a checkpoint may
//     say "all up to here is included". Fences and seals take effect on appends at the call already.
//   - Replaying a record over a state that includes it changes nothing. So a checkpoint need not stop the world: it may
//     include more than it says.
//   - A seal cuts what lies above it, or above what is durable, off the tail; the numbers of the entries that were cut are
//     given again when the copy is mended. So mending begins only when the flusher has cut the file as well.
package store
