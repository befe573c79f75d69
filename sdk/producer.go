package sdk

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/keyspace"
	"github.com/eastguard/eastguard/internal/record"
)

// RouteHeader is the header in which a record keeps its routing key when that is not its key.
const RouteHeader = "eg-route"

// Producer sends records. It may be used by any number of goroutines; the records that one goroutine sends with
// one key are stored in the order sent.
type Producer struct {
	c     *Client
	cfg   producerConfig
	topic string // where a record goes that names none

	memory   memory
	stats    producerCounters
	finisher finisher
	waiters  sync.Pool // *waiter
	closed   atomic.Bool
	home     atomic.Pointer[producerTopic] // of topic, for the common case

	mu     sync.Mutex
	topics map[string]*producerTopic
}

// NewProducer makes a producer that sends to topic, and to other topics for records that name one. An empty topic
// is for producers whose records all do. Nothing is sent, and no broker asked, before the first record.
//
// Errors: CodeInvalidArgument for options that do not fit together; CodeInvalidTopicName.
func (c *Client) NewProducer(topic string, opts ...ProducerOption) (*Producer, error) {
	cfg, err := newProducerConfig(opts)
	if err != nil {
		return nil, err
	}
	if topic != "" {
		if err := checkName(topic); err != nil {
			return nil, about("new producer", err)
		}
	}
	p := &Producer{c: c, cfg: cfg, topic: topic, topics: make(map[string]*producerTopic)}
	p.memory.limit = cfg.bufferBytes
	p.finisher.p = p
	p.waiters.New = func() any { return &waiter{ready: make(chan struct{}, 1)} }
	return p, c.register(p)
}

// Send sends one record and waits for its ack. Among concurrent senders records still share batches; a single one
// pays the linger, which WithLinger(0) turns off.
//
// When ctx ends first the record may still be stored: the error's outcome is unknown. For the other errors see
// SendAsync.
func (p *Producer) Send(ctx context.Context, r Record) (Ack, error) {
	if ctx.Err() != nil {
		return Ack{}, contextError(ctx, "send", base.NotApplied)
	}
	return p.sendWait(ctx, &r, nil)
}

// SendTraced is Send, and tells where the time went.
func (p *Producer) SendTraced(ctx context.Context, r Record) (Ack, Trace, error) {
	if ctx.Err() != nil {
		return Ack{}, Trace{}, contextError(ctx, "send", base.NotApplied)
	}
	// The trace is not the waiter's own: a sender whose context ends leaves it to the batch, and takes none.
	trace := new(Trace)
	ack, err := p.sendWait(ctx, &r, trace)
	if err != nil {
		return ack, Trace{}, err
	}
	return ack, *trace, nil
}

func (p *Producer) sendWait(ctx context.Context, r *Record, trace *Trace) (Ack, error) {
	w := p.waiters.Get().(*waiter)
	w.trace = trace
	if err := p.enqueue(ctx, r, completion{wait: w, start: time.Now()}); err != nil {
		w.trace = nil
		p.waiters.Put(w)
		return Ack{}, err
	}
	select {
	case <-w.ready:
		ack, err := w.ack, w.err
		w.ack, w.err, w.trace = Ack{}, nil, nil
		p.waiters.Put(w)
		return ack, err
	case <-ctx.Done():
		// The batch still holds the waiter, so it does not go back to the pool.
		return Ack{}, contextError(ctx, "send", base.Unknown)
	}
}

// SendAsync takes one record and returns; done is called with its ack or error, once, if it is not nil. The
// record's bytes are copied before SendAsync returns. An error from SendAsync itself means that the record was not
// taken and done will not be called.
//
// SendAsync waits while the buffer is full (WithBufferBytes), at most for the delivery timeout, and while the
// topic's route is being fetched for the first time.
//
// Callbacks of one producer run one at a time on a goroutine of their own, and those of one range in the order
// its records were sent. A callback may send, but one that waits (in Flush, or for room in a full buffer) waits
// for callbacks behind itself.
//
// Errors: CodeRecordTooLarge; CodeTopicNotFound; CodeInvalidArgument; CodeBusy with WithFailWhenFull; CodeTimeout
// when no room came; CodeShuttingDown once closed; CodeProducerFenced when another producer took over the name.
// To done in addition: whatever kept the brokers from storing the record until the delivery timeout, with the
// outcome not_applied, and CodeTimeout with the outcome unknown when it may have been stored.
func (p *Producer) SendAsync(r Record, done func(Ack, error)) error {
	return p.enqueue(context.Background(), &r, completion{call: done, start: time.Now()})
}

