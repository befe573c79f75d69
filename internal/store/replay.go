package store

import (
	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/segment"
	"github.com/eastguard/eastguard/internal/wal"
)

func (r *recovery) replayLog() error {
	o := r.o.WAL
	o.FS, o.Dir, o.UUID, o.Logger = r.o.FS, r.file(walName), r.id.Disk, r.o.Logger
	o.OnFatal = func(err error) { _ = r.fail(err) }
	r.openedAt = map[*segmentLog]wal.LSN{}
	log, found, err := wal.Open(o, r.replay)
	if err != nil {
		return err
	}
	r.wal, r.recovery.WAL = log, found
	if uint64(found.End) < r.included {
		return base.Errorf(base.CodeCorruptData, opRecover, "the log ends at %d, the catalogue includes it up to %d: the log was lost or rolled back", found.End, r.included).
			WithHint("bring back the log as it was" + anew)
	}
	if r.fresh && found.Start > 0 {
		return base.Errorf(base.CodeCorruptData, opRecover, "there is no catalogue, and the log begins at %d only", found.Start).
			WithHint("the file `catalogue` was removed: bring it back" + anew)
	}
	return nil
}

// replay takes one record into the state. Taking it twice changes nothing.
func (r *recovery) replay(lsn wal.LSN, kind uint8, payload []byte) error {
	if uint64(lsn) <= r.included {
		r.recovery.Skipped++
		return nil
	}
	var ok bool
	switch kind {
	case kindBatch:
		var err error
		if ok, err = r.replayBatch(payload); err != nil {
			return err
		}
	case kindOpen:
		var rec openRecord
		if rec, ok = decodeOpen(payload); ok {
			_, known := r.segs[rec.spec.Segment]
			r.applyOpen(rec)
			if g := r.segs[rec.spec.Segment]; g != nil && !known {
				r.openedAt[g] = lsn
			}
		}
	case kindFence:
		var rec fenceRecord
		if rec, ok = decodeFence(payload); ok {
			r.applyFence(rec)
		}
	case kindFenceAllLed:
		var boot uint64
		if boot, ok = decodeFenceAllLed(payload); ok {
			r.applyFenceAllLed(boot)
		}
	case kindSeal:
		var rec sealRecord
		if rec, ok = decodeSeal(payload); ok {
			r.applySeal(rec)
		}
	case kindDropSegments:
		var rec dropRecord
		if rec, ok = decodeDrop(payload); ok {
			r.applyDrop(rec)
		}
	case kindDropTopic:
		var topic base.TopicID
		if topic, ok = decodeDropTopic(payload); ok {
			r.applyDropTopic(topic)
		}
	}
	if !ok {
		return base.Errorf(base.CodeUnsupportedVersion, opRecover, "the log's record at %d, kind %d, cannot be read", lsn, kind).
			WithHint("start the version of the broker that wrote it")
	}
	r.applied.Store(uint64(lsn))
	r.sinceCheckpoint.Add(int64(len(payload)) + logOverhead)
	return nil
}

// replayBatch puts a batch back into its segment's tail, if it follows what is there.
func (r *recovery) replayBatch(payload []byte) (ok bool, err error) {
	rec, batch, ok := decodeBatchRecord(payload)
	if !ok {
		return false, nil
	}
	h, err := header.Parse(batch)
	if err != nil || h.Size() != len(batch) {
		return false, nil
	}
	g := r.segs[rec.segment]
	switch {
	case g == nil || g.dropped:
		return true, nil // dropped since, or its listing was lost
	case g.sealed.Load() >= 0 && h.BaseOffset >= g.sealed.Load(), h.BaseOffset < g.appended:
		return true, nil // void, or in the file already
	case g.damaged:
		r.homeless[g] = append(r.homeless[g], append([]byte(nil), batch...))
		return true, nil
	case h.BaseOffset > g.appended || h.Epoch != int32(g.spec.Epoch):
		r.recovery.Void++
		return true, nil
	}
	r.recovery.Batches++
	r.retake(g, rec, h, append([]byte(nil), batch...))
	if r.dirty.Load() > r.o.DirtyBytes/2 {
		return true, r.flushSome()
	}
	return true, nil
}

// flushSome writes what has been put back so far, to bound the memory. On a full disk it stays there: it was in memory
// before, too, but for what lies in the files already, and writing that once more takes no space.
func (r *recovery) flushSome() error {
	err := r.flushAll()
	if isNoSpace(err) && r.space.noSpace() {
		err = r.flushAll()
	}
	if isNoSpace(err) {
		return nil
	}
	return err
}

func (r *recovery) retake(g *segmentLog, rec batchRecord, h header.Header, bytes []byte) {
	b := Batch{Bytes: bytes, Header: h, AppendMs: rec.appendMs, SpanLo: rec.lo, SpanHi: rec.hi}
	p := &pending{Entry: segment.Entry{
		Bytes: bytes, Base: h.BaseOffset, End: h.End(), AppendMs: rec.appendMs, MaxTimestamp: h.MaxTimestamp, Lo: rec.lo, Hi: rec.hi,
	}}
	g.rng.mu.Lock()
	defer g.rng.mu.Unlock()
	r.take(g, p)
	g.durable.Store(p.End)
	g.commit.Store(max(g.commit.Load(), min(rec.commit, p.End)))
	g.remember(&b)
	r.enqueue(g)
}
