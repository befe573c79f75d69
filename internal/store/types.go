package store

import (
	"log/slog"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/internal/wal"
)

// Options say where the store lives and what it may use. Zero values get the defaults named here.
type Options struct {
	FS           vfs.FS // nil = vfs.OS
	DataDir      string
	CacheBytes   int64 // batches kept in memory for readers, over all segments; default 64 MiB
	MaxOpenFiles int   // open segment files; default 512

	// ReserveBytes is preallocated in DataDir and given back when the disk is full, so that fences, seals, trims
	// and the flushing of what was acked go on. Default 64 MiB; negative = none.
	ReserveBytes int64

	WAL wal.Options // FS, Dir, UUID and OnFatal are filled in by the store

	WALBytes        int64 // the log on disk never covers more than this; at it appends get CodeBusy; default 8 WAL files
	CheckpointBytes int64 // appended bytes after which the log is checkpointed and trimmed; default 2 WAL files
	DirtyBytes      int64 // batches in memory that are not in a segment file yet; at it appends get CodeBusy; default 128 MiB
	FlushBytes      int64 // dirty bytes at which the flusher sets out; default 8 MiB
	WritebackBytes  int64 // bytes written to one file between two StartWriteback hints; default 8 MiB

	Logger  *slog.Logger // nil = discard
	OnFatal func(error)  // called once, at the first error after which nothing may be acked; the process must exit (74)
	OnEvent func(Event)  // nil = none; must not block

	syncFSAboveForTesting int // in place of syncFSAbove
}

// EventKind says what an Event reports.
type EventKind uint8

// The events of a store.
const (
	EventRecovered   EventKind = iota + 1 // recovery ended
	EventDamage                           // stored bytes do not match their checksum, or are missing
	EventQuarantined                      // a file was moved to quarantine/
	EventCheckpoint                       // the catalogue was written and the log trimmed
	EventDiskFull                         // produces are refused until space returns
	EventDiskFreed                        // produces are accepted again
	EventDropped                          // files were unlinked by a committed decision
)

// Event is one line for the node's journal.
type Event struct {
	Kind    EventKind
	Ref     base.RangeRef  // zero when no range is concerned
	Segment base.SegmentID // zero when no segment is concerned
	Path    string
	Detail  string
	Bytes   int64
}

// SegmentSpec is a segment as assigned: what OpenSegment makes durable.
type SegmentSpec struct {
	Ref        base.RangeRef
	Segment    base.SegmentID
	Epoch      base.Epoch
	Base       int64
	Keyed      bool
	State      []byte // encoded rangestate at Base; nil = empty
	CreatedMs  int64
	LeaderHere bool
	Memory     bool // durability=replicated: readers may see what has been appended and is not durable yet
}

// Batch is one v2 record batch on its way into a segment. Bytes belongs to the store from the call of Append on: the
// same buffer is written to the log, kept for readers and written to the segment file.
type Batch struct {
	Bytes          []byte
	Header         header.Header // of Bytes, base offset and epoch already patched
	AppendMs       int64         // the leader's append time; grows within a segment
	SpanLo, SpanHi uint64        // routing hashes of the records, both inclusive; everything when SpanLo > SpanHi
}

// FenceKind is what a fence answer says of the extent.
type FenceKind uint8

// The fence answers.
const (
	FenceExtent  FenceKind = iota + 1 // End is everything this replica ever made durable
	FenceDamaged                      // bytes at and above DamagedAbove are missing or damaged: not an extent
	FenceNotMine                      // the question was for another disk (answered above the store)
)

// FenceAnswer is what a replica says after its fence is durable.
type FenceAnswer struct {
	Kind         FenceKind
	Listed       bool  // false: the catalogue never listed the segment, its extent is its base, which only the asker knows
	End          int64 // durable end before the fence
	DamagedAbove int64
	Unbroken     bool // this process has run since the segment was assigned to it
}

// SegmentInfo is a snapshot of one segment held here.
type SegmentInfo struct {
	SegmentSpec                                 // State is left out
	State                                       base.State
	DurableEnd                                  int64 // end of what is on stable storage here
	Commit                                      int64 // readers may see below
	SealedEnd                                   int64 // -1 while active
	SealedCause                                 base.Cause
	Bytes                                       int64  // of batches, from base to the appended end
	BytesPerSec, RecordsPerSec                  int64  // that the range took lately; of the active segment alone
	Records                                     int64  // SealedEnd or appended end, minus base
	Boot                                        uint64 // the boot in which it was opened
	Fenced                                      bool   // appends are refused, for ever
	FirstAppendMs, LastAppendMs, MaxTimestampMs int64  // zero while empty
	Damaged                                     bool
	DamagedAbove                                int64 // valid when Damaged
}

// ReadResult is what one Read found.
type ReadResult struct {
	Segment  base.SegmentID
	Epoch    base.Epoch
	Parts    []vfs.Part // whole batches back to back; the caller writes and then releases each
	Bytes    int        // sum of the parts' lengths
	Records  int64      // Next - off, a hint: compacted or skipped records count too
	Next     int64      // where to read on
	Commit   int64      // of the segment read
	Earliest int64      // of the range, as far as this node knows
	Sealed   bool       // Next is the end of a sealed segment: its successor begins there
	End      int64      // the sealed end, -1 while the segment is active
}

// Release gives all parts back; for callers that drop a result unwritten.
func (r *ReadResult) Release() {
	for _, p := range r.Parts {
		p.Release()
	}
	r.Parts = nil
}

// Stats are counters and gauges of the store.
type Stats struct {
	Topics, Ranges, Segments, ActiveSegments int
	Bytes                                    int64 // of all segments held
	DirtyBytes, CachedBytes                  int64 // in memory: not yet in a file; all batches kept
	OpenFiles                                int
	Appends, AppendedBytes, AppendedRecords  int64
	ReadsMemory, ReadsFile                   int64 // reads answered from the tail, from a file
	ReadBytesMemory, ReadBytesFile           int64
	FlushedBytes, Checkpoints, Syncs         int64
	QuarantinedFiles, DamagedSegments        int64
	DiskFree, DiskTotal                      int64
	DiskFull                                 bool
	WAL                                      wal.Stats
}
