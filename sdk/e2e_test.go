package sdk_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/sdk/sdktest"
)

// history is what a producer was told, to be compared with what a consumer reads.
type history struct {
	mu      sync.Mutex
	acked   map[sdk.Position]string // value by position
	unknown map[string]bool
}

func newHistory() *history {
	return &history{acked: make(map[sdk.Position]string), unknown: make(map[string]bool)}
}

// note is the callback of a record.
func (h *history) note(t *testing.T, value string) func(sdk.Ack, error) {
	return func(a sdk.Ack, err error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		switch {
		case err == nil:
			if other, taken := h.acked[a.Position]; taken {
				t.Errorf("%s was acked for %s and %s", a.Position, other, value)
			}
			h.acked[a.Position] = value
		case sdk.OutcomeOf(err) == sdk.OutcomeUnknown:
			h.unknown[value] = true
		default:
			t.Errorf("%s failed: %v", value, err)
		}
	}
}

// check reads the topics to their ends: every acked record where its ack said, once, in the order of its key, and
// nothing that was not sent.
func (h *history) check(t *testing.T, client *sdk.Client, topics ...string) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	seen := make(map[string]bool)
	last := make(map[string]int)
	for _, m := range readAll(t, client, sdk.WithTopics(topics...)) {
		value := string(m.Value)
		require.False(t, seen[value], "%s is there twice", value)
		seen[value] = true
		if want, acked := h.acked[m.Position()]; acked {
			require.Equal(t, want, value)
			delete(h.acked, m.Position())
		} else {
			require.True(t, h.unknown[value], "%s at %s was never acked", value, m.Position())
		}
		n, err := strconv.Atoi(value[bytes.LastIndexByte(m.Value, '-')+1:])
		require.NoError(t, err)
		if prev, ok := last[string(m.Key)]; ok {
			require.Greater(t, n, prev, "key %s", m.Key)
		}
		last[string(m.Key)] = n
	}
	require.Empty(t, h.acked, "acked and not read")
}

func readAll(t *testing.T, client *sdk.Client, opts ...sdk.ConsumerOption) []sdk.Message {
	t.Helper()
	c, err := client.NewConsumer(append(opts, sdk.WithStop(sdk.StopAtEnd()))...)
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all []sdk.Message
	for m, err := range c.Records(ctx) {
		require.NoError(t, err)
		all = append(all, m)
	}
	return all
}

func TestEndToEndAllStarts(t *testing.T) {
	broker := sdktest.Start(t, sdktest.WithTopic("orders", 1))
	client := broker.Client(t)
	send := func(from, n int) {
		p, err := client.NewProducer("orders", sdk.WithMaxBatchRecords(10))
		require.NoError(t, err)
		for i := from; i < from+n; i++ {
			require.NoError(t, p.SendAsync(sdk.Record{Key: []byte("k"), Value: fmt.Appendf(nil, "v-%d", i)}, func(_ sdk.Ack, err error) { assert.NoError(t, err) }))
		}
		require.NoError(t, p.Close(t.Context()))
	}
	send(0, 100)
	// Times are the broker's append times in milliseconds: a later one must have come before the second half.
	last, err := client.Admin().Offsets(t.Context(), "orders", sdk.Latest())
	require.NoError(t, err)
	require.Equal(t, []sdk.Position{{Topic: "orders", Range: 1, Offset: 100}}, last)
	middle := time.Now().Add(5 * time.Millisecond)
	for time.Now().Before(middle.Add(5 * time.Millisecond)) {
		time.Sleep(time.Millisecond)
	}
	send(100, 100)

	for _, tc := range []struct {
		name  string
		start sdk.Start
		from  int
	}{
		{"earliest", sdk.Earliest(), 0},
		{"latest", sdk.Latest(), 200},
		{"offset", sdk.AtOffset(1, 77), 77},
		{"time", sdk.AtTime(middle), 100},
		{"before all", sdk.AtTime(time.UnixMilli(1)), 0},
		{"in the future", sdk.AtTime(time.Now().Add(time.Hour)), 200},
	} {
		t.Run(tc.name, func(t *testing.T) {
			all := readAll(t, client, sdk.WithTopics("orders"), sdk.WithStart(tc.start))
			require.Equal(t, 200-tc.from, len(all))
			for i, m := range all {
				require.Equal(t, fmt.Sprintf("v-%d", tc.from+i), string(m.Value))
				require.Equal(t, int64(tc.from+i), m.Offset)
			}
		})
	}
}

