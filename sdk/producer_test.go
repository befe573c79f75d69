package sdk

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eastguard/eastguard/internal/base"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// inBubble runs a test against a fake cluster in virtual time.
func inBubble(t *testing.T, run func(t *testing.T, c *fakeCluster, cl *Client)) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(t, "n1", "n2")
		cl := c.client()
		defer c.close()
		defer func() { require.NoError(t, cl.Close()) }()
		run(t, c, cl)
	})
}

// inRealTime is inBubble without virtual time, for what keeps channels in pools of the process (zstd does).
func inRealTime(t *testing.T, run func(t *testing.T, c *fakeCluster, cl *Client)) {
	c := newFakeCluster(t, "n1", "n2")
	cl := c.client()
	defer c.close()
	defer func() { require.NoError(t, cl.Close()) }()
	run(t, c, cl)
}

// sent collects the results of SendAsync.
type sent struct {
	mu    sync.Mutex
	acks  []Ack
	errs  []error
	order []int
}

func (s *sent) done(i int) func(Ack, error) {
	return func(a Ack, err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.acks, s.errs, s.order = append(s.acks, a), append(s.errs, err), append(s.order, i)
	}
}

func (s *sent) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.acks)
}

func value(i int) []byte { return []byte("v" + strconv.Itoa(i)) }

// requireOnce checks that a range holds the values 0 to n-1, once each and in order.
func requireOnce(t *testing.T, c *fakeCluster, topic *fakeTopic, id base.RangeID, n int) {
	t.Helper()
	recs := c.records(topic, id)
	for i := range min(len(recs), n) {
		require.Equal(t, string(value(i)), string(recs[i].Value), "record %d", i)
	}
	require.Equal(t, n, len(recs), "records stored")
}

// mustAck is a callback for records that must be acknowledged.
func mustAck(t *testing.T) func(Ack, error) {
	return func(_ Ack, err error) { assert.NoError(t, err) }
}

func TestSendWaitsForTheAck(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		topic := c.addTopic("orders", 1)
		p, err := cl.NewProducer("orders", WithLinger(0))
		require.NoError(t, err)
		for i := range 3 {
			ack, err := p.Send(t.Context(), Record{Key: []byte("k"), Value: value(i)})
			require.NoError(t, err)
			require.Equal(t, Position{Topic: "orders", Range: 1, Offset: int64(i)}, ack.Position)
			require.Equal(t, []NodeID{"n1"}, ack.Replicas)
			require.Equal(t, SegmentID(1), ack.Segment)
		}
		requireOnce(t, c, topic, 1, 3)
		require.NoError(t, p.Close(t.Context()))
		require.Zero(t, p.Stats().BufferedBytes)
	})
}

func TestLingerSharesABatch(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		topic := c.addTopic("orders", 1)
		p, err := cl.NewProducer("orders", WithLinger(7*time.Millisecond))
		require.NoError(t, err)
		var s sent
		require.NoError(t, p.SendAsync(Record{Value: value(0)}, s.done(0)))
		began := time.Now()
		require.NoError(t, p.SendAsync(Record{Value: value(1)}, s.done(1)))
		time.Sleep(3 * time.Millisecond)
		require.NoError(t, p.SendAsync(Record{Value: value(2)}, s.done(2)))
		for {
			synctest.Wait()
			if s.count() > 0 {
				break
			}
			time.Sleep(time.Millisecond)
		}
		require.Equal(t, 7*time.Millisecond, time.Since(began), "the linger counts from the first record")
		require.Len(t, s.acks, 3)
		require.Len(t, topic.ranges[0].batches, 1)
		require.Equal(t, []int{0, 1, 2}, s.order)
		require.NoError(t, p.Close(t.Context()))
	})
}

func TestBatchesFillWhileFiveAreOnTheWay(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		topic := c.addTopic("orders", 1)
		hold := make(chan struct{})
		c.script = func(int, *fakeProduce) verdict { return verdict{hold: hold} }
		p, err := cl.NewProducer("orders", WithLinger(0))
		require.NoError(t, err)
		for i := range 50 {
			require.NoError(t, p.SendAsync(Record{Value: value(i)}, nil))
			synctest.Wait()
		}
		require.Len(t, topic.ranges[0].batches, 5, "no more than five are on the way")
		close(hold)
		require.NoError(t, p.Flush(t.Context()))
		requireOnce(t, c, topic, 1, 50)
		require.Len(t, topic.ranges[0].batches, 6, "the others shared a batch")
		require.NoError(t, p.Close(t.Context()))
	})
}

