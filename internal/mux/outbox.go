package mux

import (
	"errors"
	"net"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/internal/wire"
)

// Limits of one write.
const (
	directItems = 32       // the most frames, and
	directBytes = 64 << 10 // the most bytes, that whoever pushes writes itself
	chunkBytes  = 1 << 20  // the writer goroutine's share of one writev
	// minRate is the slowest peer that is still served: a write may take the timeout plus its bytes at this rate.
	minRate = 1 << 20
)

var (
	errOutboxFull   = errors.New("the write queue is full")
	errOutboxClosed = errors.New("the connection is closed")
)

// item is one frame on its way out.
type item struct {
	head   wire.FrameHeader
	msg    []byte
	bufs   [][]byte   // payload in memory, or
	parts  []vfs.Part // payload in parts, which the outbox releases
	ticket ticket
}

// ticket is who wants to know what became of an item.
type ticket interface {
	// take is asked right before the item is written; false leaves it out.
	take() bool
	// settle is called once: the kernel has the whole item, or it was left out, or will never be sent.
	settle(sent bool)
}

func (it *item) size() int64 { return wire.FrameSize + int64(it.head.BodyLen()) }

// hasFile reports whether writing the item means more than handing memory to the kernel.
func (it *item) hasFile() bool {
	for _, p := range it.parts {
		if _, ok := vfs.Bytes(p); !ok {
			return true
		}
	}
	return false
}

func (it *item) settle(sent bool) {
	for _, p := range it.parts {
		p.Release()
	}
	it.ticket.settle(sent)
}

// outbox is the way out of one connection: a queue and a pen.
//
// The pen is the right to write to conn and to touch what the struct pen holds. `writing` says that somebody
// has it. There are two ways to get it: push or flush find it free and the queue small, write once without
// blocking and put it back; or the writer goroutine is woken, which receives the pen with the wake-up and keeps it
// until the queue is empty. An attempt without blocking that leaves something over passes the pen on to the writer
// together with the rest. So at any time at most one goroutine writes, frames leave in the order they were
// pushed, and push never blocks.
type outbox struct {
	conn    net.Conn
	timeout time.Duration // of one write, on top of minRate
	limit   int64         // bytes queued before push fails; 0 = the caller limits itself
	onFail  func(error)   // called once, when the connection cannot be written any more

	wake chan struct{} // capacity 1; a token is the pen

	mu      sync.Mutex
	queue   []item
	bytes   int64 // pushed and not settled
	files   int   // items in queue that hasFile
	held    bool  // the reader goroutine will flush: do not write before
	writing bool
	closed  bool

	pen struct {
		gather  gather
		direct  *directWriter // nil when conn cannot be written without blocking
		batch   []item        // taken from the queue
		settled int           // the items of batch below this are done with
		spare   []item        // the queue before last, to be used again
	}
}

func newOutbox(conn net.Conn, timeout time.Duration, limit int64, onFail func(error)) *outbox {
	o := &outbox{conn: conn, timeout: timeout, limit: limit, onFail: onFail, wake: make(chan struct{}, 1)}
	o.pen.direct = newDirectWriter(conn)
	return o
}

// push queues it. With direct set it is written before push returns if the connection is quiet. An error means
// that the item was not queued and its ticket stays with the caller.
func (o *outbox) push(it item, direct bool) error {
	size, file := it.size(), it.hasFile()
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		return errOutboxClosed
	}
	if o.limit > 0 && o.bytes > 0 && o.bytes+size > o.limit {
		o.mu.Unlock()
		return errOutboxFull
	}
	o.bytes += size
	o.queue = append(o.queue, it)
	if file {
		o.files++
	}
	if o.writing || o.held {
		o.mu.Unlock()
		return nil
	}
	o.takePenAndUnlock(direct)
	return nil
}

// hold keeps what is pushed from now on in the queue until flush: the reader goroutine holds while it handles
// requests that have already arrived, so that their answers leave together.
func (o *outbox) hold() {
	o.mu.Lock()
	o.held = true
	o.mu.Unlock()
}

// flush ends a hold and writes what is queued.
func (o *outbox) flush() {
	o.mu.Lock()
	o.held = false
	if o.writing || o.closed || len(o.queue) == 0 {
		o.mu.Unlock()
		return
	}
	o.takePenAndUnlock(true)
}

// takePenAndUnlock takes the free pen and writes, or wakes the writer goroutine with it.
func (o *outbox) takePenAndUnlock(direct bool) {
	o.writing = true
	direct = direct && o.pen.direct != nil && o.files == 0 && len(o.queue) <= directItems && o.bytes <= directBytes
	if !direct {
		o.mu.Unlock()
		o.wake <- struct{}{} // never blocks: there is one pen
		return
	}
	o.takeQueue()
	o.mu.Unlock()

	for i := range o.pen.batch {
		_ = o.add(&o.pen.batch[i]) // only files can fail, and there are none
	}
	done := o.pen.direct.write(&o.pen.gather)
	freed := int64(0)
	if done {
		freed = o.settleTo(len(o.pen.batch), true)
	}
	o.mu.Lock()
	o.bytes -= freed
	if done && !o.closed && len(o.queue) == 0 {
		o.writing = false
		o.mu.Unlock()
		return
	}
	o.mu.Unlock()
	o.wake <- struct{}{}
}

