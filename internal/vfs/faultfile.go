package vfs

import "io"

// faultFile is an open file whose operations go through the rules of its Fault.
type faultFile struct {
	f    *Fault
	file File
	name string // as of now; under f.mu
}

func (x *faultFile) call(op Op) Call {
	x.f.mu.Lock()
	defer x.f.mu.Unlock()
	return Call{Op: op, Path: x.name}
}

// at is call for the operations on a stretch of the file.
func (x *faultFile) at(op Op, off, n int64) Call {
	c := x.call(op)
	c.Off, c.Len = off, n
	return c
}

func (x *faultFile) ReadAt(b []byte, off int64) (n int, err error) {
	err = x.f.do(x.at(OpRead, off, int64(len(b))), func() (err error) {
		n, err = x.file.ReadAt(b, off)
		return err
	}, nil)
	return n, err
}

func (x *faultFile) WriteAt(b []byte, off int64) (int, error) {
	n, err := x.WritevAt([][]byte{b}, off)
	return int(n), err
}

func (x *faultFile) WritevAt(bufs [][]byte, off int64) (n int64, err error) {
	var size int64
	for _, b := range bufs {
		size += int64(len(b))
	}
	err = x.f.do(x.at(OpWrite, off, size), func() (err error) {
		n, err = x.file.WritevAt(bufs, off)
		return err
	}, func(short int) {
		n, _ = x.file.WritevAt(firstBytes(bufs, short), off) // the rule's error is the one to tell
	})
	return n, err
}

// firstBytes is the first n bytes of bufs, or all of them.
func firstBytes(bufs [][]byte, n int) [][]byte {
	var list [][]byte
	for _, b := range bufs {
		b = b[:min(n, len(b))]
		list = append(list, b)
		n -= len(b)
	}
	return list
}

func (x *faultFile) Sync() error { return x.f.do(x.call(OpSync), x.file.Sync, nil) }

func (x *faultFile) SyncData() error { return x.f.do(x.call(OpSyncData), x.file.SyncData, nil) }

func (x *faultFile) Truncate(size int64) error {
	return x.f.do(x.call(OpTruncate), func() error { return x.file.Truncate(size) }, nil)
}

func (x *faultFile) Size() (size int64, err error) {
	err = x.f.do(x.call(OpStat), func() (err error) {
		size, err = x.file.Size()
		return err
	}, nil)
	return size, err
}

func (x *faultFile) Preallocate(off, n int64) error {
	return x.f.do(x.at(OpPreallocate, off, n), func() error { return x.file.Preallocate(off, n) }, nil)
}

func (x *faultFile) StartWriteback(off, n int64) error {
	return x.f.do(x.at(OpStartWriteback, off, n), func() error { return x.file.StartWriteback(off, n) }, nil)
}

func (x *faultFile) SendTo(dst io.Writer, off, n int64) (sent int64, err error) {
	err = x.f.do(x.at(OpSend, off, n), func() (err error) {
		sent, err = x.file.SendTo(dst, off, n)
		return err
	}, nil)
	return sent, err
}

// Close closes the file whatever a rule says, so that a test that injects close errors leaks nothing.
func (x *faultFile) Close() error {
	closed := false
	err := x.f.do(x.call(OpClose), func() error {
		closed = true
		return x.file.Close()
	}, nil)
	if !closed {
		_ = x.file.Close()
	}
	x.f.mu.Lock()
	defer x.f.mu.Unlock()
	delete(x.f.open, x)
	return err
}
