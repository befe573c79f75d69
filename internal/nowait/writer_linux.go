package nowait

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// Writer writes to one TCP connection. It serves one goroutine at a time.
type Writer struct {
	raw     syscall.RawConn
	bufs    [][]byte
	one     [1][]byte
	n       int
	attempt func(fd uintptr) bool // made once, so that writing does not allocate
}

// New returns nil for anything but a TCP connection, TLS among it.
func New(conn net.Conn) *Writer {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	w := &Writer{raw: raw}
	w.attempt = func(fd uintptr) bool {
		w.n, _ = unix.Writev(int(fd), w.bufs)
		return true // whatever happened: do not wait until the socket is writable
	}
	return w
}

// Writev offers the kernel the pieces once and returns how many bytes it took, 0 on any error: errors are left for the
// next write that may wait, which meets them again. A write deadline that has expired is one.
func (w *Writer) Writev(bufs [][]byte) int {
	w.bufs, w.n = bufs, 0
	err := w.raw.Write(w.attempt)
	w.bufs = nil
	if err != nil {
		return 0
	}
	return max(w.n, 0)
}

// Write is Writev of one piece.
func (w *Writer) Write(b []byte) int {
	w.one[0] = b
	n := w.Writev(w.one[:])
	w.one[0] = nil
	return n
}
