package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/eastguard/eastguard/scripts/internal/floor"
	"github.com/eastguard/eastguard/sdk"
)

// measureLatency sends one 1 KiB record after the other, each when the one before is acknowledged.
func measureLatency(o options, r *report) error {
	b, err := startBroker(o)
	if err != nil {
		return err
	}
	if err := b.createTopic("one"); err != nil {
		return err
	}
	producer, err := b.client.NewProducer("one", sdk.WithLinger(0))
	if err != nil {
		return err
	}
	if _, err := sendOneByOne(producer, o.period/4); err != nil { // warm up
		return err
	}
	var p50, p99, floor50, floor99, over, ratio []float64
	for range o.rounds {
		f, err := floor.Latencies(o.dir, 4096, o.period)
		if err != nil {
			return err
		}
		e, err := sendOneByOne(producer, o.period)
		if err != nil {
			return err
		}
		floor50, floor99 = append(floor50, ms(quantile(f, 0.5))), append(floor99, ms(quantile(f, 0.99)))
		p50, p99 = append(p50, ms(quantile(e, 0.5))), append(p99, ms(quantile(e, 0.99)))
		over = append(over, ms(quantile(e, 0.5)-quantile(f, 0.5)))
		ratio = append(ratio, ms(quantile(e, 0.99))/ms(quantile(f, 0.99)))
	}
	r.add("4 KiB append + fdatasync, p50", "%.3f ms", median(floor50), "floor")
	r.add("4 KiB append + fdatasync, p99", "%.3f ms", median(floor99), "floor")
	r.add("1 KiB record at a time, p50", "%.3f ms", median(p50), fmt.Sprintf("floor %+.3f ms", median(over))).goal("≤ floor + 0.25 ms", median(over) <= 0.25)
	r.add("1 KiB record at a time, p99", "%.3f ms", median(p99), fmt.Sprintf("%.2f × floor", median(ratio))).goal("≤ 3 × floor", median(ratio) <= 3)
	return b.stop()
}

func sendOneByOne(p *sdk.Producer, d time.Duration) ([]time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.Background(), d+time.Minute)
	defer cancel()
	value := payload(1024)
	var all []time.Duration
	for began := time.Now(); time.Since(began) < d; {
		start := time.Now()
		if _, err := p.Send(ctx, sdk.Record{Value: value()}); err != nil {
			return nil, err
		}
		all = append(all, time.Since(start))
	}
	return all, nil
}

// measureProduce sends as fast as the broker takes it.
func measureProduce(o options, r *report) error {
	b, err := startBroker(o)
	if err != nil {
		return err
	}
	var disk, large, ratio, small []float64
	for round := range o.rounds {
		f, err := floor.Throughput(o.dir, 1<<20, o.period)
		if err != nil {
			return err
		}
		topic := fmt.Sprintf("large-%d", round)
		rate, err := b.produceFor(topic, 1024, o.period)
		if err != nil {
			return err
		}
		disk, large, ratio = append(disk, f), append(large, rate*1024), append(ratio, rate*1024/f)
		if rate, err = b.produceFor(fmt.Sprintf("small-%d", round), 100, o.period); err != nil {
			return err
		}
		small = append(small, rate)
		if err := b.deleteTopics(topic, fmt.Sprintf("small-%d", round)); err != nil {
			return err
		}
	}
	r.add("1 MiB append + fdatasync", "%.0f MB/s", median(disk)/1e6, "floor")
	r.add("produce 1 KiB, full speed", "%.0f MB/s", median(large)/1e6, fmt.Sprintf("%.2f × floor", median(ratio))).goal("≥ 0.45 × floor", median(ratio) >= 0.45)
	r.add("produce 100 B, full speed", "%.0f records/s", median(small), "").goal("≥ 700,000", median(small) >= 700_000)
	return b.stop()
}

// produceFor sends records of size bytes for d and returns how many a second were acknowledged. The clock stops
// with the last ack.
func (b *broker) produceFor(topic string, size int, d time.Duration) (float64, error) {
	began := time.Now()
	n, err := b.produce(topic, size, func(int) bool { return time.Since(began) < d })
	return float64(n) / time.Since(began).Seconds(), err
}

// produce creates a topic and sends records while more says so. It returns when all are acknowledged.
func (b *broker) produce(topic string, size int, more func(sent int) bool) (int64, error) {
	if err := b.createTopic(topic); err != nil {
		return 0, err
	}
	return b.send(topic, size, more)
}

// send is produce to a topic that is there.
func (b *broker) send(topic string, size int, more func(sent int) bool) (int64, error) {
	producer, err := b.client.NewProducer(topic)
	if err != nil {
		return 0, err
	}
	var acked, failed atomic.Int64
	done := func(_ sdk.Ack, err error) {
		if err != nil {
			failed.Add(1)
			return
		}
		acked.Add(1)
	}
	value := payload(size)
	for sent := 0; sent&0xff != 0 || more(sent); sent++ { // looking at the clock costs as much as a record
		if err := producer.SendAsync(sdk.Record{Value: value()}, done); err != nil {
			return 0, err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := producer.Close(ctx); err != nil {
		return 0, err
	}
	if n := failed.Load(); n > 0 {
		return 0, fmt.Errorf("%d records failed", n)
	}
	return acked.Load(), nil
}

func (b *broker) deleteTopics(names ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, name := range names {
		if _, err := b.client.Admin().DeleteTopic(ctx, sdk.DeleteTopic{Name: name}); err != nil {
			return err
		}
	}
	return nil
}

// payload gives random values of one size, cut from one block at ever other places: random to a codec or a
// disk, and free to the sender.
func payload(size int) func() []byte {
	block := make([]byte, 1<<20+size)
	_, _ = rand.NewChaCha8([32]byte{2}).Read(block) // never fails
	at := 0
	return func() []byte {
		at = (at + 4099) & (1<<20 - 1)
		return block[at : at+size : at+size]
	}
}
