package sdk

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
)

// fill sends the values 0 to n-1 and waits for them.
func fill(t *testing.T, cl *Client, topic string, from, n int, opts ...ProducerOption) {
	t.Helper()
	p, err := cl.NewProducer(topic, opts...)
	require.NoError(t, err)
	for i := from; i < from+n; i++ {
		require.NoError(t, p.SendAsync(Record{Key: fmt.Appendf(nil, "k%d", i%7), Value: value(i)}, mustAck(t)))
	}
	require.NoError(t, p.Close(t.Context()))
}

// collect polls until n messages have come.
func collect(t *testing.T, k *Consumer, n int) []Message {
	t.Helper()
	var all []Message
	for len(all) < n {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		ms, err := k.Poll(ctx)
		cancel()
		require.NoError(t, err)
		all = append(all, ms...)
	}
	require.Equal(t, n, len(all))
	return all
}

// requireValues checks that messages are the values from, from+1, … at offsets that follow each other.
func requireValues(t *testing.T, ms []Message, from int) {
	t.Helper()
	for i := range ms {
		require.Equal(t, string(value(from+i)), string(ms[i].Value))
		require.Equal(t, ms[0].Offset+int64(i), ms[i].Offset)
	}
}

func TestConsumerStarts(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		c.addTopic("orders", 1)
		fill(t, cl, "orders", 0, 100, WithMaxBatchRecords(7))
		middle := time.Now().Add(time.Hour)
		time.Sleep(2 * time.Hour)
		fill(t, cl, "orders", 100, 100, WithMaxBatchRecords(7))

		for name, tc := range map[string]struct {
			start Start
			from  int
		}{
			"earliest": {Earliest(), 0},
			"offset":   {AtOffset(1, 33), 33},
			"time":     {AtTime(middle), 100},
			"never":    {AtTime(time.Now().Add(time.Hour)), 200},
			"latest":   {Latest(), 200},
		} {
			k, err := cl.NewConsumer(WithTopics("orders"), WithStart(tc.start), WithStop(StopAtEnd()))
			require.NoError(t, err)
			var all []Message
			for m, err := range k.Records(t.Context()) {
				require.NoError(t, err)
				all = append(all, m)
			}
			require.Equal(t, 200-tc.from, len(all), name)
			requireValues(t, all, tc.from)
			_, err = k.Poll(t.Context())
			require.ErrorIs(t, err, io.EOF)
			require.NoError(t, k.Close())
		}
	})
}

func TestConsumerFollows(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		c.addTopic("orders", 1)
		k, err := cl.NewConsumer(WithTopics("orders"), WithStart(Latest()))
		require.NoError(t, err)
		require.NoError(t, k.Ready(t.Context()))
		p, err := cl.NewProducer("orders", WithLinger(0))
		require.NoError(t, err)
		for i := range 20 {
			began := time.Now()
			_, err := p.Send(t.Context(), Record{Value: value(i)})
			require.NoError(t, err)
			requireValues(t, collect(t, k, 1), i)
			require.Zero(t, time.Since(began), "a record is there as soon as it is stored, whatever the long poll waits for")
			time.Sleep(333 * time.Millisecond)
		}
		require.NoError(t, k.Close())
		require.NoError(t, p.Close(t.Context()))
	})
}

func TestConsumerCarriesEverything(t *testing.T) {
	records := []Record{
		{},
		{Key: []byte{}, Value: []byte{}},
		{Key: []byte("k"), Value: nil},
		{Key: nil, Value: []byte("v"), Headers: []Header{{Key: "", Value: nil}, {Key: "a", Value: []byte{}}, {Key: "a", Value: []byte("2")}}},
		{Key: []byte("k"), RoutingKey: []byte("other"), Headers: []Header{{Key: "h", Value: []byte("x")}}},
		{Key: []byte("k"), RoutingKey: []byte{}},
		{Key: []byte{0, 0xff, 0xfe}, Value: []byte{0x80}},
	}
	for _, codec := range []Compression{CompressionNone, CompressionLZ4, CompressionZstd} {
		t.Run(codec.String(), func(t *testing.T) {
			inRealTime(t, func(t *testing.T, c *fakeCluster, cl *Client) {
				c.addTopic("orders", 1)
				p, err := cl.NewProducer("orders", WithCompression(codec))
				require.NoError(t, err)
				stamp := time.UnixMilli(1_700_000_000_123)
				for i, r := range records {
					r.Timestamp = stamp.Add(time.Duration(i) * time.Millisecond)
					require.NoError(t, p.SendAsync(r, mustAck(t)))
				}
				require.NoError(t, p.Close(t.Context()))
				k, err := cl.NewConsumer(WithTopics("orders"), WithMaxPollRecords(3))
				require.NoError(t, err)
				for i, m := range collect(t, k, len(records)) {
					want := records[i]
					want.Topic, want.Timestamp = "orders", stamp.Add(time.Duration(i)*time.Millisecond)
					require.Equal(t, want, m.Record, "record %d", i)
					require.Equal(t, Position{Topic: "orders", Range: 1, Offset: int64(i)}, m.Position())
					require.Equal(t, Epoch(1), m.LeaderEpoch)
				}
				require.NoError(t, k.Close())
			})
		})
	}
}

