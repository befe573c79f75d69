package sdk

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
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

// Answers may overtake each other. A broker recognises retries among the last five batches, so nothing may be sent
// that would push the first unanswered one out of its memory.
func TestNothingRunsAheadOfTheFirstUnanswered(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		topic := c.addTopic("orders", 1)
		hold := make(chan struct{})
		c.script = func(n int, _ *fakeProduce) verdict {
			if n == 2 {
				return verdict{hold: hold}
			}
			return verdict{}
		}
		p, err := cl.NewProducer("orders", WithMaxBatchRecords(1))
		require.NoError(t, err)
		var s sent
		for i := range 20 {
			require.NoError(t, p.SendAsync(Record{Value: value(i)}, s.done(i)))
		}
		synctest.Wait()
		require.Equal(t, 1, s.count(), "only the first is acknowledged in order")
		require.Len(t, topic.ranges[0].batches, 6)
		close(hold)
		require.NoError(t, p.Close(t.Context()))
		requireOnce(t, c, topic, 1, 20)
	})
}

func TestRetriesKeepOrderAndDoNotDouble(t *testing.T) {
	busy := base.Errorf(base.CodeBusy, "produce", "at a limit")
	scripts := map[string]func(n int, p *fakeProduce) verdict{
		"lost answers":   func(n int, _ *fakeProduce) verdict { return verdict{lose: n%4 == 2} },
		"lost requests":  func(n int, _ *fakeProduce) verdict { return verdict{drop: n%4 == 3} },
		"busy":           func(n int, _ *fakeProduce) verdict { return refuseWhen(n%3 == 1, busy) },
		"first is busy":  func(n int, _ *fakeProduce) verdict { return refuseWhen(n == 1, busy) },
		"out of nothing": func(n int, _ *fakeProduce) verdict { return refuseWhen(n == 2, base.CodeOutOfOrder) },
		"unknown outcome": func(n int, p *fakeProduce) verdict {
			return refuseWhen(n%7 == 0, base.Errorf(base.CodeTimeout, "produce", "slow").WithOutcome(base.Unknown))
		},
	}
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
				topic := c.addTopic("orders", 1)
				c.script = script
				p, err := cl.NewProducer("orders", WithLinger(0), WithMaxBatchRecords(3))
				require.NoError(t, err)
				var s sent
				const n = 200
				for i := range n {
					require.NoError(t, p.SendAsync(Record{Key: []byte("k"), Value: value(i)}, s.done(i)))
				}
				require.NoError(t, p.Close(t.Context()))
				requireOnce(t, c, topic, 1, n)
				require.Len(t, s.acks, n)
				for i := range n {
					require.NoError(t, s.errs[i])
					require.Equal(t, i, s.order[i], "callbacks come in order")
					require.Equal(t, int64(i), s.acks[i].Offset)
				}
			})
		})
	}
}

func refuseWhen(when bool, err error) verdict {
	if when {
		return verdict{refuse: err}
	}
	return verdict{}
}

func TestFollowsTheLeader(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		topic := c.addTopic("orders", 1)
		p, err := cl.NewProducer("orders", WithLinger(0))
		require.NoError(t, err)
		for i := range 10 {
			ack, err := p.Send(t.Context(), Record{Value: value(i)})
			require.NoError(t, err)
			require.Equal(t, int64(i), ack.Offset)
			c.move(topic, 1, []base.NodeID{"n2", "n1"}[i%2])
		}
		requireOnce(t, c, topic, 1, 10)
		require.NoError(t, p.Close(t.Context()))
	})
}

func TestBrokerRestartLosesAndDoublesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		topic := c.addTopic("orders", 1)
		p, err := cl.NewProducer("orders", WithMaxBatchRecords(7))
		require.NoError(t, err)
		const n = 500
		for i := range n {
			if i%100 == 50 {
				c.stop("n1")
				go func() {
					time.Sleep(700 * time.Millisecond)
					c.start("n1")
				}()
			}
			require.NoError(t, p.SendAsync(Record{Value: value(i)}, mustAck(t)))
			time.Sleep(10 * time.Millisecond)
		}
		require.NoError(t, p.Close(t.Context()))
		requireOnce(t, c, topic, 1, n)
	})
}

func TestForgottenProducerGoesOn(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		topic := c.addTopic("orders", 1)
		p, err := cl.NewProducer("orders", WithLinger(0))
		require.NoError(t, err)
		for i := range 10 {
			_, err := p.Send(t.Context(), Record{Value: value(i)})
			require.NoError(t, err, "what was never stored may go again under another identity")
			c.mu.Lock()
			clear(topic.ranges[0].producers) // as after a day
			c.mu.Unlock()
		}
		requireOnce(t, c, topic, 1, 10)
		require.Equal(t, uint64(9), p.Stats().Identities)
		require.NoError(t, p.Close(t.Context()))
	})
}

