package sdk

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/base"
)

// Consumer reads topics: each range in the order of its offsets, the ranges side by side. One goroutine at a time
// may be in Poll or Records; the other methods may be called by any.
//
// Fetching goes on behind Poll, up to WithPrefetchBytes, by one goroutine and the answers of the brokers. Poll
// decodes on the caller's goroutine.
type Consumer struct {
	c   *Client
	cfg consumerConfig

	stop    context.CancelFunc
	done    chan struct{} // closed when run has ended
	wake    chan struct{} // capacity 1: run has something to look at
	news    chan struct{} // capacity 1: Poll has something to look at
	turn    chan struct{} // capacity 1: holds the right to poll
	trouble chan struct{} // capacity 1: Ready has an error to look at
	ready   chan struct{} // closed when every topic's start is known

	poll polling // the chunk being decoded; whoever holds turn owns it

	mu      sync.Mutex
	topics  []*consumerTopic
	cursors []*cursor // of all topics; finished ones too
	queue   []*cursor // that have chunks, in the order in which they got the first
	queued  int64     // bytes of all chunks
	fetches []*fetch  // on the way
	errs    []error   // for Poll to return
	lent    *cursor   // whose messages the last Poll returned; nil once a seek has made them stale
	left    []leftover
	closed  bool
	started bool // ready is closed
}

// NewConsumer makes a consumer and begins to find its start; Ready waits for that.
//
// Errors: CodeInvalidArgument for options that do not fit together. That a topic does not exist is for Ready and
// Poll to say.
func (c *Client) NewConsumer(opts ...ConsumerOption) (*Consumer, error) {
	cfg, err := newConsumerConfig(opts)
	if err != nil {
		return nil, err
	}
	for _, t := range cfg.topics {
		if err := checkName(t); err != nil {
			return nil, about("new consumer", err)
		}
	}
	k := &Consumer{
		c: c, cfg: cfg, done: make(chan struct{}), wake: make(chan struct{}, 1), news: make(chan struct{}, 1),
		turn: make(chan struct{}, 1), trouble: make(chan struct{}, 1), ready: make(chan struct{}),
	}
	k.turn <- struct{}{}
	for _, name := range cfg.topics {
		k.topics = append(k.topics, &consumerTopic{k: k, topic: c.topics.get(name), name: name})
	}
	if err := c.register(k); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(c.group.Context())
	k.stop = cancel
	if !c.group.Go("consumer", func(context.Context) error { k.run(ctx); return nil }) {
		cancel()
		return nil, errClosed("client")
	}
	return k, nil
}

// Ready waits until the start of every range is known: records sent after it are read by a consumer that began at
// Latest(). An error that Poll would return ends the wait as well.
func (k *Consumer) Ready(ctx context.Context) error {
	for {
		select {
		case <-k.ready:
			return nil
		case <-ctx.Done():
			return contextError(ctx, "start consumer", base.NotApplied)
		case <-k.done:
			return errClosed("consumer")
		case <-k.trouble:
			if err := k.takeError(); err != nil {
				return err
			}
		}
	}
}

// Records reads until ctx ends, the loop breaks, or StopAtEnd is reached, which ends the sequence without an
// error. An error is yielded with an empty message; the loop may go on after it, as after an error of Poll.
func (k *Consumer) Records(ctx context.Context) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		for {
			messages, err := k.Poll(ctx)
			if atEnd(err) {
				return
			}
			if err != nil {
				if !yield(Message{}, err) || ctx.Err() != nil || base.CodeOf(err) == base.CodeShuttingDown {
					return
				}
				continue
			}
			for i := range messages {
				if !yield(messages[i], nil) {
					k.giveBack(messages[i+1:])
					return
				}
			}
		}
	}
}

// Pause stops fetching ranges of a topic, all of them when none is named, and keeps back what is fetched already.
func (k *Consumer) Pause(topic string, ranges ...RangeID) { k.setPaused(topic, ranges, true) }

// Resume undoes Pause.
func (k *Consumer) Resume(topic string, ranges ...RangeID) { k.setPaused(topic, ranges, false) }

func (k *Consumer) setPaused(topic string, ranges []RangeID, paused bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, cur := range k.cursors {
		if cur.t.name == topic && (len(ranges) == 0 || contains(ranges, cur.ref.Range)) {
			cur.paused = paused
			cur.enqueueLocked()
		}
	}
	signal(k.news) // what was given back may be returned again
	k.nudge()
}

