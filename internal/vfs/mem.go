package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Mem is a file system in memory that remembers what has been synced, so that it can be crashed: see CrashClone.
// It is as strict as a disk may be: a name that was not synced may be gone, whatever was done to the file.
// Absolute and relative names are the same; the root directory exists.
type Mem struct {
	mu       sync.Mutex
	root     *node
	locked   map[string]bool
	capacity int64
	used     int64 // by the files that have a name
}

// node is a file or a directory: what an inode is on a disk. A name that points at it may be durable before its
// contents are, and the other way round.
type node struct {
	dir     *directory // nil for a file
	links   int
	modTime time.Time

	now    image            // what reads return
	synced image            // what a crash certainly leaves
	dirty  map[int]struct{} // the pages in which they differ
}

// NewMem returns an empty file system without a limit on its size.
func NewMem() *Mem {
	return &Mem{root: newDir(), locked: map[string]bool{}, capacity: math.MaxInt64}
}

func newDir() *node { return &node{dir: newDirectory(), modTime: time.Now()} }

func newFile() *node { return &node{dirty: map[int]struct{}{}, modTime: time.Now()} }

// SetCapacity bounds the sum of all file sizes; what would exceed it fails with ENOSPC.
func (m *Mem) SetCapacity(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.capacity = bytes
}

// Free implements FS by the capacity.
func (m *Mem) Free(string) (free, total int64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return max(0, m.capacity-m.used), m.capacity, nil
}

// OpenFile implements FS.
func (m *Mem) OpenFile(name string, flag int, _ os.FileMode) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	parent, base, err := m.parent("open", name)
	if err != nil {
		return nil, err
	}
	n := parent.names[base]
	switch {
	case base == "":
		return nil, memError("open", name, syscall.EISDIR)
	case n == nil && flag&os.O_CREATE == 0:
		return nil, memError("open", name, fs.ErrNotExist)
	case n != nil && flag&os.O_CREATE != 0 && flag&os.O_EXCL != 0:
		return nil, memError("open", name, fs.ErrExist)
	case n != nil && n.dir != nil:
		return nil, memError("open", name, syscall.EISDIR)
	case n == nil:
		n = newFile()
		m.link(parent, base, n)
	case flag&os.O_TRUNC != 0:
		m.resize(n, 0)
	}
	return &memFile{fs: m, node: n, name: name, write: flag&(os.O_WRONLY|os.O_RDWR) != 0}, nil
}

// MkdirAll implements FS.
func (m *Mem) MkdirAll(dir string, _ os.FileMode) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.root
	for _, elem := range elements(dir) {
		if n.dir == nil {
			return memError("mkdir", dir, errNotDir)
		}
		next := n.dir.names[elem]
		if next == nil {
			next = newDir()
			m.link(n.dir, elem, next)
			n.dir.sync() // MkdirAll promises durable directories
		}
		n = next
	}
	if n.dir == nil {
		return memError("mkdir", dir, errNotDir)
	}
	return nil
}

// Mkdir implements FS.
func (m *Mem) Mkdir(dir string, _ os.FileMode) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	parent, base, err := m.parent("mkdir", dir)
	if err != nil {
		return err
	}
	if base == "" || parent.names[base] != nil {
		return memError("mkdir", dir, fs.ErrExist)
	}
	m.link(parent, base, newDir())
	return nil
}

// Remove implements FS.
func (m *Mem) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	parent, base, n, err := m.lookup("remove", name)
	if err != nil {
		return err
	}
	if n.dir != nil && len(n.dir.names) > 0 {
		return memError("remove", name, syscall.ENOTEMPTY)
	}
	m.unlink(parent, base)
	return nil
}

// RemoveAll implements FS.
func (m *Mem) RemoveAll(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	parent, base, _, err := m.lookup("remove", name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		m.unlink(parent, base)
	}
	return err
}

// Rename implements FS.
func (m *Mem) Rename(oldName, newName string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	from, oldBase, n, err := m.lookup("rename", oldName)
	if err != nil {
		return err
	}
	to, newBase, err := m.parent("rename", newName)
	if err != nil {
		return err
	}
	target := to.names[newBase]
	switch {
	case newBase == "":
		return memError("rename", newName, fs.ErrExist)
	case target == n:
		return nil
	case target != nil && target.dir != nil:
		return memError("rename", newName, fs.ErrExist)
	case target != nil:
		m.unlink(to, newBase)
	}
	n.links++ // the name moves; it must not look unlinked in between
	m.unlink(from, oldBase)
	m.link(to, newBase, n)
	n.links--
	if from == to {
		from.renames = append(from.renames, [2]string{oldBase, newBase})
	}
	return nil
}

