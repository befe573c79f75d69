package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/eastguard/eastguard/internal/sim/procs"
	"github.com/eastguard/eastguard/scripts/internal/floor"
	"github.com/eastguard/eastguard/sdk"
)

// inParallelClients is how many producers send at full speed, each with a connection of its own.
const inParallelClients = 4

// measureReplication looks at three brokers and topics of factor 3, every ack fsynced on three, and at three NATS servers
// in turn. Each round has all of them, moments apart.
func measureReplication(o options, r *report) error {
	if o.nats == "" || o.natsServer == "" {
		return errors.New("-nats and -nats-server name the binaries of the peer; bench.sh builds them")
	}
	var all rounds
	for round := range o.rounds {
		if err := all.add(o); err != nil {
			return fmt.Errorf("round %d: %w", round+1, err)
		}
	}
	all.report(r)
	return measureIdleTopics(o, r)
}

// speed is what one system reached in one round.
type speed struct {
	large, small float64 // records a second, of 1 KiB and 100 B
	p50, p99     float64 // milliseconds of one 1 KiB record at a time
	cpu          float64 // seconds of all brokers for a million records of 1 KiB
}

// rounds are the figures, one a round.
type rounds struct {
	east, always, lazy   []speed
	floor50, floor99     []float64
	over50, over99       []float64 // one at a time, beside the floor
	always50, always99   []float64
	amplification, seals []float64
}

func (rs *rounds) add(o options) error {
	always, err := measureNATS(o, true)
	if err != nil {
		return err
	}
	lazy, err := measureNATS(o, false)
	if err != nil {
		return err
	}
	c, err := newCluster(o)
	if err != nil {
		return err
	}
	if err := rs.addEastGuard(o, c); err != nil {
		return errors.Join(err, c.Close())
	}
	rs.always, rs.lazy = append(rs.always, always), append(rs.lazy, lazy)
	rs.always50 = append(rs.always50, always.p50/last(rs.floor50))
	rs.always99 = append(rs.always99, always.p99/last(rs.floor99))
	return c.Stop(patience)
}

func last(list []float64) float64 { return list[len(list)-1] }

// measureNATS is one round of NATS. Counts are such that each part takes some seconds.
func measureNATS(o options, always bool) (s speed, err error) {
	n, err := startNATS(o, always)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, n.stop()) }()
	const messages = 120_000
	before, err := n.cpu()
	if err != nil {
		return s, err
	}
	if s.large, err = n.publish(inParallelClients, 1024, messages); err != nil {
		return s, err
	}
	after, err := n.cpu()
	if err != nil {
		return s, err
	}
	s.cpu = (after - before).Seconds() / messages * 1e6
	if s.small, err = n.publish(inParallelClients, 100, 2*messages); err != nil {
		return s, err
	}
	s.p50, s.p99, err = n.oneByOne(2000)
	return s, err
}

func (rs *rounds) addEastGuard(o options, c *procs.Cluster) error {
	if _, err := c.ColdStart(patience); err != nil {
		return err
	}
	var s speed
	if err := rs.addLatency(o, c, &s); err != nil {
		return err
	}
	written, err := diskWritten(o.dir)
	if err != nil {
		return err
	}
	before, err := cpuOf(c)
	if err != nil {
		return err
	}
	large, err := produceReplicated(c, "large", 1024, o.period)
	if err != nil {
		return err
	}
	after, err := cpuOf(c)
	if err != nil {
		return err
	}
	if err := flushed(c); err != nil {
		return err
	}
	writtenBy, err := diskWritten(o.dir)
	if err != nil {
		return err
	}
	small, err := produceReplicated(c, "small", 100, o.period)
	if err != nil {
		return err
	}
	s.large, s.small = large.rate, small.rate
	s.cpu = (after - before).Seconds() / float64(large.records) * 1e6
	rs.east = append(rs.east, s)
	rs.amplification = append(rs.amplification, (writtenBy-written)/large.bytes)
	rs.seals = append(rs.seals, float64(large.late+small.late))
	return nil
}

