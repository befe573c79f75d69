package segment

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/keyspace"
)

// Piece is a stretch of the file: whole batches.
type Piece struct{ Pos, Len int64 }

// place is where a batch lies.
type place struct {
	pos       int64
	base, end int64
	size      int64
	maxTime   int64
}

// Read appends to dst the stretches from the batch that holds off, up to limit (the commit), of the chunks that touch
// span, at most maxBytes of them but at least one batch. Every block of them has been checked. off must lie in the
// file: [base, Extent().End).
func (f *File) Read(dst []Piece, off, limit int64, maxBytes int, span *keyspace.Span) ([]Piece, Found, error) {
	v := f.view.Load()
	pieces, found, err := f.read(v, dst, off, limit, maxBytes, span)
	if err != nil && f.cutSince(v) {
		return f.read(f.view.Load(), dst, off, limit, maxBytes, span)
	}
	return pieces, found, err
}

// cutSince reports whether a seal has cut the file since v was current. Then the bytes behind the cut may be gone, which is
// no damage: no limit that a reader was given lies there.
func (f *File) cutSince(v *view) bool { return f.view.Load().Pos < v.Pos }

func (f *File) read(v *view, dst []Piece, off, limit int64, maxBytes int, span *keyspace.Span) ([]Piece, Found, error) {
	first, err := f.locate(v, off)
	if err != nil {
		return dst, Found{}, err
	}
	stop, err := f.limit(v, limit)
	if err != nil {
		return dst, Found{}, err
	}
	found := Found{Next: off}
	if first.pos >= stop.Pos {
		return dst, found, nil // the limit lies within the batch that holds off
	}
	pieces := dst
	pos, next := first.pos, stop
	end := next // of what is returned
	for i := v.x.chunkAtOrBefore(pos); pos < stop.Pos; i, pos = i+1, next.Pos {
		next = f.chunkEnd(v, i, stop)
		size := int(next.Pos - pos)
		if c := v.x.chunks.at(i); touches(span, c.Lo, c.Hi) {
			if found.Bytes+size > maxBytes {
				if found.Bytes > 0 {
					break
				}
				// Not even one chunk: as many of its batches as fit, one at least.
				if next, err = f.fit(v, pos, next, maxBytes); err != nil {
					return dst, Found{}, err
				}
				pieces = addPiece(pieces, len(dst), pos, next.Pos-pos)
				found, end = Found{Next: next.End, Bytes: int(next.Pos - pos)}, next
				break
			}
			pieces = addPiece(pieces, len(dst), pos, int64(size))
			found.Bytes += size
		}
		found.Next, end = next.End, next
	}
	if err := f.confirm(v, end); err != nil {
		return dst, Found{}, err
	}
	for _, p := range pieces[len(dst):] {
		if err := f.verify(v, p.Pos, p.Pos+p.Len); err != nil {
			return dst, Found{}, err
		}
	}
	return pieces, found, nil
}

// addPiece adds a stretch, to the last one (not one of the first keep) if it continues it.
func addPiece(p []Piece, keep int, pos, n int64) []Piece {
	if last := len(p) - 1; last >= keep && p[last].Pos+p[last].Len == pos {
		p[last].Len += n
		return p
	}
	return append(p, Piece{pos, n})
}

// chunkEnd is where chunk i ends: at the next one, but not behind stop.
func (f *File) chunkEnd(v *view, i int, stop Extent) Extent {
	if i+1 < v.x.chunks.len() {
		if c := v.x.chunks.at(i + 1); int64(c.Pos) < stop.Pos {
			return Extent{End: f.spec.Base + int64(c.Rel), Pos: int64(c.Pos)}
		}
	}
	return stop
}

// confirm holds the place where a read ends, which is the index's word, against the batch that begins there. Where the
// index is wrong the next read would leave records out.
func (f *File) confirm(v *view, end Extent) error {
	if end.Pos >= v.Pos {
		return nil
	}
	w := walker{f: f, v: v}
	defer w.done()
	b, err := w.at(end.Pos)
	if err == nil && b.base != end.End {
		err = corruptIndex("offset %d is said to lie at %d, where %d lies", end.End, end.Pos, b.base)
	}
	return err
}

// limit turns an offset that reading must stop at into a place in the file.
func (f *File) limit(v *view, limit int64) (Extent, error) {
	if limit >= v.End {
		return v.Extent, nil
	}
	b, err := f.locate(v, limit)
	return Extent{End: b.base, Pos: b.pos}, err
}

// fit returns the end of the batches from pos on that have at most maxBytes together, one at least, within stop.
func (f *File) fit(v *view, pos int64, stop Extent, maxBytes int) (Extent, error) {
	w := walker{f: f, v: v}
	defer w.done()
	at, err := w.at(pos)
	if err != nil {
		return Extent{}, err
	}
	end := Extent{End: at.end, Pos: pos + at.size}
	for end.Pos < stop.Pos {
		if at, err = w.at(end.Pos); err != nil {
			return Extent{}, err
		}
		if end.Pos+at.size-pos > int64(maxBytes) {
			break
		}
		end = Extent{End: at.end, Pos: end.Pos + at.size}
	}
	return end, nil
}

