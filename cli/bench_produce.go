package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

const schemaBenchProduce = "bench.produce/1"

// produceReport is the document of bench produce.
type produceReport struct {
	Schema string `json:"schema"`
	produceFields
}

// produceFields stand in the reports of bench produce and bench e2e alike.
type produceFields struct {
	Topic         string  `json:"topic"`
	Records       int64   `json:"records" doc:"acked after the warm-up"`
	Bytes         int64   `json:"bytes" doc:"of their keys and values"`
	RecordsPerSec float64 `json:"records_per_sec"`
	BytesPerSec   float64 `json:"bytes_per_sec"`
	percentiles
	Errors       int64     `json:"errors"`
	Unknown      int64     `json:"unknown" doc:"errors that do not say whether the record was written"`
	FirstError   string    `json:"first_error,omitempty"`
	Retries      int64     `json:"retries"`
	Batches      int64     `json:"batches" doc:"acked after the warm-up"`
	BatchRecords float64   `json:"records_per_batch"`
	Ranges       int       `json:"ranges" doc:"ranges written to"`
	Seals        int64     `json:"seals" doc:"segments that ended while they were written to"`
	LongestGapMs float64   `json:"longest_gap_ms" doc:"a record waited, and no ack of its range came, for at most so long"`
	SealList     []sealRow `json:"seal_list" doc:"by time; of more than 1,000 those with the longest gaps"`
	DurationMs   int64     `json:"duration_ms"`
	TargetRate   float64   `json:"target_records_per_sec" doc:"0 means as fast as possible"`
	Sync         bool      `json:"sync" doc:"one record at a time"`
	Clients      int       `json:"clients"`
	ValueBytes   int       `json:"value_bytes"`
	Keys         int       `json:"keys"`
	Codec        string    `json:"codec"`
	CPU          float64   `json:"client_cpu_percent" doc:"of one core"`
}

type benchProduceOptions struct {
	*app
	plan  benchPlan
	topic benchTopicFlags
}

func newBenchProduceCommand(a *app) *cobra.Command {
	o := &benchProduceOptions{app: a}
	var raw benchFlags
	cmd := &cobra.Command{
		Use:   "produce <topic>",
		Short: "Send records at a rate, or as fast as possible, and measure the acks",
		Long: "Sends random records and measures rate and latency. In the open loop of --rate the latency of a record runs\n" +
			"from the time it should have been sent, so a stall counts for every record that it delayed.",
		Example: `  bench produce load --create --rf 1 --cleanup
  bench produce load --max --size 100 --duration 30s
  bench produce load --sync
  bench produce load --rate 50k/s --max-p99 20ms -o json`,
		Args:              argsBetween(1, 1),
		Annotations:       map[string]string{noteChanges: "yes", noteSchema: "bench.produce", noteExits: "4 8 12", noteDeadline: deadlineStream},
		ValidArgsFunction: a.completeTopics,
	}
	raw.register(cmd.Flags(), false)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if o.plan, err = raw.plan(args[0], cmd.Flags().Changed, false); err != nil {
			return err
		}
		o.topic = raw.topic
		client, err := a.client()
		if err != nil {
			return err
		}
		return runBenchProduce(cmd.Context(), o, client)
	}
	return cmd
}

func runBenchProduce(ctx context.Context, o *benchProduceOptions, client Client) error {
	ctx, cancel := o.benchContext(ctx)
	defer cancel()
	cleanup, err := o.benchTopic(ctx, client, o.plan.topic, o.topic)
	if err != nil {
		return err
	}
	defer cleanup(ctx)
	cpu := startCPU()
	l, err := newLoad(o.plan, client, time.Now())
	if err != nil {
		return err
	}
	live := o.startProgress(l.liveLine)
	runErr := l.run(ctx, nil)
	live.stop()
	t := l.totals()
	closeErr := l.close(ctx)
	report := produceReport{schemaBenchProduce, l.report(t, cpu, o.sealCauses(ctx, client.Admin(), o.plan.topic, &t.gaps))}
	if t.records == 0 && t.first != nil {
		return o.suggestTopic(ctx, client.Admin(), o.plan.topic, t.first)
	}
	if err := o.output().Object(report, func(p *term.Page) { producePage(p, report.produceFields) }); err != nil {
		return err
	}
	if err := o.plan.gate.save(report, t.lat); err != nil {
		return err
	}
	return firstError(stopError(ctx), sendFailures(t), runErr, closeErr, o.plan.gate.judge(report.RecordsPerSec, microseconds(report.P99)))
}

