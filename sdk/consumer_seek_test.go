package sdk

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestConsumerPauseResumeSeek(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		c.addTopic("a", 1)
		c.addTopic("b", 1)
		fill(t, cl, "a", 0, 50)
		fill(t, cl, "b", 0, 50)
		k, err := cl.NewConsumer(WithTopics("a", "b"), WithMaxPollRecords(10))
		require.NoError(t, err)
		require.NoError(t, k.Ready(t.Context()))
		k.Pause("a")
		for _, m := range collect(t, k, 50) {
			require.Equal(t, "b", m.Topic)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err = k.Poll(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		k.Resume("a", 1)
		ms, err := k.Poll(t.Context())
		require.NoError(t, err)
		require.Equal(t, "a", ms[0].Topic)
		requireValues(t, ms, 0)
		require.NoError(t, k.Seek(Position{Topic: "a", Range: 1, Offset: 40}))
		requireValues(t, collect(t, k, 10), 40)
		require.NoError(t, k.Seek(Position{Topic: "b", Range: 1, Offset: 3}))
		requireValues(t, collect(t, k, 47), 3)
		require.ElementsMatch(t, []Position{{"a", 1, 50}, {"b", 1, 50}}, k.Positions())
		ends, err := k.EndOffsets(t.Context())
		require.NoError(t, err)
		require.ElementsMatch(t, []Position{{"a", 1, 50}, {"b", 1, 50}}, ends)
		require.ErrorIs(t, k.Seek(Position{Topic: "c", Range: 1}), CodeRangeNotFound)
		require.ErrorIs(t, k.Seek(Position{Topic: "a", Range: 1, Offset: -1}), CodeInvalidArgument)
		require.NoError(t, k.Close())
	})
}

func TestConsumerOffsetOutOfRange(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		topic := c.addTopic("orders", 1)
		fill(t, cl, "orders", 0, 100, WithMaxBatchRecords(10))
		c.mu.Lock()
		topic.ranges[0].earliest = 50
		c.mu.Unlock()

		k, err := cl.NewConsumer(WithTopics("orders"), WithStart(AtOffset(1, 20)))
		require.NoError(t, err)
		_, err = k.Poll(t.Context())
		var out *OffsetOutOfRangeError
		require.ErrorAs(t, err, &out)
		require.ErrorIs(t, err, CodeOffsetOutOfRange)
		require.Equal(t, OffsetOutOfRangeError{Position: Position{"orders", 1, 20}, Earliest: 50, End: 100}, *out)
		_, err = k.Poll(t.Context())
		require.ErrorIs(t, err, CodePartial, "nothing is left to wait for")
		require.NoError(t, k.Seek(Position{Topic: "orders", Range: 1, Offset: out.Earliest}))
		requireValues(t, collect(t, k, 50), 50)
		require.NoError(t, k.Close())

		for policy, from := range map[ResetPolicy]int{ResetEarliest: 50, ResetLatest: 100} {
			k, err := cl.NewConsumer(WithTopics("orders"), WithStart(AtOffset(1, 20)), WithReset(policy), WithStop(StopAtEnd()))
			require.NoError(t, err)
			n := 0
			for m, err := range k.Records(t.Context()) {
				require.NoError(t, err)
				require.Equal(t, int64(from+n), m.Offset)
				n++
			}
			require.Equal(t, 100-from, n)
			require.NoError(t, k.Close())
		}
	})
}

func TestRecordsGivesBackWhatWasNotTaken(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		c.addTopic("orders", 1)
		fill(t, cl, "orders", 0, 10)
		k, err := cl.NewConsumer(WithTopics("orders"))
		require.NoError(t, err)
		for m, err := range k.Records(t.Context()) {
			require.NoError(t, err)
			if m.Offset == 3 {
				break
			}
		}
		requireValues(t, collect(t, k, 6), 4)
		require.NoError(t, k.Close())
	})
}

func TestASeekDropsWhatRecordsGaveBack(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		c.addTopic("orders", 1)
		fill(t, cl, "orders", 0, 10)
		k, err := cl.NewConsumer(WithTopics("orders"))
		require.NoError(t, err)
		for _, err := range k.Records(t.Context()) {
			require.NoError(t, err)
			break
		}
		require.NoError(t, k.Seek(Position{"orders", 1, 7}))
		requireValues(t, collect(t, k, 3), 7)
		require.NoError(t, k.Seek(Position{"orders", 1, 5}))
		for m, err := range k.Records(t.Context()) { // the other way round: a seek before the break
			require.NoError(t, err)
			if m.Offset == 7 {
				require.NoError(t, k.Seek(Position{"orders", 1, 2}))
				break
			}
		}
		requireValues(t, collect(t, k, 8), 2)
		require.NoError(t, k.Close())
	})
}

