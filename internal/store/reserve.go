package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
)

// Reserve is a file that does nothing but take space, so that there is some to give when the disk is full: to fences,
// seals and trims, to Raft, and to the batches that were acked and are not in their segment files yet. Each of the two
// directories has one.
type Reserve struct {
	fs    vfs.FS
	name  string
	bytes int64

	mu   sync.Mutex
	held bool
}

// OpenReserve takes bytes of space in dir, unless they are taken already. Without the space the reserve begins as given
// away, which is not an error.
func OpenReserve(fsys vfs.FS, dir string, bytes int64) (*Reserve, error) {
	r := &Reserve{fs: fsys, name: filepath.Join(dir, reserveName), bytes: bytes}
	if err := r.Take(); err != nil && !isNoSpace(err) {
		return nil, err
	}
	return r, nil
}

// Take takes the space again.
func (r *Reserve) Take() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held || r.bytes <= 0 {
		return nil
	}
	if err := r.allocate(); err != nil {
		_ = r.fs.Remove(r.name) // a part of it is of no use; what matters is the error that came first
		return base.Wrap(base.CodeInternal, "take disk reserve", err)
	}
	r.held = true
	return nil
}

func (r *Reserve) allocate() (err error) {
	f, err := r.fs.OpenFile(r.name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if size, err := f.Size(); err != nil || size == r.bytes {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	return f.Preallocate(0, r.bytes)
}

// Give frees the space and reports whether there was any.
func (r *Reserve) Give() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.held {
		return false
	}
	if err := r.fs.Remove(r.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	r.held = false
	return true
}

// Held reports whether the space is taken.
func (r *Reserve) Held() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held
}
