package sdk

import (
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/mux"
	"github.com/eastguard/eastguard/internal/record"
	"github.com/eastguard/eastguard/internal/wire"
)

// attemptTimeout is how long a try may stay without an answer. The broker is told and answers within it, so a try
// that runs into it (by attemptGrace) sits on a connection that is dead without saying so.
const (
	attemptTimeout = 10 * time.Second
	attemptGrace   = time.Second
	answerMargin   = 250 * time.Millisecond
)

// answerWithin is how long a broker is given for a try of a batch that has so much time left. It is less than that, so
// that what the broker has to say for itself is heard before the batch is given up.
func answerWithin(left time.Duration) time.Duration {
	return min(left-min(answerMargin, left/20), attemptTimeout)
}

// send encodes the batch at its first try and hands it to the connection. An error means that nothing was sent
// and that no answer will come.
func (b *buffer) send(conn *mux.Conn, bt *batch, try int) error {
	if bt.encoded == nil {
		bt.traced.taken(bt.sentAt)
		if err := b.encode(bt); err != nil {
			return err
		}
		bt.traced.encoded(time.Now())
	}
	if limit := b.p.c.maxBatch.Load(); limit > 0 && int64(len(bt.encoded)) > limit {
		return base.Errorf(base.CodeBatchTooLarge, "send", "the batch has %d bytes, the brokers take %d", len(bt.encoded), limit)
	}
	timeout := answerWithin(time.Until(bt.deadline))
	b.p.stats.tries.Add(1)
	_, err := conn.Go(wire.KindProduce, bt.request(b.ref, timeout), bt.body(), func(r mux.Response, err error) {
		b.answered(conn, bt, try, r, err)
	})
	return err
}

// encode finishes the batch and lets its builder go to the next one.
func (b *buffer) encode(bt *batch) error {
	encoded, err := bt.builder.Build(b.pt.pool.space(bt.builder.Size()), bt.identity.id, bt.identity.epoch, bt.sequence)
	if err != nil {
		return about("encode batch", err)
	}
	limit := b.p.c.maxBatch.Load()
	if int64(len(encoded)) > limit && limit > 0 && b.pt.codec != CompressionNone && int64(bt.builder.Size()) <= limit {
		// A record at the limit that does not compress: what the codec adds to it is what makes it too large.
		if encoded, err = plain(encoded, bt); err != nil {
			return err
		}
	}
	bt.encoded = encoded
	b.pt.pool.builders.Put(bt.builder)
	bt.builder = nil
	return nil
}

// plain is a finished batch without its compression.
func plain(compressed []byte, bt *batch) ([]byte, error) {
	rd := record.NewReader(maxDecodedBytes)
	if err := rd.Reset(compressed); err != nil {
		return nil, err
	}
	bd := record.NewBuilder(CompressionNone, 0)
	for {
		r, ok := rd.Next()
		if !ok {
			break
		}
		bd.Append(r)
	}
	if err := rd.Err(); err != nil {
		return nil, err
	}
	return bd.Build(nil, bt.identity.id, bt.identity.epoch, bt.sequence)
}

// answered takes the answer to a try. It runs on the connection's reader and must not block.
func (b *buffer) answered(conn *mux.Conn, bt *batch, try int, r mux.Response, err error) {
	now := time.Now()
	b.mu.Lock()
	if bt.tries != try || bt.state != batchFlying {
		// The watch gave this try up. Its records have been told so, or a later try is on its way.
		b.mu.Unlock()
		return
	}
	b.flying--
	ack := wire.ProduceResponse{Replicas: b.replicas}
	if err == nil {
		if err = wire.Decode(r.Message, &ack); err != nil {
			err = about("send", err).WithOutcome(base.Unknown)
		}
	}
	if err != nil {
		bt.state = batchWaiting
		bt.ambiguous = bt.ambiguous || ambiguous(err)
		b.failLocked(bt, err)
		b.pump(now)
		return
	}
	bt.state = batchDone
	bt.ack = ack
	if len(ack.Replicas) > 0 {
		b.replicas = ack.Replicas
	}
	bt.traced.answered(bt.sentAt, now, r.Payload)
	if !ack.Duplicate {
		b.pt.ackedFrom(b.ref.Range, ack.Segment)
	}
	b.acked, b.failures, b.rounds, b.lastErr = true, 0, 0, nil
	// Senders that wait are woken before the pump sends more: it may have a megabyte to compress, and a Send that
	// waits is somebody's latency.
	b.finishLocked()
	b.pump(now)
}

// finishLocked lets the finished batches at the head of the queue go.
//
// They are handed over under mu: were it let go before, an answer that comes on another connection could hand over
// the next batch first, and callbacks of one range would run out of order.
func (b *buffer) finishLocked() {
	n := 0
	for n < len(b.queue) && b.queue[n].state == batchDone {
		b.p.finish(b, b.queue[n])
		n++
	}
	if n == 0 {
		return
	}
	rest := copy(b.queue, b.queue[n:])
	clear(b.queue[rest:])
	b.queue = b.queue[:rest]
}
