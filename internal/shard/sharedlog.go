package shard

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/wal"
)

// sharedLog is one wal for the entries, terms and votes of all groups of a node. What raft may still ask for is in
// memory too, a logTail a group; the files are read at start only.
//
// A file of the wal is freed when nothing in it is needed. Groups that are written little would keep the oldest file
// for ever; the janitor copies what such a group holds to the head of the log, as one record that stands for all of it.
type sharedLog struct {
	wal     *wal.Log
	timeout time.Duration
	logger  *slog.Logger
	fatal   func(error)
	room    func() bool // frees space on a full disk, if there is any to free
	budget  int64       // of disk: what lies in files that take more is copied forward
	still   standstill

	mu     sync.Mutex
	tails  map[base.ShardID]*logTail
	closed chan struct{} // the host is closing
	once   sync.Once

	work    chan struct{} // capacity 1: the janitor has something to do
	janitor sync.WaitGroup
}

type logOptions struct {
	WAL      wal.Options
	Timeout  time.Duration
	MakeRoom func() bool
	Logger   *slog.Logger
}

// keepFiles is how many files of live log there may be before the oldest is emptied by copying.
const keepFiles = 3

func openSharedLog(o logOptions) (*sharedLog, error) {
	if err := o.WAL.FS.MkdirAll(o.WAL.Dir, 0o700); err != nil {
		return nil, err
	}
	l := &sharedLog{
		timeout: o.Timeout, logger: o.Logger, fatal: o.WAL.OnFatal, room: o.MakeRoom, budget: keepFiles * o.WAL.FileBytes,
		tails: make(map[base.ShardID]*logTail), closed: make(chan struct{}), work: make(chan struct{}, 1),
	}
	last := wal.LSN(0) // end of the record before: nothing of this one lies below it
	w, recovery, err := wal.Open(o.WAL, func(lsn wal.LSN, kind uint8, payload []byte) error {
		err := l.replay(last, recordKind(kind), payload)
		last = lsn
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(recovery.Damage) > 0 {
		d := recovery.Damage[0]
		return nil, errors.Join(base.Errorf(base.CodeCorruptData, "open metadata log", "%s is damaged at %d: %s", d.File, d.LSN, d.Detail).
			WithHint("votes or committed metadata may be lost: restore the meta directory, or give the node up for a new one"), w.Close())
	}
	l.wal = w
	for _, t := range l.tails {
		if t.broken != nil {
			return nil, errors.Join(t.broken, w.Close())
		}
	}
	return l, nil
}

// tail finds or makes the part of one group.
func (l *sharedLog) tail(id base.ShardID) *logTail {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.tails[id]
	if t == nil {
		t = newLogTail(l, id)
		l.tails[id] = t
	}
	return t
}

// empty reports whether no group has ever written.
func (l *sharedLog) empty() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.tails) == 0
}

func (l *sharedLog) replay(at wal.LSN, kind recordKind, payload []byte) error {
	r, err := decodeRecord(kind, payload)
	if err != nil {
		return base.Wrap(base.CodeCorruptData, "read metadata log", err)
	}
	l.tail(r.group).replay(at, r)
	return nil
}

// ticket is a record on its way to the disk.
type ticket chan error

// append queues a record; its place in the log is that of the call. What it returns lies at or above the position
// that is durable now.
func (l *sharedLog) append(kind recordKind, payload []byte) (at wal.LSN, t ticket) {
	at, t = l.wal.Durable(), make(ticket, 1)
	entry := wal.Entry{Kind: uint8(kind), Parts: [][]byte{payload}}
	done := func(_ wal.LSN, err error) { t <- err }
	if err := l.wal.Append(entry, done); err != nil {
		t <- err
	}
	return at, t
}

// await waits for the disk, but not for ever: a disk that hangs would keep the group's heartbeats going and its
// commands waiting. After an error nothing is durable any more, so the process must end; but an entry that was refused
// for want of space, or because too much waits, was not written, and the log goes on.
func (l *sharedLog) await(t ticket) error {
	l.still.begin(time.Now())
	defer func() { l.still.end(time.Now()) }()
	timer := time.NewTimer(l.timeout)
	defer timer.Stop()
	select {
	case err := <-t:
		if err != nil && !refused(err) && !errors.Is(err, base.CodeShuttingDown) {
			l.fatal(err)
		}
		return err
	case <-timer.C:
		err := base.Errorf(base.CodeInternal, "write metadata log", "the disk has not answered for %s", l.timeout)
		l.fatal(err)
		return err
	}
}

func refused(err error) bool {
	return errors.Is(err, base.CodeDiskFull) || errors.Is(err, base.CodeBusy)
}

// retryEvery is how often a write is repeated that was refused.
const retryEvery = 100 * time.Millisecond

// persist queues a record by put, which gives it its place, and waits until it is durable. On a full disk it asks for
// room and repeats the record. The group waits meanwhile, and its callers get their timeouts; a disk that stays full for
// as long as a disk may hang ends the process too, since a group that cannot vote is worse than one that is gone.
func (l *sharedLog) persist(put func() ticket) error {
	for deadline := time.Now().Add(l.timeout); ; {
		err := l.await(put())
		if err == nil || !refused(err) {
			return err
		}
		if time.Now().After(deadline) {
			l.fatal(err)
			return err
		}
		if l.room() {
			continue
		}
		timer := time.NewTimer(retryEvery)
		select {
		case <-timer.C:
		case <-l.closed:
			timer.Stop()
			return err
		}
	}
}

// halt stops the calling goroutine until the host is closed, and then for good. Raft panics when a term or vote cannot
// be stored; the process is about to end in order instead.
func (l *sharedLog) halt() {
	<-l.closed
	runtime.Goexit()
}

// tidy asks the janitor to look.
func (l *sharedLog) tidy() {
	select {
	case l.work <- struct{}{}:
	default:
	}
}

func (l *sharedLog) start(ctx context.Context) {
	l.janitor.Go(func() {
		for {
			select {
			case <-l.work:
				if err := l.clean(); err != nil {
					l.logger.Warn("metadata log not trimmed", "error", err)
				}
			case <-ctx.Done():
				return
			}
		}
	})
	l.tidy()
}

// clean copies forward what lies too far back and frees the files that nothing needs.
func (l *sharedLog) clean() error {
	l.mu.Lock()
	tails := make([]*logTail, 0, len(l.tails))
	for _, t := range l.tails {
		tails = append(tails, t)
	}
	l.mu.Unlock()
	// A fixed order keeps two runs on the same log alike.
	slices.SortFunc(tails, func(a, b *logTail) int { return a.id.Compare(b.id) })
	// By files, not by bytes of log: each start begins a file, however little it writes.
	reach := l.wal.Reach(l.budget)
	var err error // a disk that is full takes no copies, but what nothing needs can go
	for i := 0; i < len(tails) && err == nil; i++ {
		if tails[i].oldest() < reach {
			err = tails[i].copyForward()
		}
	}
	needed := l.wal.Durable()
	for _, t := range tails {
		needed = min(needed, t.oldest())
	}
	return errors.Join(err, l.wal.TrimTo(needed))
}

// release lets go whoever waits for a disk that failed or is full, so that the groups can stop.
func (l *sharedLog) release() { l.once.Do(func() { close(l.closed) }) }

// close waits for the janitor and closes the wal. The groups have been stopped.
func (l *sharedLog) close() error {
	l.release()
	l.janitor.Wait()
	return l.wal.Close()
}
