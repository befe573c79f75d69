package sdk

import (
	"context"
	"sort"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/keyspace"
	"github.com/eastguard/eastguard/internal/record"
	"github.com/eastguard/eastguard/internal/wire"
)

// follow brings the table up to a newer route. Ranges that have stayed keep their buffers. When some have been
// split or merged, their buffers stop sending and a goroutine cuts what they hold anew (recut); until that is
// done, senders go on filling them, so that nothing new can overtake it.
//
// Several answers may bring a route at once, and the topic may be removed meanwhile: a table takes the place only of the
// one it was made from. Put in place of no table at all, it would send senders round for ever between buffers that
// take nothing any more.
func (pt *producerTopic) follow(r *route) {
	old := pt.table.Load()
	if old == nil || !r.newerThan(old.route) {
		return
	}
	var leaving []*buffer
	for _, b := range old.buffers {
		if rr := r.byRange[b.ref.Range]; rr == nil || rr.State != base.StateActive {
			leaving = append(leaving, b)
		}
	}
	if len(leaving) == 0 {
		if !pt.table.CompareAndSwap(old, pt.build(r, old.buffers[0].identityNow())) {
			pt.follow(r)
		}
		return
	}
	if !pt.cutting.CompareAndSwap(false, true) {
		return // one cut at a time; the next answer to a buffer that has to leave brings the route up again
	}
	for _, b := range leaving {
		b.hold()
	}
	started := pt.p.c.group.Go("recut", func(ctx context.Context) error {
		defer pt.cutting.Store(false)
		pt.recut(ctx, old, r, leaving)
		return nil
	})
	if !started {
		pt.cutting.Store(false)
	}
}

// recut moves what the buffers of sealed ranges hold to the ranges that have taken their place. It waits until
// none of their batches is on the way, asks the sealed range about those whose answer was lost, and only then,
// with every leaving buffer locked, appends the rest record by record where it now belongs and shows the new table.
func (pt *producerTopic) recut(ctx context.Context, old *sendTable, r *route, leaving []*buffer) {
	for _, b := range leaving {
		if !b.landed(ctx) {
			return // the client is closing
		}
		b.resolve(ctx, r)
	}
	sort.Slice(leaving, func(i, j int) bool { return leaving[i].ref.Range < leaving[j].ref.Range })
	for _, b := range leaving {
		b.mu.Lock()
	}
	t := pt.build(r, successorIdentity(pt, leaving))
	for _, b := range leaving {
		b.moveLocked(t)
	}
	// Only now: a sender that found it earlier would have put younger records in front.
	there := pt.table.CompareAndSwap(old, t)
	pt.forget(leaving)
	for _, b := range leaving {
		b.mu.Unlock()
	}
	now := time.Now()
	for _, b := range t.buffers {
		if !there { // the topic was removed meanwhile, perhaps before records were moved here
			b.abort(base.Errorf(base.CodeTopicNotFound, "send", "topic %s was deleted", r.Name))
			continue
		}
		b.mu.Lock()
		b.pump(now)
	}
}

// successorIdentity is the identity under which the successors are written: the newest epoch that any of the
// leaving ranges knew, or an id of its own when they had different ones.
func successorIdentity(pt *producerTopic, leaving []*buffer) identity {
	who := leaving[0].identity
	for _, b := range leaving[1:] {
		if b.identity.id != who.id {
			return pt.ids.bump(identity{id: who.id, epoch: maxEpoch})
		}
		who.epoch = max(who.epoch, b.identity.epoch)
	}
	return who
}

// forget drops the buffers of ranges that are no more.
func (pt *producerTopic) forget(leaving []*buffer) {
	pt.mu.Lock()
	defer pt.mu.Unlock()
	for _, b := range leaving {
		delete(pt.buffers, b.ref.Range)
	}
}

func (b *buffer) identityNow() identity {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.identity
}

// hold keeps the buffer from sending, for good: it fills until recut empties it.
func (b *buffer) hold() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held = make(chan struct{}, 1)
	b.sealLocked()
	b.landLocked()
}

// landLocked tells landed when nothing of a held buffer is on the way any more.
func (b *buffer) landLocked() {
	if b.held != nil && b.flying == 0 && !b.pumping {
		signal(b.held)
	}
}

// landed waits until nothing of a held buffer is on the way.
func (b *buffer) landed(ctx context.Context) bool {
	select {
	case <-b.held:
		return true
	case <-ctx.Done():
		return false
	}
}

