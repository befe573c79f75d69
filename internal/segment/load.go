package segment

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/vfs"
)

// load makes the writer's figures those of extent: from the pages of .idx and .tdx as far as they are good, for the rest
// from the file itself.
func (f *File) load(extent Extent) error {
	f.x, f.s, f.index, f.time = index{}, sums{}, sidecar{}, sidecar{}
	f.extent = Extent{End: f.spec.Base}
	if err := f.checkExtent(extent); err != nil {
		return err
	}
	if extent.Pos == 0 {
		f.view.Store(f.snapshot(nil))
		return nil
	}
	size, err := f.file.Size()
	if err != nil {
		return err
	}
	indexEnd, err := f.loadPages(IndexSuffix, kindIndex, extent, f.takeIndexPage)
	if err != nil {
		return err
	}
	timeEnd, err := f.loadPages(TimeSuffix, kindTime, extent, f.takeTimePage)
	if err != nil {
		return err
	}
	f.extent = indexEnd
	known := f.snapshot(nil)
	if size < indexEnd.Pos {
		return f.endsEarly(known, size)
	}
	if indexEnd == extent && timeEnd == extent {
		f.view.Store(known)
		return nil
	}
	if err := f.rebuild(known, extent, timeEnd); err != nil {
		return err
	}
	f.view.Store(f.snapshot(known.verified))
	// Save what was built, so that the next open need not do it again. It is a convenience: a full disk does not matter here,
	// and whatever else is wrong with it will be met where it does.
	_ = f.Save(false)
	return nil
}

// loadPages reads the pages of one index file that describe the file up to extent, and returns how far they do. Whatever
// is wrong with them ends the reading, nothing else.
func (f *File) loadPages(suffix string, kind byte, extent Extent, take func(*page) bool) (Extent, error) {
	reached := Extent{End: f.spec.Base}
	b, err := vfs.ReadFile(f.fs, f.path+suffix)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return reached, nil
		}
		return reached, err
	}
	for reached.Pos < extent.Pos {
		p, rest, err := decodePage(b)
		if err != nil || p.kind != kind || p.segment != f.spec.Segment || p.base != f.spec.Base ||
			p.from != reached.Pos || p.to <= p.from || p.to > extent.Pos || p.end <= reached.End || p.end > extent.End ||
			(p.to == extent.Pos) != (p.end == extent.End) || !take(&p) {
			break
		}
		reached, b = Extent{End: p.end, Pos: p.to}, rest
	}
	return reached, nil
}

// takeIndexPage takes a page's entries and sums if they can be what they say: entries that begin at the page's beginning
// and grow, and one sum for each block that the page completes.
func (f *File) takeIndexPage(p *page) bool {
	if p.sums != int(p.to/BlockBytes-p.from/BlockBytes) || p.entries == 0 {
		return false
	}
	fresh := make([]IndexEntry, p.entries)
	for i := range fresh {
		fresh[i] = p.indexEntry(i)
	}
	if !grows(len(fresh), p, f.spec.Base, func(i int) (uint32, uint32) { return fresh[i].Rel, fresh[i].Pos }) {
		return false
	}
	if n := len(f.x.chunks.closed); n > 0 && fresh[0].Rel <= f.x.chunks.closed[n-1].Rel {
		return false
	}
	f.x.chunks.closed = append(f.x.chunks.closed, fresh...)
	for i := range p.sums {
		f.s.full = append(f.s.full, p.sum(i))
	}
	f.s.partial = p.partial
	f.index = sidecar{
		saved: p.to, len: f.index.len + int64(pageOverhead+p.entries*pageEntry+p.sums*4),
		entries: len(f.x.chunks.closed), sums: len(f.s.full),
	}
	return true
}

func (f *File) takeTimePage(p *page) bool {
	if p.sums != 0 || p.entries == 0 {
		return false
	}
	fresh := make([]TimeEntry, p.entries)
	last := int64(0)
	for i := range fresh {
		fresh[i] = p.timeEntry(i)
		if i > 0 && fresh[i].MaxTimestamp < last {
			return false
		}
		last = fresh[i].MaxTimestamp
	}
	if !grows(len(fresh), p, f.spec.Base, func(i int) (uint32, uint32) { return fresh[i].Rel, fresh[i].Pos }) {
		return false
	}
	if n := len(f.x.times.closed); n > 0 && (fresh[0].Rel <= f.x.times.closed[n-1].Rel || fresh[0].MaxTimestamp < f.x.times.closed[n-1].MaxTimestamp) {
		return false
	}
	f.x.times.closed = append(f.x.times.closed, fresh...)
	f.time = sidecar{saved: p.to, len: f.time.len + int64(pageOverhead+p.entries*pageEntry), entries: len(f.x.times.closed)}
	return true
}

