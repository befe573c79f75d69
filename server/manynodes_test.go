package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/config"
	"github.com/eastguard/eastguard/sdk"
)

// Data on several nodes.

// fleet is three machines and a client.
type fleet struct {
	t        *testing.T
	machines []*machine
	cables   []*cable
	client   *sdk.Client
}

func newFleet(t *testing.T) *fleet {
	machines := three(t, func(_ int, c *config.Config) { c.BootstrapExpect = 3 })
	c := &fleet{t: t, machines: machines}
	for _, m := range machines {
		c.cables = append(c.cables, m.wire())
	}
	together(machines, (*machine).start)
	formed(t, machines)
	for shard := range machines[0].cfg.Shards {
		soon(t, fmt.Sprintf("shard %d has its voters", shard), func() bool {
			return len(machines[0].srv.host.Voters(base.ShardID{Root: uint16(shard)})) == len(machines)
		})
	}
	c.client = c.connect()
	return c
}

// lose takes a machine away without a word to the others.
func (c *fleet) lose(i int) {
	c.cables[i].pull()
	c.machines[i].stop()
}

// bring starts it again.
func (c *fleet) bring(i int) {
	c.cables[i].putBack()
	c.machines[i].start()
}

// connect makes a client of all machines.
func (c *fleet) connect() *sdk.Client {
	c.t.Helper()
	var seeds []string
	for _, m := range c.machines {
		if m.srv != nil {
			seeds = append(seeds, m.srv.Addr())
		}
	}
	client, err := sdk.NewClient(sdk.WithSeeds(seeds...))
	require.NoError(c.t, err)
	c.t.Cleanup(func() { require.NoError(c.t, client.Close()) })
	return client
}

func (c *fleet) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(c.t.Context(), d)
	c.t.Cleanup(cancel)
	return ctx
}

func (c *fleet) create(name string, ranges int, config sdk.TopicConfig) {
	c.t.Helper()
	_, err := c.client.Admin().CreateTopic(c.within(patience), sdk.CreateTopic{Name: name, Config: config, Ranges: ranges})
	require.NoError(c.t, err)
}

func (c *fleet) describe(name string) sdk.TopicDetail {
	c.t.Helper()
	d, err := c.client.Admin().DescribeTopic(c.within(patience), name)
	require.NoError(c.t, err)
	return d
}

// load produces records of a few keys until it is stopped, and remembers what was acked.
type load struct {
	t        *testing.T
	producer *sdk.Producer
	stop     chan struct{}
	done     sync.WaitGroup

	mu      sync.Mutex
	acked   map[sdk.Position]string
	unknown map[string]bool
	sent    int
}

const loadKeys = 8

func (c *fleet) load(topic string, body int) *load {
	p, err := c.client.NewProducer(topic, sdk.WithDeliveryTimeout(patience))
	require.NoError(c.t, err)
	l := &load{t: c.t, producer: p, stop: make(chan struct{}), acked: make(map[sdk.Position]string), unknown: make(map[string]bool)}
	c.t.Cleanup(l.done.Wait) // also when the test has failed: the context of each Send has ended then
	for key := range loadKeys {
		l.done.Go(func() { l.send(fmt.Sprintf("k%d", key), body) })
	}
	return l
}

func (l *load) send(key string, body int) {
	for i := 0; ; i++ {
		select {
		case <-l.stop:
			return
		case <-l.t.Context().Done():
			return
		default:
		}
		value := fmt.Sprintf("%s %d %s", key, i, strings.Repeat("x", body))
		ack, err := l.producer.Send(l.t.Context(), sdk.Record{Key: []byte(key), Value: []byte(value)})
		l.mu.Lock()
		l.sent++
		switch {
		case err == nil:
			if other, taken := l.acked[ack.Position]; taken {
				l.t.Errorf("%s was acked for %.20s and %.20s", ack.Position, other, value)
			}
			l.acked[ack.Position] = value
		case sdk.OutcomeOf(err) == sdk.OutcomeUnknown:
			l.unknown[value] = true
		default:
			l.t.Errorf("%.20s: %v", value, err)
		}
		l.mu.Unlock()
	}
}