// Seek makes Poll go on at a position. It also revives a range that failed. What was fetched of the range is
// dropped; a Poll that is under way may still return records from before.
//
// Errors: CodeRangeNotFound for a range that is not read; CodeInvalidArgument for a negative offset.
func (k *Consumer) Seek(p Position) error {
	if p.Offset < 0 {
		return base.Errorf(base.CodeInvalidArgument, "seek", "an offset cannot be negative: %s", p)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	cur := k.find(p.Topic, p.Range)
	if cur == nil {
		return base.Errorf(base.CodeRangeNotFound, "seek", "range %s of topic %s is not read by this consumer", p.Range, p.Topic)
	}
	k.dropLeftLocked(cur)
	cur.seekLocked(p.Offset)
	k.nudge()
	return nil
}

// Positions is where each range goes on: the offset behind the last record that Poll returned. Ranges whose start
// is not known yet, and those read to their end, are left out.
func (k *Consumer) Positions() []Position {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []Position
	for _, cur := range k.cursors {
		if cur.state == cursorReading || cur.state == cursorFailed {
			all = append(all, cur.position())
		}
	}
	return all
}

// LastError is why a range is not read at present: what its last attempt failed with, while it is tried again. It is
// nil when every range is well, or paused, or has no attempt behind it. What is not tried again Poll returns.
func (k *Consumer) LastError() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, cur := range k.cursors {
		if cur.state == cursorReading && !cur.paused && cur.lastErr != nil {
			return about("read "+cur.position().String(), cur.lastErr)
		}
	}
	return nil
}

// EndOffsets asks for the present end of each range that is read, to compare with Positions.
func (k *Consumer) EndOffsets(ctx context.Context) ([]Position, error) {
	var all []Position
	for _, t := range k.topics {
		r, err := t.topic.route(ctx)
		if err != nil {
			return nil, err
		}
		k.mu.Lock()
		var ids []base.RangeID
		for _, cur := range k.cursors {
			if cur.t == t {
				ids = append(ids, cur.ref.Range)
			}
		}
		k.mu.Unlock()
		err = k.c.listOffsets(ctx, r, ids, startSpec{kind: startLatest}, func(id RangeID, b bounds) {
			all = append(all, Position{Topic: t.name, Range: id, Offset: b.Offset})
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Close stops fetching and wakes a Poll that waits. It may be called more than once.
func (k *Consumer) Close() error {
	k.abort()
	<-k.done
	k.c.unregister(k)
	return nil
}

func (k *Consumer) abort() {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.stop()
}

// nudge makes run look at everything again. It never waits.
func (k *Consumer) nudge() { signal(k.wake) }

// signal fills a channel of capacity one. A signal that finds it full is not lost: whoever takes the one inside
// looks at the state after both.
func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

func contains(ids []RangeID, id RangeID) bool {
	for _, i := range ids {
		if i == id {
			return true
		}
	}
	return false
}

// OffsetOutOfRangeError says that a range does not hold the offset that was to be read: it was removed by
// retention, or never was. errors.Is finds CodeOffsetOutOfRange in it. The range waits for a Seek.
type OffsetOutOfRangeError struct {
	// Position is what was to be read.
	Position Position
	// Earliest and End bound what the range holds: offsets from Earliest up to, not including, End.
	Earliest, End int64
}

func (e *OffsetOutOfRangeError) Error() string {
	return fmt.Sprintf("read %s: the offset is not in the range's log, which goes from %d to %d", e.Position, e.Earliest, e.End)
}

// Unwrap gives the error its code.
func (e *OffsetOutOfRangeError) Unwrap() error {
	return base.Errorf(base.CodeOffsetOutOfRange, "read", "offset %d is not within [%d, %d)", e.Position.Offset, e.Earliest, e.End).
		WithHint("seek to an offset within the bounds, or set WithReset")
}

// fetchLate is how much longer than its wait a fetch may take before its connection is looked after, and how long that
// look may take before another replica is asked.
const fetchLate = 250 * time.Millisecond

// fetchSlack is how much longer than its wait a fetch may take before its connection counts as dead.
const fetchSlack = 10 * time.Second