// takeQueue moves the queue to the pen. Called with the lock and the pen.
func (o *outbox) takeQueue() {
	o.pen.batch, o.queue = o.queue, o.pen.spare[:0]
	o.pen.spare = nil
	o.pen.settled = 0
	o.files = 0
}

// run is the writer goroutine. It ends when the outbox is shut.
func (o *outbox) run() {
	for range o.wake {
		if err := o.drain(); err != nil {
			o.shut(err)
			o.abandon()
			return
		}
	}
}

// drain writes until the queue is empty and puts the pen back. It begins with what an attempt without blocking
// has left over.
func (o *outbox) drain() error {
	freed := int64(0)
	for {
		if len(o.pen.batch) > 0 {
			n, err := o.writeBatch()
			if err != nil {
				return err
			}
			freed += n
		}
		o.mu.Lock()
		o.bytes -= freed
		freed = 0
		if o.closed {
			o.mu.Unlock()
			return errOutboxClosed
		}
		if len(o.queue) == 0 {
			o.writing = false
			o.mu.Unlock()
			return nil
		}
		o.takeQueue()
		o.mu.Unlock()
		if err := o.gatherBatch(); err != nil {
			return err
		}
	}
}

// gatherBatch adds the batch to the gather, and writes whenever a chunk is full.
func (o *outbox) gatherBatch() error {
	for i := range o.pen.batch {
		if err := o.add(&o.pen.batch[i]); err != nil {
			return err
		}
		if o.pen.gather.size < chunkBytes && !o.pen.gather.full() {
			continue
		}
		if err := o.writeGathered(); err != nil {
			return err
		}
		freed := o.settleTo(i+1, true)
		o.mu.Lock()
		o.bytes -= freed
		o.mu.Unlock()
	}
	return nil
}

// add puts an item into the gather, or leaves it out if nobody wants it any more. A part from a file is written
// at once, behind everything gathered so far.
func (o *outbox) add(it *item) error {
	if !it.ticket.take() {
		return nil
	}
	g := &o.pen.gather
	g.addHeader(it.head)
	g.add(it.msg)
	for _, b := range it.bufs {
		g.add(b)
	}
	for _, p := range it.parts {
		if b, ok := vfs.Bytes(p); ok {
			g.add(b)
		} else if err := o.writeFile(p); err != nil {
			return err
		}
	}
	return nil
}

// writeBatch writes what is left in the gather, which ends the batch.
func (o *outbox) writeBatch() (freed int64, err error) {
	if err := o.writeGathered(); err != nil {
		return 0, err
	}
	return o.settleTo(len(o.pen.batch), true), nil
}

func (o *outbox) writeGathered() error {
	g := &o.pen.gather
	if g.size == 0 {
		return nil
	}
	o.allow(g.size)
	return g.writeTo(o.conn)
}

// writeFile writes the frames gathered so far and then the part, which the kernel reads from its file.
func (o *outbox) writeFile(p vfs.Part) error {
	if err := o.writeGathered(); err != nil {
		return err
	}
	o.allow(p.Len())
	n, err := p.WriteTo(o.conn)
	if err == nil && n != int64(p.Len()) {
		err = errors.New("a part was shorter than it said") // the frame is cut: the connection cannot go on
	}
	return err
}

// allow gives the next write of n bytes its time.
func (o *outbox) allow(n int) {
	if o.timeout > 0 {
		// Fails only on a closed connection, which the write will find.
		_ = o.conn.SetWriteDeadline(time.Now().Add(o.timeout + time.Duration(n)*(time.Second/minRate)))
	}
}

// settleTo settles the items of the batch up to n and returns their bytes. A settled batch is given back.
func (o *outbox) settleTo(n int, sent bool) (freed int64) {
	for ; o.pen.settled < n; o.pen.settled++ {
		it := &o.pen.batch[o.pen.settled]
		freed += it.size()
		it.settle(sent)
		*it = item{} // holds on to nothing
	}
	if n == len(o.pen.batch) {
		if cap(o.pen.batch) <= 4096 {
			o.pen.spare = o.pen.batch[:0]
		}
		o.pen.batch, o.pen.settled = nil, 0
	}
	return freed
}

// shut closes the connection and makes the writer goroutine end. What was not written is settled as not sent.
func (o *outbox) shut(err error) {
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		return
	}
	o.closed = true
	free := !o.writing
	o.writing = true // for ever
	o.mu.Unlock()

	_ = o.conn.Close() // nothing can be done about an error, and all is lost already
	if free {
		o.wake <- struct{}{}
	}
	o.onFail(err)
}

// abandon settles everything that was never written. Called with the pen, after shut.
func (o *outbox) abandon() {
	o.settleTo(len(o.pen.batch), false)
	o.mu.Lock()
	o.takeQueue()
	o.mu.Unlock()
	o.settleTo(len(o.pen.batch), false)
}
