package mux

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// directWriter writes to a TCP connection without ever waiting for it.
type directWriter struct {
	raw     syscall.RawConn
	bufs    [][]byte
	n       int
	attempt func(fd uintptr) bool // made once, so that write does not allocate
}

// newDirectWriter returns nil for anything but a TCP connection, TLS among it.
func newDirectWriter(conn net.Conn) *directWriter {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	d := &directWriter{raw: raw}
	d.attempt = func(fd uintptr) bool {
		d.n, _ = unix.Writev(int(fd), d.bufs)
		return true // whatever happened: do not wait until the socket is writable
	}
	return d
}

// write offers the kernel everything in g once and reports whether it took all. What it did not take stays in g.
// Errors are left for the writer goroutine, whose next write meets them again, an expired write deadline from long
// ago excepted, which it renews.
func (d *directWriter) write(g *gather) bool {
	if g.size == 0 {
		return true
	}
	d.bufs, d.n = g.bufs, 0
	err := d.raw.Write(d.attempt)
	d.bufs = nil
	if err == nil && d.n > 0 {
		g.advance(d.n)
	}
	return g.size == 0
}
