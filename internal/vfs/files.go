package vfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// SyncError says that a sync, a rename or a close failed, after which nobody knows what is on the disk. It is never tried
// again: the kernel may have dropped what it could not write, and the next sync would succeed without it.
type SyncError struct{ Err error }

func (e *SyncError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *SyncError) Unwrap() error { return e.Err }

// Synced makes an error of a sync, rename or close a SyncError.
func Synced(err error) error {
	if err == nil {
		return nil
	}
	return &SyncError{err}
}

// ErrLocked is what Lock returns when somebody else holds the lock.
var ErrLocked = errors.New("locked by another process")

// ReadFile reads the whole of a file.
func ReadFile(fs FS, name string) ([]byte, error) {
	f, err := fs.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close() // nothing was written, so an error of close loses nothing
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	b := make([]byte, size)
	n, err := f.ReadAt(b, 0)
	if err != nil && !(errors.Is(err, io.EOF) && int64(n) == size) {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return b, nil
}

// WriteFileAtomic replaces the contents of a file so that a crash leaves the old contents or the new ones and
// never a mixture: it writes name.tmp, syncs it, renames it over name and syncs the directory. When it returns nil
// the new contents are durable; a *[SyncError] is the end, any other error may be tried again. Two calls for one name must not run at the same time.
func WriteFileAtomic(fs FS, name string, data []byte, perm os.FileMode) error {
	tmp := name + ".tmp"
	if err := writeAndSync(fs, tmp, data, perm); err != nil {
		return err
	}
	if err := fs.Rename(tmp, name); err != nil {
		return Synced(err)
	}
	return Synced(fs.SyncDir(filepath.Dir(name)))
}

func writeAndSync(fs FS, name string, data []byte, perm os.FileMode) error {
	f, err := fs.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(data, 0); err == nil {
		err = Synced(f.Sync())
	}
	return errors.Join(err, Synced(f.Close()))
}

// copyTo is SendTo for whoever cannot sendfile.
func copyTo(f io.ReaderAt, dst io.Writer, off, n int64) (int64, error) {
	const chunk = 256 << 10
	buf := make([]byte, min(n, chunk))
	var sent int64
	for sent < n {
		b := buf[:min(n-sent, chunk)]
		r, err := f.ReadAt(b, off+sent)
		if r == len(b) {
			err = nil
		} else if err == nil || errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		w, werr := dst.Write(b[:r])
		sent += int64(w)
		if err = errors.Join(werr, err); err != nil {
			return sent, err
		}
	}
	return sent, nil
}
