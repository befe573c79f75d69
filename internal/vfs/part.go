package vfs

import "io"

// Part is a piece of an answer on its way to a connection. Its owner calls Release exactly once, whether or not
// the part was written.
type Part interface {
	// Len is the number of bytes WriteTo writes.
	Len() int
	io.WriterTo
	// Release gives back what the part holds: a buffer, or a reference to an open file.
	Release()
}

// MemPart is a Part of bytes in memory, which must not change until it is released.
func MemPart(b []byte) Part { return memPart(b) }

type memPart []byte

func (p memPart) Len() int { return len(p) }

func (p memPart) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(p)
	return int64(n), err
}

func (p memPart) Release() {}

// Bytes gives a writer that gathers memory parts for one writev access to the bytes; ok is false for other parts.
func Bytes(p Part) (b []byte, ok bool) {
	m, ok := p.(memPart)
	return m, ok
}

// FilePart is a Part of the n bytes of f at off. release may be nil; it is called once, by the first Release.
func FilePart(f File, off, n int64, release func()) Part {
	return &filePart{file: f, off: off, n: n, release: release}
}

type filePart struct {
	file    File
	off, n  int64
	release func()
}

func (p *filePart) Len() int { return int(p.n) }

func (p *filePart) WriteTo(w io.Writer) (int64, error) { return p.file.SendTo(w, p.off, p.n) }

func (p *filePart) Release() {
	if p.release != nil {
		p.release()
		p.release = nil
	}
}
