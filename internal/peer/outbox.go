package peer

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"github.com/eastguard/eastguard/internal/nowait"
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

// outbox is the way out of one connection: frames queue up, and whoever has the pen takes all there are at once. That is
// the writer goroutine; but a small frame that finds nothing queued and the pen free is written by whoever pushes it, as
// far as the kernel takes it at once: a switch of goroutines less on the way of a record and of its ack. What the kernel
// does not take is left with the pen, for the writer goroutine. Pushing never blocks.
type outbox struct {
	nc    net.Conn
	sent  *atomic.Int64 // bytes written, of all connections
	limit int64
	wake  chan struct{} // capacity one: there is something to do

	mu      sync.Mutex
	urgent  []frame
	queue   []frame
	bytes   int64 // queued and not written
	writing bool  // somebody has the pen
	closed  bool

	pen struct {
		batchWriter
		direct *nowait.Writer // nil when nc cannot be written without waiting
	}
}

func newOutbox(nc net.Conn, limit int64, sent *atomic.Int64) *outbox {
	o := &outbox{nc: nc, sent: sent, limit: limit, wake: make(chan struct{}, 1)}
	o.pen.direct = nowait.New(nc)
	return o
}

// push queues a frame, whose body must not change any more, or writes it. A frame above the limit is refused, unless it
// is the only one or has to go (a small answer). Urgent frames have some room beyond it.
func (o *outbox) push(f frame, mustGo bool) error {
	size, limit := int64(f.size()), o.limit
	if f.urgent {
		limit += limit / 8
	}
	o.mu.Lock()
	switch {
	case o.closed:
		o.mu.Unlock()
		return errConnClosed
	case !mustGo && o.bytes > 0 && o.bytes+size > limit:
		o.mu.Unlock()
		return errQueueFull
	}
	o.bytes += size
	if o.pen.direct != nil && !o.writing && o.bytes == size && f.small() {
		o.writing = true
		o.mu.Unlock()
		o.writeDirect(&f)
		return nil
	}
	if f.urgent {
		o.urgent = append(o.urgent, f)
	} else {
		o.queue = append(o.queue, f)
	}
	o.mu.Unlock()
	mark(o.wake)
	return nil
}

// small reports whether a frame is written from the buffer alone.
func (f *frame) small() bool {
	for _, part := range f.tail {
		if len(part) >= copyBelow {
			return false
		}
	}
	return len(f.body) < copyBelow
}

// writeDirect is called with the pen, and gives it back.
func (o *outbox) writeDirect(f *frame) {
	o.pen.add(f)
	n := o.pen.direct.Write(o.pen.buf)
	o.pen.wrote(n)
	o.sent.Add(int64(n))

	o.mu.Lock()
	o.bytes -= int64(n)
	o.writing = false
	wanted := o.bytes > 0 || o.closed
	o.mu.Unlock()
	if wanted { // by the writer goroutine, which may have been turned away meanwhile
		mark(o.wake)
	}
}

// run is the writer goroutine. It ends when a write fails or after close.
func (o *outbox) run() error {
	var batch, urgent []frame
	for range o.wake {
		for took := o.takePen(); took; {
			var err error
			if batch, err = o.takeQueue(batch); err != nil {
				return err
			}
			if len(batch) == 0 && o.putBackPen() {
				break
			}
			for rest := batch; ; {
				urgent = o.takeUrgent(urgent)
				if len(urgent)+len(rest)+o.pen.size == 0 {
					break
				}
				for i := range urgent {
					o.pen.add(&urgent[i])
				}
				for len(rest) > 0 && o.pen.size < writeChunk {
					o.pen.add(&rest[0])
					rest = rest[1:]
				}
				if err := o.write(); err != nil {
					return err
				}
			}
			clear(batch) // holds on to no body
		}
	}
	return nil
}

// takePen reports whether it is free, or the writer goroutine's from now on. Who has it wakes that when there is more.
func (o *outbox) takePen() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.writing {
		return false
	}
	o.writing = true
	return true
}

// putBackPen lets the next small frame be written by whoever pushes it, unless there is something to write.
func (o *outbox) putBackPen() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.bytes > 0 && !o.closed {
		return false
	}
	o.writing = false
	return true
}

// takeQueue swaps the queue for an empty slice.
func (o *outbox) takeQueue(spare []frame) ([]frame, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil, errConnClosed
	}
	batch := o.queue
	o.queue = spare[:0]
	return batch, nil
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

// write writes what the pen has gathered.
func (o *outbox) write() error {
	n := int64(o.pen.size)
	if err := o.pen.writeTo(o.nc); err != nil {
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

// wrote forgets the first n bytes of what is in the buffer alone.
func (w *batchWriter) wrote(n int) {
	w.size -= n
	w.buf = append(w.buf[:0], w.buf[n:]...)
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
