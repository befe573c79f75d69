package wal

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eastguard/eastguard/internal/base"
)

// LSN is a position in the endless log. It strictly grows and counts bytes; 0 is before everything.
type LSN uint64

// Entry is one thing to be made durable.
type Entry struct {
	Kind    uint8 // the caller's; given back at replay
	Records int   // what it counts as toward MaxCommitRecords; 0 counts as 1
	// Parts are written back to back as one payload. Neither they nor the slice may change until done is called.
	Parts [][]byte
}

// Log is an open write-ahead log.
type Log struct {
	o     Options
	files *files
	tail  chan *tail // of capacity one; who takes the tail out may write

	mu      sync.Mutex
	queue   queue
	queued  int64 // bytes of entries whose done has not been called
	closing bool
	failed  error
	asleep  bool // the flusher waits for wake
	syncing bool // the flusher waits for the disk, so that nothing else empties the queue
	armed   bool // the linger timer runs
	free    []*commit

	wake   chan struct{} // of capacity one, to the flusher
	early  chan struct{} // of capacity one, to the early writer
	refill chan struct{} // of capacity one, to the filler
	stop   chan struct{} // closed by Close; the early writer and the filler end
	linger *time.Timer

	wakeFlusher, wakeEarly, startLinger func()       // what whomToTell returns, made once
	acks                                chan *commit // to the acker
	acking                              atomic.Int32 // commits sent there and not finished

	flusher sync.WaitGroup
	others  sync.WaitGroup
	close   sync.Once

	durable, end                      atomic.Uint64
	commits, entries, records, rolled atomic.Uint64
	written                           atomic.Int64 // bytes, for the filler to see how busy the log is
}

// firstFill is how much of a file that is made while somebody waits is filled with zeros: a log that is only just
// begun is fast at once, and starting does not take the time of a whole file.
const firstFill = 4 << 20

// Open recovers the log in o.Dir, calls replay for each entry in order, and makes the log ready for appends. The
// lsn given to replay is the end of the entry, as done gets it; payload is valid only during the call. Damage does
// not stop the replay of what is provable: the caller decides what it means. An error of replay ends Open. A nil replay
// skips what is there.
func Open(o Options, replay func(lsn LSN, kind uint8, payload []byte) error) (*Log, Recovery, error) {
	started := time.Now()
	o, err := o.withDefaults()
	if err != nil {
		return nil, Recovery{}, err
	}
	if replay == nil {
		replay = func(LSN, uint8, []byte) error { return nil }
	}
	r := &recovery{o: o, replay: replay}
	if err := r.run(); err != nil {
		return nil, r.report, err
	}
	l := newLog(o)
	t := &tail{}
	if err := l.files.adopt(r, t); err != nil { // 7
		return nil, r.report, base.Wrap(base.CodeInternal, "open wal", err)
	}
	l.durable.Store(uint64(t.end))
	l.end.Store(uint64(t.end))
	l.start(t)
	r.report.Took = time.Since(started)
	return l, r.report, nil
}

func newLog(o Options) *Log {
	return &Log{
		o:      o,
		files:  newFiles(o),
		tail:   make(chan *tail, 1),
		wake:   make(chan struct{}, 1),
		early:  make(chan struct{}, 1),
		refill: make(chan struct{}, 1),
		stop:   make(chan struct{}),
		acks:   make(chan *commit, 4),
	}
}

func (l *Log) start(t *tail) {
	l.tail <- t
	l.linger = time.AfterFunc(time.Hour, func() { nudge(l.early) })
	l.linger.Stop()
	l.wakeFlusher = func() { nudge(l.wake) }
	l.wakeEarly = func() { nudge(l.early) }
	l.startLinger = func() { l.linger.Reset(l.o.Linger) }
	l.flusher.Go(l.flush)
	l.others.Go(l.acknowledge)
	l.others.Go(l.writeEarly)
	l.others.Go(l.fillSpares)
}

// Append queues e and returns at once; entries are written in the order of the calls. done is called once, in
// order, after the fdatasync that covers the entry, with the LSN of its end. It runs on a goroutine of the log and
// must not block, nor call Close. If Append returns an error the entry was never queued and done is not called:
// CodeBusy at the queue's limit, CodeShuttingDown after Close, the log's own error after it failed.
//
// An error given to done says what is known: NotApplied when the entry was never written (CodeDiskFull: the log
// goes on), Unknown when it was and the log failed.
func (l *Log) Append(e Entry, done func(lsn LSN, err error)) error {
	var length int64
	for _, p := range e.Parts {
		length += int64(len(p))
	}
	if length > maxEntry {
		return base.Errorf(base.CodeBatchTooLarge, "append to wal", "an entry has %d bytes, at most %d are allowed", length, maxEntry)
	}
	queued := newEntry(e, length, done)

	l.mu.Lock()
	if err := l.refuse(queued.bytes()); err != nil {
		l.mu.Unlock()
		return err
	}
	l.queue.push(queued)
	l.queued += queued.bytes()
	tell := l.whomToTell()
	l.mu.Unlock()
	tell()
	return nil
}

