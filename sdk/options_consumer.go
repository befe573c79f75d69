package sdk

import (
	"time"

	"github.com/eastguard/eastguard/internal/base"
)

// Defaults of the consumer's options.
const (
	DefaultFetchMaxBytes  = 8 << 20
	DefaultRangeMaxBytes  = 4 << 20
	DefaultPrefetchBytes  = 32 << 20
	DefaultMaxWait        = 500 * time.Millisecond
	DefaultMaxPollRecords = 1000
)

// ConsumerOption configures NewConsumer.
type ConsumerOption interface{ applyConsumer(*consumerConfig) }

type consumerOption func(*consumerConfig)

func (o consumerOption) applyConsumer(c *consumerConfig) { o(c) }

type consumerConfig struct {
	topics         []string
	start          startSpec
	ranges         map[string][]RangeID
	fetchMaxBytes  int
	rangeMaxBytes  int
	prefetchBytes  int64
	maxWait        time.Duration
	maxPollRecords int
	stop           stopKind
	reset          ResetPolicy
	readFrom       ReadFrom
}

// WithTopics names the topics to read; it may be given several times. At least one is needed.
func WithTopics(topics ...string) ConsumerOption {
	return consumerOption(func(c *consumerConfig) { c.topics = append(c.topics, topics...) })
}

// WithRanges limits reading of one topic to the ranges given. Successors of a range that is split or merged are
// not followed then. Default: all ranges of the topic, and their successors.
func WithRanges(topic string, ranges ...RangeID) ConsumerOption {
	return consumerOption(func(c *consumerConfig) {
		if c.ranges == nil {
			c.ranges = make(map[string][]RangeID)
		}
		c.ranges[topic] = append(c.ranges[topic], ranges...)
	})
}

// WithStart says where to begin. Default: Earliest().
func WithStart(s Start) ConsumerOption {
	return consumerOption(func(c *consumerConfig) { s.applyStart(&c.start) })
}

// WithFetchMaxBytes bounds one answer of a broker; a single larger batch still comes whole. Default: 8 MiB.
func WithFetchMaxBytes(n int) ConsumerOption {
	return consumerOption(func(c *consumerConfig) { c.fetchMaxBytes = n })
}

// WithRangeMaxBytes bounds one range's part of an answer, so that no range starves the others. Default: 4 MiB.
func WithRangeMaxBytes(n int) ConsumerOption {
	return consumerOption(func(c *consumerConfig) { c.rangeMaxBytes = n })
}

// WithPrefetchBytes bounds what is fetched ahead of Poll. It is a mark, not a wall: no fetch is begun above it, but
// what is on its way then still comes. That is up to four answers a broker, each within WithFetchMaxBytes and what
// was left below the mark when it was asked for. Most of them wait for records to come, which is why none of this
// room is set aside for them: the ranges that have records would wait with those that have none. Default: 32 MiB.
func WithPrefetchBytes(n int64) ConsumerOption {
	return consumerOption(func(c *consumerConfig) { c.prefetchBytes = n })
}

// WithMaxWait is how long a broker holds a fetch that finds nothing new, at least 1 ms. It does not delay new
// records. Default: 500 ms.
func WithMaxWait(d time.Duration) ConsumerOption {
	return consumerOption(func(c *consumerConfig) { c.maxWait = d })
}

// WithMaxPollRecords bounds the messages of one Poll. Default: 1,000.
func WithMaxPollRecords(n int) ConsumerOption {
	return consumerOption(func(c *consumerConfig) { c.maxPollRecords = n })
}

// WithReadFrom says which replica to read from: ReadNearest, ReadLeader or ReadNode. Default: ReadNearest.
func WithReadFrom(r ReadFrom) ConsumerOption {
	return consumerOption(func(c *consumerConfig) { c.readFrom = r })
}

// Stop says when a consumer has read enough.
type Stop struct{ kind stopKind }

type stopKind uint8

const (
	stopNever stopKind = iota
	stopAtEnd
)

// StopAtEnd ends the consumer at the ends of the ranges as they were when it began: Poll returns io.EOF then, and
// Records ends.
func StopAtEnd() Stop { return Stop{kind: stopAtEnd} }

// WithStop says when to stop. Default: never.
func WithStop(s Stop) ConsumerOption {
	return consumerOption(func(c *consumerConfig) { c.stop = s.kind })
}

// ResetPolicy says what a consumer does at an offset that its range does not hold.
type ResetPolicy uint8

const (
	// ResetNone makes Poll return an OffsetOutOfRangeError; the range waits for a Seek. The default.
	ResetNone ResetPolicy = iota
	// ResetEarliest goes on from the earliest offset the range still has.
	ResetEarliest
	// ResetLatest goes on from the range's end.
	ResetLatest
)

// WithReset sets what happens at an offset that retention has removed or that never was. Default: ResetNone.
func WithReset(r ResetPolicy) ConsumerOption {
	return consumerOption(func(c *consumerConfig) { c.reset = r })
}

// newConsumerConfig applies opts over the defaults and says what cannot be.
func newConsumerConfig(opts []ConsumerOption) (consumerConfig, error) {
	c := consumerConfig{
		fetchMaxBytes: DefaultFetchMaxBytes, rangeMaxBytes: DefaultRangeMaxBytes, prefetchBytes: DefaultPrefetchBytes,
		maxWait: DefaultMaxWait, maxPollRecords: DefaultMaxPollRecords,
	}
	for _, o := range opts {
		o.applyConsumer(&c)
	}
	return c, c.validate()
}

func (c *consumerConfig) validate() error {
	bad := func(format string, args ...any) error {
		return base.Errorf(base.CodeInvalidArgument, "new consumer", format, args...)
	}
	seen := make(map[string]bool)
	for _, t := range c.topics {
		if t == "" {
			return bad("a topic name cannot be empty")
		}
		if seen[t] {
			return bad("topic %s is named twice", t)
		}
		seen[t] = true
	}
	for t := range c.ranges {
		if !seen[t] {
			return bad("ranges are given for topic %s, which is not among the topics", t)
		}
	}
	switch {
	case len(c.topics) == 0:
		return bad("no topic is named; use WithTopics")
	case c.fetchMaxBytes < 1 || c.rangeMaxBytes < 1 || c.prefetchBytes < 1:
		return bad("the byte limits must be positive: fetch %d, range %d, prefetch %d", c.fetchMaxBytes, c.rangeMaxBytes, c.prefetchBytes)
	case c.maxWait < time.Millisecond:
		return bad("max wait must be at least 1ms, it is %v: a broker that holds nothing would be asked without a pause", c.maxWait)
	case c.maxPollRecords < 1:
		return bad("max poll records must be positive, it is %d", c.maxPollRecords)
	case c.reset > ResetLatest:
		return bad("unknown reset policy %d", c.reset)
	case c.readFrom.kind == readNode && c.readFrom.node == "":
		return bad("the node to read from has no name")
	}
	return c.start.validate(seen)
}
