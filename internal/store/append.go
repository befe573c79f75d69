package store

import (
	"errors"
	"math"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/rangestate"
	"github.com/eastguard/eastguard/internal/segment"
	"github.com/eastguard/eastguard/internal/wal"
)

// pending is one batch from Append until the tail lets go of it. It and the closure for the log are all that an append
// allocates.
type pending struct {
	segment.Entry
	store  *Store
	seg    *segmentLog
	done   func(end int64, err error)
	queued time.Time
	parts  [2][]byte
	head   [batchHead]byte
}

const opAppend = "append"

// Append queues b as the next batch of seg and returns at once; unless it returns an error, b.Bytes must not be touched
// any more. done is called once, in the order of the appends, when the batch is on stable storage here, with the
// segment's end behind it; it runs on a goroutine of the log and must not block. After an error given to done nothing
// behind that batch is taken in this segment.
//
// An error return means that nothing happened: CodeBusy and CodeDiskFull may be retried; CodeFenced, CodeSegmentMoved
// (a seal was asked for), CodeSegmentNotFound and CodeShuttingDown may not.
func (s *Store) Append(seg base.SegmentID, b Batch, done func(end int64, err error)) error {
	if err := s.usable(opAppend); err != nil {
		return err
	}
	g := s.segmentOf(seg)
	if g == nil {
		return segmentNotFound(opAppend, seg)
	}
	if err := s.admit(len(b.Bytes), b.AppendMs); err != nil {
		return err
	}
	p := s.newPending(g, &b, done)
	g.rng.mu.Lock()
	defer g.rng.mu.Unlock()
	if err := s.mayAppend(g); err != nil {
		return err
	}
	if err := g.follows(&b); err != nil {
		return err
	}
	return s.enter(p, &b)
}

func (s *Store) newPending(g *segmentLog, b *Batch, done func(int64, error)) *pending {
	p := &pending{
		Entry: segment.Entry{
			Bytes: b.Bytes, Base: b.Header.BaseOffset, End: b.Header.End(),
			AppendMs: b.AppendMs, MaxTimestamp: b.Header.MaxTimestamp, Lo: b.SpanLo, Hi: b.SpanHi,
		},
		store: s, seg: g, done: done, queued: time.Now(),
	}
	batchRecord{segment: g.spec.Segment, appendMs: b.AppendMs, commit: g.commit.Load(), lo: b.SpanLo, hi: b.SpanHi}.put(&p.head)
	p.parts = [2][]byte{p.head[:], b.Bytes}
	return p
}

// enter gives the batch to the log and then to readers' memory. rng.mu is held.
func (s *Store) enter(p *pending, b *Batch) error {
	err := s.wal.Append(wal.Entry{Kind: kindBatch, Records: int(b.Header.Records), Parts: p.parts[:]}, p.logged)
	if err != nil {
		return base.Wrap(base.CodeInternal, opAppend, err)
	}
	s.take(p.seg, p)
	p.seg.remember(b)
	s.appends.Add(1)
	s.appendedBytes.Add(int64(len(b.Bytes)))
	s.appendedRecords.Add(int64(b.Header.Records))
	return nil
}

// admit refuses a batch that the node has no room for, in memory, in the log or on the disk.
func (s *Store) admit(n int, nowMs int64) error {
	look, err := s.space.admit(int64(n), s.dirty.Load(), nowMs)
	if look {
		s.queue.nudge()
	}
	if err != nil {
		return err
	}
	if d := s.dirty.Load(); d > 0 && d+int64(n) > s.o.DirtyBytes {
		return base.Errorf(base.CodeBusy, opAppend, "%d bytes wait to be written to segment files already", d)
	}
	if c := s.sinceCheckpoint.Load(); c+int64(n) > s.o.WALBytes {
		return base.Errorf(base.CodeBusy, opAppend, "%d bytes of the log wait for a checkpoint already", c)
	}
	return nil
}

