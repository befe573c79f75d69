package vfs

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"syscall"
	"time"
)

const (
	pageSize   = 4096
	sectorSize = 512
)

// page is one page of a file. Two images, or two file systems, may share a page; then nobody writes to it any more.
type page struct {
	data   [pageSize]byte
	shared bool
}

// share freezes a page. A page that is shared already may be read by the other file system at this moment, so it is
// not written to, not even this.
func (p *page) share() {
	if p != nil && !p.shared {
		p.shared = true
	}
}

// image is a file's contents at one moment; a nil page, and what lies beyond the last one, is zero.
type image struct {
	size  int64
	pages []*page
}

func (im *image) page(i int) *page {
	if i < len(im.pages) {
		return im.pages[i]
	}
	return nil
}

func (im *image) setPage(i int, p *page) {
	for len(im.pages) <= i {
		im.pages = append(im.pages, nil)
	}
	im.pages[i] = p
}

func (im *image) readAt(b []byte, off int64) (int, error) {
	if off >= im.size {
		return 0, io.EOF
	}
	n := int(min(int64(len(b)), im.size-off))
	for done := 0; done < n; {
		i, in := int((off+int64(done))/pageSize), int((off+int64(done))%pageSize)
		chunk := b[done:min(n, done+pageSize-in)]
		if p := im.page(i); p != nil {
			copy(chunk, p.data[in:])
		} else {
			clear(chunk)
		}
		done += len(chunk)
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// share freezes every page, so that a copy of the image is a copy of its pointers.
func (im *image) share() image {
	for _, p := range im.pages {
		if p != nil && !p.shared { // one that is shared already belongs to other file systems too: no write
			p.shared = true
		}
	}
	return image{size: im.size, pages: append([]*page(nil), im.pages...)}
}

// cut makes the image size bytes long and drops what lies above. Bytes above the size are always zero in the pages,
// so growing needs nothing.
func (im *image) cut(size int64) {
	if size >= im.size {
		im.size = size
		return
	}
	keep := int((size + pageSize - 1) / pageSize)
	if keep < len(im.pages) {
		clear(im.pages[keep:])
		im.pages = im.pages[:keep]
	}
	if in := int(size % pageSize); in != 0 && keep == len(im.pages) && im.pages[keep-1] != nil {
		p := &page{data: im.pages[keep-1].data}
		clear(p.data[in:])
		im.pages[keep-1] = p
	}
	im.size = size
}

func (n *node) writeAt(b []byte, off int64) {
	n.now.size = max(n.now.size, off+int64(len(b)))
	n.modTime = time.Now()
	for len(b) > 0 {
		i, in := int(off/pageSize), int(off%pageSize)
		chunk := b[:min(len(b), pageSize-in)]
		if p := n.writable(i, chunk); p != nil {
			copy(p.data[in:], chunk)
			n.dirty[i] = struct{}{}
		}
		b, off = b[len(chunk):], off+int64(len(chunk))
	}
}

// writable returns page i to write chunk to, or nil when the page is a hole and chunk is zero: files are filled with
// zeros by the gigabyte, and a hole holds them as well.
func (n *node) writable(i int, chunk []byte) *page {
	p := n.now.page(i)
	switch {
	case p == nil && allZero(chunk):
		return nil
	case p == nil:
		p = &page{}
	case p.shared:
		p = &page{data: p.data}
	default:
		return p
	}
	n.now.setPage(i, p)
	return p
}

var zeroPage [pageSize]byte

func allZero(b []byte) bool { return bytes.Equal(b, zeroPage[:len(b)]) }

func (n *node) truncate(size int64) {
	for i := int(size / pageSize); i < len(n.now.pages); i++ {
		if n.now.pages[i] != nil {
			n.dirty[i] = struct{}{}
		}
	}
	n.now.cut(size)
	n.modTime = time.Now()
}

func (n *node) sync() {
	for i := range n.dirty {
		p := n.now.page(i)
		if p != nil && !p.shared { // one that is shared already belongs to other file systems too: no write
			p.shared = true
		}
		if p != nil || i < len(n.synced.pages) {
			n.synced.setPage(i, p)
		}
	}
	n.synced.cut(n.now.size)
	clear(n.dirty)
}

// memFile is an open file of a Mem.
type memFile struct {
	fs     *Mem
	node   *node
	name   string
	write  bool
	closed bool
}

// lock takes the file system's lock if the file is open and, for a change, writable.
func (f *memFile) lock(op string, write bool) error {
	f.fs.mu.Lock()
	var err error
	switch {
	case f.closed:
		err = fs.ErrClosed
	case write && !f.write:
		err = syscall.EBADF
	default:
		return nil
	}
	f.fs.mu.Unlock()
	return memError(op, f.name, err)
}

func (f *memFile) ReadAt(b []byte, off int64) (int, error) {
	if err := f.lock("read", false); err != nil {
		return 0, err
	}
	defer f.fs.mu.Unlock()
	return f.node.now.readAt(b, off)
}

func (f *memFile) WriteAt(b []byte, off int64) (int, error) {
	n, err := f.WritevAt([][]byte{b}, off)
	return int(n), err
}

func (f *memFile) WritevAt(bufs [][]byte, off int64) (int64, error) {
	if err := f.lock("write", true); err != nil {
		return 0, err
	}
	defer f.fs.mu.Unlock()
	var total int64
	for _, b := range bufs {
		if err := f.fs.grow(f.node, off+total+int64(len(b))); err != nil {
			return total, memError("write", f.name, err)
		}
		f.node.writeAt(b, off+total)
		total += int64(len(b))
	}
	return total, nil
}

func (f *memFile) Sync() error {
	if err := f.lock("sync", false); err != nil {
		return err
	}
	defer f.fs.mu.Unlock()
	f.node.sync()
	return nil
}

func (f *memFile) SyncData() error { return f.Sync() }

func (f *memFile) Truncate(size int64) error {
	if err := f.lock("truncate", true); err != nil {
		return err
	}
	defer f.fs.mu.Unlock()
	if err := f.fs.grow(f.node, size); err != nil {
		return memError("truncate", f.name, err)
	}
	f.fs.resize(f.node, size)
	return nil
}

func (f *memFile) Size() (int64, error) {
	if err := f.lock("size", false); err != nil {
		return 0, err
	}
	defer f.fs.mu.Unlock()
	return f.node.now.size, nil
}

func (f *memFile) Preallocate(off, n int64) error {
	if err := f.lock("preallocate", true); err != nil {
		return err
	}
	defer f.fs.mu.Unlock()
	if off+n <= f.node.now.size {
		return nil
	}
	if err := f.fs.grow(f.node, off+n); err != nil {
		return memError("preallocate", f.name, err)
	}
	f.node.now.size = off + n
	return nil
}

func (f *memFile) StartWriteback(int64, int64) error { return nil }

func (f *memFile) SendTo(dst io.Writer, off, n int64) (int64, error) { return copyTo(f, dst, off, n) }

func (f *memFile) Close() error {
	if err := f.lock("close", false); err != nil {
		return fmt.Errorf("close twice: %w", err)
	}
	defer f.fs.mu.Unlock()
	f.closed = true
	return nil
}