// locate finds the batch that holds off.
func (f *File) locate(v *view, off int64) (place, error) {
	if off < f.spec.Base || off >= v.End {
		return place{}, fmt.Errorf("offset %d is not in %s, which holds [%d, %d)", off, f.path, f.spec.Base, v.End)
	}
	c := v.x.chunks.at(v.x.chunkOf(uint32(off - f.spec.Base)))
	w := walker{f: f, v: v}
	defer w.done()
	for pos := int64(c.Pos); ; {
		b, err := w.at(pos)
		if err != nil {
			return b, err
		}
		if b.base > off {
			return b, corruptIndex("offset %d is said to lie at or behind %d, where %d lies", off, c.Pos, b.base)
		}
		if b.end > off {
			return b, nil
		}
		pos += b.size
	}
}

// FirstAtOrAfter finds the first batch below limit whose MaxTimestamp is at least ms.
func (f *File) FirstAtOrAfter(ms, limit int64) (base, maxTimestamp int64, ok bool, err error) {
	v := f.view.Load()
	base, maxTimestamp, ok, err = f.firstAtOrAfter(v, ms, limit)
	if err != nil && f.cutSince(v) {
		return f.firstAtOrAfter(f.view.Load(), ms, limit)
	}
	return base, maxTimestamp, ok, err
}

func (f *File) firstAtOrAfter(v *view, ms, limit int64) (base, maxTimestamp int64, ok bool, err error) {
	t := v.x.timeOf(ms)
	if t == nil {
		return 0, 0, false, nil
	}
	w := walker{f: f, v: v}
	defer w.done()
	for pos := int64(t.Pos); pos < v.Pos; {
		b, err := w.at(pos)
		if err != nil || b.end > limit {
			return 0, 0, false, err
		}
		if b.maxTime >= ms {
			return b.base, b.maxTime, true, nil
		}
		pos += b.size
	}
	return 0, 0, false, nil
}

// walker reads batch headers, a chunk's worth at a time, from blocks that it has checked.
type walker struct {
	f    *File
	v    *view
	buf  []byte
	from int64 // position of buf
}

const walkBytes = indexInterval + header.Size

var walkBuffers = sync.Pool{New: func() any { return new([walkBytes]byte) }}

func (w *walker) done() {
	if w.buf != nil {
		walkBuffers.Put((*[walkBytes]byte)(w.buf[:walkBytes]))
	}
}

// at reads the header of the batch at pos and holds it against what it can be.
func (w *walker) at(pos int64) (place, error) {
	bad := func(format string, args ...any) (place, error) {
		return place{}, &DamageError{Path: w.f.path + LogSuffix, Pos: pos, Intact: w.f.intactBefore(w.v, pos), Detail: fmt.Sprintf(format, args...)}
	}
	if pos+header.Size > w.v.Pos {
		return bad("%d bytes are left, a batch needs more", w.v.Pos-pos)
	}
	if w.buf == nil || pos < w.from || pos+header.Size > w.from+int64(len(w.buf)) {
		if err := w.fill(pos); err != nil {
			return place{}, err
		}
	}
	h, err := header.Parse(w.buf[pos-w.from:])
	switch {
	case err != nil:
		return bad("%v", err)
	case h.Epoch != int32(w.f.spec.Epoch):
		return bad("a batch of epoch %d in a segment of epoch %d", h.Epoch, w.f.spec.Epoch)
	case h.BaseOffset < w.f.spec.Base || h.End() <= h.BaseOffset || h.End() > w.v.End || pos+int64(h.Size()) > w.v.Pos:
		return bad("a batch [%d, %d) of %d bytes cannot be here", h.BaseOffset, h.End(), h.Size())
	}
	return place{pos: pos, base: h.BaseOffset, end: h.End(), size: int64(h.Size()), maxTime: h.MaxTimestamp}, nil
}

func (w *walker) fill(pos int64) error {
	n := min(walkBytes, w.v.Pos-pos)
	if err := w.f.verify(w.v, pos, pos+n); err != nil {
		return err
	}
	if w.buf == nil {
		w.buf = walkBuffers.Get().(*[walkBytes]byte)[:]
	}
	w.buf, w.from = w.buf[:n], pos
	return w.f.readFull(w.v, w.buf, pos)
}

// readFull reads exactly len(b) bytes; a file that ends early is damage.
func (f *File) readFull(v *view, b []byte, pos int64) error {
	n, err := f.file.ReadAt(b, pos)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return f.endsEarly(v, pos+int64(n))
	}
	return err
}

func (f *File) endsEarly(v *view, size int64) error {
	return &DamageError{
		Path: f.path + LogSuffix, Pos: size, Intact: f.intactBefore(v, size),
		Detail: fmt.Sprintf("the file ends here, %d bytes were written", v.Pos),
	}
}

// intactBefore is an extent of whole batches that ends at or before pos: the chunks before pos's own.
func (f *File) intactBefore(v *view, pos int64) Extent {
	if i := v.x.chunkAtOrBefore(pos); i >= 0 {
		c := v.x.chunks.at(i)
		return Extent{End: f.spec.Base + int64(c.Rel), Pos: int64(c.Pos)}
	}
	return Extent{End: f.spec.Base}
}
