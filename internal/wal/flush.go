package wal

import (
	"errors"
	"time"

	"github.com/eastguard/eastguard/internal/base"
)

// flush is the flusher: it writes, syncs, states and acknowledges one commit after the other until the log is
// closed and drained, or fails.
func (l *Log) flush() {
	t := <-l.tail
	defer func() { l.tail <- t }()
	for l.awaitWork(t) {
		if err := l.step(t); err != nil {
			l.fail(err) // if step has not done so
		}
	}
	l.rejectAll(t)
}

// awaitWork sleeps until something is to be made durable; false means that the log ends. The flusher keeps the tail
// meanwhile: the only other goroutine that writes does so while the flusher syncs.
func (l *Log) awaitWork(t *tail) bool {
	for {
		l.mu.Lock()
		switch {
		case l.failed != nil:
			l.mu.Unlock()
			return false
		case !l.queue.empty() || len(t.unsynced) > 0:
			l.mu.Unlock()
			return true
		case l.closing:
			l.mu.Unlock()
			return false
		}
		l.asleep = true
		l.mu.Unlock()
		<-l.wake
	}
}

// step makes durable what is queued: write, sync, state, acknowledge.
func (l *Log) step(t *tail) error {
	if err := l.writeQueued(t); err != nil || len(t.unsynced) == 0 {
		return err
	}
	covered, end, started := t.startSync(), t.end, time.Now()
	err := l.sync(t)
	took := time.Since(started)
	if err == nil {
		err = l.state(t, end)
	}
	if err != nil {
		err = unknown(l.fail(err))
	}
	for _, c := range covered {
		c.stats.Sync = took
		l.settle(c, err)
	}
	l.askForSpare(t)
	return err
}

// state records that everything below end is durable: in the file first, so that whoever is told so finds it proven
// even after a kill at this moment.
func (l *Log) state(t *tail, end LSN) error {
	if err := l.Err(); err != nil {
		return err // once anything has failed nothing more is acknowledged
	}
	err := t.mark(end)
	l.durable.Store(uint64(end))
	l.end.Store(uint64(t.end))
	return err
}

// unknown is the failure as those learn it whose entries may or may not be on the disk.
func unknown(err error) error {
	return base.Wrap(base.CodeInternal, "append to wal", err).WithOutcome(base.Unknown)
}

// sync waits for the disk. It lays the tail down meanwhile, so that the early writer may go on in the file.
func (l *Log) sync(t *tail) error {
	l.mu.Lock()
	l.syncing = true
	tell := l.whomToTell() // of what this commit left in the queue
	l.mu.Unlock()
	tell()

	file := t.file
	l.tail <- t
	err := file.SyncData()
	<-l.tail

	l.mu.Lock()
	l.syncing = false
	l.mu.Unlock()
	return err
}

// writeQueued writes what waits in the queue, as far as one commit and the file allow.
func (l *Log) writeQueued(t *tail) error {
	l.mu.Lock()
	need := l.queue.first()
	l.mu.Unlock()
	if need > t.room() {
		if len(t.unsynced) > 0 {
			return nil // a file is left only when all of it is durable
		}
		if err := l.roll(t, need); err != nil {
			return err
		}
	}
	c := l.takeCommit(t)
	if c == nil {
		return nil
	}
	err := l.writeCommit(t, c)
	if isNoSpace(err) && len(t.unsynced) == 1 {
		return l.abandon(t, c, err)
	}
	return err
}

// takeCommit forms the next commit; nil when nothing is queued that fits the file.
func (l *Log) takeCommit(t *tail) *commit {
	l.mu.Lock()
	defer l.mu.Unlock()
	if first := l.queue.first(); first == 0 || first > t.room() {
		return nil
	}
	c := l.newCommit()
	l.queue.moveTo(c, &l.o, t.room())
	return c
}

func (l *Log) newCommit() *commit {
	if n := len(l.free); n > 0 {
		c := l.free[n-1]
		l.free = l.free[:n-1]
		return c
	}
	return &commit{}
}

func (l *Log) writeCommit(t *tail, c *commit) error {
	started := time.Now()
	err := t.write(c)
	l.end.Store(uint64(t.end))
	l.written.Add(c.bytes)
	c.stats = CommitStats{
		Entries: len(c.entries), Records: c.records, Bytes: c.bytes,
		Wait: started.Sub(c.oldest), Write: time.Since(started),
	}
	return err
}

