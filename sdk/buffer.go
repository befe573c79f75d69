package sdk

import (
	"context"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/keyspace"
	"github.com/eastguard/eastguard/internal/mux"
	"github.com/eastguard/eastguard/internal/record"
)

// buffer is everything a producer has of one range: the batch being filled, those waiting to be sent, those on
// the way, in the order of their records. It has no goroutine of its own. Whoever changes it (a sender, an answer,
// a timer) calls pump, which sends what may be sent; see there for why two pumps do not get in each other's way.
//
// The life of its batches:
//
//	waiting --pump--> flying --answer: ok--> done --all before it done--> out, callbacks
//	   ^                 |
//	   +--answer: retry--+      a retry waits until nothing is flying, then all that is not done goes again, in
//	                            order, under the same sequence numbers
type buffer struct {
	p   *Producer
	pt  *producerTopic
	ref base.RangeRef

	mu       sync.Mutex
	queue    []*batch // not finished, oldest first; only the last may be open
	open     *batch   // the one that takes records: the last of queue, or nil
	gone     bool     // its range is no more: senders look for the range anew
	refusing bool     // the producer is closing

	// held is not nil once the range was split or merged: the buffer fills and sends nothing more. It has capacity 1
	// and says when nothing is on the way any more.
	held chan struct{}

	flying  int  // batches of queue on the way
	pumping bool // somebody is sending; what becomes due meanwhile is theirs to send
	rewind  bool // something has to go again: nothing new is sent before all that flies has come back
	mending bool // the mend goroutine works on the connection; nothing is sent
	looking bool // the look goroutine asks who leads the range
	regress bool // the identity has ended: what is left goes on under a newer one

	leader   *broker // of the active segment; nil when it has to be looked up
	identity identity
	next     int32         // sequence of the next batch to be stamped
	acked    bool          // something was acknowledged under this identity
	failures int           // tries in a row without one that was acknowledged
	rounds   int           // of mend since the last ack
	lastErr  error         // of the last failure, to say why nothing was sent
	replicas []base.NodeID // as the last ack named them, which the next one mostly does too

	lingerTimer *time.Timer
	lingering   bool // lingerTimer is set
	watchTimer  *time.Timer
	watching    bool // watchTimer is set
}

// hashed is where a record belongs.
type hashed struct {
	hash    keyspace.Hash
	keyless bool
}

func newBuffer(pt *producerTopic, id base.RangeID, who identity) *buffer {
	b := &buffer{p: pt.p, pt: pt, ref: base.RangeRef{Topic: pt.id, Range: id}, identity: who}
	guard := b.p.c.cfg.guard
	b.lingerTimer = time.AfterFunc(time.Hour, guard.Func(b.lingered))
	b.lingerTimer.Stop()
	b.watchTimer = time.AfterFunc(time.Hour, guard.Func(b.watch))
	b.watchTimer.Stop()
	return b
}

// append puts a record into the open batch and sends what is due. It reports false when the range is no more.
func (b *buffer) append(r record.Record, h hashed, size int64, c completion) bool {
	b.mu.Lock()
	if b.gone || b.refusing {
		b.mu.Unlock()
		return false
	}
	o := b.open
	if o != nil && !b.fits(o, size) {
		b.sealLocked()
		o = nil
	}
	if o == nil {
		o = b.openBatch(h, c.start)
	}
	o.add(r, h, size, c)
	if b.full(o) {
		b.sealLocked()
	}
	b.pump(c.start) // unlocks
	return true
}

// fits reports whether a record of that cost may join the batch; one that is larger than a batch gets its own.
func (b *buffer) fits(o *batch, cost int64) bool {
	return int64(o.builder.Size())+cost <= b.pt.maxBatch
}

// full reports whether the batch should go without waiting for another record.
func (b *buffer) full(o *batch) bool {
	return o.records() >= b.p.cfg.maxBatchRecords || int64(o.builder.Size()) >= b.pt.maxBatch
}

// openBatch begins a batch at the end of the queue.
func (b *buffer) openBatch(h hashed, now time.Time) *batch {
	o := b.pt.pool.batch()
	o.lo, o.hi = h.hash, h.hash
	if h.keyless {
		o.lo, o.hi = ^keyspace.Hash(0), 0 // an empty interval, for the first hash to widen
	}
	o.opened, o.deadline = now, now.Add(b.p.cfg.deliveryTimeout)
	b.queue = append(b.queue, o)
	b.open = o
	b.watchLocked(now)
	return o
}

// sealLocked closes the open batch to further records.
func (b *buffer) sealLocked() {
	if b.open == nil {
		return
	}
	if b.open.keyless {
		b.pt.rotate(b)
	}
	b.open = nil
}

