package sdk

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/record"
)

// maxDecodedBytes bounds what one batch may decompress to: the largest record a broker can be told to take, with
// room for its batch.
const maxDecodedBytes = 80 << 20

// errAtEnd is what Poll returns when StopAtEnd is reached.
var errAtEnd = io.EOF

// polling is the chunk that Poll is decoding. It is kept from one Poll to the next, for a chunk may hold more
// records than one Poll returns.
type polling struct {
	cur    *cursor // nil when there is none
	gen    uint64
	data   []byte      // batches not begun
	rest   []byte      // batches not read to their end: data, and the one that reader is in
	from   base.NodeID // who sent it
	size   int64       // of the chunk, given back to the prefetch budget when it is done
	batch  bool        // reader is inside a batch
	head   header.Header
	want   int64 // offset of the next record
	reader *record.Reader
}

// leftover is messages of one range that Records was handed and did not yield.
type leftover struct {
	cur      *cursor
	messages []Message
}

// Poll returns the next messages of one range, at least one and at most WithMaxPollRecords. It waits for them until
// ctx ends. The messages are the caller's to keep.
//
// Errors: io.EOF once StopAtEnd is reached; *OffsetOutOfRangeError; CodeTopicNotFound; CodeCorruptData for data
// that does not hold together; CodePartial when every range has failed and waits for a Seek; CodeShuttingDown once
// closed; the context's own, wrapped. After an error Poll may be called again: the ranges that are well go on.
func (k *Consumer) Poll(ctx context.Context) ([]Message, error) {
	select {
	case <-k.turn:
	case <-ctx.Done():
		return nil, contextError(ctx, "poll", base.NotApplied)
	}
	defer func() { k.turn <- struct{}{} }()
	for {
		if left := k.takeLeft(); len(left) > 0 {
			return left, nil
		}
		if k.poll.cur == nil {
			found, err := k.takeChunk()
			if err == nil && !found {
				err = k.waitForNews(ctx)
			}
			if err != nil {
				return nil, err
			}
			if !found {
				continue
			}
		}
		messages, err := k.decode()
		if err != nil {
			return nil, err
		}
		if len(messages) > 0 {
			return messages, nil
		}
	}
}

// giveBack keeps messages that the last Poll returned for the next one, unless a seek has made them stale.
func (k *Consumer) giveBack(messages []Message) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lent != nil && len(messages) > 0 {
		k.left = append(k.left, leftover{k.lent, messages})
	}
}

// takeLeft takes what was given back: it comes before everything else of its range.
func (k *Consumer) takeLeft() []Message {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, l := range k.left {
		if !l.cur.paused && !k.closed {
			k.left = slices.Delete(k.left, i, i+1)
			k.lent = l.cur
			return l.messages
		}
	}
	return nil
}

// dropLeftLocked forgets what was given back of a range, or still may be.
func (k *Consumer) dropLeftLocked(cur *cursor) {
	if k.lent == cur {
		k.lent = nil
	}
	k.left = slices.DeleteFunc(k.left, func(l leftover) bool { return l.cur == cur })
}

// waitForNews waits for something to be fetched, or to be said.
func (k *Consumer) waitForNews(ctx context.Context) error {
	select {
	case <-k.news:
		return nil
	case <-ctx.Done():
		return contextError(ctx, "poll", base.NotApplied)
	}
}

// takeChunk takes the oldest chunk of the range whose turn it is. Ranges take turns, one chunk each.
func (k *Consumer) takeChunk() (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return false, errClosed("consumer")
	}
	if err := k.takeErrorLocked(); err != nil {
		return false, err
	}
	for len(k.queue) > 0 {
		cur := k.queue[0]
		k.queue = k.queue[1:]
		cur.inQueue = false
		if cur.paused || len(cur.chunks) == 0 {
			continue
		}
		ch := cur.chunks[0]
		cur.chunks = append(cur.chunks[:0], cur.chunks[1:]...)
		cur.enqueueLocked()
		if k.poll.reader == nil {
			k.poll.reader = record.NewReader(maxDecodedBytes)
		}
		k.poll.cur, k.poll.gen, k.poll.data, k.poll.size = cur, cur.gen, ch.data, int64(len(ch.data))
		k.poll.rest, k.poll.batch, k.poll.want, k.poll.from = ch.data, false, cur.pos, ch.from
		return true, nil
	}
	return false, k.restLocked()
}

// restLocked is what there is to say when there is nothing to read: that the end is reached, or that nothing will
// come because every range has failed.
func (k *Consumer) restLocked() error {
	if len(k.left) > 0 {
		return nil // of ranges that are paused
	}
	for _, t := range k.topics {
		if !t.started {
			return nil
		}
	}
	failed := 0
	for _, cur := range k.cursors {
		switch cur.state {
		case cursorWaiting, cursorReading:
			return nil
		case cursorFailed:
			failed++
		case cursorFinished:
		}
	}
	switch {
	case failed > 0:
		return base.Errorf(base.CodePartial, "poll", "nothing is left to read: %d ranges have failed and wait for a seek", failed)
	case k.cfg.stop == stopAtEnd:
		return errAtEnd
	}
	for _, t := range k.topics {
		if len(k.cfg.ranges[t.name]) == 0 {
			return nil // the successors of its last ranges are being looked up
		}
	}
	return errAtEnd // only sealed ranges were asked for
}

func (k *Consumer) takeError() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.takeErrorLocked()
}