func (l *load) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}

// reach waits until so many more records have been acked. As long as any are, it waits on.
func (l *load) reach(more int) {
	l.t.Helper()
	from := l.count()
	for at := from; at < from+more; at = l.count() {
		require.Eventually(l.t, func() bool { return l.count() > at }, patience, 5*time.Millisecond, "%d of %d more were acked, and then none", at-from, more)
	}
}

func (l *load) finish() {
	l.t.Helper()
	close(l.stop)
	l.done.Wait()
	require.NoError(l.t, l.producer.Close(context.Background()))
}

// check reads the topic from its beginning to its end: every acked record where its ack said, each once, in the order of
// its key, and nothing else but what may be there.
func (l *load) check(c *fleet, topic string) {
	l.t.Helper()
	consumer, err := c.client.NewConsumer(sdk.WithTopics(topic), sdk.WithStart(sdk.Earliest()), sdk.WithStop(sdk.StopAtEnd()))
	require.NoError(l.t, err)
	defer func() { require.NoError(l.t, consumer.Close()) }()
	seen, last := make(map[string]bool), make(map[string]int)
	ctx := c.within(patience)
	for {
		messages, err := consumer.Poll(ctx)
		for _, m := range messages {
			value := string(m.Value)
			at := sdk.Position{Topic: topic, Range: m.Range, Offset: m.Offset}
			want, acked := l.acked[at]
			require.True(l.t, !acked || want == value, "%s holds %.20s instead of %.20s", at, value, want)
			require.True(l.t, acked || l.unknown[value], "%s holds %.20s, which nobody was told of", at, value)
			require.False(l.t, seen[value], "%.20s is there twice", value)
			seen[value] = true
			var key string
			var i int
			_, err := fmt.Sscanf(value, "%s %d", &key, &i)
			require.NoError(l.t, err)
			require.True(l.t, last[key] <= i, "%s: %d after %d", key, i, last[key])
			last[key] = i
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			l.explain(c, topic, consumer)
		}
		require.NoError(l.t, err, "%d of %d read", len(seen), len(l.acked))
	}
	for at, value := range l.acked {
		require.True(l.t, seen[value], "%s at %s was acked and is lost", value[:8], at)
	}
}

// explain says where a consumer that does not come to the end stands.
func (l *load) explain(c *fleet, topic string, consumer *sdk.Consumer) {
	for _, p := range consumer.Positions() {
		l.t.Logf("the consumer is at %s: %v", p, consumer.LastError())
	}
	for _, r := range c.describe(topic).Ranges {
		for _, s := range r.Segments {
			l.t.Logf("%s %s [%d, %d) %v on %s, sealed by %s", r.ID, s.ID, s.Base, s.End, s.State, s.Replicas[0].Node, s.Cause)
		}
	}
}

// times reads when each record of the topic was appended.
func (c *fleet) times(topic string) map[sdk.RangeID][]time.Time {
	consumer, err := c.client.NewConsumer(sdk.WithTopics(topic), sdk.WithStop(sdk.StopAtEnd()))
	require.NoError(c.t, err)
	defer func() { require.NoError(c.t, consumer.Close()) }()
	times := make(map[sdk.RangeID][]time.Time)
	for m, err := range consumer.Records(c.within(patience)) {
		require.NoError(c.t, err)
		require.EqualValues(c.t, len(times[m.Range]), m.Offset)
		times[m.Range] = append(times[m.Range], m.Timestamp)
	}
	return times
}

// leaders are the nodes that lead a topic's active segments, and all that hold segments of it.
func leaders(d sdk.TopicDetail) (leading, holding map[base.NodeID]int) {
	leading, holding = map[base.NodeID]int{}, map[base.NodeID]int{}
	for _, r := range d.Ranges {
		leading[r.Leader]++
		for _, s := range r.Segments {
			holding[s.Replicas[0].Node]++
		}
	}
	return leading, holding
}