// pump sends every batch that is due, oldest first. It is called with mu held and returns with it released.
//
// Sending encodes, compresses and writes to a socket, none of which may happen under mu. So the pump lets go of mu
// around it, and pumping keeps others out meanwhile: two goroutines that each took a batch and then raced to the
// connection could send sequence 7 before sequence 6. The one that is kept out loses nothing, since the one inside
// looks again under mu after each batch before it leaves.
//
// At full speed that could go on for ever, and whoever came in to send one record would be sending everybody's. After
// a few batches the rest is left to a goroutine that has nothing else to do.
func (b *buffer) pump(now time.Time) {
	if b.pumping {
		b.mu.Unlock()
		return
	}
	b.pumping = true
	b.pumpLocked(now, maxPumpRun)
	b.mu.Unlock()
}

// maxPumpRun is how many batches a pump sends before it hands over.
const maxPumpRun = 8

// pumpLocked sends at most run batches, or all with a negative run. It has the right to pump, and gives it up.
func (b *buffer) pumpLocked(now time.Time, run int) {
	for ; ; run-- {
		bt := b.dueLocked(now)
		if bt == nil {
			break
		}
		if run == 0 && b.p.c.group.Go("pump", b.pumpOn) {
			return // the right goes with it
		}
		if !b.transmitLocked(bt, now) {
			break
		}
		now = time.Now()
	}
	b.pumping = false
	b.landLocked()
}

func (b *buffer) pumpOn(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pumpLocked(time.Now(), -1)
	return nil
}

// dueLocked is the batch to send now, sealed and stamped; nil when there is none or it may not be sent yet.
func (b *buffer) dueLocked(now time.Time) *batch {
	if b.mending || b.gone || b.held != nil || b.flying >= b.window() {
		return nil
	}
	bt := b.firstWaiting()
	if bt == nil {
		return nil
	}
	if b.rewind || b.regress {
		if b.flying > 0 {
			return nil
		}
		b.rewind = false
		if b.regress {
			if !b.regressLocked() {
				return nil
			}
			if bt = b.firstWaiting(); bt == nil {
				return nil
			}
		}
	}
	if bt == b.open {
		if wait := bt.opened.Add(b.p.cfg.linger).Sub(now); wait > 0 {
			b.lingerLocked(wait)
			return nil
		}
		b.sealLocked()
	}
	if !bt.stamped {
		bt.stamp(b.identity, b.next)
		b.next = addSequence(b.next, int32(bt.records()))
	}
	return bt
}

// window is how many batches may be on the way. After a failure one goes ahead alone: a broker that is busy or
// keeps losing its connection is not sent five batches to lose, and each try that works is progress.
func (b *buffer) window() int {
	if b.failures > 0 {
		return 1
	}
	return b.p.cfg.maxInFlight
}

// firstWaiting is the next batch to send, if it may be sent beside those before it.
//
// What limits it is its place in the queue, not how many are flying: answers may overtake each other, and a broker
// recognises a retry among the last five batches only. With 6 to 9 answered and 5 not, 10 would push 5 out of its
// memory, and a retry of 5 would no longer be known to be one.
func (b *buffer) firstWaiting() *batch {
	for _, bt := range b.queue[:min(len(b.queue), b.p.cfg.maxInFlight)] {
		if bt.state == batchWaiting {
			return bt
		}
	}
	return nil
}

// transmitLocked sends one batch. It lets go of mu while it encodes and writes, and reports false when the batch
// could not be sent now and mend has been asked to find out why. One that never can be is given up: those behind it
// go on.
func (b *buffer) transmitLocked(bt *batch, now time.Time) bool {
	var conn *mux.Conn
	if b.leader != nil {
		conn = b.leader.live()
	}
	if conn == nil {
		if b.leader != nil {
			b.failures++ // it was there a moment ago
		}
		b.mendLocked(nil)
		return false
	}
	bt.state, bt.sentAt, bt.conn = batchFlying, now, conn
	bt.tries++
	bt.sending = true
	b.flying++
	try := bt.tries
	b.mu.Unlock()
	err := b.send(conn, bt, try)
	b.mu.Lock()
	bt.sending = false
	if err == nil {
		return true
	}
	if bt.state != batchFlying || bt.tries != try {
		return true // the watch has given it up in between; those behind it will meet the same error, and act on it
	}
	// Nothing has left: the batch is as it was before.
	bt.state = batchWaiting
	b.flying--
	b.failLocked(bt, err)
	return b.remedy(err) == giveUp // not bt.state: a batch that is done belongs to others
}

// flush seals the open batch, sends what may be sent, and returns a channel that is closed when everything that is
// in the buffer now has been answered; nil when nothing is.
func (b *buffer) flush(now time.Time) <-chan struct{} {
	b.mu.Lock()
	b.sealLocked()
	var finished chan struct{}
	if n := len(b.queue); n > 0 {
		m := newMark()
		b.queue[n-1].marks = append(b.queue[n-1].marks, m)
		finished = m.done
	}
	b.pump(now)
	return finished
}

// refuse makes the buffer take no more records; what it has goes on.
func (b *buffer) refuse() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refusing = true
}
