package vfs

import (
	"io"
	"os"
	"time"
)

// FS is a file system. All methods may be called by any number of goroutines.
type FS interface {
	// OpenFile is os.OpenFile. The name of a file it creates is durable after SyncDir of the directory only.
	OpenFile(name string, flag int, perm os.FileMode) (File, error)
	// MkdirAll creates dir and what is missing above it, and syncs the parent of each directory it made.
	MkdirAll(dir string, perm os.FileMode) error
	// Mkdir creates one directory. Like a file's, its name is durable after SyncDir of its parent only.
	Mkdir(dir string, perm os.FileMode) error
	Remove(name string) error
	RemoveAll(name string) error
	// Rename replaces newName, atomically when both names are in one directory.
	Rename(oldName, newName string) error
	// ReadDir lists dir sorted by name.
	ReadDir(dir string) ([]DirEntry, error)
	Stat(name string) (FileInfo, error)
	// SyncDir makes the names in dir durable: those created, renamed and removed.
	SyncDir(dir string) error
	// SyncFS syncs the whole file system that dir is on, contents and names.
	SyncFS(dir string) error
	// Lock takes the exclusive advisory lock of the file name, which it creates with mode 0600, and holds it until
	// Close. It does not wait: a lock that somebody holds is an ErrLocked.
	Lock(name string) (io.Closer, error)
	// Free tells the bytes that are free to us and the size of the file system that dir is on.
	Free(dir string) (free, total int64, err error)
}

// File is an open file. Reads and writes at distinct offsets may run concurrently.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// WritevAt writes bufs back to back at off in as few system calls as possible. Like WriteAt it returns an error
	// whenever it wrote less than all. It changes neither bufs nor what they hold.
	WritevAt(bufs [][]byte, off int64) (int64, error)
	// Sync makes contents and metadata durable (fsync).
	Sync() error
	// SyncData makes contents durable, and of the metadata what is needed to read them back (fdatasync).
	SyncData() error
	Truncate(size int64) error
	Size() (int64, error)
	// Preallocate reserves disk blocks for [off, off+n) and grows the file to off+n if it is shorter; the new bytes
	// read as zero (fallocate).
	Preallocate(off, n int64) error
	// StartWriteback asks the kernel to begin writing [off, off+n) out. It promises nothing.
	StartWriteback(off, n int64) error
	// SendTo sends [off, off+n) to dst, by sendfile if dst is a TCP or Unix connection, else by copying. It does not
	// move any file offset. A file that ends early is an io.ErrUnexpectedEOF.
	SendTo(dst io.Writer, off, n int64) (int64, error)
}

// DirEntry is one name in a directory.
type DirEntry struct {
	Name  string
	IsDir bool
}

// FileInfo is what Stat knows.
type FileInfo struct {
	Size    int64
	IsDir   bool
	ModTime time.Time
}
