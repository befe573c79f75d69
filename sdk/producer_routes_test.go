package sdk

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
