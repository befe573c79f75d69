package store

import (
	"errors"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/keyspace"
	"github.com/eastguard/eastguard/internal/segment"
	"github.com/eastguard/eastguard/internal/vfs"
)

const opRead = "read"

// Read returns whole batches of one segment from the one that holds off, committed ones only, at most maxBytes of them
// but always at least one; with span, stretches in which no record can lie in it are left out. From the tail the parts
// are the batches in memory, else they are pieces of the file, checked and ready for sendfile.
//
// At the commit of an active segment, or at the end of a sealed one, the answer has no parts and no error. Beyond:
//   - CodeOffsetOutOfRange below what was trimmed here by a committed decision;
//   - CodeBehind above what this node can prove committed, and at the end of a copy of a sealed segment that is short:
//     another replica has more (a segment's leader knows that there is no more);
//   - CodeNotReplica for what this node does not hold; the successor of a sealed segment may be elsewhere;
//   - CodeCorruptData for bytes that do not match their checksum; other offsets may still be readable;
//   - CodeBusy when every open file is in use.
func (s *Store) Read(ref base.RangeRef, off int64, maxBytes int, span *keyspace.Span) (ReadResult, error) {
	if f := s.failed.Load(); f != nil {
		return ReadResult{}, base.Wrap(base.CodeInternal, opRead, f.err)
	}
	rng := s.rangeOf(ref)
	if rng == nil {
		return ReadResult{}, base.Errorf(base.CodeNotReplica, opRead, "range %s is not on this node", ref)
	}
	list := rng.segments()
	g := find(list, off)
	if g == nil {
		return ReadResult{}, outside(rng, list, off)
	}
	end := g.sealed.Load() // before the commit, which does not move behind it
	commit := g.commit.Load()
	r := ReadResult{
		Segment: g.spec.Segment, Epoch: g.spec.Epoch, Next: off,
		Commit: commit, Earliest: rng.earliest(list), Sealed: off == end, End: end,
	}
	switch {
	case end >= 0 && off > end:
		return ReadResult{}, base.Errorf(base.CodeNotReplica, opRead, "segment %s of %s ends at %d; what follows is not on this node", g.spec.Segment, ref, end)
	case off == end || off == commit && end < 0 && !g.damagedAt(off):
		return r, nil
	case off >= commit:
		return ReadResult{}, g.beyond(off, commit)
	}
	if err := s.readInto(&r, g, off, commit, maxBytes, span); err != nil {
		return ReadResult{}, err
	}
	r.Sealed = r.Next == end
	r.Records = r.Next - off
	return r, nil
}

// outside explains an offset below every segment held here.
func outside(rng *rangeLog, list []*segmentLog, off int64) error {
	rng.mu.Lock()
	trimmed := rng.trimmedTo
	rng.mu.Unlock()
	if off < trimmed {
		return base.Errorf(base.CodeOffsetOutOfRange, opRead, "offset %d of %s is below the earliest, %d", off, rng.ref, rng.earliest(list))
	}
	return base.Errorf(base.CodeNotReplica, opRead, "offset %d of %s is not on this node", off, rng.ref)
}

// beyond explains an offset above the commit of its segment.
func (g *segmentLog) beyond(off, commit int64) error {
	if g.damagedAt(off) {
		return base.Errorf(base.CodeCorruptData, opRead, "segment %s is damaged above offset %d", g.spec.Segment, commit)
	}
	return base.Errorf(base.CodeBehind, opRead, "offset %d of %s is above the commit %d", off, g.spec.Ref, commit)
}

// damagedAt reports whether off is among what this copy lost.
func (g *segmentLog) damagedAt(off int64) bool {
	g.rng.mu.Lock()
	defer g.rng.mu.Unlock()
	return g.damaged && off >= g.intact
}

// readInto fills r from memory or, when off is not there, from the file. A batch leaves memory only when the file shows
// it, so one of the two has it; the tail is asked first.
func (s *Store) readInto(r *ReadResult, g *segmentLog, off, commit int64, maxBytes int, span *keyspace.Span) error {
	var buf [64]*segment.Entry
	entries, found, ok := g.tail.Read(buf[:0], off, commit, maxBytes, span)
	if !ok {
		return s.readFile(r, g, off, commit, maxBytes, span)
	}
	if len(entries) > 0 {
		r.Parts = make([]vfs.Part, len(entries))
		for i, e := range entries {
			r.Parts[i] = vfs.MemPart(e.Bytes)
		}
	}
	r.Next, r.Bytes = found.Next, found.Bytes
	s.readsMemory.Add(1)
	s.readBytesMemory.Add(int64(found.Bytes))
	return nil
}

func (s *Store) readFile(r *ReadResult, g *segmentLog, off, commit int64, maxBytes int, span *keyspace.Span) error {
	h, err := s.files.acquire(g, false)
	if err != nil {
		return s.readError(g, err)
	}
	defer s.files.release(h)
	var buf [16]segment.Piece
	pieces, found, err := h.file.Read(buf[:0], off, commit, maxBytes, span)
	if err != nil {
		return s.readError(g, err)
	}
	if len(pieces) > 0 {
		r.Parts = make([]vfs.Part, len(pieces))
		for i, p := range pieces {
			r.Parts[i] = s.files.part(h, p)
		}
	}
	r.Next, r.Bytes = found.Next, found.Bytes
	s.readsFile.Add(1)
	s.readBytesFile.Add(int64(found.Bytes))
	return nil
}

// part makes a piece of an open file a part that holds a reference.
func (c *fileCache) part(h *openFile, p segment.Piece) vfs.Part {
	c.ref(h)
	return vfs.FilePart(h.file.Handle(), p.Pos, p.Len, func() { c.release(h) })
}

// readError turns what a file said into what a caller can use, and notes damage.
func (s *Store) readError(g *segmentLog, err error) error {
	g.rng.mu.Lock()
	dropped := g.dropped
	g.rng.mu.Unlock()
	if dropped {
		return base.Errorf(base.CodeNotReplica, opRead, "segment %s has been removed from this node", g.spec.Segment)
	}
	var d *segment.DamageError
	if errors.As(err, &d) {
		s.noteRot(g, d)
		return base.Wrap(base.CodeCorruptData, opRead, err)
	}
	return base.Wrap(base.CodeInternal, opRead, err)
}

// TrimmedTo is where a range begins, as far as this node knows by what was trimmed here; what it holds may begin later.
func (s *Store) TrimmedTo(ref base.RangeRef) int64 {
	rng := s.rangeOf(ref)
	if rng == nil {
		return 0
	}
	rng.mu.Lock()
	defer rng.mu.Unlock()
	return rng.trimmedTo
}