func TestForgottenProducerWithALostAnswerIsUnknown(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		topic := c.addTopic("orders", 1)
		p, err := cl.NewProducer("orders", WithLinger(0))
		require.NoError(t, err)
		_, err = p.Send(t.Context(), Record{Value: value(0)})
		require.NoError(t, err)
		c.script = func(n int, _ *fakeProduce) verdict {
			if n == 2 {
				return verdict{lose: true}
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			if n == 3 {
				clear(topic.ranges[0].producers)
			}
			return verdict{}
		}
		_, err = p.Send(t.Context(), Record{Value: value(1)})
		require.ErrorIs(t, err, CodeTimeout)
		require.ErrorIs(t, err, CodeUnknownProducer)
		require.Equal(t, OutcomeUnknown, OutcomeOf(err))
		_, err = p.Send(t.Context(), Record{Value: value(2)})
		require.NoError(t, err)
		requireOnce(t, c, topic, 1, 3) // it had been stored
		require.NoError(t, p.Close(t.Context()))
	})
}

func TestDeliveryTimeout(t *testing.T) {
	t.Run("never sent", func(t *testing.T) {
		inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
			c.addTopic("orders", 1)
			p, err := cl.NewProducer("orders", WithLinger(0), WithDeliveryTimeout(3*time.Second))
			require.NoError(t, err)
			_, err = p.Send(t.Context(), Record{Value: value(0)})
			require.NoError(t, err)
			c.stop("n1")
			c.stop("n2")
			synctest.Wait()
			began := time.Now()
			_, err = p.Send(t.Context(), Record{Value: value(1)})
			require.ErrorIs(t, err, CodeUnreachable)
			require.Equal(t, OutcomeNotApplied, OutcomeOf(err))
			require.Equal(t, 3*time.Second, time.Since(began))
			require.NoError(t, p.Close(t.Context()))
		})
	})
	t.Run("no answer", func(t *testing.T) {
		inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
			topic := c.addTopic("orders", 1)
			c.script = func(n int, _ *fakeProduce) verdict { return verdict{mute: n == 1} }
			p, err := cl.NewProducer("orders", WithLinger(0), WithDeliveryTimeout(3*time.Second))
			require.NoError(t, err)
			began := time.Now()
			_, err = p.Send(t.Context(), Record{Value: value(0)})
			require.ErrorIs(t, err, CodeTimeout)
			require.Equal(t, OutcomeUnknown, OutcomeOf(err))
			require.Equal(t, 3*time.Second, time.Since(began))
			_, err = p.Send(t.Context(), Record{Value: value(1)})
			require.NoError(t, err)
			require.Equal(t, uint64(1), p.Stats().Identities, "an unknown ends the identity")
			requireOnce(t, c, topic, 1, 2)
			require.NoError(t, p.Close(t.Context()))
		})
	})
	t.Run("no answer to the last of many tries", func(t *testing.T) {
		inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
			c.addTopic("orders", 1)
			c.script = func(n int, _ *fakeProduce) verdict {
				if n < 3 {
					return verdict{refuse: base.Errorf(base.CodeDiskFull, "append", "no room")}
				}
				return verdict{mute: true}
			}
			p, err := cl.NewProducer("orders", WithLinger(0), WithDeliveryTimeout(3*time.Second))
			require.NoError(t, err)
			_, err = p.Send(t.Context(), Record{Value: value(0)})
			require.ErrorIs(t, err, CodeTimeout)
			require.Equal(t, OutcomeUnknown, OutcomeOf(err))
			require.ErrorContains(t, err, "before that: no room [DISK_FULL]")
			require.NoError(t, p.Close(t.Context()))
		})
	})
	t.Run("the broker's reason is heard before time is up", func(t *testing.T) {
		inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
			c.addTopic("orders", 1)
			c.script = func(_ int, p *fakeProduce) verdict { // one that waits for as long as it was told to
				time.Sleep(time.Duration(p.req.TimeoutMs) * time.Millisecond)
				return verdict{refuse: base.Errorf(base.CodeNoLeader, "append", "2 of 4 nodes can take a segment, 3 are needed")}
			}
			p, err := cl.NewProducer("orders", WithLinger(0), WithDeliveryTimeout(9500*time.Millisecond))
			require.NoError(t, err)
			_, err = p.Send(t.Context(), Record{Value: value(0)})
			require.ErrorContains(t, err, "2 of 4 nodes can take a segment, 3 are needed")
			require.NoError(t, p.Close(t.Context()))
		})
	})
	t.Run("a dead connection is noticed", func(t *testing.T) {
		inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
			topic := c.addTopic("orders", 1)
			c.script = func(n int, _ *fakeProduce) verdict { return verdict{mute: n == 1} }
			p, err := cl.NewProducer("orders", WithLinger(0))
			require.NoError(t, err)
			began := time.Now()
			_, err = p.Send(t.Context(), Record{Value: value(0)})
			require.NoError(t, err, "tried again on another connection, and recognised")
			require.Less(t, time.Since(began), 12*time.Second)
			require.Equal(t, uint64(1), p.Stats().Duplicates)
			requireOnce(t, c, topic, 1, 1)
			require.NoError(t, p.Close(t.Context()))
		})
	})
}