func TestConsumerMessagesAreTheCallers(t *testing.T) {
	inRealTime(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		c.addTopic("orders", 1)
		fill(t, cl, "orders", 0, 500, WithCompression(CompressionZstd), WithMaxBatchRecords(10))
		k, err := cl.NewConsumer(WithTopics("orders"), WithRangeMaxBytes(500), WithMaxPollRecords(7))
		require.NoError(t, err)
		all := collect(t, k, 500)
		requireValues(t, all, 0) // after all of them were decoded with one reader
		require.NoError(t, k.Close())
	})
}

func TestConsumerDrainsParentsFirst(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		topic := c.addTopic("orders", 1)
		k, err := cl.NewConsumer(WithTopics("orders"), WithMaxPollRecords(5), WithRangeMaxBytes(300))
		require.NoError(t, err)
		p, err := cl.NewProducer("orders", WithMaxBatchRecords(4))
		require.NoError(t, err)
		const n, keys = 400, 9
		for i := range n {
			switch i {
			case 100:
				c.split(topic, 1)
			case 200:
				c.split(topic, 3)
			case 300:
				c.move(topic, 2, "n2")
			}
			require.NoError(t, p.SendAsync(Record{Key: fmt.Appendf(nil, "key%d", i%keys), Value: value(i)}, mustAck(t)))
			if i%20 == 0 {
				time.Sleep(30 * time.Millisecond)
			}
		}
		require.NoError(t, p.Close(t.Context()))
		last := make(map[string]int)
		for _, m := range collect(t, k, n) {
			i, err := strconv.Atoi(strings.TrimPrefix(string(m.Value), "v"))
			require.NoError(t, err)
			if prev, ok := last[string(m.Key)]; ok {
				require.Equal(t, prev+keys, i, "key %s", m.Key)
			}
			last[string(m.Key)] = i
		}
		require.NoError(t, k.Close())

		// Who comes later and stops at the end reads the same.
		k, err = cl.NewConsumer(WithTopics("orders"), WithStop(StopAtEnd()))
		require.NoError(t, err)
		total := 0
		for _, err := range k.Records(t.Context()) {
			require.NoError(t, err)
			total++
		}
		require.Equal(t, n, total)
		require.NoError(t, k.Close())

		// A position in a child says that its parents are read.
		k, err = cl.NewConsumer(WithTopics("orders"), WithStart(AtOffset(2, 0)), WithStop(StopAtEnd()))
		require.NoError(t, err)
		for m, err := range k.Records(t.Context()) {
			require.NoError(t, err)
			require.NotEqual(t, RangeID(1), m.Range)
		}
		require.NoError(t, k.Close())
	})
}

func TestConsumerOutlivesRestartAndMove(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		topic := c.addTopic("orders", 1)
		k, err := cl.NewConsumer(WithTopics("orders"))
		require.NoError(t, err)
		for i := range 6 {
			fill(t, cl, "orders", i*10, 10)
			requireValues(t, collect(t, k, 10), i*10)
			switch i {
			case 1:
				c.move(topic, 1, "n2")
			case 3:
				c.stop("n2")
				go func() {
					time.Sleep(5 * time.Second)
					c.start("n2")
				}()
			}
		}
		require.NoError(t, k.Close())
	})
}

func TestConsumerPrefetchIsBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		c.addTopic("orders", 1)
		fill(t, cl, "orders", 0, 2000, WithMaxBatchRecords(10))
		k, err := cl.NewConsumer(WithTopics("orders"), WithRangeMaxBytes(1000), WithPrefetchBytes(5000), WithMaxPollRecords(10))
		require.NoError(t, err)
		for i := range 200 {
			synctest.Wait()
			k.mu.Lock()
			queued := k.queued
			k.mu.Unlock()
			require.LessOrEqual(t, queued, int64(6000))
			ms, err := k.Poll(t.Context())
			require.NoError(t, err)
			requireValues(t, ms, i*10)
		}
		synctest.Wait()
		require.NoError(t, k.Close())
	})
}

