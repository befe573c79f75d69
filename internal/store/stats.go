package store

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/eastguard/eastguard/internal/base"
)

// counters only grow.
type counters struct {
	appends, appendedBytes, appendedRecords atomic.Int64
	readsMemory, readsFile                  atomic.Int64
	readBytesMemory, readBytesFile          atomic.Int64
	flushedBytes, checkpoints, syncs        atomic.Int64
	quarantined                             atomic.Int64
}

// Info returns a snapshot of one segment held here.
func (s *Store) Info(seg base.SegmentID) (SegmentInfo, bool) {
	g := s.segmentOf(seg)
	if g == nil {
		return SegmentInfo{}, false
	}
	return g.info()
}

// Segments returns the range's segments by base.
func (s *Store) Segments(ref base.RangeRef) []SegmentInfo {
	rng := s.rangeOf(ref)
	if rng == nil {
		return nil
	}
	var infos []SegmentInfo
	for _, g := range rng.segments() {
		if i, ok := g.info(); ok {
			infos = append(infos, i)
		}
	}
	return infos
}

// All returns every segment held here, by id.
func (s *Store) All() []SegmentInfo {
	var infos []SegmentInfo
	for _, g := range s.allSegments() {
		if i, ok := g.info(); ok {
			infos = append(infos, i)
		}
	}
	slices.SortFunc(infos, func(a, b SegmentInfo) int { return cmp.Compare(a.Segment, b.Segment) })
	return infos
}

// Ranges returns up to limit of the ranges known here, in their order, beginning with from or what follows it. It
// goes over all of them and keeps no more than twice the limit, so a walk in pages costs memory for a page.
func (s *Store) Ranges(from base.RangeRef, limit int) []base.RangeRef {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var page []base.RangeRef
	cut := func() {
		slices.SortFunc(page, base.RangeRef.Compare)
		page = page[:min(len(page), limit)]
	}
	full := false // then what lies behind the page's last is of no interest
	for topic, ranges := range s.topics {
		for id := range ranges {
			ref := base.RangeRef{Topic: topic, Range: id}
			if ref.Compare(from) < 0 || full && ref.Compare(page[limit-1]) > 0 {
				continue
			}
			if page = append(page, ref); len(page) == 2*limit {
				cut()
				full = true
			}
		}
	}
	cut()
	return page
}

// info is the segment as of now; ok is false before its opening is durable.
func (g *segmentLog) info() (i SegmentInfo, ok bool) {
	g.rng.mu.Lock()
	defer g.rng.mu.Unlock()
	i = SegmentInfo{
		SegmentSpec: g.spec, State: base.StateActive,
		DurableEnd: g.durable.Load(), Commit: g.commit.Load(), SealedEnd: g.sealed.Load(), SealedCause: g.cause,
		Bytes: g.bytes, Records: g.appended - g.spec.Base, Boot: g.boot,
		FirstAppendMs: g.firstMs, LastAppendMs: g.lastMs, MaxTimestampMs: g.maxTime,
		Damaged: g.damaged || g.rotten, DamagedAbove: g.intact, Fenced: g.spec.Epoch <= g.rng.fenced,
	}
	if i.SealedEnd >= 0 {
		i.State = base.StateSealed
	} else {
		bytes, records := g.rng.inflow.now(time.Now().UnixMilli())
		i.BytesPerSec, i.RecordsPerSec = int64(bytes), int64(records)
	}
	return i, g.opened
}

// Stats returns a moment's figures.
func (s *Store) Stats() Stats {
	st := Stats{
		DirtyBytes: s.dirty.Load(), CachedBytes: s.cached.Load(), OpenFiles: s.files.figures(),
		Appends: s.appends.Load(), AppendedBytes: s.appendedBytes.Load(), AppendedRecords: s.appendedRecords.Load(),
		ReadsMemory: s.readsMemory.Load(), ReadsFile: s.readsFile.Load(),
		ReadBytesMemory: s.readBytesMemory.Load(), ReadBytesFile: s.readBytesFile.Load(),
		FlushedBytes: s.flushedBytes.Load(), Checkpoints: s.checkpoints.Load(), Syncs: s.syncs.Load(),
		QuarantinedFiles: s.quarantined.Load(),
		DiskFree:         s.space.free.Load(), DiskTotal: s.space.total.Load(), DiskFull: s.space.full.Load(),
		WAL: s.wal.Stats(),
	}
	s.mu.RLock()
	st.Topics = len(s.topics)
	for _, t := range s.topics {
		st.Ranges += len(t)
	}
	s.mu.RUnlock()
	for _, g := range s.allSegments() {
		i, ok := g.info()
		if !ok {
			continue
		}
		st.Segments++
		st.Bytes += i.Bytes
		if i.State == base.StateActive {
			st.ActiveSegments++
		}
		if i.Damaged {
			st.DamagedSegments++
		}
	}
	return st
}