// stopError is the interruption of a bench; running into -t is a normal end.
func stopError(ctx context.Context) error {
	if ctx.Err() == nil || errors.Is(context.Cause(ctx), errTimeUp) {
		return nil
	}
	return context.Cause(ctx)
}

func sendFailures(t loadTotals) error {
	if t.errors == 0 {
		return nil
	}
	return someFailed(t.errors, t.errors+t.records, t.first, t.unknown > 0)
}

func (l *load) report(t loadTotals, cpu cpuClock, causes map[sdk.SegmentID]string) produceFields {
	f := produceFields{
		Topic: l.plan.topic, Records: t.records, Bytes: t.bytes, percentiles: t.lat.percentiles(), Errors: t.errors, Unknown: t.unknown,
		Retries: t.retries, Batches: t.batches, Ranges: t.ranges, Seals: t.gaps.count, TargetRate: l.plan.rate, Sync: l.plan.sync, Clients: l.plan.clients,
		ValueBytes: l.plan.payload.size, Keys: l.plan.keys, Codec: l.plan.codec, CPU: cpu.percent(),
		LongestGapMs: millis(t.gaps.longest), SealList: t.gaps.rows(causes),
	}
	if t.batches > 0 {
		f.BatchRecords = float64(t.records) / float64(t.batches)
	}
	if t.first != nil {
		f.FirstError = describe(t.first).Message
	}
	if elapsed := t.lastAck.Sub(l.warmEnd); t.records > 0 && elapsed > 0 {
		f.DurationMs = elapsed.Milliseconds()
		f.RecordsPerSec = float64(t.records) / elapsed.Seconds()
		f.BytesPerSec = float64(t.bytes) / elapsed.Seconds()
	}
	return f
}

func (l *load) liveLine(elapsed time.Duration) string {
	s := max(elapsed.Seconds(), 0.001)
	acked := l.acked.Load()
	warm := ""
	if elapsed < l.plan.warmup {
		warm = "warming up  "
	}
	return fmt.Sprintf("%s%s acked  %s records/s  %s/s  %s under way", warm, term.FormatCount(acked), term.FormatRate(float64(acked)/s),
		term.BytesIEC.Format(int64(float64(l.bytes.Load())/s)), term.FormatCount(l.sent.Load()-acked))
}

func producePage(p *term.Page, f produceFields) {
	h := p.Human()
	target := "as fast as possible"
	switch {
	case f.Sync:
		target = "one record at a time"
	case f.TargetRate > 0:
		target = "open loop at " + term.FormatRate(f.TargetRate) + "/s"
	}
	p.Fields(
		"Topic", fmt.Sprintf("%s, %s", f.Topic, plural(int64(f.Ranges), "range")),
		"Load", fmt.Sprintf("%s, %s, values of %s, codec %s", target, plural(int64(f.Clients), "client"), h.Bytes.Format(int64(f.ValueBytes)), f.Codec),
		"Acked", fmt.Sprintf("%s in %s", plural(f.Records, "record"), term.FormatTook(time.Duration(f.DurationMs)*time.Millisecond)),
		"Rate", fmt.Sprintf("%s records/s, %s/s", term.FormatCount(int64(f.RecordsPerSec)), h.Bytes.Format(int64(f.BytesPerSec))),
		"Latency", f.text(),
		"Batches", fmt.Sprintf("%s of %.0f records", term.FormatCount(f.Batches), f.BatchRecords),
		"Trouble", fmt.Sprintf("%s, %s, %s seen", plural(f.Errors, "error"), retriesText(f.Retries), plural(f.Seals, "seal")),
		"Longest gap", took(f.LongestGapMs)+" without an ack of a range",
		"Client", fmt.Sprintf("%.0f%% of a core", f.CPU),
	)
	sealsPage(p, f)
}

func retriesText(n int64) string {
	if n == 1 {
		return "1 retry"
	}
	return term.FormatCount(n) + " retries"
}
