package store

import (
	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/segment"
)

const opTail = "read tail"

// Tail is a stretch of a segment for another replica's copy that is short of it.
type Tail struct {
	Batches []Batch
	Left    int64 // bytes from the first of them to the end that was asked for
}

// Tail returns the batches of a segment from the one that begins at off, up to its committed end, at most maxBytes of them
// but at least one. Append times of batches that have left memory are the index's: those of a batch a little behind. The
// copy here has to reach to the end, and to be intact.
func (s *Store) Tail(seg base.SegmentID, off, end int64, maxBytes int) (Tail, error) {
	if err := s.usable(opTail); err != nil {
		return Tail{}, err
	}
	g := s.segmentOf(seg)
	if g == nil {
		return Tail{}, base.Errorf(base.CodeNotReplica, opTail, "segment %s is not on this node", seg)
	}
	info, ok := g.info()
	switch {
	case !ok:
		return Tail{}, base.Errorf(base.CodeNotReplica, opTail, "segment %s is not on this node", seg)
	case info.Damaged:
		return Tail{}, base.Errorf(base.CodeCorruptData, opTail, "segment %s is damaged above %d", seg, info.DamagedAbove)
	case info.DurableEnd < end || info.SealedEnd >= 0 && info.SealedEnd != end:
		return Tail{}, base.Errorf(base.CodeBehind, opTail, "segment %s ends at %d here, not at %d", seg, info.DurableEnd, end)
	case off < info.Base || off >= end:
		return Tail{}, base.Errorf(base.CodeInvalidArgument, opTail, "segment %s has nothing from %d to %d", seg, off, end)
	}
	var buf [64]*segment.Entry
	if entries, _, ok := g.tail.Read(buf[:0], off, end, maxBytes, nil); ok {
		return tailOf(g, entries, off, end), nil
	}
	return s.tailOfFile(g, off, end, maxBytes)
}

func tailOf(g *segmentLog, entries []*segment.Entry, off, end int64) Tail {
	t := Tail{Left: g.tail.Bytes(off, end)}
	for _, e := range entries {
		h, err := header.Parse(e.Bytes)
		if err != nil {
			break // cannot be: it was checked on its way in
		}
		t.Batches = append(t.Batches, Batch{Bytes: e.Bytes, Header: h, AppendMs: e.AppendMs, SpanLo: e.Lo, SpanHi: e.Hi})
	}
	return t
}

func (s *Store) tailOfFile(g *segmentLog, off, end int64, maxBytes int) (Tail, error) {
	h, err := s.files.acquire(g, false)
	if err != nil {
		return Tail{}, s.readError(g, err)
	}
	defer s.files.release(h)
	// What is not in the file is in memory, and counted there.
	t := Tail{Left: g.tail.Bytes(h.file.Extent().End, end)}
	end = min(end, h.file.Extent().End)
	batches, left, err := h.file.Batches(off, end, maxBytes)
	if err != nil {
		return Tail{}, s.readError(g, err)
	}
	t.Left += left
	for _, b := range batches {
		t.Batches = append(t.Batches, Batch{Bytes: b.Bytes, Header: b.Header, AppendMs: b.AppendMs, SpanLo: 1, SpanHi: 0})
	}
	return t, nil
}
