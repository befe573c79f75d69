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
	queue  []frame
	bytes  int64 // queued and not written
	closed bool
}

func newOutbox(nc net.Conn, limit int64, sent *atomic.Int64) *outbox {
	return &outbox{nc: nc, sent: sent, limit: limit, wake: make(chan struct{}, 1)}
}

// push queues a frame, whose body must not change any more. A frame above the limit is refused, unless it is the
// only one or has to go (a small answer).
func (o *outbox) push(f frame, mustGo bool) error {
	size := int64(f.size())
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.closed:
		return errConnClosed
	case !mustGo && o.bytes > 0 && o.bytes+size > o.limit:
		return errQueueFull
	}
	o.bytes += size
	o.queue = append(o.queue, f)
	mark(o.wake)
	return nil
}

// run is the writer goroutine. It ends when a write fails or after close.
func (o *outbox) run() error {
	var w batchWriter
	var batch []frame
	for range o.wake {
		for {
			o.mu.Lock()
			batch, o.queue = o.queue, batch[:0]
			closed := o.closed
			o.mu.Unlock()
			if closed {
				return errConnClosed
			}
			if len(batch) == 0 {
				break
			}
			if err := o.write(&w, batch); err != nil {
				return err
			}
			clear(batch) // holds on to no body
		}
	}
	return nil
}

func (o *outbox) write(w *batchWriter, batch []frame) error {
	for i := range batch {
		w.add(&batch[i])
		if w.size < writeChunk && i < len(batch)-1 {
			continue
		}
		n := int64(w.size)
		if err := w.writeTo(o.nc); err != nil {
			return err
		}
		o.sent.Add(n)
		o.mu.Lock()
		o.bytes -= n
		o.mu.Unlock()
	}
	return nil
}

// close makes every push fail and the writer end. What is queued is not written.
func (o *outbox) close() {
	o.mu.Lock()
	o.closed = true
	o.queue = nil
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
	if len(f.body) < copyBelow {
		w.buf = append(w.buf, f.body...)
	} else {
		w.cuts = append(w.cuts, pieceCut{len(w.buf), f.body})
	}
	w.size += f.size()
}

func (w *batchWriter) writeTo(nc net.Conn) error {
	var err error
	if len(w.cuts) == 0 {
		_, err = nc.Write(w.buf)
	} else {
		pieces, from := make(net.Buffers, 0, 2*len(w.cuts)+1), 0
		for _, c := range w.cuts {
			pieces, from = append(pieces, w.buf[from:c.at], c.body), c.at
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
