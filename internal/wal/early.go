package wal

import "time"

// While the flusher waits for the disk, entries gather. A commit of them that is full, or as old as Linger allows,
// is closed by the early writer: it is written at once, and the fdatasync that follows the one under way covers it
// together with whatever else was written by then. On a slow disk this keeps the amount of work per sync growing
// with the load, instead of one limit's worth per sync; on a fast one it hardly ever happens.

// writeEarly is the early writer.
func (l *Log) writeEarly() {
	for {
		select {
		case <-l.stop:
			return
		case <-l.early:
		}
		t, ok := l.borrowTail()
		if !ok {
			return
		}
		for l.closeEarly(t) {
		}
		l.tail <- t
	}
}

// borrowTail takes the tail when the flusher has laid it down, which it does while it syncs and when it ends.
func (l *Log) borrowTail() (*tail, bool) {
	select {
	case t := <-l.tail:
		return t, true
	case <-l.stop:
		return nil, false
	}
}

// closeEarly writes one commit if one is due; true means that there may be another.
func (l *Log) closeEarly(t *tail) bool {
	l.mu.Lock()
	wait, due := l.earlyDue()
	l.armed = wait > 0
	l.mu.Unlock()
	if wait > 0 {
		l.linger.Reset(wait)
	}
	if !due {
		return false
	}
	c := l.takeCommit(t)
	if c == nil {
		return false // it needs a new file, which only the flusher begins
	}
	from := t.off
	if err := l.writeCommit(t, c); err != nil {
		l.fail(err)
		return false
	}
	_ = t.file.StartWriteback(from, t.off-from) // a hint
	return true
}

// earlyDue says whether a commit is full or old enough, and else how long until one is.
func (l *Log) earlyDue() (wait time.Duration, due bool) {
	if !l.syncing || l.failed != nil || l.queue.empty() {
		return 0, false
	}
	if l.queue.bytes >= l.o.MaxCommitBytes || l.queue.records >= l.o.MaxCommitRecords {
		return 0, true
	}
	wait = l.o.Linger - time.Since(l.queue.oldest)
	return wait, wait <= 0
}