func TestWithoutIdempotenceALostAnswerIsUnknown(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		topic := c.addTopic("orders", 1)
		c.script = func(n int, _ *fakeProduce) verdict {
			switch n {
			case 1:
				return verdict{refuse: base.CodeBusy}
			case 3:
				return verdict{lose: true}
			}
			return verdict{}
		}
		p, err := cl.NewProducer("orders", WithLinger(0), WithIdempotence(false))
		require.NoError(t, err)
		_, err = p.Send(t.Context(), Record{Value: value(0)})
		require.NoError(t, err, "a refusal is tried again")
		_, err = p.Send(t.Context(), Record{Value: value(1)})
		require.Equal(t, OutcomeUnknown, OutcomeOf(err))
		_, err = p.Send(t.Context(), Record{Value: value(2)})
		require.NoError(t, err)
		requireOnce(t, c, topic, 1, 3)
		require.NoError(t, p.Close(t.Context()))
	})
}

func TestNamedProducerIsFenced(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		topic := c.addTopic("orders", 1)
		old, err := cl.NewProducer("orders", WithLinger(0), WithProducerName("billing"))
		require.NoError(t, err)
		_, err = old.Send(t.Context(), Record{Value: value(0)})
		require.NoError(t, err)
		young, err := cl.NewProducer("orders", WithLinger(0), WithProducerName("billing"))
		require.NoError(t, err)
		_, err = young.Send(t.Context(), Record{Value: value(1)})
		require.NoError(t, err)
		for range 2 {
			_, err = old.Send(t.Context(), Record{Value: value(9)})
			require.ErrorIs(t, err, CodeProducerFenced)
			require.Equal(t, OutcomeNotApplied, OutcomeOf(err))
		}
		requireOnce(t, c, topic, 1, 2)
		require.NoError(t, old.Close(t.Context()))
		require.NoError(t, young.Close(t.Context()))
	})
}

func TestNamedProducerTakesTheNextEpochAfterAnUnknown(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		topic := c.addTopic("orders", 1)
		c.script = func(n int, _ *fakeProduce) verdict { return verdict{mute: n == 1} }
		p, err := cl.NewProducer("orders", WithLinger(0), WithProducerName("billing"), WithDeliveryTimeout(2*time.Second))
		require.NoError(t, err)
		_, err = p.Send(t.Context(), Record{Value: value(0)})
		require.Equal(t, OutcomeUnknown, OutcomeOf(err))
		_, err = p.Send(t.Context(), Record{Value: value(1)})
		require.NoError(t, err)
		require.Equal(t, int16(2), c.opened["billing"])
		requireOnce(t, c, topic, 1, 2)
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

func TestARefusedBatchDoesNotStopTheNext(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		topic := c.addTopic("orders", 1)
		c.script = func(n int, _ *fakeProduce) verdict { return refuseWhen(n == 2, base.CodeCorruptBatch) }
		p, err := cl.NewProducer("orders", WithLinger(0), WithMaxBatchRecords(1))
		require.NoError(t, err)
		var s sent
		for i := range 8 {
			require.NoError(t, p.SendAsync(Record{Value: value(i)}, s.done(i)))
		}
		require.NoError(t, p.Close(t.Context()))
		require.ErrorIs(t, s.errs[1], CodeCorruptBatch)
		recs := c.records(topic, 1)
		require.Len(t, recs, 7)
		for i, want := range []int{0, 2, 3, 4, 5, 6, 7} {
			require.Equal(t, string(value(want)), string(recs[i].Value))
		}
		require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7}, s.order)
	})
}

func TestKeylessRecordsGoRoundByBytes(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		topic := c.addTopic("orders", 2)
		p, err := cl.NewProducer("orders", WithMaxBatchBytes(10_000))
		require.NoError(t, err)
		for range 80 {
			require.NoError(t, p.SendAsync(Record{Value: make([]byte, 990)}, nil))
		}
		require.NoError(t, p.Close(t.Context()))
		require.Less(t, int64(30), topic.ranges[0].end)
		require.Less(t, int64(30), topic.ranges[1].end)
	})
}