func TestEndToEndNothingIsLostInTranslation(t *testing.T) {
	broker := sdktest.Start(t, sdktest.WithTopic("orders", 1))
	client := broker.Client(t)
	records := []sdk.Record{
		{},
		{Key: []byte{}, Value: []byte{}},
		{Key: []byte("k")},
		{Value: []byte("v"), Headers: []sdk.Header{{Key: "", Value: nil}, {Key: "a", Value: []byte{}}, {Key: "a", Value: []byte("2")}}},
		{Key: []byte("k"), RoutingKey: []byte("other"), Headers: []sdk.Header{{Key: "h", Value: []byte("x")}}},
		{Key: []byte{0, 0xff, 0x1b}, Value: bytes.Repeat([]byte{0}, 100_000)},
	}
	stamp := time.UnixMilli(1_500_000_000_000)
	n := 0
	for _, codec := range []sdk.Compression{sdk.CompressionNone, sdk.CompressionLZ4, sdk.CompressionZstd} {
		p, err := client.NewProducer("orders", sdk.WithCompression(codec))
		require.NoError(t, err)
		for i, r := range records {
			r.Timestamp = stamp.Add(time.Duration(i) * time.Hour)
			require.NoError(t, p.SendAsync(r, func(_ sdk.Ack, err error) { assert.NoError(t, err) }))
		}
		require.NoError(t, p.Close(t.Context()))
	}
	for _, m := range readAll(t, client, sdk.WithTopics("orders")) {
		want := records[n%len(records)]
		want.Topic, want.Timestamp = "orders", stamp.Add(time.Duration(n%len(records))*time.Hour)
		require.Equal(t, want, m.Record, "record %d", n)
		n++
	}
	require.Equal(t, 3*len(records), n)
}

func TestEndToEndBigRecords(t *testing.T) {
	const limit = 2 << 20
	broker := sdktest.Start(t, sdktest.WithTopic("orders", 1), sdktest.WithMaxRecordBytes(limit))
	client := broker.Client(t)
	p, err := client.NewProducer("orders", sdk.WithLinger(0))
	require.NoError(t, err)
	big := make([]byte, limit)
	_, err = rand.Read(big)
	require.NoError(t, err)
	_, err = p.Send(t.Context(), sdk.Record{Key: []byte("k"), Value: big[1:]})
	require.NoError(t, err)
	_, err = p.Send(t.Context(), sdk.Record{Key: []byte("k"), Value: big})
	require.ErrorIs(t, err, sdk.CodeRecordTooLarge)
	require.Equal(t, sdk.OutcomeNotApplied, sdk.OutcomeOf(err))
	_, err = p.Send(t.Context(), sdk.Record{Key: []byte("k"), Value: []byte("small")})
	require.NoError(t, err, "the connection stays")
	all := readAll(t, client, sdk.WithTopics("orders"))
	require.Len(t, all, 2)
	require.True(t, bytes.Equal(big[1:], all[0].Value))
}

// count is n in soak runs and a tenth of it otherwise.
func count(n int) int {
	if os.Getenv("EASTGUARD_SOAK") != "" {
		return n
	}
	return n / 10
}

