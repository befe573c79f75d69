package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

const schemaBenchConsume = "bench.consume/1"

// consumeReport is the document of bench consume.
type consumeReport struct {
	Schema        string  `json:"schema"`
	Topic         string  `json:"topic"`
	Records       int64   `json:"records"`
	Bytes         int64   `json:"bytes" doc:"of keys and values"`
	RecordsPerSec float64 `json:"records_per_sec"`
	BytesPerSec   float64 `json:"bytes_per_sec"`
	percentiles
	Errors     int64   `json:"errors"`
	FirstError string  `json:"first_error,omitempty"`
	DurationMs int64   `json:"duration_ms"`
	Clients    int     `json:"clients"`
	CPU        float64 `json:"client_cpu_percent" doc:"of one core"`
}

type benchConsumeOptions struct {
	*app
	topic    string
	start    sdk.Start
	clients  int
	records  int64
	duration time.Duration
	warmup   time.Duration
	gate     gate
}

func newBenchConsumeCommand(a *app) *cobra.Command {
	o := &benchConsumeOptions{app: a}
	var from, duration, warmup, records string
	var gates gateFlags
	cmd := &cobra.Command{
		Use:   "consume <topic>",
		Short: "Read a topic as fast as possible and measure it",
		Long: "Reads to the end of the log as it was at the start, or for --duration, or --records. Each client reads the whole topic.\n" +
			"Latency runs from a record's timestamp until it is read, which says something of records written meanwhile only.",
		Example: `  bench consume load
  bench consume load --from latest --duration 30s
  bench consume load --clients 4 -o json`,
		Args:              argsBetween(1, 1),
		Annotations:       map[string]string{noteSchema: "bench.consume", noteExits: "4 8 12", noteDeadline: deadlineStream},
		ValidArgsFunction: a.completeTopics,
	}
	f := cmd.Flags()
	f.StringVar(&from, "from", "earliest", "`START`: earliest, latest or @TIME")
	f.IntVar(&o.clients, "clients", 1, "`N` consumers")
	f.StringVar(&duration, "duration", "", "stop after this `DURATION`")
	f.StringVar(&records, "records", "", "stop after `N` records in all")
	f.StringVar(&warmup, "warmup", "", "do not count the first `DURATION`")
	gates.register(f)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.topic = args[0]
		if err := o.parse(from, duration, warmup, records, gates); err != nil {
			return err
		}
		client, err := a.client()
		if err != nil {
			return err
		}
		return runBenchConsume(cmd.Context(), o, client)
	}
	return cmd
}

func (o *benchConsumeOptions) parse(from, duration, warmup, records string, gates gateFlags) error {
	start, err := parseStart(from, o.Now())
	if err != nil {
		return err
	}
	switch start.kind {
	case startEarliest:
		o.start = sdk.Earliest()
	case startLatest:
		o.start = sdk.Latest()
	case startTime:
		o.start = sdk.AtTime(start.time)
	default:
		return usagef("--from %q is not earliest, latest or @TIME", from)
	}
	if o.clients < 1 || o.clients > maxBenchClients {
		return usagef("--clients must be from 1 to %d", maxBenchClients)
	}
	if duration != "" {
		if o.duration, err = term.ParseDuration(duration); err != nil {
			return flagValueError("duration", err)
		}
	}
	if warmup != "" {
		if o.warmup, err = term.ParseDuration(warmup); err != nil {
			return flagValueError("warmup", err)
		}
	}
	if records != "" {
		if o.records, err = term.ParseCount(records); err != nil {
			return flagValueError("records", err)
		}
	}
	if start.kind == startLatest && o.duration == 0 && o.records == 0 {
		return usagef("--from latest needs --duration or --records")
	}
	o.gate, err = gates.parse()
	return err
}

// readers is a bench consume under way.
type readers struct {
	*benchConsumeOptions
	start   time.Time
	warmEnd time.Time
	seen    atomic.Int64 // all, for --records and the live line
	bytes   atomic.Int64
	full    chan struct{} // closed when --records have come
	once    sync.Once
}

// reader is one client's share.
type reader struct {
	lat     latencies
	records int64
	bytes   int64
	last    time.Time
	err     error
}

