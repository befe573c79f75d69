// Package vfs is the only door to the broker's data files.
//
// An [FS] opens, renames and removes; a [File] reads and writes at explicit offsets and says when its bytes must
// be on stable storage. Three of them exist:
//
//   - [OS], the operating system's files: pwritev, fdatasync, fallocate, sync_file_range, syncfs, sendfile;
//   - [Mem], files in memory that can be crashed: [Mem.CrashClone] returns what a power failure might have left,
//     that is everything synced and a random part of everything else;
//   - [Fault], a wrapper that makes chosen operations fail, wait or write short, and that calls a hook before and
//     after any of them.
//
// What a program may rely on is the same for all three, and is less than most programs assume:
//
//   - a write is durable after [File.SyncData] returned nil; before that any subset of its 4 KiB pages may be;
//   - a created, renamed or removed name is durable after [FS.SyncDir] of its directory returned nil; syncing the
//     file does not make its name durable, and a synced file without a durable name is lost;
//   - a rename within one directory is atomic: after a crash either all of it or nothing has happened;
//   - after a sync has failed, nothing is known about the bytes it covered, and a second sync that succeeds does
//     not change that. The caller stops.
//
// A [Part] is a piece of an answer on its way to a connection: memory, or a stretch of a file that goes out by
// sendfile.
package vfs
