package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/wal"
)

// The names in a data directory.
const (
	identityName   = "identity"
	lockName       = "LOCK"
	catalogueName  = "catalogue"
	walName        = "wal"
	topicsName     = "topics"
	quarantineName = "quarantine"
	reserveName    = "reserve"
	stampName      = "uuid"   // in topics/ and meta_dir: whose they are
	startsName     = "starts" // in meta_dir: how many starts it has seen
	stateSuffix    = ".state"
)

// Store is one open data directory. All its methods may be called by any number of goroutines.
type Store struct {
	o   Options
	id  Identity
	wal *wal.Log

	boot atomic.Uint64 // this start's number; see RaiseBoot

	mu             sync.RWMutex
	topics         map[base.TopicID]map[base.RangeID]*rangeLog
	segs           map[base.SegmentID]*segmentLog
	dropping       map[base.SegmentID]*segmentLog // dropped, their files perhaps not unlinked yet
	droppingTopics map[base.TopicID]bool          // asked for; true = durable, the directory perhaps not removed yet
	tombstones     tombstones
	lossy          bool // records of the log were lost once: what is not listed proves nothing

	applied         atomic.Uint64 // LSN: every record up to it is in the state
	sinceCheckpoint atomic.Int64  // bytes in the log that no checkpoint covers
	dirty           atomic.Int64  // cost of what is in memory and in no file
	cached          atomic.Int64  // cost of all that is in memory

	queue flushQueue
	files *fileCache
	space *space
	flusher

	failed    atomic.Pointer[failure]
	closing   atomic.Bool
	closeOnce sync.Once
	recovery  RecoveryInfo

	logClosed bool // the log takes no trim any more; the flusher's
	counters
}

type failure struct{ err error }

// Start begins to flush in the background. It returns at once; Close ends it.
func (s *Store) Start(ctx context.Context) error {
	if err := s.usable("start store"); err != nil {
		return err
	}
	s.flusher.start(ctx, s)
	return nil
}

// Close stops taking appends, waits for those under way, checkpoints, so that the next start has nothing to replay, and
// closes all files. Parts that were handed out stay readable until they are released. It may be called twice.
func (s *Store) Close() error {
	s.closing.Store(true)
	s.closeOnce.Do(s.close)
	return s.err()
}

func (s *Store) close() {
	s.flusher.stop()
	s.wakeAll()
	s.lastCheckpoint()
	// The log drains before the last checkpoint: what it acks on the way down is in it, too.
	if err := s.wal.Close(); err != nil {
		_ = s.fail(err)
	}
	s.logClosed = true
	if s.sinceCheckpoint.Load() > 0 {
		s.lastCheckpoint()
	}
	s.abandon()
	for _, h := range s.flusher.dirtyFiles { // after a failure only
		s.files.setClean(h)
		s.files.release(h)
	}
	s.files.close()
}

// lastCheckpoint saves the next start some work. A full disk is no reason to end badly: the log has it all.
func (s *Store) lastCheckpoint() {
	if s.err() != nil {
		return
	}
	if err := s.checkpoint(); err != nil && !isNoSpace(err) {
		_ = s.fail(err)
	}
}

// usable says why the store takes no new work.
func (s *Store) usable(op string) error {
	if f := s.failed.Load(); f != nil {
		return base.Wrap(base.CodeInternal, op, f.err)
	}
	if s.closing.Load() {
		return base.Errorf(base.CodeShuttingDown, op, "the store is closed")
	}
	return nil
}

func (s *Store) err() error {
	if f := s.failed.Load(); f != nil {
		return f.err
	}
	return nil
}

// fail makes err the store's last word: nothing is acked after it. The process must end; the caller of Open is told once.
func (s *Store) fail(err error) error {
	if !s.failed.CompareAndSwap(nil, &failure{err}) {
		return s.err()
	}
	s.o.Logger.Error("store failed", "data_dir", s.o.DataDir, "error", err)
	s.o.OnFatal(err)
	s.wakeAll()
	s.abandon()
	return err
}

// abandon tells those who wait for the flusher that it will not come any more. Files will be unlinked by the next start.
func (s *Store) abandon() {
	for _, r := range s.queue.takeRetries() {
		r.done(r.err)
	}
	for _, done := range s.queue.takeUnlinks() {
		done(base.Errorf(base.CodeShuttingDown, "unlink", "the store has ended before the files were removed").WithOutcome(base.Unknown))
	}
}

// record makes a record of the catalogue durable and then lets apply change the state, in the log's order. done is
// called once, unless record returns an error. A full disk gets the reserve and one more try.
func (s *Store) record(op string, kind uint8, payload []byte, apply func(), done func(error)) error {
	return s.tryRecord(op, kind, payload, apply, done, func() error {
		return s.tryRecord(op, kind, payload, apply, done, nil)
	})
}

func (s *Store) tryRecord(op string, kind uint8, payload []byte, apply func(), done func(error), again func() error) error {
	err := s.wal.Append(wal.Entry{Kind: kind, Parts: [][]byte{payload}}, func(lsn wal.LSN, err error) {
		if err != nil {
			err = base.Wrap(base.CodeInternal, op, err)
			if again != nil && errors.Is(err, base.CodeDiskFull) {
				s.retryLater(retry{again, done, err})
				return
			}
			done(err)
			return
		}
		apply()
		s.logged(lsn, int64(len(payload)))
		done(nil)
	})
	if err != nil {
		return base.Wrap(base.CodeInternal, op, err)
	}
	return nil
}

// logged notes that all records up to lsn are in the state.
func (s *Store) logged(lsn wal.LSN, bytes int64) {
	s.applied.Store(uint64(lsn))
	if s.sinceCheckpoint.Add(bytes+logOverhead) >= s.o.CheckpointBytes {
		s.queue.nudge()
	}
}

// logOverhead is what the log adds to a record, about.
const logOverhead = 64

// event reports to the journal and the logger.
func (s *Store) event(e Event) {
	s.o.OnEvent(e)
	attrs := []any{"kind", e.Kind.String(), "detail", e.Detail}
	if e.Segment != 0 {
		attrs = append(attrs, "range", e.Ref.String(), "segment", e.Segment.String())
	}
	if e.Path != "" {
		attrs = append(attrs, "path", e.Path)
	}
	switch e.Kind {
	case EventDamage, EventQuarantined, EventDiskFull:
		s.o.Logger.Warn("store event", attrs...)
	case EventRecovered, EventDiskFreed:
		s.o.Logger.Info("store event", attrs...)
	case EventCheckpoint, EventDropped:
		s.o.Logger.Debug("store event", attrs...)
	}
}

// String prints the kind for logs.
func (k EventKind) String() string {
	switch k {
	case EventRecovered:
		return "recovered"
	case EventDamage:
		return "damage"
	case EventQuarantined:
		return "quarantined"
	case EventCheckpoint:
		return "checkpoint"
	case EventDiskFull:
		return "disk_full"
	case EventDiskFreed:
		return "disk_freed"
	case EventDropped:
		return "dropped"
	}
	return fmt.Sprintf("event_%d", uint8(k))
}

func (s *Store) file(name string) string { return filepath.Join(s.o.DataDir, name) }
