package segment

import (
	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
)

// Stored is one batch read back from a file.
type Stored struct {
	Bytes    []byte
	Header   header.Header
	AppendMs int64 // of it or a batch a little behind it, as the time index has it; 0 when that was built anew
}

// Batches reads the batches from the one that begins at off up to the one that ends at end, at most maxBytes of them but at
// least one, and says how many bytes there are in all from off to end. Every block of what it returns has been checked.
func (f *File) Batches(off, end int64, maxBytes int) (batches []Stored, left int64, err error) {
	v := f.view.Load()
	batches, left, err = f.batches(v, off, end, maxBytes)
	if err != nil && f.cutSince(v) {
		return f.batches(f.view.Load(), off, end, maxBytes)
	}
	return batches, left, err
}

func (f *File) batches(v *view, off, end int64, maxBytes int) (batches []Stored, left int64, err error) {
	first, err := f.locate(v, off)
	if err != nil {
		return nil, 0, err
	}
	if first.base != off {
		return nil, 0, base.Errorf(base.CodeInvalidArgument, "read batches", "%s has no batch that begins at %d", f.path, off)
	}
	stop, err := f.limit(v, end)
	if err != nil {
		return nil, 0, err
	}
	upto, err := f.fit(v, first.pos, stop, maxBytes)
	if err != nil {
		return nil, 0, err
	}
	if err := f.verify(v, first.pos, upto.Pos); err != nil {
		return nil, 0, err
	}
	b := make([]byte, upto.Pos-first.pos)
	if err := f.readFull(v, b, first.pos); err != nil {
		return nil, 0, err
	}
	return f.split(v, b, Extent{End: off, Pos: first.pos}), stop.Pos - first.pos, nil
}

// split takes checked bytes of the file apart.
func (f *File) split(v *view, b []byte, at Extent) (batches []Stored) {
	for len(b) > 0 {
		h, err := header.Parse(b)
		if err != nil || h.Size() > len(b) || h.BaseOffset != at.End {
			return batches // the sums hold for what was written, and nothing else was
		}
		batches = append(batches, Stored{Bytes: b[:h.Size():h.Size()], Header: h, AppendMs: v.x.appendMsAt(at.Pos)})
		at = Extent{End: h.End(), Pos: at.Pos + int64(h.Size())}
		b = b[h.Size():]
	}
	return batches
}