// grows reports whether n entries begin at the page's beginning and grow within its bounds.
func grows(n int, p *page, base int64, at func(int) (rel, pos uint32)) bool {
	for i := range n {
		rel, pos := at(i)
		if i == 0 && int64(pos) != p.from {
			return false
		}
		if int64(pos) >= p.to || base+int64(rel) >= p.end {
			return false
		}
		if i > 0 {
			if r, q := at(i - 1); rel <= r || pos <= q {
				return false
			}
		}
	}
	return true
}

// rebuild reads the file's batches from where one of the indexes ends up to extent, and takes into each index what it
// lacks. Where the sums are known they are checked first; elsewhere a batch counts only if its CRC holds and if what
// the CRC does not cover (base, length, epoch, magic) is the only thing it can be.
// known shows what the sparse index knows.
func (f *File) rebuild(known *view, extent, timeEnd Extent) error {
	if timeEnd.Pos < f.extent.Pos {
		f.extent = timeEnd
	}
	if err := f.verify(known, f.extent.Pos, known.Pos); err != nil {
		return err
	}
	r := batchReader{file: f.file, path: f.path + LogSuffix, spec: f.spec, at: f.extent}
	for r.at.Pos < extent.Pos {
		at := r.at
		b, h, err := r.next(extent)
		if err != nil {
			return err
		}
		rel, pos := uint32(at.End-f.spec.Base), uint32(at.Pos)
		if at.Pos >= known.Pos {
			f.x.addChunk(rel, pos, 1, 0) // the hashes are not known: everything
			f.s.add(at.Pos, b)
		}
		if at.Pos >= timeEnd.Pos {
			f.x.addTime(rel, pos, h.MaxTimestamp, 0)
		}
		f.extent = r.at
	}
	if f.extent != extent {
		return r.damage("its batches end at offset %d, %d was recorded", f.extent.End, extent.End)
	}
	return nil
}

// batchReader reads a file's batches in order and checks all of each.
type batchReader struct {
	file vfs.File
	path string
	spec Spec
	at   Extent
	buf  []byte // of the file's bytes from bufPos on
	pos  int64
}

const readAhead = 1 << 20

func (r *batchReader) damage(format string, args ...any) error {
	return &DamageError{Path: r.path, Pos: r.at.Pos, Intact: r.at, Detail: fmt.Sprintf(format, args...)}
}

// next returns the batch at r.at, valid until the next call, and moves behind it.
func (r *batchReader) next(limit Extent) ([]byte, header.Header, error) {
	b, err := r.peek(header.Size, limit)
	if err != nil {
		return nil, header.Header{}, err
	}
	h, err := r.check(b, limit)
	if err != nil {
		return nil, h, err
	}
	if b, err = r.peek(h.Size(), limit); err != nil {
		return nil, h, err
	}
	if _, err := header.Check(b, 0); err != nil {
		return nil, h, r.damage("%v", err)
	}
	r.at = Extent{End: h.End(), Pos: r.at.Pos + int64(h.Size())}
	return b, h, nil
}

func (r *batchReader) check(b []byte, limit Extent) (header.Header, error) {
	h, err := header.Parse(b)
	switch {
	case err != nil:
		return h, r.damage("%v", err)
	case h.BaseOffset != r.at.End || h.End() <= h.BaseOffset || h.End() > limit.End:
		return h, r.damage("a batch [%d, %d) where %d must begin", h.BaseOffset, h.End(), r.at.End)
	case h.Epoch != int32(r.spec.Epoch):
		return h, r.damage("a batch of epoch %d in a segment of epoch %d", h.Epoch, r.spec.Epoch)
	case r.at.Pos+int64(h.Size()) > limit.Pos:
		return h, r.damage("a batch of %d bytes, %d are left", h.Size(), limit.Pos-r.at.Pos)
	}
	return h, nil
}

// peek returns n bytes from r.at on.
func (r *batchReader) peek(n int, limit Extent) ([]byte, error) {
	if r.at.Pos+int64(n) > limit.Pos {
		return nil, r.damage("%d bytes are left, a batch needs more", limit.Pos-r.at.Pos)
	}
	skip := r.at.Pos - r.pos
	if r.buf != nil && skip+int64(n) <= int64(len(r.buf)) {
		return r.buf[skip:][:n], nil
	}
	want := int(min(max(int64(n), readAhead), limit.Pos-r.at.Pos))
	if cap(r.buf) < want {
		r.buf = make([]byte, want)
	}
	r.buf, r.pos = r.buf[:want], r.at.Pos
	got, err := r.file.ReadAt(r.buf, r.pos)
	if got < n {
		if err == nil || errors.Is(err, io.EOF) {
			return nil, r.damage("the file ends at byte %d", r.pos+int64(got))
		}
		return nil, err
	}
	r.buf = r.buf[:got]
	return r.buf[:n], nil
}