func (k *Consumer) takeErrorLocked() error {
	for _, t := range k.topics {
		if err := t.startErr; err != nil {
			t.startErr = nil
			return err
		}
	}
	if len(k.errs) == 0 {
		return nil
	}
	err := k.errs[0]
	k.errs = append(k.errs[:0], k.errs[1:]...)
	return err
}

// decode returns the next messages of the chunk, and lets go of it at its end. It may return none: what was
// fetched can lie before the start or behind the stop, a seek may have made it stale, or its range is paused.
func (k *Consumer) decode() ([]Message, error) {
	p := &k.poll
	d, ok := k.beginDecoding(p)
	if !ok {
		return nil, nil
	}
	more, err := d.run()
	k.mu.Lock()
	defer k.mu.Unlock()
	cur := p.cur
	if cur.gen != p.gen { // a seek came while the lock was free
		k.releaseLocked(p)
		return nil, nil
	}
	if d.epoch > 0 {
		cur.epoch = d.epoch
	}
	cur.pos = max(cur.pos, p.want)
	k.lent = cur
	if err != nil {
		k.releaseLocked(p)
		cur.spoiledLocked(p.from, err, time.Now())
		return d.messages, k.lastOrNone(d.messages)
	}
	if !more {
		k.releaseLocked(p)
	}
	cur.checkEndLocked()
	return d.messages, nil
}

// lastOrNone returns the error that was just reported when there are no messages to return before it.
func (k *Consumer) lastOrNone(messages []Message) error {
	if len(messages) > 0 {
		return nil
	}
	return k.takeErrorLocked()
}

// beginDecoding looks at what others may change while the lock is free. A chunk that is not to be decoded now is let
// go of.
func (k *Consumer) beginDecoding(p *polling) (decoding, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	cur := p.cur
	switch {
	case cur.gen != p.gen:
		k.releaseLocked(p)
		return decoding{}, false
	case cur.paused && cur.state == cursorReading:
		k.putBackLocked(p)
		return decoding{}, false
	}
	return decoding{k: k, p: p, stop: cur.stopAt, epoch: cur.epoch}, true
}

// putBackLocked makes what is left of the chunk the first one of its range again, where cur.pos says how much of it has
// been returned.
func (k *Consumer) putBackLocked(p *polling) {
	p.cur.chunks = slices.Insert(p.cur.chunks, 0, chunk{data: p.rest, from: p.from})
	k.queued += int64(len(p.rest))
	k.releaseLocked(p)
}

// releaseLocked lets go of the chunk; the room it leaves may start a fetch.
func (k *Consumer) releaseLocked(p *polling) {
	k.queued -= p.size
	p.cur, p.data, p.rest = nil, nil, nil
	p.reader.Detach()
	k.nudge()
}

// decoding is one decode under way.
type decoding struct {
	k        *Consumer
	p        *polling
	stop     int64
	epoch    base.Epoch // of the last batch
	messages []Message
}

// run decodes until it has as many messages as one Poll may return, and reports whether the chunk holds more.
func (d *decoding) run() (more bool, err error) {
	p := d.p
	limit := d.k.cfg.maxPollRecords
	for len(d.messages) < limit {
		if !p.batch {
			if len(p.data) == 0 {
				return false, nil
			}
			if err := d.open(); err != nil {
				return false, err
			}
		}
		rec, ok := p.reader.Next()
		if !ok {
			if err := p.reader.Err(); err != nil {
				return false, err
			}
			d.close()
			continue
		}
		if rec.Offset < p.want || d.stop >= 0 && rec.Offset >= d.stop {
			continue
		}
		p.want = rec.Offset + 1
		if d.messages == nil {
			d.messages = make([]Message, 0, min(limit, int(p.head.End()-rec.Offset)))
		}
		d.messages = append(d.messages, Message{
			Record: d.record(&rec), Range: p.cur.ref.Range, Offset: rec.Offset, LeaderEpoch: base.Epoch(p.head.Epoch),
		})
		if p.want == p.head.End() {
			d.close() // a chunk that is read to its end is done now, not at the next Poll
		}
	}
	return p.batch || len(p.data) > 0, nil
}

// open begins the next batch. Its CRC is checked here, and that its epoch is no older than the one before it:
// together with the chain of offsets that is what a replica must not get wrong.
func (d *decoding) open() error {
	p := d.p
	h, err := header.Parse(p.data)
	if err != nil {
		return err
	}
	if err := p.reader.Reset(p.data[:h.Size()]); err != nil {
		return err
	}
	if base.Epoch(h.Epoch) < d.epoch {
		return base.Errorf(base.CodeCorruptData, "", "the batch at %d is of epoch %d, behind one of epoch %d", h.BaseOffset, h.Epoch, d.epoch)
	}
	d.epoch = base.Epoch(h.Epoch)
	p.head, p.batch, p.data = h, true, p.data[h.Size():]
	return nil
}

// close ends the batch.
func (d *decoding) close() {
	p := d.p
	p.batch, p.rest = false, p.data
	p.want = max(p.want, p.head.End())
	p.reader.Detach()
}

// record turns a stored record into what was sent.
func (d *decoding) record(rec *record.Record) Record {
	r := Record{Topic: d.p.cur.t.name, Key: rec.Key, Value: rec.Value, Headers: rec.Headers, Timestamp: time.UnixMilli(rec.TimestampMs)}
	for i := range rec.Headers {
		if rec.Headers[i].Key == RouteHeader {
			r.RoutingKey = rec.Headers[i].Value
			r.Headers = append(append(make([]Header, 0, len(rec.Headers)-1), rec.Headers[:i]...), rec.Headers[i+1:]...)
			if len(r.Headers) == 0 {
				r.Headers = nil
			}
			break
		}
	}
	return r
}
