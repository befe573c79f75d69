package mux

import (
	"net"
	"time"
)

// deadlineReader reads from a connection with a time limit: for everything from now on (total), or for each read
// anew (each).
type deadlineReader struct {
	conn     net.Conn
	fixed    bool          // total was called: leave the deadline alone
	limit    time.Duration // of each read; 0 = none
	armedFor time.Duration // the limit that the deadline was last set for; -1 = another deadline stands
	armedAt  time.Time
}

// total gives all reads together d from now.
func (r *deadlineReader) total(d time.Duration) {
	r.fixed, r.armedFor = true, -1
	r.arm(time.Now().Add(d))
}

// each gives every read from now on d; 0 = for ever. It costs nothing until there is a read.
func (r *deadlineReader) each(d time.Duration) { r.fixed, r.limit = false, d }

// Read implements io.Reader. A deadline that stands is set again once an eighth of it has passed, not on every
// read: it is for peers that are gone, and need not be exact.
func (r *deadlineReader) Read(b []byte) (int, error) {
	if !r.fixed && (r.limit != r.armedFor || r.limit > 0 && time.Since(r.armedAt) > r.limit/8) {
		r.armedFor, r.armedAt = r.limit, time.Now()
		if r.limit == 0 {
			r.arm(time.Time{})
		} else {
			r.arm(r.armedAt.Add(r.limit))
		}
	}
	return r.conn.Read(b)
}

// arm sets the deadline. It fails only on a closed connection, where the next read fails too.
func (r *deadlineReader) arm(t time.Time) { _ = r.conn.SetReadDeadline(t) }