// resolve asks the sealed range about the batches whose answer was lost. What it knows to hold is acknowledged,
// what it knows not to hold stays, and without an answer by their deadline they are unknown.
func (b *buffer) resolve(ctx context.Context, r *route) {
	lostOnes, deadline := b.lostOnes()
	if len(lostOnes) == 0 {
		return
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	var state wire.ProducerStateResponse
	err := b.p.c.askLast(ctx, r, b.ref, wire.KindProducerState,
		wire.ProducerStateRequest{Ref: b.ref, ProducerID: b.identity.id}, &state, func() error { return nil })
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, bt := range lostOnes {
		if bt.state != batchWaiting {
			continue // the watch was quicker
		}
		switch stored, known := storedAt(state, bt); {
		case err != nil || !known:
			b.dropLocked(bt, lost(err))
		case stored != nil:
			bt.state, bt.ack = batchDone, wire.ProduceResponse{Base: stored.Base, Duplicate: true}
		default:
			bt.ambiguous = false
		}
	}
	b.finishLocked()
}

// lostOnes are the batches whose fate is not known, and the time by which it must be.
func (b *buffer) lostOnes() (ones []*batch, deadline time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, bt := range b.queue {
		if bt.state == batchWaiting && bt.ambiguous {
			ones, deadline = append(ones, bt), bt.deadline
		}
	}
	return ones, deadline
}

// storedAt looks for a batch in what a sealed range remembers. known is false when it remembers too little to say.
func storedAt(s wire.ProducerStateResponse, bt *batch) (stored *wire.ProducerBatch, known bool) {
	if !s.Known || s.Epoch != bt.identity.epoch || !s.Sealed {
		return nil, false
	}
	for i := range s.Batches {
		if s.Batches[i].BaseSequence == bt.sequence {
			return &s.Batches[i], true
		}
	}
	// In flight are at most as many batches as a range remembers, so one that is not among them was never stored.
	return nil, true
}

// moveLocked appends what is left to the buffers of t and retires b. Nobody else can reach those buffers yet.
func (b *buffer) moveLocked(t *sendTable) {
	b.gone = true
	b.lingerTimer.Stop()
	b.watchTimer.Stop()
	queue := b.queue
	b.queue, b.open = nil, nil
	for _, bt := range queue {
		if bt.state == batchDone {
			b.p.finish(b, bt)
			continue
		}
		if err := b.scatter(bt, t); err != nil {
			bt.err, bt.state = about("send", err).WithOutcome(base.NotApplied), batchDone
			b.p.finish(b, bt)
		}
	}
}

// scatter decodes a batch and appends each record, with its completion and its deadline, where it now belongs.
func (b *buffer) scatter(bt *batch, t *sendTable) error {
	encoded := bt.encoded
	if encoded == nil {
		var err error
		if encoded, err = bt.builder.Build(nil, nobody.id, nobody.epoch, 0); err != nil {
			return err
		}
	}
	rd := record.NewReader(maxDecodedBytes)
	if err := rd.Reset(encoded); err != nil {
		return err
	}
	var moved int64
	heirs := make(map[*batch]bool)
	for i := 0; ; i++ {
		rec, ok := rd.Next()
		if !ok {
			break
		}
		cost := recordCost(&rec)
		if i == len(bt.owed)-1 {
			cost = bt.charged - moved // what was charged goes over to the last byte
		}
		moved += cost
		h := routeOf(&rec)
		heirs[t.pick(h).adopt(rec, h, cost, bt.owed[i], bt.deadline)] = true
	}
	if err := rd.Err(); err != nil {
		return err // our own bytes: never
	}
	bt.handOver(heirs)
	return nil
}

// adopt takes over a record of a range that is no more, and returns the batch it is in now.
func (b *buffer) adopt(rec record.Record, h hashed, cost int64, c completion, deadline time.Time) *batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	o := b.open
	if o != nil && !b.fits(o, cost) {
		b.sealLocked()
		o = nil
	}
	if o == nil {
		o = b.openBatch(h, c.start)
		o.deadline = deadline // the oldest record's; it has not got any younger
	}
	o.add(rec, h, cost, c)
	if b.full(o) {
		b.sealLocked()
	}
	return o
}

// routeOf finds where a stored record belongs: by its routing key if it keeps one, else by its key.
func routeOf(rec *record.Record) hashed {
	for i := range rec.Headers {
		if rec.Headers[i].Key == RouteHeader {
			return hashed{hash: keyspace.HashKey(rec.Headers[i].Value)}
		}
	}
	if rec.Key == nil {
		return hashed{keyless: true}
	}
	return hashed{hash: keyspace.HashKey(rec.Key)}
}