// roll goes on in a new file, whose header states that the present one ends at the durable LSN. Without space for
// a file what waits is refused and the log stays as it is.
func (l *Log) roll(t *tail, need int64) error {
	l.mu.Lock()
	waiting := l.queue.len() // who comes while the disk is asked may come because space was freed
	l.mu.Unlock()
	f, err := l.files.begin(l.Durable(), need+reserveBytes, 0)
	var full noSpaceError
	if errors.As(err, &full) {
		l.rejectQueued(waiting, diskFull(err))
		return nil
	}
	if err != nil {
		return err
	}
	old := t.file
	t.use(f)
	l.end.Store(uint64(t.end))
	l.rolled.Add(1)
	return old.Close()
}

// abandon is what a full disk in the middle of a write leads to: a part of the commit may lie in the file, and must
// not be found there after its entries have been refused. A new file says that this one ended before it.
func (l *Log) abandon(t *tail, c *commit, cause error) error {
	f, err := l.files.begin(l.Durable(), reserveBytes, 0)
	if err != nil {
		return errors.Join(cause, err)
	}
	old := t.file
	t.unsynced = t.unsynced[:0]
	t.use(f)
	l.end.Store(uint64(t.end))
	l.rolled.Add(1)
	l.settle(c, diskFull(cause))
	return old.Close()
}

func diskFull(cause error) *base.Error {
	return base.Errorf(base.CodeDiskFull, "append to wal", "%w", cause)
}

// rejectQueued refuses the n entries that have waited longest and were not written.
func (l *Log) rejectQueued(n int, err error) {
	l.mu.Lock()
	c := l.newCommit()
	l.queue.moveFirst(c, n)
	l.mu.Unlock()
	l.settle(c, err)
}

// rejectAll is the end of a log that failed: what was written and not proven durable is unknown, what was not
// written is not applied. After an orderly end there is nothing to reject.
func (l *Log) rejectAll(t *tail) {
	err := l.Err()
	for _, c := range t.unsynced {
		l.settle(c, unknown(err))
	}
	t.unsynced = t.unsynced[:0]
	l.mu.Lock()
	waiting := l.queue.len()
	l.mu.Unlock()
	if waiting > 0 {
		l.rejectQueued(waiting, err)
	}
}

// inlineEntries is how many callbacks the flusher runs itself when nothing waits to be written.
const inlineEntries = 16

// settle has the callbacks of c called: here, if they are few and nobody waits for the flusher, so that a lone
// append is answered without another switch of goroutines; else by the acker, so that they do not hold up the next
// write.
func (l *Log) settle(c *commit, err error) {
	c.err = err
	if l.acking.Load() == 0 && len(c.entries) <= inlineEntries && l.queueEmpty() {
		l.finish(c)
		return
	}
	l.acking.Add(1)
	l.acks <- c
}

func (l *Log) queueEmpty() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queue.empty()
}

// acknowledge is the acker.
func (l *Log) acknowledge() {
	for c := range l.acks {
		l.finish(c)
		l.acking.Add(-1)
	}
}

// maxFree bounds the commits kept for reuse: one is written, one synced, and some are with the acker.
const maxFree = 8

// finish calls the callbacks of c and gives c back.
func (l *Log) finish(c *commit) {
	if c.err == nil {
		l.commits.Add(1)
		l.entries.Add(uint64(len(c.entries)))
		l.records.Add(uint64(c.records))
		l.o.Observe(c.stats)
	}
	l.mu.Lock()
	l.queued -= c.bytes
	l.mu.Unlock()
	c.callBack()
	c.reset()
	l.mu.Lock()
	if len(l.free) < maxFree {
		l.free = append(l.free, c)
	}
	l.mu.Unlock()
}

func (c *commit) callBack() {
	at := c.end - LSN(c.bytes)
	for i := range c.entries {
		e := &c.entries[i]
		at += LSN(e.bytes())
		switch {
		case e.done == nil:
		case c.err != nil:
			e.done(0, c.err)
		default:
			e.done(at, nil)
		}
	}
}
