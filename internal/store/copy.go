package store

import (
	"context"
	"hash/crc32"
	"time"

	"github.com/eastguard/eastguard/internal/base"
)

// CopyInfo is what an operator is shown of this node's copy of one segment.
type CopyInfo struct {
	SegmentInfo
	LastSync     time.Duration // how long the last batch was on its way to stable storage; zero before the first of this start
	IndexEntries int           // of the segment file, as far as it is written
	CRC          uint32        // CRC32C of all batches of a whole sealed copy; see Checksum
	CRCKnown     bool          // it has been computed since the segment was sealed or mended
}

// Copy describes this node's copy of a segment, false when there is none. It may open the segment's file.
func (s *Store) Copy(seg base.SegmentID) (CopyInfo, bool) {
	g := s.segmentOf(seg)
	if g == nil {
		return CopyInfo{}, false
	}
	info, ok := g.info()
	c := CopyInfo{SegmentInfo: info, LastSync: time.Duration(g.syncedIn.Load())}
	if sum := g.checksum.Load(); sum != nil && info.Whole() {
		c.CRC, c.CRCKnown = *sum, true
	}
	if ok && g.flushed.Load().Pos > 0 {
		if h, err := s.files.acquire(g, false); err == nil {
			c.IndexEntries = h.file.IndexEntries()
			s.files.release(h)
		}
	}
	return c, ok
}

// sumPieces is how much of a copy is read at once for its checksum.
const sumPieces = 1 << 20

// Checksum returns the CRC32C of all batches of a sealed segment, which is the same on every whole copy. The first call
// reads the copy and holds it against its own sums; the result is kept. A copy that is not whole has none: CodeBehind.
func (s *Store) Checksum(ctx context.Context, seg base.SegmentID) (uint32, error) {
	const op = "sum segment"
	g := s.segmentOf(seg)
	if g == nil {
		return 0, segmentNotFound(op, seg)
	}
	info, _ := g.info()
	if !info.Whole() {
		return 0, base.Errorf(base.CodeBehind, op, "the copy of segment %s is not whole", seg)
	}
	if sum := g.checksum.Load(); sum != nil {
		return *sum, nil
	}
	sum := crc32.New(castagnoli)
	for off := info.Base; off < info.SealedEnd; {
		if err := ctx.Err(); err != nil {
			return 0, base.Wrap(base.CodeTimeout, op, err)
		}
		var r ReadResult
		if err := s.readInto(&r, g, off, info.SealedEnd, sumPieces, nil); err != nil {
			return 0, err
		}
		for _, p := range r.Parts {
			if _, err := p.WriteTo(sum); err != nil {
				r.Release()
				return 0, base.Wrap(base.CodeInternal, op, err)
			}
		}
		r.Release()
		if r.Next <= off {
			return 0, base.Errorf(base.CodeCorruptData, op, "segment %s has nothing at offset %d", seg, off)
		}
		off = r.Next
	}
	got := sum.Sum32()
	g.checksum.Store(&got)
	return got, nil
}
