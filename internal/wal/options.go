package wal

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
)

// Options say where a log lies and how it behaves. Zero values mean the defaults named at the fields.
type Options struct {
	FS   vfs.FS
	Dir  string    // must exist, durably
	UUID base.UUID // of the disk; a file that carries another one belongs to somebody else and is refused

	FileBytes        int64         // size of a file: 64 MiB; a multiple of 4 KiB
	MaxCommitBytes   int64         // a commit closes at this many bytes: 10 MiB
	MaxCommitRecords int           // or at this many records: 20,000
	Linger           time.Duration // or at this age: 10 ms
	QueueBytes       int64         // bytes appended and not yet durable, above which Append answers CodeBusy: 64 MiB
	Spare            int           // trimmed files kept for reuse: 2

	// OnFatal is told, once, of the error after which nothing more will be durable. The process should exit. It
	// runs on a goroutine of the log and must neither block nor call Close.
	OnFatal func(error)
	Logger  *slog.Logger
	// Observe is told of each commit after it became durable, by the goroutine that calls done.
	Observe func(CommitStats)

	newID func() (fileID, error) // tests make ids that are the same in each run
}

func (o Options) withDefaults() (Options, error) {
	o.FileBytes = cmp.Or(o.FileBytes, 64<<20)
	o.MaxCommitBytes = cmp.Or(o.MaxCommitBytes, 10<<20)
	o.MaxCommitRecords = cmp.Or(o.MaxCommitRecords, 20_000)
	o.Linger = cmp.Or(o.Linger, 10*time.Millisecond)
	o.QueueBytes = cmp.Or(o.QueueBytes, 64<<20)
	o.Spare = cmp.Or(o.Spare, 2)
	if o.FS == nil {
		o.FS = vfs.OS
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.OnFatal == nil {
		o.OnFatal = func(error) {}
	}
	if o.Observe == nil {
		o.Observe = func(CommitStats) {}
	}
	if o.newID == nil {
		o.newID = randomID
	}
	switch {
	case o.FileBytes < 2*headerBytes || o.FileBytes%pageBytes != 0:
		return o, base.Errorf(base.CodeInvalidArgument, "open wal", "file size %d must be a multiple of %d and at least %d", o.FileBytes, pageBytes, 2*headerBytes)
	case o.MaxCommitBytes < 0 || o.MaxCommitRecords < 0 || o.Linger < 0 || o.QueueBytes < 0 || o.Spare < 0:
		return o, base.Errorf(base.CodeInvalidArgument, "open wal", "a limit is negative")
	}
	return o, nil
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