// addLatency measures three writers on the disk and one record at a time in adjacent pairs.
func (rs *rounds) addLatency(o options, c *procs.Cluster, s *speed) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := client.Admin().CreateTopic(ctx, sdk.CreateTopic{Name: "one", Config: sdk.TopicConfig{ReplicationFactor: 3}}); err != nil {
		return err
	}
	p, err := client.NewProducer("one", sdk.WithLinger(0))
	if err != nil {
		return err
	}
	defer p.Close(ctx)
	if _, err := sendOneByOne(p, o.period/4); err != nil { // warm up
		return err
	}
	f, err := floor.Concurrent(o.dir, 4096, 3, o.period)
	if err != nil {
		return err
	}
	e, err := sendOneByOne(p, o.period)
	if err != nil {
		return err
	}
	s.p50, s.p99 = ms(quantile(e, 0.5)), ms(quantile(e, 0.99))
	f50, f99 := ms(quantile(f, 0.5)), ms(quantile(f, 0.99))
	rs.floor50, rs.floor99 = append(rs.floor50, f50), append(rs.floor99, f99)
	rs.over50, rs.over99 = append(rs.over50, s.p50/f50), append(rs.over99, s.p99/f99)
	return nil
}

// produced is one run at full speed.
type produced struct {
	rate    float64
	records int64
	bytes   float64 // of encoded batches
	late    int     // segments that were sealed for a replica's lateness
}

