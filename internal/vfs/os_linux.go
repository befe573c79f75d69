package vfs

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	errNotDir = unix.ENOTDIR

	maxIovecs = 1024 // IOV_MAX
	// sendChunk bounds one sendfile: a call holds the socket's write lock and a thread while it copies.
	sendChunk = 1 << 20
)

func (osFS) SyncFS(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = retryEINTR(func() error { return unix.Syncfs(int(d.Fd())) })
	return errors.Join(pathError("syncfs", dir, err), d.Close())
}

func (osFS) Free(dir string) (free, total int64, err error) {
	var st unix.Statfs_t
	if err := retryEINTR(func() error { return unix.Statfs(dir, &st) }); err != nil {
		return 0, 0, pathError("statfs", dir, err)
	}
	return int64(st.Bavail) * st.Bsize, int64(st.Blocks) * st.Bsize, nil
}

type osFile struct {
	*os.File
	raw syscall.RawConn // guards the descriptor against a concurrent Close
}

func newOSFile(f *os.File) (File, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &osFile{File: f, raw: raw}, nil
}

func (f *osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// control runs call on the descriptor until it is not interrupted.
func (f *osFile) control(op string, call func(fd int) error) error {
	var err error
	if cerr := f.raw.Control(func(fd uintptr) {
		err = retryEINTR(func() error { return call(int(fd)) })
	}); cerr != nil {
		return cerr
	}
	return pathError(op, f.Name(), err)
}

func (f *osFile) SyncData() error { return f.control("fdatasync", unix.Fdatasync) }

func (f *osFile) Preallocate(off, n int64) error {
	return f.control("fallocate", func(fd int) error { return unix.Fallocate(fd, 0, off, n) })
}

func (f *osFile) StartWriteback(off, n int64) error {
	return f.control("sync_file_range", func(fd int) error {
		return unix.SyncFileRange(fd, off, n, unix.SYNC_FILE_RANGE_WRITE)
	})
}

func (f *osFile) WritevAt(bufs [][]byte, off int64) (int64, error) {
	var total int64
	var err error
	if cerr := f.raw.Control(func(fd uintptr) {
		total, err = pwritevAll(int(fd), bufs, off)
	}); cerr != nil {
		return 0, cerr
	}
	return total, pathError("pwritev", f.Name(), err)
}

type iovecs [maxIovecs]unix.Iovec

var iovecPool = sync.Pool{New: func() any { return new(iovecs) }}

// pwritevAll writes all of bufs, in as many calls as IOV_MAX, short writes and signals make necessary.
func pwritevAll(fd int, bufs [][]byte, off int64) (total int64, err error) {
	iovs := iovecPool.Get().(*iovecs)
	defer iovecPool.Put(iovs)
	skip := 0 // bytes of bufs[0] already written
	for {
		n := iovs.fill(bufs, skip)
		if n == 0 {
			return total, nil
		}
		w, err := pwritev(fd, iovs[:n], off+total)
		clear(iovs[:n]) // a pooled array must not keep payloads alive
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return total, err
		case w == 0:
			return total, io.ErrShortWrite
		}
		total += int64(w)
		bufs, skip = advance(bufs, skip+w)
	}
}

// fill points the iovecs at bufs, less the first skip bytes, and returns how many it used.
func (v *iovecs) fill(bufs [][]byte, skip int) int {
	n := 0
	for _, b := range bufs {
		if n == maxIovecs {
			break
		}
		b, skip = b[skip:], 0
		if len(b) > 0 {
			v[n].Base = &b[0]
			v[n].SetLen(len(b))
			n++
		}
	}
	return n
}

// advance drops the buffers that lie wholly within the first n bytes; skip is what remains of n in the next one.
func advance(bufs [][]byte, n int) (rest [][]byte, skip int) {
	for len(bufs) > 0 && n >= len(bufs[0]) {
		n -= len(bufs[0])
		bufs = bufs[1:]
	}
	return bufs, n
}

// pwritev is unix.Pwritev without its conversion from [][]byte, which allocates.
func pwritev(fd int, iovs []unix.Iovec, off int64) (int, error) {
	const longBits = 32 << (^uint(0) >> 63)
	high := uintptr(uint64(off) >> (longBits - 1) >> 1)
	n, _, errno := unix.Syscall6(unix.SYS_PWRITEV, uintptr(fd), uintptr(unsafe.Pointer(&iovs[0])), uintptr(len(iovs)), uintptr(off), high, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

func (f *osFile) SendTo(dst io.Writer, off, n int64) (int64, error) {
	var conn syscall.Conn
	switch c := dst.(type) {
	case *net.TCPConn:
		conn = c
	case *net.UnixConn:
		conn = c
	default:
		return copyTo(f, dst, off, n)
	}
	sent, err := f.sendfile(conn, off, n)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP) {
		// The file system or the socket does not take sendfile; nothing of the piece that failed has been sent.
		more, err := copyTo(f, dst, off+sent, n-sent)
		return sent + more, err
	}
	return sent, err
}

// sendfile gives the kernel an explicit offset, so that any number of connections can share one open file; the
// standard library's sendfile would use the file's own.
func (f *osFile) sendfile(conn syscall.Conn, off, n int64) (sent int64, err error) {
	out, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	cerr := f.raw.Control(func(in uintptr) {
		werr := out.Write(func(fd uintptr) (done bool) {
			for sent < n {
				at := off + sent
				var w int
				w, err = unix.Sendfile(int(fd), int(in), &at, int(min(n-sent, sendChunk)))
				if w > 0 {
					sent += int64(w)
				}
				switch {
				case errors.Is(err, unix.EINTR):
					err = nil
				case errors.Is(err, unix.EAGAIN):
					err = nil
					return false // wait until the socket takes more
				case err != nil:
					return true
				case w == 0:
					err = io.ErrUnexpectedEOF
					return true
				}
			}
			return true
		})
		if err == nil {
			err = werr
		}
	})
	if err == nil {
		err = cerr
	}
	return sent, pathError("sendfile", f.Name(), err)
}

func retryEINTR(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &os.PathError{Op: op, Path: name, Err: err}
}