// refuse says why n more bytes cannot be queued. An entry larger than the queue is taken when nothing else is in it.
func (l *Log) refuse(n int64) error {
	switch {
	case l.failed != nil:
		return l.failed
	case l.closing:
		return base.Errorf(base.CodeShuttingDown, "append to wal", "the log is closed")
	case l.queued > 0 && l.queued+n > l.o.QueueBytes:
		return base.Errorf(base.CodeBusy, "append to wal", "%d bytes wait for the disk already", l.queued)
	}
	return nil
}

// whomToTell decides who has to know of what is queued: the flusher when it sleeps; while it syncs the early writer
// when a commit is full, and the timer when one has begun. What it returns is to be called without the lock.
func (l *Log) whomToTell() (tell func()) {
	switch {
	case l.asleep:
		l.asleep = false
		return l.wakeFlusher
	case !l.syncing || l.queue.empty():
	case l.queue.bytes >= l.o.MaxCommitBytes || l.queue.records >= l.o.MaxCommitRecords:
		return l.wakeEarly
	case !l.armed:
		l.armed = true
		return l.startLinger
	}
	return func() {}
}

// nudge wakes the goroutine behind a channel of capacity one, which need not be told twice.
func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// AppendWait is Append that waits for done. When ctx ends first the entry is still on its way: the outcome is
// unknown and its parts are still in use.
func (l *Log) AppendWait(ctx context.Context, e Entry) (LSN, error) {
	type result struct {
		lsn LSN
		err error
	}
	c := make(chan result, 1)
	if err := l.Append(e, func(lsn LSN, err error) { c <- result{lsn, err} }); err != nil {
		return 0, err
	}
	select {
	case r := <-c:
		return r.lsn, r.err
	case <-ctx.Done():
		return 0, base.Wrap(base.CodeTimeout, "append to wal", context.Cause(ctx)).WithOutcome(base.Unknown)
	}
}

// TrimTo recycles the files that lie wholly below lsn. It does I/O in the caller's goroutine and may be repeated.
func (l *Log) TrimTo(lsn LSN) error {
	if err := l.Err(); err != nil {
		return err
	}
	if err := l.files.trimTo(min(lsn, l.Durable())); err != nil {
		return l.fail(err)
	}
	return nil
}

// Reach is where the newest files begin that take no more than so many bytes of the disk; the one being written is always
// among them. Each start begins a file, so files may hold much less log than they take room: who bounds the room must
// let go of what lies below.
func (l *Log) Reach(bytes int64) LSN { return l.files.reach(bytes) }

// Durable is the end of what is on stable storage.
func (l *Log) Durable() LSN { return LSN(l.durable.Load()) }

// End is the end of what was written, durable or not.
func (l *Log) End() LSN { return LSN(l.end.Load()) }

// Err is the error after which the log takes nothing any more, nil while it works.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// Stats returns a moment's figures.
func (l *Log) Stats() Stats {
	l.mu.Lock()
	queued := l.queued
	l.mu.Unlock()
	st := Stats{
		Durable: l.Durable(), End: l.End(), QueuedBytes: queued,
		Commits: l.commits.Load(), Entries: l.entries.Load(), Records: l.records.Load(), Rolls: l.rolled.Load(),
	}
	l.files.figures(&st)
	return st
}

// Close writes and syncs what is queued, and waits for it. It may be called twice. Its error is what made the log
// fail, if anything did.
func (l *Log) Close() error {
	l.close.Do(func() {
		l.mu.Lock()
		l.closing, l.asleep = true, false
		l.mu.Unlock()
		nudge(l.wake)
		l.flusher.Wait() // first: it drains the queue, and sends to the acker until it has
		l.linger.Stop()
		close(l.stop)
		close(l.acks)
		l.others.Wait()
		l.closeTail()
	})
	return l.Err()
}

// closeTail syncs the last mark, so that after an orderly end even the loss of power leaves no doubt about what was
// durable.
func (l *Log) closeTail() {
	t := <-l.tail
	if l.Err() == nil {
		if err := t.file.SyncData(); err != nil {
			l.fail(err)
		}
	}
	if err := t.file.Close(); err != nil {
		l.fail(err)
	}
}

// fail makes err the log's last word, tells the owner once, and returns what callers get.
func (l *Log) fail(err error) error {
	l.mu.Lock()
	first := l.failed == nil
	if first {
		l.failed = base.Errorf(base.CodeInternal, "append to wal", "the write-ahead log in %s has failed: %w", l.o.Dir, err)
	}
	failed := l.failed
	l.asleep = false
	l.mu.Unlock()
	if first {
		l.o.Logger.Error("wal failed", "dir", l.o.Dir, "error", err)
		l.o.OnFatal(failed)
		nudge(l.wake)
	}
	return failed
}
