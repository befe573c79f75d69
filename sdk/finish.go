package sdk

import (
	"sync"
	"time"
)

// finish gives a batch's senders their answers. Waiting ones are woken here and now; callbacks go to the finisher.
// It is called with the buffer's lock held, in the order of the range's records, and does not block.
func (p *Producer) finish(b *buffer, bt *batch) {
	p.stats.count(bt)
	bt.escaped = bt.escaped || bt.sending || bt.ambiguous || bt.tries > 1
	now := time.Now()
	acks := bt.acks(b)
	callbacks := len(bt.marks) > 0
	for i := range bt.owed {
		c := &bt.owed[i]
		callbacks = callbacks || c.call != nil
		if c.wait == nil {
			continue
		}
		c.wait.ack, c.wait.err = acks.at(i, now.Sub(c.start)), bt.err
		if c.wait.trace != nil && bt.err == nil {
			bt.trace(c.wait.trace, c.start, now)
		}
		c.wait.ready <- struct{}{}
	}
	if callbacks {
		p.finisher.add(finishing{b.pt, bt, acks, now})
		return
	}
	p.memory.release(bt.charged)
	b.pt.pool.put(bt)
}

// acks makes the acks of one batch.
type acks struct {
	failed   bool
	first    Position
	time     time.Time
	segment  SegmentID
	replicas []NodeID
}

func (bt *batch) acks(b *buffer) acks {
	if bt.err != nil {
		return acks{failed: true}
	}
	return acks{
		first:    Position{Topic: b.pt.topic.name, Range: b.ref.Range, Offset: bt.ack.Base},
		time:     time.UnixMilli(bt.ack.AppendMs),
		segment:  bt.ack.Segment,
		replicas: bt.ack.Replicas,
	}
}

func (a *acks) at(i int, latency time.Duration) Ack {
	if a.failed {
		return Ack{}
	}
	pos := a.first
	pos.Offset += int64(i)
	return Ack{Position: pos, Timestamp: a.time, Segment: a.segment, Replicas: a.replicas, Latency: latency}
}

// finisher runs callbacks, one at a time, in the order their batches were finished. Its goroutine exists only
// while there is something to call.
//
// It is a list under a lock and not a channel, because a channel has a length: the connection's reader hands over
// batches, and if it ever waited for a callback that itself waits for an ack, neither would go on. The list is
// bounded all the same, since a batch keeps its share of the producer's buffer until its turn comes.
type finisher struct {
	p       *Producer
	mu      sync.Mutex
	queue   []finishing
	running bool
	idle    *sync.Cond // signalled when running ends; made by the first wait
}

type finishing struct {
	pt   *producerTopic
	bt   *batch
	acks acks
	now  time.Time
}

func (f *finisher) add(item finishing) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queue = append(f.queue, item)
	if !f.running {
		f.running = true
		go f.p.c.cfg.guard.Run(f.run) // ends when the queue is empty; wait waits for it
	}
}

func (f *finisher) run() {
	var batch []finishing
	for {
		f.mu.Lock()
		if len(f.queue) == 0 {
			f.running = false
			if f.idle != nil {
				f.idle.Broadcast()
			}
			f.mu.Unlock()
			return
		}
		batch, f.queue = f.queue, batch[:0]
		f.mu.Unlock()
		for i := range batch {
			f.call(&batch[i])
			batch[i] = finishing{}
		}
	}
}

// call runs the callbacks of a batch. Its memory is given back first: a callback that sends one record for the one
// it was called for must find room.
func (f *finisher) call(item *finishing) {
	bt := item.bt
	f.p.memory.release(bt.charged)
	for i := range bt.owed {
		c := &bt.owed[i]
		if c.call != nil {
			c.call(item.acks.at(i, item.now.Sub(c.start)), bt.err)
		}
	}
	for _, m := range bt.marks {
		m.reached()
	}
	item.pt.pool.put(bt)
}

// wait returns when no callback runs or is due.
func (f *finisher) wait() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.idle == nil {
		f.idle = sync.NewCond(&f.mu)
	}
	for f.running {
		f.idle.Wait()
	}
}
