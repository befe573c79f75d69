package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

const (
	schemaBenchE2E = "bench.e2e/1"
	// deliveryWait is how long after the last progress a record that was acked and has not come counts as lost.
	deliveryWait = 15 * time.Second
	deliveryPoll = 20 * time.Millisecond
)

// e2eReport is the document of bench e2e.
type e2eReport struct {
	Schema     string `json:"schema"`
	Acked      int64  `json:"acked"`
	Delivered  int64  `json:"delivered" doc:"different records that were read"`
	Lost       int64  `json:"lost" doc:"acked and never read"`
	Duplicates int64  `json:"duplicates"`
	Reordered  int64  `json:"reordered" doc:"read behind a later record of the same key"`
	produceFields
	DeliverP50 int64 `json:"deliver_p50_us" doc:"from sending until it was read; to the millisecond"`
	DeliverP99 int64 `json:"deliver_p99_us"`
	DeliverMax int64 `json:"deliver_max_us"`
}

type benchE2EOptions struct {
	*app
	plan  benchPlan
	topic benchTopicFlags
}

func newBenchE2ECommand(a *app) *cobra.Command {
	o := &benchE2EOptions{app: a}
	var raw benchFlags
	cmd := &cobra.Command{
		Use:   "e2e <topic>",
		Short: "Write and read at once; every record is checked: lost, duplicate, out of order",
		Long: "Sends numbered records with keys while reading them back. Each acked record must come once, and those of a key in\n" +
			"the order sent; anything else is exit 9. There is no warm-up: every record counts. Records of others in the\n" +
			"topic are ignored. Brokers may die and come back meanwhile: what was sent is retried, and the report lists each\n" +
			"seal that was seen and the longest time without an ack.",
		Example: `  bench e2e load --create --rf 1 --cleanup
  bench e2e load --rate 20k/s --duration 1m --keys 1000 -o json`,
		Args:              argsBetween(1, 1),
		Annotations:       map[string]string{noteChanges: "yes", noteSchema: "bench.e2e", noteExits: "4 8 9 12", noteDeadline: deadlineStream},
		ValidArgsFunction: a.completeTopics,
	}
	raw.register(cmd.Flags(), true)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if o.plan, err = raw.plan(args[0], cmd.Flags().Changed, true); err != nil {
			return err
		}
		if o.plan.payload.size < markSize {
			return usagef("--size must be at least %d bytes for e2e: a value carries its own number", markSize)
		}
		if o.plan.clients > o.plan.keys {
			return usagef("--keys must be at least --clients: each key belongs to one client")
		}
		o.topic = raw.topic
		client, err := a.client()
		if err != nil {
			return err
		}
		return runBenchE2E(cmd.Context(), o, client)
	}
	return cmd
}

// e2e is one run.
type e2e struct {
	*benchE2EOptions
	load  *load
	check *orderCheck
	start time.Time

	mu      sync.Mutex
	deliver latencies
}

func runBenchE2E(ctx context.Context, o *benchE2EOptions, client Client) error {
	ctx, cancel := o.benchContext(ctx)
	defer cancel()
	cleanup, err := o.benchTopic(ctx, client, o.plan.topic, o.topic)
	if err != nil {
		return err
	}
	defer cleanup(ctx)
	run, err := base.NewUUID(rand.Reader)
	if err != nil {
		return err
	}
	cpu := startCPU()
	e := &e2e{benchE2EOptions: o, check: newOrderCheck(run), deliver: newLatencies()}
	reader, err := e.openReader(ctx, client)
	if err != nil {
		return o.suggestTopic(ctx, client.Admin(), o.plan.topic, err)
	}
	e.start = time.Now()
	if e.load, err = newLoad(o.plan, client, e.start); err != nil {
		return errors.Join(err, reader.Close())
	}
	live := o.startProgress(e.liveLine)
	runErr, readErr := e.both(ctx, reader)
	live.stop()
	t := e.load.totals()
	closeErr := e.load.close(ctx)
	if t.records == 0 && t.first != nil {
		return o.suggestTopic(ctx, client.Admin(), o.plan.topic, t.first)
	}
	report := e.report(t, cpu, o.sealCauses(ctx, client.Admin(), o.plan.topic, &t.gaps))
	if err := o.output().Object(report, func(p *term.Page) { e2ePage(p, report) }); err != nil {
		return err
	}
	if err := o.plan.gate.save(report, t.lat); err != nil {
		return err
	}
	return firstError(e.verdict(report), stopError(ctx), readErr, sendFailures(t), runErr, closeErr,
		o.plan.gate.judge(report.RecordsPerSec, microseconds(report.P99)))
}

