package cli

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eastguard/eastguard/sdk"
)

// load sends records by a benchPlan and measures their acks. Latency runs from the *intended* time of sending: in
// an open loop a record that had to wait its turn has waited, and leaving that out would hide every stall.
type load struct {
	plan    benchPlan
	warmEnd time.Time // records intended earlier are not counted
	end     time.Time // zero when the number of records decides

	sent    atomic.Int64
	acked   atomic.Int64 // all of them, for the live line
	bytes   atomic.Int64
	clients []*loadClient
}

// loadClient is one producer and what came back to it.
type loadClient struct {
	id       int
	producer Producer
	rng      *rand.Rand
	zipf     *rand.Zipf
	pace     *pacer

	mu      sync.Mutex
	lat     latencies
	counted int64
	bytes   int64
	errors  int64
	unknown int64
	first   error
	lastAck time.Time
	warm    bool              // the warm-up is over
	before  sdk.ProducerStats // as it was then
	gaps    gaps
}

// makeRecord lets e2e put its marks into a record and hear of its fate; nil for a plain one.
type makeRecord func(c *loadClient, n int64, key int) (rec sdk.Record, settled func(err error))

func newLoad(plan benchPlan, client producerMaker, now time.Time) (*load, error) {
	l := &load{plan: plan, warmEnd: now.Add(plan.warmup)}
	if plan.duration > 0 {
		l.end = l.warmEnd.Add(plan.duration)
	}
	for i := range plan.clients {
		p, err := client.NewProducer(plan.topic, plan.producer...)
		if err != nil {
			return l, errors.Join(err, l.close(context.Background()))
		}
		c := &loadClient{
			id: i, producer: p, rng: rand.New(rand.NewPCG(uint64(i), uint64(now.UnixNano()))), lat: newLatencies(),
			warm: plan.warmup == 0, gaps: newGaps(), pace: newPacer(plan.rate/float64(plan.clients), now),
		}
		if plan.zipf > 0 {
			c.zipf = rand.NewZipf(c.rng, plan.zipf, 1, uint64(plan.keys-1))
		}
		l.clients = append(l.clients, c)
	}
	return l, nil
}

// run sends until the plan is done or ctx is, then waits for the answers.
func (l *load) run(ctx context.Context, mk makeRecord) error {
	return patiently(ctx, blockedSend+flushWait, func() error {
		var wg sync.WaitGroup
		errs := make([]error, len(l.clients))
		for i, c := range l.clients {
			wg.Go(func() { errs[i] = l.drive(ctx, c, mk) })
		}
		wg.Wait()
		return errors.Join(errs...)
	})
}

func (l *load) drive(ctx context.Context, c *loadClient, mk makeRecord) error {
	quota := share(l.plan.records, l.plan.clients, c.id)
	for n := int64(0); quota == 0 || n < quota; n++ {
		intended := time.Now()
		if c.pace.step > 0 {
			intended = c.pace.due()
			if err := sleepUntil(ctx, intended); err != nil {
				break
			}
		}
		if !l.end.IsZero() && intended.After(l.end) || ctx.Err() != nil {
			break
		}
		if !intended.Before(l.warmEnd) {
			c.endWarmup()
		}
		rec, settled := l.record(c, n, mk)
		size := int64(len(rec.Key) + len(rec.Value))
		l.sent.Add(1)
		done := func(ack sdk.Ack, err error) {
			l.answered(c, ack, err, intended, size)
			if settled != nil {
				settled(err)
			}
		}
		if l.plan.sync {
			done(c.producer.Send(ctx, rec))
			continue
		}
		if err := c.producer.SendAsync(rec, done); err != nil {
			done(sdk.Ack{}, err)
		}
	}
	// What was sent is waited for even after Ctrl-C, for a while: the report should be true of it.
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), flushWait)
		defer cancel()
	}
	return c.producer.Flush(ctx)
}

// endWarmup notes what the producer had done before the first record that counts.
func (c *loadClient) endWarmup() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.warm {
		c.warm, c.before = true, c.producer.Stats()
	}
}

// share splits total among n, the first ones taking the rest.
func share(total int64, n, i int) int64 {
	s := total / int64(n)
	if int64(i) < total%int64(n) {
		s++
	}
	return s
}

// sleepUntil returns when t has come. Timers are coarse, so records that are due together go together.
func sleepUntil(ctx context.Context, t time.Time) error {
	d := time.Until(t)
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

func (l *load) record(c *loadClient, n int64, mk makeRecord) (sdk.Record, func(error)) {
	key := -1
	if l.plan.keys > 0 {
		if key = c.rng.IntN(l.plan.keys); c.zipf != nil {
			key = int(c.zipf.Uint64())
		}
	}
	if mk != nil {
		return mk(c, n, key)
	}
	r := sdk.Record{Value: l.plan.payload.value(uint64(n)*uint64(l.plan.clients) + uint64(c.id))}
	if key >= 0 {
		r.Key = strconv.AppendInt(make([]byte, 0, 16), int64(key), 10)
	}
	return r, nil
}

func (l *load) answered(c *loadClient, ack sdk.Ack, err error, intended time.Time, size int64) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.errors++
		if sdk.OutcomeOf(err) == sdk.OutcomeUnknown {
			c.unknown++
		}
		if c.first == nil {
			c.first = err
		}
		return
	}
	l.acked.Add(1)
	l.bytes.Add(size)
	c.gaps.acked(ack, intended, now)
	if intended.Before(l.warmEnd) {
		return
	}
	c.counted++
	c.bytes += size
	c.lat.record(now.Sub(intended))
	c.lastAck = now
}

// close gives up what is still under way after flushWait: those records have been counted as unanswered.
func (l *load) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushWait)
	defer cancel()
	var errs []error
	for _, c := range l.clients {
		errs = append(errs, c.producer.Close(ctx))
	}
	return errors.Join(errs...)
}

// totals merges the clients.
func (l *load) totals() (t loadTotals) {
	t.lat = newLatencies()
	t.gaps = newGaps()
	for _, c := range l.clients {
		c.mu.Lock()
		t.lat.merge(c.lat)
		t.records += c.counted
		t.bytes += c.bytes
		t.errors += c.errors
		t.unknown += c.unknown
		t.gaps.merge(&c.gaps)
		if t.first == nil {
			t.first = c.first
		}
		if c.lastAck.After(t.lastAck) {
			t.lastAck = c.lastAck
		}
		s := c.producer.Stats()
		if c.warm {
			t.batches += int64(s.Batches - c.before.Batches)
		}
		c.mu.Unlock()
		t.retries += int64(s.Retries)
	}
	t.ranges = len(t.gaps.segments)
	return t
}

type loadTotals struct {
	lat                             latencies
	gaps                            gaps
	records, bytes, errors, unknown int64
	batches, retries                int64
	ranges                          int
	first                           error
	lastAck                         time.Time
}

// fillRandom is fast and not for secrets.
func fillRandom(b []byte) {
	rng := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	for len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, rng.Uint64())
		b = b[8:]
	}
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
}
