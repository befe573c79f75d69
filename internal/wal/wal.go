package wal

import (
	"context"
	"log/slog"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
)

// LSN is a position in the endless log. It strictly grows and counts bytes; 0 is before everything.
type LSN uint64

// Options say where a log lies and how it behaves. Zero values mean the defaults named at the fields.
type Options struct {
	FS   vfs.FS
	Dir  string    // must exist, durably
	UUID base.UUID // of the disk; a file that carries another one belongs to somebody else and is refused

	FileBytes        int64         // size of a file: 64 MiB
	MaxCommitBytes   int64         // a commit closes at this many bytes: 10 MiB
	MaxCommitRecords int           // or at this many records: 20,000
	Linger           time.Duration // or at this age: 10 ms
	QueueBytes       int64         // bytes appended and not yet durable, above which Append answers CodeBusy: 64 MiB
	Spare            int           // trimmed files kept for reuse: 2

	// OnFatal is told, once, of the error after which nothing more will be durable. The process should exit.
	OnFatal func(error)
	Logger  *slog.Logger
	// Observe is told of each commit after it became durable. It is called on the way of the next one: be quick.
	Observe func(CommitStats)
}

// Entry is one thing to be made durable.
type Entry struct {
	Kind    uint8 // the caller's; given back at replay
	Records int   // what it counts as toward MaxCommitRecords; 0 counts as 1
	// Parts are written back to back as one payload. Neither they nor the slice may change until done is called.
	Parts [][]byte
}

// CommitStats describe one commit.
type CommitStats struct {
	Entries int
	Records int
	Bytes   int64         // written, headers included
	Wait    time.Duration // from the first entry's Append to the write
	Write   time.Duration // of the write
	Sync    time.Duration // of the fdatasync
}

// Recovery is what Open found.
type Recovery struct {
	Damage   []Damage
	Start    LSN // of the oldest file held; what lay below it has been trimmed
	End      LSN // everything below is durable, except what Damage names
	Replayed int // entries given to replay
	Bytes    int64
	Took     time.Duration
}

// Damage is a stretch of the log that had been durable and cannot be read back.
type Damage struct {
	File   string
	LSN    LSN // its beginning
	End    LSN // where the log can be read again
	Detail string
}

// Stats are a moment's figures.
type Stats struct {
	Files       int // holding log, the active one included
	Spares      int
	Bytes       int64 // on disk, spares included
	Start       LSN   // of the oldest file
	Durable     LSN
	End         LSN
	QueuedBytes int64 // appended and not yet durable
	Commits     uint64
	Entries     uint64
	Records     uint64
	Rolls       uint64
}

// Log is an open write-ahead log.
type Log struct{}

// Open recovers the log in o.Dir, calls replay for each entry in order, and makes the log ready for appends. The
// lsn given to replay is the end of the entry, as done gets it; payload is valid only during the call. Damage does
// not stop the replay of what is provable: the caller decides what it means. An error of replay ends Open.
func Open(o Options, replay func(lsn LSN, kind uint8, payload []byte) error) (*Log, Recovery, error) {
	return nil, Recovery{}, base.Errorf(base.CodeInternal, "open wal", "not built")
}

// Append queues e and returns at once; entries are written in the order of the calls. done is called once, in
// order, after the fdatasync that covers the entry, with the LSN of its end. It runs on a goroutine of the log and
// must not block, nor call Close. If Append returns an error the entry was never queued and done is not called:
// CodeBusy at the queue's limit, CodeShuttingDown after Close, the log's own error after it failed.
func (l *Log) Append(e Entry, done func(lsn LSN, err error)) error { return nil }

// AppendWait is Append that waits for done. When ctx ends first the entry is still on its way: the outcome is
// unknown and its parts are still in use.
func (l *Log) AppendWait(ctx context.Context, e Entry) (LSN, error) { return 0, nil }

// TrimTo recycles the files that lie wholly below lsn. It does I/O in the caller's goroutine and may be repeated.
func (l *Log) TrimTo(lsn LSN) error { return nil }

// Durable is the end of what is on stable storage.
func (l *Log) Durable() LSN { return 0 }

// End is the end of what was written, durable or not.
func (l *Log) End() LSN { return 0 }

// Stats returns a moment's figures.
func (l *Log) Stats() Stats { return Stats{} }

// Close writes and syncs what is queued, and waits for it. It may be called twice.
func (l *Log) Close() error { return nil }
