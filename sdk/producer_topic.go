package sdk

import (
	"context"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/eastguard/eastguard/internal/base"
)

// producerTopic is one topic of a producer: its ranges' buffers and the table that finds them.
type producerTopic struct {
	p     *Producer
	topic *topic
	ids   identities
	codec Compression
	// maxBatch is the size at which batches close: the option, or what the brokers take if that is less.
	maxBatch int64
	pool     pools
	// id is the topic's id, and fixed: a topic made anew under the same name gets a producerTopic of its own.
	id base.TopicID

	table   atomic.Pointer[sendTable] // nil once the topic is gone
	fatal   atomic.Pointer[base.Error]
	renewal atomic.Bool // a route renewal asked for by an ack is under way
	cutting atomic.Bool // recut runs
	rotor   atomic.Uint32

	mu      sync.Mutex
	buffers map[base.RangeID]*buffer
}

// sendTable is the ranges of one route version, by span. It never changes.
type sendTable struct {
	route   *route
	buffers []*buffer
	rotor   *atomic.Uint32
}

// pick is the buffer of the range that owns the record: by hash, or round-robin by batch without one.
func (t *sendTable) pick(h hashed) *buffer {
	switch {
	case len(t.buffers) == 1:
		return t.buffers[0]
	case h.keyless:
		return t.buffers[int(t.rotor.Load())%len(t.buffers)]
	}
	i := sort.Search(len(t.buffers), func(i int) bool { return h.hash <= t.route.active[i].Span.Last() })
	return t.buffers[i]
}

// rotate sends keyless records to the next range, once a batch of this one is full.
func (pt *producerTopic) rotate(b *buffer) {
	t := pt.table.Load()
	if t == nil || len(t.buffers) < 2 {
		return
	}
	if at := pt.rotor.Load(); t.buffers[int(at)%len(t.buffers)] == b {
		pt.rotor.CompareAndSwap(at, at+1)
	}
}

// tableFor is the table of a topic, made when the topic is first used.
func (p *Producer) tableFor(ctx context.Context, name string) (*sendTable, error) {
	if p.closed.Load() {
		return nil, errClosed("producer")
	}
	pt := p.home.Load()
	if name != "" && name != p.topic {
		pt = p.lookup(name)
	}
	if pt != nil {
		if err := pt.fatal.Load(); err != nil {
			return nil, err
		}
		if t := pt.table.Load(); t != nil {
			return t, nil
		}
	}
	if name == "" {
		name = p.topic
	}
	return p.open(ctx, name)
}

func (p *Producer) lookup(name string) *producerTopic {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.topics[name]
}

// open fetches a topic's route and makes its buffers.
func (p *Producer) open(ctx context.Context, name string) (*sendTable, error) {
	if err := checkName(name); err != nil {
		return nil, about("send", err)
	}
	ctx, cancel := context.WithTimeout(ctx, p.cfg.deliveryTimeout)
	defer cancel()
	tp := p.c.topics.get(name)
	r, err := tp.begin(ctx)
	if err != nil {
		return nil, err
	}
	pt := &producerTopic{p: p, topic: tp, id: r.ID, ids: identities{name: p.cfg.name}, buffers: make(map[base.RangeID]*buffer)}
	pt.codec, pt.maxBatch = p.cfg.compression, int64(p.cfg.maxBatchBytes)
	if limit := p.c.maxBatch.Load(); limit > 0 {
		pt.maxBatch = min(pt.maxBatch, limit)
	}
	if !p.cfg.compressionSet {
		if pt.codec, err = ParseCompression(r.Config.Compression); err != nil {
			p.c.cfg.logger.Warn("topic compression is unknown; sending uncompressed", "topic", name, "compression", r.Config.Compression)
			pt.codec = CompressionNone
		}
	}
	pt.pool = pools{codec: pt.codec, level: p.cfg.compressionLevel}
	who := nobody
	if p.cfg.idempotent {
		if who, err = pt.ids.first(ctx, tp, r); err != nil {
			return nil, err
		}
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed.Load() {
		return nil, errClosed("producer")
	}
	if other := p.topics[name]; other != nil { // another sender was quicker
		if t := other.table.Load(); t != nil {
			return t, nil
		}
	}
	t := pt.build(r, who)
	pt.table.Store(t)
	p.topics[name] = pt
	if name == p.topic {
		p.home.Store(pt)
	}
	return t, nil
}

// build makes the table of a route, with new buffers for ranges that are new. Nobody finds it before it is stored.
func (pt *producerTopic) build(r *route, who identity) *sendTable {
	pt.mu.Lock()
	defer pt.mu.Unlock()
	t := &sendTable{route: r, rotor: &pt.rotor}
	for _, rr := range r.active {
		b := pt.buffers[rr.ID]
		if b == nil {
			b = newBuffer(pt, rr.ID, who)
			pt.buffers[rr.ID] = b
		}
		t.buffers = append(t.buffers, b)
	}
	return t
}

func (pt *producerTopic) all() []*buffer {
	pt.mu.Lock()
	defer pt.mu.Unlock()
	all := make([]*buffer, 0, len(pt.buffers))
	for _, b := range pt.buffers {
		all = append(all, b)
	}
	return all
}

// route is the newest route that the table was made from.
func (pt *producerTopic) route() *route {
	if t := pt.table.Load(); t != nil {
		return t.route
	}
	return pt.topic.current.Load()
}

// fail ends the topic for this producer: whoever sends to it gets err.
func (pt *producerTopic) fail(err error) {
	pt.fatal.CompareAndSwap(nil, about("send", err).WithOutcome(base.NotApplied))
}

// removed ends the topic because it is no more, or because its name now means another one. The next record looks
// the name up again.
func (pt *producerTopic) removed(err error) {
	pt.table.Store(nil) // before the buffers are gone: senders that meet a gone buffer look at the table again
	for _, b := range pt.all() {
		b.abort(err)
	}
}

// renew brings the table up to a newer route.
func (pt *producerTopic) renew(ctx context.Context, stale *route) (*route, error) {
	r, err := pt.topic.renew(ctx, stale)
	if err != nil {
		return nil, err
	}
	if r.ID != pt.id {
		return nil, base.Errorf(base.CodeTopicNotFound, "send", "topic %s was deleted and made anew while records were on their way to it", r.Name)
	}
	pt.follow(r)
	return r, nil
}

// ackedFrom hears which segment a batch went to. One that the route does not know is newer: the range has rolled, and the
// route is renewed beside, so that whoever must go to another replica finds those of now.
func (pt *producerTopic) ackedFrom(id base.RangeID, segment base.SegmentID) {
	r := pt.route()
	if r != nil {
		if rr := r.byRange[id]; rr != nil && rr.Active != nil && rr.Active.ID == segment {
			return
		}
	}
	if !pt.renewal.CompareAndSwap(false, true) {
		return
	}
	started := pt.p.c.group.Go("route", func(ctx context.Context) error {
		defer pt.renewal.Store(false)
		_, _ = pt.renew(ctx, r) // the sends that need it will meet the error themselves
		return nil
	})
	if !started {
		pt.renewal.Store(false)
	}
}