// produceReplicated sends records of size bytes for d from several clients to one range of factor 3.
func produceReplicated(c *procs.Cluster, topic string, size int, d time.Duration) (p produced, err error) {
	client, err := c.Client()
	if err != nil {
		return p, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := client.Admin().CreateTopic(ctx, sdk.CreateTopic{Name: topic, Config: sdk.TopicConfig{ReplicationFactor: 3}}); err != nil {
		return p, err
	}
	counts := make([]int64, inParallelClients)
	var clients errgroup.Group
	began := time.Now()
	for i := range counts {
		clients.Go(func() (err error) {
			own, err := c.Client()
			if err != nil {
				return err
			}
			defer own.Close()
			counts[i], err = (&broker{client: own}).send(topic, size, func(int) bool { return time.Since(began) < d })
			return err
		})
	}
	if err := clients.Wait(); err != nil {
		return p, err
	}
	took := time.Since(began)
	for _, n := range counts {
		p.records += n
	}
	p.rate = float64(p.records) / took.Seconds()
	t, err := client.Admin().DescribeTopic(ctx, topic)
	if err != nil {
		return p, err
	}
	p.bytes = float64(t.Summary.Bytes)
	for i := range t.Ranges {
		for _, seg := range t.Ranges[i].Segments {
			if seg.Cause.String() == "REPLICA_FAILURE" {
				p.late++
			}
		}
	}
	return p, nil
}

// cpuOf is the processor time of all brokers.
func cpuOf(c *procs.Cluster) (sum time.Duration, err error) {
	all, err := usage(c)
	for _, u := range all {
		sum += u.CPU
	}
	return sum, err
}

// flushed waits until the brokers have written what they hold in memory to segment files: no broker uses the processor.
func flushed(c *procs.Cluster) error {
	for deadline := time.Now().Add(patience); ; {
		before, err := cpuOf(c)
		if err != nil {
			return err
		}
		time.Sleep(500 * time.Millisecond)
		after, err := cpuOf(c)
		if err != nil || after-before < 75*time.Millisecond {
			return err
		}
		if time.Now().After(deadline) {
			return errors.New("the brokers do not come to rest")
		}
	}
}

func (rs *rounds) report(r *report) {
	of := func(list []speed, f func(speed) float64) (all []float64) {
		for _, s := range list {
			all = append(all, f(s))
		}
		return all
	}
	large, small := func(s speed) float64 { return s.large }, func(s speed) float64 { return s.small }
	ratios := func(f func(speed) float64, other []speed) (all []float64) {
		for i := range rs.east {
			all = append(all, f(rs.east[i])/f(other[i]))
		}
		return all
	}
	r.add("NATS R3, sync always, 1 KiB, 4 clients", "%.0f records/s", median(of(rs.always, large)), "peer")
	r.add("NATS R3, no fsync, 1 KiB, 4 clients", "%.0f records/s", median(of(rs.lazy, large)), "peer")
	x, y := median(ratios(large, rs.always)), median(ratios(large, rs.lazy))
	r.add("factor 3, 1 KiB, 4 clients, full speed", "%.0f records/s", median(of(rs.east, large)), fmt.Sprintf("%.1f × NATS always, %.1f × NATS without fsync", x, y)).
		goal("≥ 2.5 × and ≥ 1.2 ×", x >= 2.5 && y >= 1.2)
	r.add("NATS R3, sync always, 100 B, 4 clients", "%.0f records/s", median(of(rs.always, small)), "peer")
	x = median(ratios(small, rs.always))
	r.add("factor 3, 100 B, 4 clients, full speed", "%.0f records/s", median(of(rs.east, small)), fmt.Sprintf("%.1f × NATS always", x)).
		goal("≥ 350,000 and ≥ 10 ×", median(of(rs.east, small)) >= 350_000 && x >= 10)
	r.add("segments sealed for lateness meanwhile", "%.0f", sum(rs.seals), "").goal("0", sum(rs.seals) == 0)

	r.add("three writers of 4 KiB + fdatasync, p50", "%.3f ms", median(rs.floor50), "floor")
	r.add("three writers of 4 KiB + fdatasync, p99", "%.3f ms", median(rs.floor99), "floor")
	r.add("NATS R3, sync always, one at a time, p50", "%.3f ms", median(of(rs.always, func(s speed) float64 { return s.p50 })), fmt.Sprintf("%.2f × floor", median(rs.always50)))
	r.add("NATS R3, sync always, one at a time, p99", "%.3f ms", median(of(rs.always, func(s speed) float64 { return s.p99 })), fmt.Sprintf("%.2f × floor", median(rs.always99)))
	r.add("factor 3, one 1 KiB record at a time, p50", "%.3f ms", median(of(rs.east, func(s speed) float64 { return s.p50 })), fmt.Sprintf("%.2f × floor", median(rs.over50))).
		goal("≤ 1.6 × floor", median(rs.over50) <= 1.6)
	r.add("factor 3, one 1 KiB record at a time, p99", "%.3f ms", median(of(rs.east, func(s speed) float64 { return s.p99 })), fmt.Sprintf("%.2f × floor", median(rs.over99))).
		goal("≤ 4 × floor", median(rs.over99) <= 4)

	cpu := func(s speed) float64 { return s.cpu }
	x = median(ratios(cpu, rs.always))
	r.add("NATS R3, sync always, processor, 1 M records of 1 KiB", "%.1f s", median(of(rs.always, cpu)), "peer")
	r.add("factor 3, processor of all brokers, 1 M records of 1 KiB", "%.1f s", median(of(rs.east, cpu)), fmt.Sprintf("%.2f × NATS always", x)).
		goal("≤ 0.35 ×", x <= 0.35)
	r.add("bytes to disk, all brokers, a byte of encoded batches", "%.2f", median(rs.amplification), "").goal("≤ 6.3", median(rs.amplification) <= 6.3)
}

func sum(list []float64) (s float64) {
	for _, v := range list {
		s += v
	}
	return s
}

// measureIdleTopics looks at three brokers with a thousand topics of factor 3, each with a record, that nobody uses.
func measureIdleTopics(o options, r *report) error {
	c, err := newCluster(o)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.ColdStart(patience); err != nil {
		return err
	}
	if err := fillTopics(c, 1000); err != nil {
		return err
	}
	if err := c.Even(patience); err != nil {
		return err
	}
	percent, rss, err := restingUsage(c, idleAfter)
	if err != nil {
		return err
	}
	r.add("1,000 idle topics of factor 3, processor a broker", "%.2f %% of a core", percent, "").goal("≤ 3 %", percent <= 3)
	r.add("1,000 idle topics of factor 3, memory a broker", "%.0f MB", rss/1e6, "").goal("≤ 120 MB", rss <= 120e6)
	return c.Stop(patience)
}

// idleAfter is when the last actor of a topic that nobody uses has retired.
const idleAfter = 75 * time.Second

func fillTopics(c *procs.Cluster, n int) error {
	if err := createTopics(c, 0, n); err != nil {
		return err
	}
	client, err := c.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var sending errgroup.Group
	sending.SetLimit(inParallel)
	for i := range n {
		sending.Go(func() error {
			p, err := client.NewProducer(procs.TopicName(i), sdk.WithLinger(0))
			if err != nil {
				return err
			}
			if _, err := p.Send(ctx, sdk.Record{Value: make([]byte, 1024)}); err != nil {
				return err
			}
			return p.Close(ctx)
		})
	}
	return sending.Wait()
}