func TestKeylessRecordsGoRoundByBatch(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		topic := c.addTopic("orders", 4)
		p, err := cl.NewProducer("orders", WithMaxBatchRecords(10))
		require.NoError(t, err)
		for i := range 80 {
			require.NoError(t, p.SendAsync(Record{Value: value(i)}, nil))
		}
		require.NoError(t, p.Close(t.Context()))
		for _, r := range topic.ranges {
			require.Len(t, r.batches, 2)
			require.Equal(t, int64(20), r.end)
		}
	})
}

func TestRoutingKeyChoosesTheRange(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		topic := c.addTopic("orders", 8)
		p, err := cl.NewProducer("orders")
		require.NoError(t, err)
		for i := range 64 {
			require.NoError(t, p.SendAsync(Record{Key: value(i), RoutingKey: []byte("customer-7")}, nil))
		}
		require.NoError(t, p.Close(t.Context()))
		holding := 0
		for _, r := range topic.ranges {
			if r.end > 0 {
				holding++
				require.Equal(t, int64(64), r.end)
				rec := c.records(topic, r.route.ID)[0]
				require.Equal(t, []Header{{Key: RouteHeader, Value: []byte("customer-7")}}, rec.Headers)
			}
		}
		require.Equal(t, 1, holding)
	})
}

func TestRecordsNameTheirTopic(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		a, b := c.addTopic("a", 1), c.addTopic("b", 1)
		p, err := cl.NewProducer("a")
		require.NoError(t, err)
		q, err := cl.NewProducer("")
		require.NoError(t, err)
		for i := range 10 {
			require.NoError(t, p.SendAsync(Record{Value: value(i)}, mustAck(t)))
			require.NoError(t, p.SendAsync(Record{Topic: "b", Value: value(i)}, func(ack Ack, err error) {
				assert.NoError(t, err)
				assert.Equal(t, "b", ack.Topic)
			}))
		}
		_, err = q.Send(t.Context(), Record{})
		require.ErrorIs(t, err, CodeInvalidTopicName)
		require.NoError(t, p.Close(t.Context()))
		requireOnce(t, c, a, 1, 10)
		requireOnce(t, c, b, 1, 10)
		_, err = q.Send(t.Context(), Record{Topic: "b", Value: value(10)})
		require.NoError(t, err)
		require.NoError(t, q.Close(t.Context()))
	})
}

func TestUnknownTopic(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		p, err := cl.NewProducer("nothing", WithLinger(0))
		require.NoError(t, err)
		_, err = p.Send(t.Context(), Record{})
		require.ErrorIs(t, err, CodeTopicNotFound)
		c.addTopic("nothing", 1)
		_, err = p.Send(t.Context(), Record{})
		require.NoError(t, err, "it exists now")
		require.NoError(t, p.Close(t.Context()))
	})
}

func TestTopicMadeAnewGetsNoOldRecords(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		old := c.addTopic("orders", 1)
		p, err := cl.NewProducer("orders", WithLinger(0))
		require.NoError(t, err)
		_, err = p.Send(t.Context(), Record{Value: value(0)})
		require.NoError(t, err)
		young := c.addTopic("orders", 2)
		_, err = p.Send(t.Context(), Record{Value: value(1)})
		require.ErrorIs(t, err, CodeTopicNotFound)
		_, err = p.Send(t.Context(), Record{Value: value(2)})
		require.NoError(t, err)
		require.Equal(t, int64(1), young.ranges[0].end+young.ranges[1].end)
		require.Equal(t, int64(1), old.ranges[0].end)
		require.NoError(t, p.Close(t.Context()))
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

func TestSplitKeepsOrderPerKey(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		topic := c.addTopic("orders", 1)
		c.script = func(n int, _ *fakeProduce) verdict { return verdict{lose: n%6 == 4} }
		p, err := cl.NewProducer("orders", WithLinger(0), WithMaxBatchRecords(5))
		require.NoError(t, err)
		const n, keys = 600, 16
		for i := range n {
			if i == 100 {
				c.split(topic, 1)
			}
			if i == 300 {
				c.split(topic, 2)
				c.split(topic, 3)
			}
			require.NoError(t, p.SendAsync(Record{Key: fmt.Appendf(nil, "key%d", i%keys), Value: value(i)}, mustAck(t)))
			if i%25 == 0 {
				time.Sleep(20 * time.Millisecond)
			}
		}
		require.NoError(t, p.Close(t.Context()))
		last := make(map[string]int)
		total := 0
		for _, r := range topic.ranges { // parents come before their children
			for _, rec := range c.records(topic, r.route.ID) {
				i, err := strconv.Atoi(strings.TrimPrefix(string(rec.Value), "v"))
				require.NoError(t, err)
				if prev, ok := last[string(rec.Key)]; ok {
					require.Equal(t, prev+keys, i, "key %s", rec.Key)
				}
				last[string(rec.Key)] = i
				total++
			}
		}
		require.Equal(t, n, total)
	})
}