// mayAppend says why a segment takes no batch. rng.mu is held.
func (s *Store) mayAppend(g *segmentLog) error {
	switch {
	case !g.opened || g.dropped:
		return segmentNotFound(opAppend, g.spec.Segment)
	case g.sealing >= 0:
		return base.Errorf(base.CodeSegmentMoved, opAppend, "segment %s ends at %d", g.spec.Segment, g.sealing)
	case g.spec.Epoch <= g.rng.fenced:
		return base.Errorf(base.CodeFenced, opAppend, "%s is fenced up to epoch %d, segment %s has %d", g.spec.Ref, g.rng.fenced, g.spec.Segment, g.spec.Epoch)
	case g.boot != s.boot.Load():
		return base.Errorf(base.CodeFenced, opAppend, "segment %s was opened in boot %d, this is boot %d", g.spec.Segment, g.boot, s.boot.Load())
	case g.broken:
		return base.Errorf(base.CodeDiskFull, opAppend, "segment %s lost a batch to a full disk and takes no more", g.spec.Segment)
	case g.damaged:
		return base.Errorf(base.CodeCorruptData, opAppend, "segment %s is damaged above %d", g.spec.Segment, g.intact)
	}
	return nil
}

// follows holds the batch against what the segment has. rng.mu is held.
func (g *segmentLog) follows(b *Batch) error {
	h := &b.Header
	switch {
	case h.Epoch != int32(g.spec.Epoch) || h.Size() != len(b.Bytes):
		return base.Errorf(base.CodeInvalidArgument, opAppend, "a batch of %d bytes and epoch %d, its header says %d bytes; the segment has epoch %d", len(b.Bytes), h.Epoch, h.Size(), g.spec.Epoch)
	case h.BaseOffset != g.appended:
		return base.Errorf(base.CodeInvalidArgument, opAppend, "segment %s ends at %d, a batch at %d cannot follow", g.spec.Segment, g.appended, h.BaseOffset)
	case g.bytes+int64(len(b.Bytes)) > segment.MaxBytes || h.End()-g.spec.Base > segment.MaxRecords || h.End() > math.MaxInt64-math.MaxInt32:
		return base.Errorf(base.CodeBatchTooLarge, opAppend, "segment %s is full", g.spec.Segment)
	}
	return nil
}

// take puts the batch into the segment's tail and counts it. rng.mu is held.
func (s *Store) take(g *segmentLog, p *pending) {
	g.tail.Push(&p.Entry)
	c := cost(1, int64(len(p.Bytes)))
	s.dirty.Add(c)
	s.cached.Add(c)
	g.rng.inflow.add(len(p.Bytes), p.End-g.appended, p.AppendMs)
	g.appended = p.End
	g.inMemory.Store(p.End)
	g.bytes += int64(len(p.Bytes))
	if g.firstMs == 0 {
		g.firstMs = p.AppendMs
	}
	g.lastMs = max(g.lastMs, p.AppendMs)
	g.maxTime = max(g.maxTime, p.MaxTimestamp)
}

// remember tells the range's state of the batch. rng.mu is held.
func (g *segmentLog) remember(b *Batch) {
	if g.state == nil {
		if !b.Header.HasProducer() {
			return
		}
		g.state = rangestate.New()
	}
	// During replay the commit may be ahead of what has been replayed.
	g.state.Commit(min(g.commit.Load(), b.Header.BaseOffset))
	g.state.Append(b.Header, b.Header.BaseOffset, b.AppendMs)
	g.stateDirty = g.stateDirty || b.Header.HasProducer()
}

// logged is called by the log, in the order of the appends, when the batch is durable or is not going to be.
func (p *pending) logged(lsn wal.LSN, err error) {
	s, g, done := p.store, p.seg, p.done
	p.done = nil // what it holds must not live as long as the tail holds the batch
	g.rng.mu.Lock()
	if err == nil && g.broken {
		err = base.Errorf(base.CodeDiskFull, opAppend, "a batch before this one was not written").WithOutcome(base.Unknown)
	}
	if err != nil {
		g.broken = true
	} else {
		g.durable.Store(p.End)
		g.syncedIn.Store(int64(time.Since(p.queued)))
		s.enqueue(g)
	}
	mended := g.sealed.Load() >= 0 && err == nil
	if mended {
		g.commit.Store(g.provable())
	}
	g.check()
	g.rng.mu.Unlock()
	if mended {
		g.rng.waiting.wakeAll()
	}
	if err != nil {
		if errors.Is(err, base.CodeDiskFull) {
			s.metFull()
		}
		done(0, base.Wrap(base.CodeInternal, opAppend, err))
		return
	}
	s.logged(lsn, int64(len(p.Bytes))+batchHead)
	if s.dirty.Load() >= s.o.FlushBytes {
		s.queue.nudge()
	}
	done(p.End, nil)
}

// enqueue lets the flusher know that g has something to write. rng.mu is held.
func (s *Store) enqueue(g *segmentLog) {
	if !g.queued {
		g.queued = true
		s.queue.push(g)
	}
}