// ReadDir implements FS.
func (m *Mem) ReadDir(dir string) ([]DirEntry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, err := m.directory("readdir", dir)
	if err != nil {
		return nil, err
	}
	var list []DirEntry
	for _, name := range slices.Sorted(maps.Keys(d.names)) {
		list = append(list, DirEntry{Name: name, IsDir: d.names[name].dir != nil})
	}
	return list, nil
}

// Stat implements FS.
func (m *Mem) Stat(name string) (FileInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, _, n, err := m.lookup("stat", name)
	if err != nil {
		return FileInfo{}, err
	}
	return FileInfo{Size: n.now.size, IsDir: n.dir != nil, ModTime: n.modTime}, nil
}

// SyncDir implements FS.
func (m *Mem) SyncDir(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, err := m.directory("syncdir", dir)
	if err == nil {
		d.sync()
	}
	return err
}

// SyncFS implements FS: everything is durable.
func (m *Mem) SyncFS(string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.root.syncTree()
	return nil
}

// Lock implements FS. A crash clone holds no locks.
func (m *Mem) Lock(name string) (io.Closer, error) {
	f, err := m.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	key := path.Join(elements(name)...)
	if m.locked[key] {
		return nil, fmt.Errorf("lock %s: %w", name, ErrLocked)
	}
	m.locked[key] = true
	return &memLock{fs: m, key: key}, nil
}

type memLock struct {
	fs  *Mem
	key string
}

// Close gives the lock back; a second Close must not take away what somebody else holds by then.
func (l *memLock) Close() error {
	l.fs.mu.Lock()
	defer l.fs.mu.Unlock()
	if l.key != "" {
		delete(l.fs.locked, l.key)
		l.key = ""
	}
	return nil
}

func elements(name string) []string {
	clean := strings.Trim(path.Clean("/"+filepath.ToSlash(name)), "/")
	if clean == "" {
		return nil
	}
	return strings.Split(clean, "/")
}

// parent finds the directory that holds name's last element; base is empty for the root itself.
func (m *Mem) parent(op, name string) (d *directory, base string, err error) {
	elems := elements(name)
	if len(elems) == 0 {
		return m.root.dir, "", nil
	}
	n := m.root
	for _, elem := range elems[:len(elems)-1] {
		if n = n.dir.names[elem]; n == nil {
			return nil, "", memError(op, name, fs.ErrNotExist)
		}
		if n.dir == nil {
			return nil, "", memError(op, name, errNotDir)
		}
	}
	return n.dir, elems[len(elems)-1], nil
}

func (m *Mem) lookup(op, name string) (parent *directory, base string, n *node, err error) {
	parent, base, err = m.parent(op, name)
	if err != nil {
		return nil, "", nil, err
	}
	if base == "" {
		return parent, "", m.root, nil
	}
	if n = parent.names[base]; n == nil {
		return nil, "", nil, memError(op, name, fs.ErrNotExist)
	}
	return parent, base, n, nil
}

func (m *Mem) directory(op, name string) (*directory, error) {
	_, _, n, err := m.lookup(op, name)
	if err != nil {
		return nil, err
	}
	if n.dir == nil {
		return nil, memError(op, name, errNotDir)
	}
	return n.dir, nil
}

func (m *Mem) link(d *directory, base string, n *node) {
	d.names[base] = n
	if n.links++; n.links == 1 {
		m.used += n.now.size
	}
}

func (m *Mem) unlink(d *directory, base string) {
	n := d.names[base]
	if n == nil {
		return
	}
	delete(d.names, base)
	if n.links--; n.links > 0 {
		return
	}
	m.used -= n.now.size
	if n.dir != nil {
		for child := range n.dir.names {
			m.unlink(n.dir, child)
		}
	}
}

// grow reserves room for a file that is about to become size bytes long.
func (m *Mem) grow(n *node, size int64) error {
	more := size - n.now.size
	if more <= 0 || n.links == 0 {
		return nil
	}
	if m.used+more > m.capacity {
		return syscall.ENOSPC
	}
	m.used += more
	return nil
}

func (m *Mem) resize(n *node, size int64) {
	if n.links > 0 && size < n.now.size {
		m.used -= n.now.size - size
	}
	n.truncate(size)
}

func memError(op, name string, err error) error { return &fs.PathError{Op: op, Path: name, Err: err} }
