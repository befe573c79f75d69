package sdk_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/sdk/sdktest"
)

// Small segments: the range rolls every few batches while it is written and read.
func TestEndToEndRolls(t *testing.T) {
	broker := sdktest.Start(t, sdktest.WithTopic("orders", 2), sdktest.WithSegmentBytes(64<<10), sdktest.WithCacheBytes(256<<10))
	client := broker.Client(t)
	h := newHistory()
	const n = 20_000
	c, err := client.NewConsumer(sdk.WithTopics("orders"))
	require.NoError(t, err)
	p, err := client.NewProducer("orders", sdk.WithMaxBatchRecords(50))
	require.NoError(t, err)
	payload := bytes.Repeat([]byte("x"), 80)
	go func() {
		for i := range n {
			value := fmt.Sprintf("%s-%d", payload, i)
			assert.NoError(t, p.SendAsync(sdk.Record{Key: fmt.Appendf(nil, "k%d", i%13), Value: []byte(value)}, h.note(t, value)))
		}
		assert.NoError(t, p.Close(context.Background()))
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for got := 0; got < n; {
		ms, err := c.Poll(ctx)
		require.NoError(t, err)
		got += len(ms)
	}
	require.NoError(t, c.Close())
	require.NoError(t, p.Close(ctx))
	h.check(t, client, "orders")
	d, err := client.Admin().DescribeTopic(t.Context(), "orders")
	require.NoError(t, err)
	require.Greater(t, len(d.Ranges[0].Segments), 5, "it did roll")
}

// The broker is stopped, killed and cut off while several producers and a consumer are at work. Afterwards all that
// was acked is there, once, in order; with the delivery timeout longer than any outage nothing is even unknown.
func TestEndToEndUpsets(t *testing.T) {
	upsets := map[string]func(*sdktest.Broker){
		"restart":    (*sdktest.Broker).Restart,
		"kill":       (*sdktest.Broker).Kill,
		"disconnect": (*sdktest.Broker).Disconnect,
	}
	for name, upset := range upsets {
		t.Run(name, func(t *testing.T) {
			broker := sdktest.Start(t, sdktest.WithTopic("a", 2), sdktest.WithTopic("b", 1), sdktest.WithSegmentBytes(256<<10))
			client := broker.Client(t)
			h := newHistory()
			c, err := client.NewConsumer(sdk.WithTopics("a", "b"))
			require.NoError(t, err)

			var halt atomic.Bool
			var wg sync.WaitGroup
			var sent atomic.Int64
			for g := range 3 {
				wg.Go(func() {
					p, err := client.NewProducer([]string{"a", "b"}[g%2], sdk.WithLinger(time.Duration(g)*time.Millisecond), sdk.WithMaxBatchRecords(20))
					if !assert.NoError(t, err) {
						return
					}
					for i := 0; !halt.Load(); i++ {
						value := fmt.Sprintf("g%d-%d", g, i)
						if !assert.NoError(t, p.SendAsync(sdk.Record{Key: fmt.Appendf(nil, "g%d-k%d", g, i%5), Value: []byte(value)}, h.note(t, value))) {
							return
						}
						sent.Add(1)
						if i%10 == 0 {
							time.Sleep(time.Millisecond)
						}
					}
					assert.NoError(t, p.Close(context.Background()))
					assert.Zero(t, p.Stats().Unknown)
				})
			}
			read := make(map[sdk.Position]string)
			ctx, cancel := context.WithCancel(t.Context())
			wg.Go(func() {
				for m, err := range c.Records(ctx) {
					if err != nil {
						assert.ErrorIs(t, err, context.Canceled)
						return
					}
					if _, again := read[m.Position()]; again {
						t.Errorf("%s was read twice", m.Position())
					}
					read[m.Position()] = string(m.Value)
				}
			})
			for range upsetRounds() {
				before := sent.Load()
				require.Eventually(t, func() bool { return sent.Load() > before+200 }, 20*time.Second, time.Millisecond)
				upset(broker)
			}
			before := sent.Load()
			require.Eventually(t, func() bool { return sent.Load() > before+200 }, 20*time.Second, time.Millisecond)
			halt.Store(true)
			require.Eventually(t, func() bool {
				h.mu.Lock()
				defer h.mu.Unlock()
				return int64(len(h.acked)) == sent.Load()
			}, 30*time.Second, 5*time.Millisecond, "all are acked")
			require.Eventually(t, func() bool {
				ends, err := c.EndOffsets(t.Context())
				require.NoError(t, err)
				return samePositions(ends, c.Positions())
			}, 20*time.Second, 5*time.Millisecond, "the consumer catches up")
			cancel()
			wg.Wait()
			require.NoError(t, c.Close())
			for pos, value := range h.acked {
				require.Equal(t, value, read[pos], "%s", pos)
			}
			require.Equal(t, len(h.acked), len(read))
			h.check(t, client, "a", "b")
		})
	}
}

// upsetRounds is how often a test upsets its broker: more in soak runs.
func upsetRounds() int {
	if os.Getenv("EASTGUARD_SOAK") != "" {
		return 100
	}
	return 4
}

func samePositions(a, b []sdk.Position) bool {
	set := make(map[sdk.Position]bool)
	for _, p := range a {
		set[p] = true
	}
	for _, p := range b {
		if !set[p] {
			return false
		}
	}
	return len(a) == len(b)
}
