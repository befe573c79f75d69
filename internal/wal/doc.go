// Package wal is the write-ahead log: an endless sequence of entries that are durable when their callbacks say so.
// A node has one for all its data and one for all its Raft groups.
//
// The nouns. An entry is a payload with a kind; the log does not look into either. Its position is an [LSN], which
// counts bytes from the beginning of time. Entries that are written together are a commit; one fdatasync covers it.
// A mark is a small frame that states up to which LSN the log was durable when the mark was written. The log lies in
// files of one size, which are trimmed from the front and used again.
//
// One entry travels like this:
//
//   - Append computes the payload's checksum in the caller's goroutine and puts the entry into the queue;
//   - the flusher takes what is queued as a commit (queue.moveTo), lays frames out around the callers' memory
//     (layout) and writes them with one pwritev (tail.write);
//   - one fdatasync; entries queue up behind it meanwhile;
//   - the flusher writes the mark that states the new durable LSN (Log.state), then has the callbacks called: by
//     itself when nothing waits, else by the acker, so that they never hold up the next write.
//
// Four goroutines belong to a log. The flusher does all of the above and alone begins new files. The acker calls
// callbacks. The early writer closes commits that reach a limit while the flusher waits for the disk. The filler
// prepares the next file. The tail, that is the right to write, is handed around in a channel of capacity one.
//
// FORMAT.md has the bytes, the numbered steps of recovery, and what is assumed of disks.
//
// Not obvious:
//
//   - A failed write, sync or rename is the log's end. It is not tried again: after a failed fsync the kernel may
//     have dropped the pages, and the next fsync succeeds without them.
//   - A full disk is not the end while nothing was written: see [Log.Append].
//   - A file is left only when all of it is durable, and its successor's header says where it ended. So only the
//     last file can have a torn end; anything wrong in another is damage.
//   - The last mark of a file is not part of the log once there is a next file: it was never synced.
package wal