// enqueue puts a record into the buffer of its range.
func (p *Producer) enqueue(ctx context.Context, r *Record, c completion) error {
	table, err := p.tableFor(ctx, r.Topic)
	if err != nil {
		return err
	}
	c.routed()
	if limit := p.c.maxRecord.Load(); limit > 0 {
		if n := recordBytes(r); n > limit {
			return base.Errorf(base.CodeRecordTooLarge, "send", "the record has %d bytes, the brokers take %d", n, limit)
		}
	}
	rec, h, err := p.encodeForm(r, c.start)
	if err != nil {
		return err
	}
	cost := recordCost(&rec)
	if err := p.memory.take(ctx, cost, p.cfg.deliveryTimeout, p.cfg.failWhenFull); err != nil {
		return err
	}
	for {
		if table.pick(h).append(rec, h, cost, c) {
			return nil
		}
		// The range was split, merged or removed between the look at the table and the append, or the producer
		// was closed: the table has been changed before the buffer was.
		if table, err = p.tableFor(ctx, r.Topic); err != nil {
			p.memory.release(cost)
			return err
		}
	}
}

// encodeForm is the record as the builder takes it, and where it belongs.
func (p *Producer) encodeForm(r *Record, now time.Time) (record.Record, hashed, error) {
	if r.Timestamp.IsZero() {
		r.Timestamp = now
	}
	rec := record.Record{Key: r.Key, Value: r.Value, Headers: r.Headers, TimestampMs: r.Timestamp.UnixMilli()}
	for i := range r.Headers {
		if r.Headers[i].Key == RouteHeader {
			return rec, hashed{}, base.Errorf(base.CodeInvalidArgument, "send", "header %s is the SDK's own; set Record.RoutingKey", RouteHeader)
		}
	}
	routing := r.Key
	if r.RoutingKey != nil {
		routing = r.RoutingKey
		if r.Key == nil || !bytes.Equal(r.RoutingKey, r.Key) {
			rec.Headers = append(append(make([]Header, 0, len(r.Headers)+1), r.Headers...), Header{Key: RouteHeader, Value: r.RoutingKey})
		}
	}
	if routing == nil {
		return rec, hashed{keyless: true}, nil
	}
	return rec, hashed{hash: keyspace.HashKey(routing)}, nil
}

// recordBytes is the size that max_record_bytes limits: what the user gave.
func recordBytes(r *Record) int64 {
	n := len(r.Key) + len(r.Value)
	if r.RoutingKey != nil {
		n += len(RouteHeader) + len(r.RoutingKey)
	}
	for i := range r.Headers {
		n += len(r.Headers[i].Key) + len(r.Headers[i].Value)
	}
	return int64(n)
}

// recordCost is no less than the record's size in a batch: the varints around its parts take at most so much.
func recordCost(r *record.Record) int64 {
	const around, aroundHeader = 36, 10
	n := around + len(r.Key) + len(r.Value)
	for i := range r.Headers {
		n += aroundHeader + len(r.Headers[i].Key) + len(r.Headers[i].Value)
	}
	return int64(n)
}

// checkName is the rule for names of topics that already exist, internal ones among them.
func checkName(topic string) error {
	if len(topic) > len(base.InternalTopicPrefix) && topic[:len(base.InternalTopicPrefix)] == base.InternalTopicPrefix {
		return base.CheckTopicName(topic[len(base.InternalTopicPrefix):])
	}
	return base.CheckTopicName(topic)
}

// Flush sends what is buffered without waiting for the linger, and waits until all that was sent before the call
// has been acknowledged or has failed, callbacks included.
func (p *Producer) Flush(ctx context.Context) error {
	// A range that is split in the middle of this hands its records to buffers that were not there at the start.
	seen := make(map[*buffer]bool)
	for {
		var waits []<-chan struct{}
		fresh := false
		for _, b := range p.buffers() {
			if seen[b] {
				continue
			}
			seen[b], fresh = true, true
			if finished := b.flush(time.Now()); finished != nil {
				waits = append(waits, finished)
			}
		}
		if !fresh {
			return nil
		}
		for _, finished := range waits {
			select {
			case <-finished:
			case <-ctx.Done():
				return contextError(ctx, "flush", base.Unknown)
			}
		}
	}
}

// Close takes no more records, flushes until ctx ends, fails what is left then, and waits for the callbacks. An error
// says that ctx ended first. It may be called more than once, and not from a callback, for which it would wait.
func (p *Producer) Close(ctx context.Context) error {
	p.closed.Store(true)
	for _, b := range p.buffers() {
		b.refuse()
	}
	err := p.Flush(ctx)
	p.abort()
	return err
}

// abort ends the producer now.
func (p *Producer) abort() {
	p.closed.Store(true)
	for _, b := range p.buffers() {
		b.abort(errClosed("producer"))
	}
	p.finisher.wait()
	p.c.unregister(p)
}

// buffers lists every buffer there is. No new ones come once closed is set.
func (p *Producer) buffers() []*buffer {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []*buffer
	for _, pt := range p.topics {
		all = append(all, pt.all()...)
	}
	return all
}
