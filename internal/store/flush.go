package store

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/segment"
)

// flushQueue is what others leave for the flusher to do, and how they wake it.
type flushQueue struct {
	mu      sync.Mutex
	segs    []*segmentLog // with something to write or to finish, oldest first; each at most once
	unlinks []func(error) // callers of drops, to be told when the files are gone
	retries []retry       // records that met a full disk, for another try with the reserve
	wake    chan struct{} // of capacity one
}

func (q *flushQueue) push(g *segmentLog) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.segs = append(q.segs, g)
}

func (q *flushQueue) pushUnlink(done func(error)) {
	q.mu.Lock()
	q.unlinks = append(q.unlinks, done)
	q.mu.Unlock()
	q.nudge()
}

// retry is a record of the catalogue that the log had no room for.
type retry struct {
	again func() error
	done  func(error)
	err   error // what the first try met
}

// retryLater leaves the record to the flusher, which gives the reserve first. The log bounds how many there are. Before
// the flusher runs there is nobody to leave it to.
func (s *Store) retryLater(r retry) {
	if !s.started.Load() {
		s.space.noSpace()
		r.try()
		return
	}
	s.metFull() // before it is queued: the flusher, which takes what is queued first, then knows that the reserve is due
	s.queue.mu.Lock()
	s.queue.retries = append(s.queue.retries, r)
	s.queue.mu.Unlock()
	s.queue.nudge()
	if s.err() != nil {
		s.abandon()
	}
}

func (q *flushQueue) takeRetries() []retry {
	q.mu.Lock()
	defer q.mu.Unlock()
	r := q.retries
	q.retries = nil
	return r
}

func (r *retry) try() {
	if err := r.again(); err != nil {
		r.done(err)
	}
}

// takeSegments empties the queue.
func (q *flushQueue) takeSegments() []*segmentLog {
	q.mu.Lock()
	defer q.mu.Unlock()
	segs := q.segs
	q.segs = nil
	return segs
}

func (q *flushQueue) takeUnlinks() []func(error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	u := q.unlinks
	q.unlinks = nil
	return u
}

// nudge wakes the flusher, which need not be told twice.
func (q *flushQueue) nudge() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// flusher is the goroutine that does all the store's writing but the log's, and what belongs to it. Its work is done by
// whoever holds the token: the goroutine, Close, recovery, tests.
type flusher struct {
	token  chan struct{} // of capacity one; its holder may touch what follows
	cancel context.CancelFunc
	done   chan struct{} // closed when the goroutine has ended; nil when it was never started

	started atomic.Bool

	dirtyFiles []*openFile         // written and not synced, oldest first; each with a reference
	newNames   map[string]struct{} // directories with names that were not synced yet
	trims      []*segmentLog       // finished; their files may be longer than they say
	evictable  []eviction          // runs of entries that are in files, oldest first
	batch      []*segment.Entry    // reused
}

// eviction is a run of a segment's entries that may leave memory: those numbered below upto.
type eviction struct {
	seg  *segmentLog
	upto uint64
}

// writeRun is how much is written by one call: enough to be cheap, little enough that the cache can let go of it in
// small steps.
const writeRun = 1 << 20

// retryFull is how often the flusher tries again while the disk is full.
const retryFull = 250 * time.Millisecond

func (f *flusher) start(ctx context.Context, s *Store) {
	ctx, f.cancel = context.WithCancel(ctx)
	f.started.Store(true)
	f.done = make(chan struct{})
	go func() {
		defer close(f.done)
		f.run(ctx, s)
	}()
}

func (f *flusher) stop() {
	if f.cancel != nil {
		f.cancel()
		<-f.done
	}
}

func (f *flusher) run(ctx context.Context, s *Store) {
	retry := time.NewTimer(time.Hour)
	retry.Stop()
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.queue.wake:
		case <-retry.C:
		}
		if err := s.work(); err != nil {
			if !isNoSpace(err) {
				_ = s.fail(err)
				return
			}
			s.space.noSpace()
		}
		if s.space.full.Load() {
			retry.Reset(retryFull)
		}
	}
}

// work does what is due: a look at the disk, the records that wait for the reserve, unlinks, for they make space; a
// checkpoint when the log has grown enough, which writes everything; else the writing alone when there is enough of it.
func (s *Store) work() error {
	s.takeToken()
	defer s.giveToken()
	if err := s.err(); err != nil {
		return err
	}
	retries := s.queue.takeRetries() // what comes after the look waits for the next one
	s.space.tend(s.dirty.Load())
	for _, r := range retries {
		r.try()
	}
	if err := s.unlinkDropped(); err != nil {
		return err
	}
	if s.sinceCheckpoint.Load() >= s.o.CheckpointBytes {
		return s.checkpointLocked()
	}
	if s.dirty.Load() >= s.o.FlushBytes || s.cached.Load() > s.o.CacheBytes {
		return s.flushAll()
	}
	return nil
}