func TestConsumerRefusesDataThatDoesNotHoldTogether(t *testing.T) {
	spoil := map[string]func(r *fakeRange){
		"a flipped bit": func(r *fakeRange) { r.batches[5][len(r.batches[5])-3] ^= 0x10 },
		"a gap": func(r *fakeRange) {
			r.batches = append(r.batches[:5], r.batches[6:]...)
			r.heads = append(r.heads[:5], r.heads[6:]...)
		},
		"an epoch back": func(r *fakeRange) { header.Patch(r.batches[4], r.heads[4].BaseOffset, 7) },
		"a cut": func(r *fakeRange) {
			r.batches[5] = r.batches[5][:len(r.batches[5])-4]
		},
	}
	for name, spoil := range spoil {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
				topic := c.addTopic("orders", 1)
				fill(t, cl, "orders", 0, 100, WithMaxBatchRecords(10))
				c.mu.Lock()
				spoil(topic.ranges[0])
				c.mu.Unlock()
				k, err := cl.NewConsumer(WithTopics("orders"))
				require.NoError(t, err)
				var got []Message
				for err == nil {
					var ms []Message
					ms, err = k.Poll(t.Context())
					got = append(got, ms...)
				}
				require.ErrorIs(t, err, CodeCorruptData)
				require.LessOrEqual(t, len(got), 50)
				requireValues(t, got, 0)
				require.NoError(t, k.Close())
			})
		})
	}
}

func TestConsumerOfAMissingTopic(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		k, err := cl.NewConsumer(WithTopics("orders"))
		require.NoError(t, err)
		require.ErrorIs(t, k.Ready(t.Context()), CodeTopicNotFound)
		c.addTopic("orders", 1)
		fill(t, cl, "orders", 0, 3)
		for {
			ms, err := k.Poll(t.Context())
			if err != nil {
				require.ErrorIs(t, err, CodeTopicNotFound)
				continue
			}
			requireValues(t, ms, 0)
			break
		}
		require.NoError(t, k.Close())
	})
}

func TestConsumerOfATopicMadeAnew(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		c.addTopic("orders", 1)
		fill(t, cl, "orders", 0, 3)
		k, err := cl.NewConsumer(WithTopics("orders"))
		require.NoError(t, err)
		requireValues(t, collect(t, k, 3), 0)
		c.addTopic("orders", 1)
		_, err = k.Poll(t.Context())
		require.ErrorIs(t, err, CodeTopicNotFound)
		require.NoError(t, k.Close())
	})
}

func TestConsumerCloseWakesPoll(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		c.addTopic("orders", 1)
		k, err := cl.NewConsumer(WithTopics("orders"))
		require.NoError(t, err)
		go func() {
			time.Sleep(time.Second)
			_ = k.Close()
		}()
		_, err = k.Poll(t.Context())
		require.ErrorIs(t, err, CodeShuttingDown)
	})
}

func TestConsumerIgnoresAReplicaThatLags(t *testing.T) {
	cur := &cursor{k: &Consumer{cfg: consumerConfig{}}, commit: 10, next: 10, end: -1, stopAt: -1, state: cursorReading}
	cur.failedLocked(&base.Error{Code: base.CodeBehind}, time.Now())
	require.Equal(t, int64(10), cur.commit)
	require.Equal(t, 1, cur.failures)
}

func TestConsumerOfMissingTopicsKeepsTheLastErrorOfEach(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		k, err := cl.NewConsumer(WithTopics("absent", "missing"))
		require.NoError(t, err)
		time.Sleep(time.Hour + startRetry/2) // between two attempts
		told := 0
		for now := time.Now(); ; told++ {
			_, err = k.Poll(t.Context())
			require.ErrorIs(t, err, CodeTopicNotFound)
			if !time.Now().Equal(now) {
				break
			}
		}
		require.Equal(t, 2, told, "nobody polled: there was nobody to tell every second")
		require.NoError(t, k.Close())
	})
}

func TestConsumerOfATopicThatComesLater(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		k, err := cl.NewConsumer(WithTopics("orders"))
		require.NoError(t, err)
		time.Sleep(time.Minute)
		c.addTopic("orders", 1)
		fill(t, cl, "orders", 0, 3)
		time.Sleep(time.Minute)
		requireValues(t, collect(t, k, 3), 0)
		require.NoError(t, k.Close())
	})
}