func TestBufferBlocksAndFails(t *testing.T) {
	record := Record{Value: make([]byte, 1000)}
	t.Run("blocks until the delivery timeout", func(t *testing.T) {
		inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
			c.addTopic("orders", 1)
			c.script = func(int, *fakeProduce) verdict { return verdict{mute: true} }
			p, err := cl.NewProducer("orders", WithLinger(0), WithBufferBytes(10_000), WithDeliveryTimeout(5*time.Second))
			require.NoError(t, err)
			n := 0
			began := time.Now()
			for ; err == nil && time.Since(began) < time.Second; n++ {
				err = p.SendAsync(record, nil)
				if n == 8 {
					break
				}
			}
			require.NoError(t, err)
			require.LessOrEqual(t, p.Stats().BufferedBytes, int64(10_000))
			time.Sleep(time.Second)
			require.NoError(t, p.SendAsync(record, nil), "room comes when the first time out")
			require.Equal(t, 5*time.Second, time.Since(began))
			require.NoError(t, p.Close(t.Context()))
		})
	})
	t.Run("fails at once", func(t *testing.T) {
		inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
			c.addTopic("orders", 1)
			hold := make(chan struct{})
			c.script = func(int, *fakeProduce) verdict { return verdict{hold: hold} }
			p, err := cl.NewProducer("orders", WithLinger(0), WithBufferBytes(10_000), WithFailWhenFull())
			require.NoError(t, err)
			for err == nil {
				err = p.SendAsync(record, nil)
			}
			require.ErrorIs(t, err, CodeBusy)
			close(hold)
			require.NoError(t, p.Flush(t.Context()))
			require.NoError(t, p.SendAsync(record, nil))
			require.NoError(t, p.Close(t.Context()))
		})
	})
	t.Run("a cancelled wait takes nothing", func(t *testing.T) {
		inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
			c.addTopic("orders", 1)
			hold := make(chan struct{})
			c.script = func(int, *fakeProduce) verdict { return verdict{hold: hold} }
			p, err := cl.NewProducer("orders", WithLinger(0), WithBufferBytes(1500))
			require.NoError(t, err)
			require.NoError(t, p.SendAsync(record, nil))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err = p.Send(ctx, record)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, OutcomeNotApplied, OutcomeOf(err))
			close(hold)
			require.NoError(t, p.Close(t.Context()))
			require.Zero(t, p.Stats().BufferedBytes)
			require.Equal(t, uint64(1), p.Stats().Acked)
		})
	})
}

func TestRecordTooLarge(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		c.maxRecord, c.maxBatch = 1000, 2000
		topic := c.addTopic("orders", 1)
		p, err := cl.NewProducer("orders", WithLinger(0))
		require.NoError(t, err)
		_, err = p.Send(t.Context(), Record{Key: []byte("k"), Value: make([]byte, 1000)})
		require.ErrorIs(t, err, CodeRecordTooLarge)
		require.Equal(t, OutcomeNotApplied, OutcomeOf(err))
		_, err = p.Send(t.Context(), Record{Key: []byte("k"), Value: make([]byte, 999)})
		require.NoError(t, err)
		require.Len(t, c.records(topic, 1), 1)
		require.NoError(t, p.Close(t.Context()))
	})
}

func TestTheBrokersLimitBoundsBatches(t *testing.T) {
	inRealTime(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		c.maxRecord, c.maxBatch = 100_000, 100_000+200
		topic := c.addTopic("orders", 1)
		noise := make([]byte, 100_000)
		rng := rand.New(rand.NewPCG(1, 1))
		for i := range noise {
			noise[i] = byte(rng.Uint32())
		}
		p, err := cl.NewProducer("orders", WithCompression(CompressionZstd))
		require.NoError(t, err)
		for range 5 {
			require.NoError(t, p.SendAsync(Record{Value: noise[:40_000]}, mustAck(t)))
		}
		require.NoError(t, p.SendAsync(Record{Value: noise}, mustAck(t)))
		require.NoError(t, p.Close(t.Context()))
		require.Len(t, c.records(topic, 1), 6)
		require.Len(t, topic.ranges[0].batches, 4)
	})
}

func TestCloseWhileSending(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		topic := c.addTopic("orders", 2)
		p, err := cl.NewProducer("orders")
		require.NoError(t, err)
		var taken, answered atomic.Int64
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for i := 0; ; i++ {
					err := p.SendAsync(Record{Key: fmt.Appendf(nil, "%d-%d", g, i)}, func(_ Ack, err error) {
						assert.NoError(t, err)
						answered.Add(1)
					})
					if err != nil {
						require.ErrorIs(t, err, CodeShuttingDown)
						return
					}
					taken.Add(1)
					if i%50 == 0 {
						time.Sleep(time.Millisecond)
					}
				}
			})
		}
		time.Sleep(50 * time.Millisecond)
		require.NoError(t, p.Close(t.Context()))
		wg.Wait()
		require.Equal(t, taken.Load(), answered.Load(), "what was taken was answered")
		require.Equal(t, taken.Load(), topic.ranges[0].end+topic.ranges[1].end)
	})
}

func TestClientCloseFailsWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(t, "n1")
		cl := c.client()
		c.addTopic("orders", 1)
		c.script = func(int, *fakeProduce) verdict { return verdict{mute: true} }
		p, err := cl.NewProducer("orders", WithMaxBatchRecords(1), WithMaxInFlight(1))
		require.NoError(t, err)
		var s sent
		for i := range 2 {
			require.NoError(t, p.SendAsync(Record{Value: value(i)}, s.done(i)))
		}
		synctest.Wait()
		require.NoError(t, cl.Close())
		require.Equal(t, OutcomeUnknown, OutcomeOf(s.errs[0]), "it was on its way")
		require.Equal(t, OutcomeNotApplied, OutcomeOf(s.errs[1]), "it was not")
		require.ErrorIs(t, s.errs[1], CodeShuttingDown)
		_, err = p.Send(t.Context(), Record{})
		require.ErrorIs(t, err, CodeShuttingDown)
		c.close()
	})
}