func (s *Store) takeToken() { s.flusher.token <- struct{}{} }
func (s *Store) giveToken() { <-s.flusher.token }

// flushAll writes what every queued segment has ready. A segment that could not be written stays queued.
func (s *Store) flushAll() error {
	segs := s.queue.takeSegments()
	for i, g := range segs {
		if err := s.flushSegment(g); err != nil {
			g.rng.mu.Lock()
			s.enqueue(g) // unless it has become queued again already
			g.rng.mu.Unlock()
			for _, g := range segs[i+1:] {
				s.queue.push(g)
			}
			return err
		}
	}
	return nil
}

// flushSegment writes the segment's batches that are durable in the log and not yet in its file, and finishes its files
// if it is sealed.
func (s *Store) flushSegment(g *segmentLog) error {
	g.rng.mu.Lock()
	g.queued = false // whatever becomes durable from here on queues it again
	dropped, seq := g.dropped, g.flushSeq
	g.rng.mu.Unlock()
	if dropped {
		return nil
	}
	if err := s.writeOut(g, seq); err != nil {
		return err
	}
	if g.sealed.Load() >= 0 {
		return s.finish(g)
	}
	return nil
}

func (s *Store) writeOut(g *segmentLog, seq uint64) error {
	var h *openFile
	defer func() {
		if h != nil {
			s.files.release(h)
		}
	}()
	for {
		entries, next := g.tail.From(s.flusher.batch[:0], seq, g.durable.Load(), writeRun)
		s.flusher.batch = entries[:0]
		if len(entries) == 0 {
			return nil
		}
		if h == nil {
			var err error
			if h, err = s.openForWriting(g); err != nil {
				return err
			}
		}
		err := h.file.Append(entries)
		if err != nil {
			clear(entries)
			return base.Wrap(base.CodeInternal, "write segment file", err)
		}
		s.wrote(g, h, entries, seq)
		clear(entries)
		seq = next
	}
}

// openForWriting returns the segment's file, made if it has none, noted as dirty.
func (s *Store) openForWriting(g *segmentLog) (*openFile, error) {
	if g.flushed.Load().Pos == 0 {
		if err := s.makeName(g.rng); err != nil {
			return nil, err
		}
	}
	h, err := s.files.acquire(g, true)
	if err != nil {
		return nil, err
	}
	if h.dirty { // the flag is ours alone to set
		return h, nil
	}
	// Half of the open files may be dirty, so that readers always find some to close.
	if n := len(s.flusher.dirtyFiles); n >= s.o.MaxOpenFiles/2 {
		if err := s.syncFiles(3*n > s.o.syncFSAboveForTesting); err != nil {
			s.files.release(h)
			return nil, err
		}
	}
	s.files.setDirty(h)
	s.files.ref(h)
	s.flusher.dirtyFiles = append(s.flusher.dirtyFiles, h)
	return h, nil
}

// syncFile syncs a dirty file and gives back the reference that kept it.
func (s *Store) syncFile(h *openFile) error {
	if err := h.file.Sync(); err != nil {
		return base.Wrap(base.CodeInternal, "sync segment file", err)
	}
	s.syncs.Add(1)
	s.files.setClean(h)
	s.files.release(h)
	return nil
}

// wrote takes over what has just been written: from now on readers may find it in the file and memory may let go of it.
func (s *Store) wrote(g *segmentLog, h *openFile, entries []*segment.Entry, seq uint64) {
	extent := h.file.Extent()
	var bytes int64
	g.rng.mu.Lock()
	g.flushed.Store(&extent)
	// A seal may have cut off the last ones meanwhile; it has counted those itself.
	n := int(min(seq+uint64(len(entries)), g.tail.Next()) - min(seq, g.tail.Next()))
	if g.dropped && g.flushSeq > seq {
		n = 0 // dropped meanwhile, all of it counted
	} else {
		g.flushSeq = seq + uint64(n)
	}
	for _, e := range entries[:n] {
		bytes += int64(len(e.Bytes))
	}
	g.check()
	g.rng.mu.Unlock()
	s.dirty.Add(-cost(n, bytes))
	s.flushedBytes.Add(bytes)
	if n > 0 {
		s.flusher.evictable = append(s.flusher.evictable, eviction{g, seq + uint64(n)})
	}
	s.evict()
}

// evict lets go of the batches that were written first, until what is left fits.
func (s *Store) evict() {
	q := s.flusher.evictable
	for len(q) > 0 && s.cached.Load() > s.o.CacheBytes {
		e := q[0]
		q[0] = eviction{}
		q = q[1:]
		e.seg.rng.mu.Lock()
		n, bytes := e.seg.tail.Evict(min(e.upto, e.seg.flushSeq)) // after a cut the numbers begin anew
		e.seg.rng.mu.Unlock()
		s.cached.Add(-cost(n, bytes))
	}
	s.flusher.evictable = q
}
