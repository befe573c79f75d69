package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/eastguard/eastguard/sdk"
)

// measureConsume reads topics from their beginning to their end: one that fits into the tail cache, one read
// from files because it is behind a cache of a tenth of its size, and one of small records.
func measureConsume(o options, r *report) error {
	const mib = 1 << 20
	tail, err := consumeRates(o, 1024, 96*mib, "--cache-budget-bytes", "256MiB")
	if err != nil {
		return err
	}
	files, err := consumeRates(o, 1024, 512*mib, "--cache-budget-bytes", "16MiB")
	if err != nil {
		return err
	}
	small, err := consumeRates(o, 100, 128*mib)
	if err != nil {
		return err
	}
	r.add("consume 1 KiB, tail cache", "%.0f MB/s", median(tail)*1024/1e6, "").goal("≥ 800 MB/s", median(tail)*1024 >= 800e6)
	r.add("consume 1 KiB, files", "%.0f MB/s", median(files)*1024/1e6, "").goal("≥ 800 MB/s", median(files)*1024 >= 800e6)
	r.add("consume 100 B", "%.0f records/s", median(small), "").goal("≥ 2,000,000", median(small) >= 2_000_000)
	return nil
}

// consumeRates fills a topic and reads it once a round: records a second.
func consumeRates(o options, size, bytes int, args ...string) ([]float64, error) {
	b, err := startBroker(o, args...)
	if err != nil {
		return nil, err
	}
	n, err := b.produce("t", size, func(sent int) bool { return sent*size < bytes })
	if err != nil {
		return nil, err
	}
	var rates []float64
	for range o.rounds + 1 {
		rate, err := b.consume("t", n)
		if err != nil {
			return nil, err
		}
		rates = append(rates, rate)
	}
	return rates[1:], b.stop() // the first one warms up
}

func (b *broker) consume(topic string, want int64) (float64, error) {
	c, err := b.client.NewConsumer(sdk.WithTopics(topic), sdk.WithStart(sdk.Earliest()), sdk.WithStop(sdk.StopAtEnd()), sdk.WithMaxPollRecords(10_000))
	if err != nil {
		return 0, err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var n int64
	began := time.Now()
	for {
		batch, err := c.Poll(ctx)
		n += int64(len(batch))
		switch {
		case errors.Is(err, io.EOF):
			if n != want {
				return 0, fmt.Errorf("read %d records of %d", n, want)
			}
			return float64(n) / time.Since(began).Seconds(), nil
		case err != nil:
			return 0, err
		}
	}
}
