package store

import (
	"errors"
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
	if err := r.resize(r.bytes); err != nil {
		if r.resize(r.last()) != nil {
			_ = r.fs.Remove(r.name) // a part of it is of no use; what matters is the error that came first
		}
		return base.Wrap(base.CodeInternal, "take disk reserve", err)
	}
	r.held = true
	return nil
}

// resize makes the file take so much space.
func (r *Reserve) resize(bytes int64) (err error) {
	f, err := r.fs.OpenFile(r.name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	switch {
	case err != nil || size == bytes:
		return err
	case size > bytes:
		return f.Truncate(bytes) // what is left stays allocated
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	if err := f.Preallocate(0, bytes); err != nil {
		return err
	}
	// A reserve that a power failure takes away would be missing when it is needed most.
	return errors.Join(f.Sync(), r.fs.SyncDir(filepath.Dir(r.name)))
}

// lastBytes is kept when the reserve is given: for the next start, which has to count itself before anything else.
const lastBytes = 64 << 10

func (r *Reserve) last() int64 { return min(lastBytes, r.bytes/2) }

// Give frees the space, but for the last of it, and reports whether there was any.
func (r *Reserve) Give() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.held {
		return false
	}
	if err := r.resize(r.last()); err != nil {
		return false
	}
	r.held = false
	return true
}

// giveLast frees all that the reserve in dir takes, for a start that has no room to count itself.
func giveLast(fsys vfs.FS, dir string) bool {
	return fsys.Remove(filepath.Join(dir, reserveName)) == nil
}

// Held reports whether the space is taken.
func (r *Reserve) Held() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held
}