// A million records through 1 MiB segments, read by a consumer that is much slower than the producer: the tail cache
// has long forgotten what it asks for.
func TestEndToEndASlowConsumer(t *testing.T) {
	broker := sdktest.Start(t, sdktest.WithTopic("orders", 1), sdktest.WithSegmentBytes(1<<20), sdktest.WithCacheBytes(1<<20))
	client := broker.Client(t)
	n := count(1_000_000)
	c, err := client.NewConsumer(sdk.WithTopics("orders"), sdk.WithPrefetchBytes(1<<20), sdk.WithRangeMaxBytes(64<<10))
	require.NoError(t, err)
	p, err := client.NewProducer("orders")
	require.NoError(t, err)
	go func() {
		for i := range n {
			assert.NoError(t, p.SendAsync(sdk.Record{Value: fmt.Appendf(make([]byte, 90), "-%d", i)}, func(_ sdk.Ack, err error) { assert.NoError(t, err) }))
		}
		assert.NoError(t, p.Flush(context.Background()))
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	for got := 0; got < n; {
		ms, err := c.Poll(ctx)
		require.NoError(t, err)
		for i := range ms {
			require.Equal(t, int64(got), ms[i].Offset)
			require.Equal(t, strconv.Itoa(got), string(ms[i].Value[91:]))
			got++
		}
		if got%50_000 < len(ms) {
			time.Sleep(20 * time.Millisecond) // it is slow
		}
	}
	require.NoError(t, c.Close())
}

// A hundred thousand batches in one active segment, most of them out of the tail cache.
func TestEndToEndManyBatchesInOneSegment(t *testing.T) {
	broker := sdktest.Start(t, sdktest.WithTopic("orders", 1), sdktest.WithCacheBytes(1<<20))
	client := broker.Client(t)
	p, err := client.NewProducer("orders", sdk.WithMaxBatchRecords(1))
	require.NoError(t, err)
	n := count(100_000)
	for i := range n {
		require.NoError(t, p.SendAsync(sdk.Record{Value: strconv.AppendInt(nil, int64(i), 10)}, func(_ sdk.Ack, err error) { assert.NoError(t, err) }))
	}
	require.NoError(t, p.Close(t.Context()))
	all := readAll(t, client, sdk.WithTopics("orders"))
	require.Equal(t, n, len(all))
	for i := range all {
		require.Equal(t, strconv.Itoa(i), string(all[i].Value))
	}
	some := readAll(t, client, sdk.WithTopics("orders"), sdk.WithStart(sdk.AtOffset(1, int64(n/2))))
	require.Equal(t, n-n/2, len(some))
	require.Equal(t, int64(n/2), some[0].Offset)
}

func TestEndToEndRetention(t *testing.T) {
	broker := sdktest.Start(t)
	client := broker.Client(t)
	ctx := t.Context()
	_, err := client.Admin().CreateTopic(ctx, sdk.CreateTopic{Name: "orders", Config: sdk.TopicConfig{RetentionBytes: 100_000, SegmentBytes: 64 << 10}})
	require.NoError(t, err)
	p, err := client.NewProducer("orders", sdk.WithMaxBatchRecords(20))
	require.NoError(t, err)
	for i := range 1000 {
		require.NoError(t, p.SendAsync(sdk.Record{Value: fmt.Appendf(make([]byte, 1000), "-%d", i)}, func(_ sdk.Ack, err error) { assert.NoError(t, err) }))
	}
	require.NoError(t, p.Close(ctx))
	var earliest int64
	require.Eventually(t, func() bool {
		at, err := client.Admin().Offsets(ctx, "orders", sdk.Earliest())
		require.NoError(t, err)
		earliest = at[0].Offset
		return earliest > 500
	}, 20*time.Second, 10*time.Millisecond)

	c, err := client.NewConsumer(sdk.WithTopics("orders"), sdk.WithStart(sdk.AtOffset(1, 3)))
	require.NoError(t, err)
	var out *sdk.OffsetOutOfRangeError
	for deadline := time.Now().Add(20 * time.Second); ; {
		_, err = c.Poll(ctx)
		require.ErrorAs(t, err, &out)
		if out.Earliest >= earliest {
			break
		}
		// What was decided reaches the node that holds the data a moment later.
		require.True(t, time.Now().Before(deadline), "%d, %d", out.Earliest, earliest)
		require.NoError(t, c.Seek(sdk.Position{Topic: "orders", Range: 1, Offset: 3}))
	}
	require.Equal(t, int64(1000), out.End)
	require.NoError(t, c.Seek(sdk.Position{Topic: "orders", Range: 1, Offset: out.Earliest}))
	ms, err := c.Poll(ctx)
	require.NoError(t, err)
	require.Equal(t, out.Earliest, ms[0].Offset)

	all := readAll(t, client, sdk.WithTopics("orders"), sdk.WithStart(sdk.AtOffset(1, 3)), sdk.WithReset(sdk.ResetEarliest))
	require.Equal(t, int64(999), all[len(all)-1].Offset)
	require.Equal(t, int64(1000)-all[0].Offset, int64(len(all)))
	require.NotEmpty(t, readAll(t, client, sdk.WithTopics("orders")), "earliest is what is there")
}

func TestEndToEndNamedProducers(t *testing.T) {
	broker := sdktest.Start(t, sdktest.WithTopic("orders", 1))
	client := broker.Client(t)
	open := func() *sdk.Producer {
		p, err := client.NewProducer("orders", sdk.WithLinger(0), sdk.WithProducerName("billing"))
		require.NoError(t, err)
		return p
	}
	old := open()
	_, err := old.Send(t.Context(), sdk.Record{Value: []byte("1")})
	require.NoError(t, err)
	broker.Restart()
	_, err = old.Send(t.Context(), sdk.Record{Value: []byte("2")})
	require.NoError(t, err)
	young := open()
	_, err = young.Send(t.Context(), sdk.Record{Value: []byte("3")})
	require.NoError(t, err)
	_, err = old.Send(t.Context(), sdk.Record{Value: []byte("4")})
	require.ErrorIs(t, err, sdk.CodeProducerFenced)
	require.Len(t, readAll(t, client, sdk.WithTopics("orders")), 3)
}

func TestEndToEndTopics(t *testing.T) {
	broker := sdktest.Start(t)
	client := broker.Client(t)
	admin := client.Admin()
	ctx := t.Context()
	_, err := admin.CreateTopic(ctx, sdk.CreateTopic{Name: "orders", Ranges: 4})
	require.NoError(t, err)
	_, err = admin.CreateTopic(ctx, sdk.CreateTopic{Name: "orders"})
	require.ErrorIs(t, err, sdk.CodeTopicExists)
	_, err = admin.CreateTopic(ctx, sdk.CreateTopic{Name: "many", Config: sdk.TopicConfig{ReplicationFactor: 3}})
	require.ErrorIs(t, err, sdk.CodeNotEnoughNodes)
	p, err := client.NewProducer("orders")
	require.NoError(t, err)
	for i := range 100 {
		require.NoError(t, p.SendAsync(sdk.Record{Key: fmt.Appendf(nil, "%d", i)}, nil))
	}
	require.NoError(t, p.Flush(ctx))
	list, err := admin.ListTopics(ctx, sdk.ListTopics{})
	require.NoError(t, err)
	require.Len(t, list.Topics, 1)
	altered, err := admin.AlterTopic(ctx, sdk.AlterTopic{Name: "orders", Set: map[string]string{"retention": "1h"}})
	require.NoError(t, err)
	require.NotEmpty(t, altered.After)
	ends, err := admin.Offsets(ctx, "orders", sdk.Latest())
	require.NoError(t, err)
	require.Len(t, ends, 4)
	var total int64
	for _, e := range ends {
		total += e.Offset
	}
	require.EqualValues(t, 100, total)
	_, err = admin.DeleteTopic(ctx, sdk.DeleteTopic{Name: "orders"})
	require.NoError(t, err)
	_, err = admin.DescribeTopic(ctx, "orders")
	require.ErrorIs(t, err, sdk.CodeTopicNotFound)
	p2, err := client.NewProducer("orders", sdk.WithLinger(0))
	require.NoError(t, err)
	_, err = p2.Send(ctx, sdk.Record{Value: []byte("x")})
	require.ErrorIs(t, err, sdk.CodeTopicNotFound)

	status, err := admin.ClusterStatus(ctx)
	require.NoError(t, err)
	require.Len(t, status.Nodes, 1)
	health, err := admin.ClusterHealth(ctx)
	require.NoError(t, err)
	require.NotEmpty(t, health.Checks)
	node, err := admin.DescribeNode(ctx, "")
	require.NoError(t, err)
	require.Equal(t, sdk.NodeID("n1"), node.Status.ID)
}