func TestPauseKeepsBackWhatRecordsGaveBack(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		c.addTopic("orders", 1)
		fill(t, cl, "orders", 0, 10)
		k, err := cl.NewConsumer(WithTopics("orders"), WithStop(StopAtEnd()))
		require.NoError(t, err)
		for _, err := range k.Records(t.Context()) {
			require.NoError(t, err)
			break
		}
		k.Pause("orders")
		requireNothing(t, k)
		k.Resume("orders")
		requireValues(t, collect(t, k, 9), 1)
		_, err = k.Poll(t.Context())
		require.ErrorIs(t, err, io.EOF)
		require.NoError(t, k.Close())
	})
}

func TestConsumerSeeksWhileItPolls(t *testing.T) {
	inRealTime(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		c.addTopic("orders", 1)
		fill(t, cl, "orders", 0, 100, WithMaxBatchRecords(1))
		k, err := cl.NewConsumer(WithTopics("orders"), WithMaxPollRecords(1))
		require.NoError(t, err)
		require.NoError(t, k.Ready(t.Context()))
		seeking := make(chan struct{})
		done := make(chan struct{})
		go func() {
			defer close(seeking)
			for i := int64(0); ; i++ {
				select {
				case <-done:
					return
				default:
					assert.NoError(t, k.Seek(Position{"orders", 1, i % 50}))
					runtime.Gosched()
				}
			}
		}()
		for range 300 {
			_, err := k.Poll(t.Context())
			require.NoError(t, err)
		}
		close(done)
		<-seeking
		require.NoError(t, k.Seek(Position{"orders", 1, 90}))
		requireValues(t, collect(t, k, 10), 90)
		require.NoError(t, k.Close())
	})
}

func TestConsumerPausesInTheMiddleOfWhatItFetched(t *testing.T) {
	for _, codec := range []Compression{CompressionNone, CompressionLZ4} {
		for _, atOnce := range []int{1, 7, 10, 25} {
			t.Run(fmt.Sprintf("%s by %d", codec, atOnce), func(t *testing.T) {
				inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
					c.addTopic("orders", 1)
					fill(t, cl, "orders", 0, 50, WithMaxBatchRecords(25), WithCompression(codec))
					k, err := cl.NewConsumer(WithTopics("orders"), WithMaxPollRecords(atOnce))
					require.NoError(t, err)
					for at := 0; at < 50; {
						ms, err := k.Poll(t.Context())
						require.NoError(t, err)
						requireValues(t, ms, at)
						at += len(ms)
						require.Equal(t, int64(at), ms[len(ms)-1].Offset+1)
						k.Pause("orders")
						requireNothing(t, k)
						k.Resume("orders")
					}
					require.Equal(t, []Position{{"orders", 1, 50}}, k.Positions())
					k.mu.Lock()
					require.Zero(t, k.queued)
					k.mu.Unlock()
					require.NoError(t, k.Close())
				})
			})
		}
	}
}

func TestASeekDropsWhatAPauseKeptBack(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		c.addTopic("orders", 1)
		fill(t, cl, "orders", 0, 50, WithMaxBatchRecords(25))
		k, err := cl.NewConsumer(WithTopics("orders"), WithMaxPollRecords(10), WithStop(StopAtEnd()))
		require.NoError(t, err)
		requireValues(t, collect(t, k, 10), 0)
		k.Pause("orders")
		requireNothing(t, k)
		require.NoError(t, k.Seek(Position{"orders", 1, 5}))
		requireNothing(t, k)
		k.Resume("orders")
		var all []Message
		for m, err := range k.Records(t.Context()) {
			require.NoError(t, err)
			all = append(all, m)
		}
		require.Len(t, all, 45)
		requireValues(t, all, 5)
		k.mu.Lock()
		require.Zero(t, k.queued)
		k.mu.Unlock()
		require.NoError(t, k.Close())
	})
}

// requireNothing polls for a second and gets neither messages nor an end.
func requireNothing(t *testing.T, k *Consumer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	ms, err := k.Poll(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Empty(t, ms)
}