func runBenchConsume(ctx context.Context, o *benchConsumeOptions, client Client) error {
	ctx, cancel := o.benchContext(ctx)
	defer cancel()
	if err := o.reach(ctx, client.Admin(), o.topic); err != nil {
		return err
	}
	cpu := startCPU()
	now := time.Now()
	rs := &readers{benchConsumeOptions: o, start: now, warmEnd: now.Add(o.warmup), full: make(chan struct{})}
	stop := ctx
	if o.duration > 0 {
		stop, cancel = context.WithTimeoutCause(ctx, o.warmup+o.duration, errTimeUp)
		defer cancel()
	}
	live := o.startProgress(rs.liveLine)
	all := rs.run(stop, client)
	live.stop()
	report, lat := rs.report(all, cpu)
	var failure error
	for _, r := range all {
		failure = firstError(failure, r.err)
	}
	if report.Records == 0 && failure != nil {
		return o.suggestTopic(ctx, client.Admin(), o.topic, failure)
	}
	if err := o.output().Object(report, func(p *term.Page) { consumePage(p, report) }); err != nil {
		return err
	}
	if err := o.gate.save(report, lat); err != nil {
		return err
	}
	return firstError(stopError(ctx), failure, o.gate.judge(report.RecordsPerSec, microseconds(report.P99)))
}

func (rs *readers) run(ctx context.Context, client Client) []*reader {
	all := make([]*reader, rs.clients)
	var wg sync.WaitGroup
	for i := range all {
		r := &reader{lat: newLatencies()}
		all[i] = r
		wg.Go(func() { r.err = rs.read(ctx, client, r) })
	}
	wg.Wait()
	return all
}

func (rs *readers) read(ctx context.Context, client Client, r *reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	opts := []sdk.ConsumerOption{sdk.WithTopics(rs.topic), sdk.WithStart(rs.benchConsumeOptions.start), sdk.WithMaxPollRecords(10_000)}
	if rs.duration == 0 && rs.records == 0 {
		opts = append(opts, sdk.WithStop(sdk.StopAtEnd()))
	}
	c, err := client.NewConsumer(opts...)
	if err != nil {
		return err
	}
	go func() {
		select {
		case <-rs.full:
			cancel()
		case <-ctx.Done():
		}
	}()
	for {
		messages, err := c.Poll(ctx)
		rs.take(r, messages)
		if err != nil {
			cerr := c.Close()
			if errors.Is(err, io.EOF) || ctx.Err() != nil {
				return cerr
			}
			return err
		}
	}
}

func (rs *readers) take(r *reader, messages []sdk.Message) {
	if len(messages) == 0 {
		return
	}
	now := time.Now()
	var size int64
	counts := !now.Before(rs.warmEnd)
	for i := range messages {
		m := &messages[i]
		size += int64(len(m.Key) + len(m.Value))
		if counts {
			r.lat.record(now.Sub(m.Timestamp))
		}
	}
	if counts {
		r.records += int64(len(messages))
		r.bytes += size
		r.last = now
	}
	rs.bytes.Add(size)
	if n := rs.seen.Add(int64(len(messages))); rs.records > 0 && n >= rs.records {
		rs.once.Do(func() { close(rs.full) })
	}
}

func (rs *readers) report(all []*reader, cpu cpuClock) (consumeReport, latencies) {
	out := consumeReport{Schema: schemaBenchConsume, Topic: rs.topic, Clients: rs.clients, CPU: cpu.percent()}
	lat := newLatencies()
	var last time.Time
	for _, r := range all {
		lat.merge(r.lat)
		out.Records += r.records
		out.Bytes += r.bytes
		if r.last.After(last) {
			last = r.last
		}
		if r.err != nil {
			out.Errors++
			out.FirstError = describe(r.err).Message
		}
	}
	out.percentiles = lat.percentiles()
	if elapsed := last.Sub(rs.warmEnd); out.Records > 0 && elapsed > 0 {
		out.DurationMs = elapsed.Milliseconds()
		out.RecordsPerSec = float64(out.Records) / elapsed.Seconds()
		out.BytesPerSec = float64(out.Bytes) / elapsed.Seconds()
	}
	return out, lat
}

func (rs *readers) liveLine(elapsed time.Duration) string {
	s := max(elapsed.Seconds(), 0.001)
	return fmt.Sprintf("%s read  %s records/s  %s/s", term.FormatCount(rs.seen.Load()), term.FormatRate(float64(rs.seen.Load())/s),
		term.BytesIEC.Format(int64(float64(rs.bytes.Load())/s)))
}

func consumePage(p *term.Page, r consumeReport) {
	h := p.Human()
	p.Fields(
		"Topic", r.Topic+", "+plural(int64(r.Clients), "client"),
		"Read", fmt.Sprintf("%s in %s", plural(r.Records, "record"), term.FormatTook(time.Duration(r.DurationMs)*time.Millisecond)),
		"Rate", fmt.Sprintf("%s records/s, %s/s", term.FormatCount(int64(r.RecordsPerSec)), h.Bytes.Format(int64(r.BytesPerSec))),
		"Age", r.text(),
		"Client", fmt.Sprintf("%.0f%% of a core", r.CPU),
	)
}