// openReader starts reading at the ends as they are before the first record is sent. Ranges that come later, by a
// split, are read from their first record.
func (e *e2e) openReader(ctx context.Context, client Client) (Consumer, error) {
	asking, cancel := e.answerIn(ctx)
	defer cancel()
	ends, err := client.Admin().Offsets(asking, e.plan.topic, sdk.Latest())
	if err != nil {
		return nil, err
	}
	return client.NewConsumer(sdk.WithTopics(e.plan.topic), sdk.WithStart(sdk.AtPositions(ends...)), sdk.WithMaxPollRecords(10_000))
}

// both runs the load and the reader, and stops the reader when everything acked has come or nothing comes any more.
func (e *e2e) both(ctx context.Context, reader Consumer) (runErr, readErr error) {
	reading, stopReading := context.WithCancel(context.WithoutCancel(ctx))
	defer stopReading()
	done := make(chan error, 1)
	go func() { done <- e.read(reading, reader) }()
	runErr = e.load.run(ctx, e.record)
	wait := deliveryWait
	if ctx.Err() != nil {
		wait = flushWait
	}
	readErr = e.drain(wait, done)
	stopReading()
	if readErr == nil {
		readErr = <-done
	}
	return runErr, readErr
}

// drain waits until nothing acked is missing, or no progress was made for a while. An error of the reader ends it.
func (e *e2e) drain(wait time.Duration, done chan error) error {
	last, at := int64(-1), time.Now()
	for e.check.lost() > 0 && time.Since(at) < wait {
		if n := e.check.counts().delivered; n != last {
			last, at = n, time.Now()
		}
		select {
		case err := <-done:
			done <- nil // both waits for the reader once more
			return err
		case <-time.After(deliveryPoll):
		}
	}
	return nil
}

// record makes a numbered record. A key belongs to one client, so that its records have one order of sending.
func (e *e2e) record(c *loadClient, n int64, key int) (sdk.Record, func(error)) {
	key -= key % e.plan.clients
	if key += c.id; key >= e.plan.keys {
		key = c.id
	}
	m := e.check.assign(uint32(key))
	value := make([]byte, e.plan.payload.size)
	m.put(value)
	copy(value[markSize:], e.plan.payload.value(uint64(n))[markSize:])
	return sdk.Record{Key: strconv.AppendInt(make([]byte, 0, 12), int64(key), 10), Value: value, Timestamp: time.Now()},
		func(err error) { e.check.settle(m, err) }
}

func (e *e2e) read(ctx context.Context, c Consumer) error {
	for {
		messages, err := c.Poll(ctx)
		now := time.Now()
		e.mu.Lock()
		for i := range messages {
			if m, ok := readMark(messages[i].Value); ok && m.run == e.check.run {
				e.check.deliver(m)
				e.deliver.record(now.Sub(messages[i].Timestamp))
			}
		}
		e.mu.Unlock()
		if err != nil {
			cerr := c.Close()
			if ctx.Err() != nil {
				return cerr
			}
			return err
		}
	}
}

func (e *e2e) report(t loadTotals, cpu cpuClock, causes map[sdk.SegmentID]string) e2eReport {
	n := e.check.counts()
	e.mu.Lock()
	d := e.deliver.percentiles()
	e.mu.Unlock()
	return e2eReport{
		Schema: schemaBenchE2E, Acked: n.acked, Delivered: n.delivered, Lost: e.check.lost(), Duplicates: n.duplicates, Reordered: n.reordered,
		produceFields: e.load.report(t, cpu, causes), DeliverP50: d.P50, DeliverP99: d.P99, DeliverMax: d.Max,
	}
}

func (e *e2e) verdict(r e2eReport) error {
	if r.Lost == 0 && r.Duplicates == 0 && r.Reordered == 0 {
		return nil
	}
	return &failure{
		name: nameLost, exit: ExitIntegrity,
		msg:  fmt.Sprintf("lost %d, duplicates %d, reordered %d", r.Lost, r.Duplicates, r.Reordered),
		hint: "this must not happen; please report it with the brokers' logs",
	}
}

func (e *e2e) liveLine(elapsed time.Duration) string {
	n := e.check.counts()
	return fmt.Sprintf("%s  %s delivered  dup %d  reordered %d", e.load.liveLine(elapsed), term.FormatCount(n.delivered), n.duplicates, n.reordered)
}

func e2ePage(p *term.Page, r e2eReport) {
	producePage(p, r.produceFields)
	us := func(n int64) string { return term.FormatTook(microseconds(n)) }
	p.Fields(
		"Deliver", fmt.Sprintf("p50 %s  p99 %s  max %s", us(r.DeliverP50), us(r.DeliverP99), us(r.DeliverMax)),
		"Checked", fmt.Sprintf("%s acked, %s delivered", term.FormatCount(r.Acked), term.FormatCount(r.Delivered)),
	)
	text := fmt.Sprintf("lost %d dup %d reordered %d", r.Lost, r.Duplicates, r.Reordered)
	if r.Lost+r.Duplicates+r.Reordered == 0 {
		p.Line("%s", p.Style().OK(text))
		return
	}
	p.Line("%s", p.Style().Bad(text))
}