func TestSegmentsOnSeveralNodes(t *testing.T) {
	t.Parallel()
	c := newFleet(t)
	c.create("orders", 8, sdk.TopicConfig{SegmentBytes: base.MinSegmentBytes})
	d := c.describe("orders")
	require.Equal(t, 3, d.Summary.ReplicationFactor, "the smaller of three and the nodes")
	soon(t, "every range is written on three nodes", func() bool { // not at once where the machine stood still meanwhile
		ranges := c.describe("orders").Ranges
		return !slices.ContainsFunc(ranges, func(r sdk.RangeDetail) bool {
			return len(r.Segments[len(r.Segments)-1].Replicas) < d.Copies
		})
	})

	l := c.load("orders", 4000)
	l.reach(1500)
	l.finish()
	require.Empty(t, l.unknown)
	l.check(c, "orders")

	d = c.describe("orders")
	leading, holding := leaders(d)
	require.Len(t, holding, 3, "with so many rolls every node has some: %v", holding)
	require.EqualValues(t, len(l.acked), d.Summary.Records, "the active segments' leaders were asked: %v", leading)
	require.False(t, d.Summary.Partial)
	list, err := c.client.Admin().ListTopics(c.within(patience), sdk.ListTopics{})
	require.NoError(t, err)
	require.Len(t, list.Topics, 1)
	require.EqualValues(t, len(l.acked), list.Topics[0].Records)
	t.Logf("%d records in %d segments: led by %v, held by %v", len(l.acked), d.Summary.Segments, leading, holding)
}

// The first record of a time or later is found wherever its segment lies.
func TestOffsetsByTimeOverSeveralNodes(t *testing.T) {
	t.Parallel()
	c := newFleet(t)
	c.create("orders", 2, sdk.TopicConfig{SegmentBytes: base.MinSegmentBytes})
	l := c.load("orders", 4000)
	l.reach(400)
	l.finish()
	times := c.times("orders")
	for r, ts := range times {
		for _, i := range []int{0, len(ts) / 3, len(ts) / 2, len(ts) - 1} {
			positions, err := c.client.Admin().Offsets(c.within(patience), "orders", sdk.AtTime(ts[i]))
			require.NoError(t, err)
			for _, p := range positions {
				if p.Range != r {
					continue
				}
				require.LessOrEqual(t, p.Offset, int64(i))
				for at := range p.Offset {
					require.True(t, times[r][at].Before(ts[i]), "%s: %d is of %s, and %d was the answer for %s", r, at, times[r][at], p.Offset, ts[i])
				}
				first := int64(i)
				for first > 0 && !times[r][first-1].Before(ts[i]) {
					first--
				}
				require.GreaterOrEqual(t, p.Offset+100, first, "the batch that holds it, not one long before")
			}
		}
	}
}

// What retention removes goes from every node that held it, and the range begins where it was cut, whoever leads it.
func TestRetentionOverSeveralNodes(t *testing.T) {
	t.Parallel()
	c := newFleet(t)
	c.create("orders", 1, sdk.TopicConfig{SegmentBytes: base.MinSegmentBytes, RetentionBytes: 3 * base.MinSegmentBytes})
	l := c.load("orders", 4000)
	l.reach(600)
	l.finish()
	soon(t, "all but the newest segments are gone", func() bool { return len(c.describe("orders").Ranges[0].Segments) <= 5 })
	d := c.describe("orders").Ranges[0]
	require.Positive(t, d.Earliest)
	known := make(map[base.SegmentID]bool)
	for _, s := range d.Segments {
		known[s.ID] = true
	}
	for _, m := range c.machines {
		soon(t, m.cfg.NodeID+" keeps no more than that", func() bool {
			for _, s := range m.srv.store.All() {
				if s.Base < s.DurableEnd && !known[s.Segment] {
					return false
				}
			}
			return true
		})
	}
	first, err := c.client.Admin().Offsets(c.within(patience), "orders", sdk.Earliest())
	require.NoError(t, err)
	require.Equal(t, d.Earliest, first[0].Offset)
	consumer, err := c.client.NewConsumer(sdk.WithTopics("orders"), sdk.WithStart(sdk.AtOffset(1, 0)), sdk.WithReset(sdk.ResetEarliest), sdk.WithStop(sdk.StopAtEnd()))
	require.NoError(t, err)
	defer func() { require.NoError(t, consumer.Close()) }()
	next := d.Earliest
	for m, err := range consumer.Records(c.within(patience)) {
		require.NoError(t, err)
		require.Equal(t, next, m.Offset, "from where the range begins, without a gap")
		next++
	}
	require.EqualValues(t, len(l.acked), next)
}

