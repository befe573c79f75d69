//go:build !linux

package vfs

import (
	"io"
	"math"
	"os"
	"syscall"
)

// The substitutes below are right, only slower or less exact. A broker is run on Linux; clients run anywhere, and
// the packages they share with it must build there.

const errNotDir = syscall.ENOTDIR

func (o osFS) SyncFS(dir string) error { return o.SyncDir(dir) }

// Free does not know; nothing here refuses a write for lack of space that it cannot measure.
func (osFS) Free(string) (free, total int64, err error) { return math.MaxInt64, math.MaxInt64, nil }

type osFile struct{ *os.File }

func newOSFile(f *os.File) (File, error) { return &osFile{f}, nil }

func (f *osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (f *osFile) SyncData() error { return f.Sync() }

func (f *osFile) Preallocate(off, n int64) error {
	size, err := f.Size()
	if err != nil || size >= off+n {
		return err
	}
	return f.Truncate(off + n)
}

func (f *osFile) StartWriteback(int64, int64) error { return nil }

func (f *osFile) WritevAt(bufs [][]byte, off int64) (int64, error) {
	var total int64
	for _, b := range bufs {
		n, err := f.WriteAt(b, off+total)
		total += int64(n)
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

func (f *osFile) SendTo(dst io.Writer, off, n int64) (int64, error) { return copyTo(f, dst, off, n) }
