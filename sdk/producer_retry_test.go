package sdk

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

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