// A range whose only copy is on a node that is away waits for it; the others go on.
func TestARangeWaitsForItsOnlyHolder(t *testing.T) {
	t.Parallel()
	c := newFleet(t)
	c.create("orders", 16, sdk.TopicConfig{ReplicationFactor: 1})
	id := c.machines[2].srv.id.Node
	lost := make(map[sdk.RangeID]bool)
	for _, r := range c.describe("orders").Ranges {
		lost[r.ID] = r.Leader == id
	}
	c.lose(2)
	c.client = c.connect()
	send := func(timeout time.Duration) (there, gone int) {
		p, err := c.client.NewProducer("orders", sdk.WithDeliveryTimeout(timeout))
		require.NoError(t, err)
		defer func() { _ = p.Close(context.Background()) }()
		var mu sync.Mutex
		for i := range 64 {
			require.NoError(t, p.SendAsync(sdk.Record{Key: fmt.Appendf(nil, "key-%d", i), Value: []byte("v")}, func(a sdk.Ack, err error) {
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					there++
					return
				}
				gone++
				var e *sdk.Error
				if !errors.As(err, &e) || !e.Code.Info().Retryable || e.Outcome == sdk.OutcomeApplied {
					t.Errorf("not a typed error that says to try again: %v", err)
				}
			}))
		}
		require.NoError(t, p.Flush(context.Background()))
		mu.Lock()
		defer mu.Unlock()
		return there, gone
	}
	there, gone := 0, 0
	for began := time.Now(); there == 0 && time.Since(began) < patience; {
		there, gone = send(3 * time.Second) // the shards may have to find leaders first
	}
	require.Positive(t, there, "ranges on other nodes take records")
	require.Positive(t, gone, "nobody else has the rest: %v", lost)

	c.bring(2)
	formed(t, c.machines)
	there, gone = send(patience)
	require.Equal(t, 64, there)
	require.Zero(t, gone)
}

// Coordinators come and go while segments roll from node to node: each segment gets one successor.
func TestRollsWhileCoordinatorsChange(t *testing.T) {
	t.Parallel()
	c := newFleet(t)
	c.create("orders", 8, sdk.TopicConfig{SegmentBytes: base.MinSegmentBytes})
	l := c.load("orders", 4000)
	admin := c.client.Admin()
	moved := 0
	for round := range 12 {
		l.reach(40)
		for shard := range 4 {
			to := c.machines[(round+shard)%3].srv.id.Node
			_, err := admin.TransferShard(c.within(5*time.Second), sdk.TransferShard{Shard: sdk.ShardID{Root: uint16(shard)}, To: to})
			if err == nil { // it may refuse: the node leads already, or is not caught up
				moved++
			}
		}
	}
	l.finish()
	require.Positive(t, moved)
	require.Empty(t, l.unknown)
	l.check(c, "orders")
	for _, r := range c.describe("orders").Ranges {
		next := int64(0)
		for _, s := range r.Segments {
			require.Equal(t, next, s.Base)
			next = s.End
		}
	}
}

func TestANodeRestartsUnderLoad(t *testing.T) {
	t.Parallel()
	c := newFleet(t)
	c.create("orders", 8, sdk.TopicConfig{SegmentBytes: base.MinSegmentBytes})
	l := c.load("orders", 1000)
	l.reach(500)
	for _, i := range []int{1, 2, 0} {
		m := c.machines[i]
		m.stop()
		m.start()
		formed(t, c.machines)
		l.reach(300)
	}
	l.finish()
	l.check(c, "orders")
	t.Logf("%d acked, %d unknown", len(l.acked), len(l.unknown))
}
