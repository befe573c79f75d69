package mux

import (
	"net"
	"time"
)

// deadlineReader reads from a connection with a time limit: for everything from now on (total), or for each read
// anew (each).
type deadlineReader struct {
	conn  net.Conn
	limit time.Duration // of each read; 0 = none
	armed time.Time     // when the deadline was last set
}

// total gives all reads together d from now.
func (r *deadlineReader) total(d time.Duration) {
	r.limit = 0
	r.arm(time.Now().Add(d))
}

// each gives every read d; 0 = for ever.
func (r *deadlineReader) each(d time.Duration) {
	r.limit, r.armed = d, time.Time{}
	r.arm(time.Time{})
}

// Read implements io.Reader. The deadline is set again once an eighth of it has passed, not on every read: it is
// for peers that are gone, and need not be exact.
func (r *deadlineReader) Read(b []byte) (int, error) {
	if r.limit > 0 {
		if now := time.Now(); now.Sub(r.armed) > r.limit/8 {
			r.armed = now
			r.arm(now.Add(r.limit))
		}
	}
	return r.conn.Read(b)
}

// arm sets the deadline. It fails only on a closed connection, where the next read fails too.
func (r *deadlineReader) arm(t time.Time) { _ = r.conn.SetReadDeadline(t) }
