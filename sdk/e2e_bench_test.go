package sdk_test

import (
	"crypto/rand"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/sdk/sdktest"
)

// BenchmarkBrokerSend is one record at a time to a real broker on a real disk: each ack is an fsync.
func BenchmarkBrokerSend(b *testing.B) {
	broker := sdktest.Start(b, sdktest.WithDisk(), sdktest.WithTopic("bench", 1))
	p, err := broker.Client(b).NewProducer("bench", sdk.WithLinger(0))
	require.NoError(b, err)
	r := sdk.Record{Key: []byte("key-0001"), Value: make([]byte, 1024)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Send(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBrokerSendAsync is full speed to a real broker on a real disk, and BenchmarkBrokerPoll reads it back.
func BenchmarkBrokerSendAsync(b *testing.B) {
	for name, size := range map[string]int{"100B": 100, "1KiB": 1024} {
		b.Run(name, func(b *testing.B) {
			broker := sdktest.Start(b, sdktest.WithDisk(), sdktest.WithTopic("bench", 1))
			p, err := broker.Client(b).NewProducer("bench")
			require.NoError(b, err)
			_, err = p.Send(b.Context(), sdk.Record{})
			require.NoError(b, err)
			b.ResetTimer()
			produce(b, p, size, b.N)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

func produce(b *testing.B, p *sdk.Producer, size, n int) {
	value := make([]byte, size-8)
	_, _ = rand.Read(value)
	var failed atomic.Int64
	done := func(_ sdk.Ack, err error) {
		if err != nil {
			failed.Add(1)
		}
	}
	b.SetBytes(int64(size))
	r := sdk.Record{Key: []byte("key-0001"), Value: value}
	for range n {
		if err := p.SendAsync(r, done); err != nil {
			b.Fatal(err)
		}
	}
	require.NoError(b, p.Flush(b.Context()))
	require.Zero(b, failed.Load())
}

// BenchmarkBrokerPoll reads records back, again and again, from the broker's files and its cache.
func BenchmarkBrokerPoll(b *testing.B) {
	for name, size := range map[string]int{"100B": 100, "1KiB": 1024} {
		b.Run(name, func(b *testing.B) {
			broker := sdktest.Start(b, sdktest.WithDisk(), sdktest.WithTopic("bench", 1))
			client := broker.Client(b)
			p, err := client.NewProducer("bench")
			require.NoError(b, err)
			n := 64 << 20 / size
			produce(b, p, size, n)
			c, err := client.NewConsumer(sdk.WithTopics("bench"))
			require.NoError(b, err)
			began := time.Now()
			b.ResetTimer()
			for got := 0; got < b.N; {
				ms, err := c.Poll(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				got += len(ms)
				if ms[len(ms)-1].Offset == int64(n-1) {
					if err := c.Seek(sdk.Position{Topic: "bench", Range: 1}); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "records/s")
		})
	}
}
