package peer

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
)

const (
	copyBelow  = 4 << 10   // shorter bodies are copied behind their header: cheaper than one more piece of a writev
	writeChunk = 256 << 10 // of one writev, or one frame if that is larger
	keepBuffer = 64 << 10  // a larger buffer is not kept for the next write
)

var (
	errQueueFull  = errors.New("the write queue is full")
	errConnClosed = errors.New("the connection is closed")
)

// outbox is the way out of one connection: frames queue up, and one writer goroutine takes all there are at once.
// Pushing never blocks.
type outbox struct {
	nc    net.Conn
	sent  *atomic.Int64 // bytes written, of all connections
	limit int64
	wake  chan struct{} // capacity one: there is something to do

	mu     sync.Mutex
	urgent []frame
	queue  []frame
	bytes  int64 // queued and not written
	closed bool
}

func newOutbox(nc net.Conn, limit int64, sent *atomic.Int64) *outbox {
	return &outbox{nc: nc, sent: sent, limit: limit, wake: make(chan struct{}, 1)}
}

// push queues a frame, whose body must not change any more. A frame above the limit is refused, unless it is the
// only one or has to go (a small answer). Urgent frames have some room beyond it.
func (o *outbox) push(f frame, mustGo bool) error {
	size, limit := int64(f.size()), o.limit
	if f.urgent {
		limit += limit / 8
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.closed:
		return errConnClosed
	case !mustGo && o.bytes > 0 && o.bytes+size > limit:
		return errQueueFull
	}
	o.bytes += size
	if f.urgent {
		o.urgent = append(o.urgent, f)
	} else {
		o.queue = append(o.queue, f)
	}
	mark(o.wake)
	return nil
}

// run is the writer goroutine. It ends when a write fails or after close.
func (o *outbox) run() error {
	var w batchWriter
	var batch, urgent []frame
	for range o.wake {
		for {
			o.mu.Lock()
			batch, o.queue = o.queue, batch[:0]
			closed := o.closed
			some := len(batch) > 0 || len(o.urgent) > 0
			o.mu.Unlock()
			if closed {
				return errConnClosed
			}
			if !some {
				break
			}
			for rest := batch; ; {
				urgent = o.takeUrgent(urgent)
				if len(urgent)+len(rest) == 0 {
					break
				}
				for i := range urgent {
					w.add(&urgent[i])
				}
				for len(rest) > 0 && w.size < writeChunk {
					w.add(&rest[0])
					rest = rest[1:]
				}
				if err := o.write(&w); err != nil {
					return err
				}
			}
			clear(batch) // holds on to no body
		}
	}
	return nil
}

// takeUrgent swaps what is urgent for an empty slice.
func (o *outbox) takeUrgent(spare []frame) []frame {
	clear(spare)
	o.mu.Lock()
	defer o.mu.Unlock()
	urgent := o.urgent
	o.urgent = spare[:0]
	return urgent
}

// write writes what w has gathered.
func (o *outbox) write(w *batchWriter) error {
	n := int64(w.size)
	if err := w.writeTo(o.nc); err != nil {
		return err
	}
	o.sent.Add(n)
	o.mu.Lock()
	o.bytes -= n
	o.mu.Unlock()
	return nil
}

// close makes every push fail and the writer end. What is queued is not written.
func (o *outbox) close() {
	o.mu.Lock()
	o.closed = true
	o.queue, o.urgent = nil, nil
	o.mu.Unlock()
	mark(o.wake)
}

// batchWriter gathers frames for one writev: headers and short bodies in one buffer, long bodies by reference.
type batchWriter struct {
	buf  []byte
	cuts []pieceCut
	size int
}

// pieceCut is a long body, which belongs behind the first at bytes of the buffer.
type pieceCut struct {
	at   int
	body []byte
}

func (w *batchWriter) add(f *frame) {
	w.buf = f.appendHeader(w.buf)
	w.addPiece(f.body)
	for _, part := range f.tail {
		w.addPiece(part)
	}
	w.size += f.size()
}

func (w *batchWriter) addPiece(b []byte) {
	if len(b) < copyBelow {
		w.buf = append(w.buf, b...)
	} else {
		w.cuts = append(w.cuts, pieceCut{len(w.buf), b})
	}
}

func (w *batchWriter) writeTo(nc net.Conn) error {
	var err error
	if len(w.cuts) == 0 {
		_, err = nc.Write(w.buf)
	} else {
		pieces, from := make(net.Buffers, 0, 2*len(w.cuts)+1), 0
		for _, c := range w.cuts {
			if from < c.at {
				pieces = append(pieces, w.buf[from:c.at])
			}
			pieces, from = append(pieces, c.body), c.at
		}
		if from < len(w.buf) {
			pieces = append(pieces, w.buf[from:])
		}
		_, err = pieces.WriteTo(nc)
	}
	clear(w.cuts)
	w.cuts, w.size = w.cuts[:0], 0
	if w.buf = w.buf[:0]; cap(w.buf) > keepBuffer {
		w.buf = nil
	}
	return err
}

// mark puts a token into a channel of capacity one, unless it has one.
func mark(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
