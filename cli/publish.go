package cli

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

type publishOptions struct {
	*app
	topic string

	single     *sdk.Record // one record, taken literally
	key        []byte      // for every record read
	routingKey []byte
	headers    []sdk.Header
	timestamp  time.Time
	in         string // mode or format of stdin
	keyDelim   string
	recDelim   string
	count      int64 // -n: records made from the template
	value      string
	rate       float64 // records a second; 0 = as fast as they come
	goOn       bool    // --continue-on-error
	trace      bool

	producer []sdk.ProducerOption
}

// ackDocument is the document of publish: one for each record.
type ackDocument struct {
	Topic      string        `json:"topic" col:"TOPIC"`
	Range      string        `json:"range" col:"RANGE"`
	Offset     int64         `json:"offset" col:"OFFSET"`
	Key        term.Text     `json:"key,omitzero" col:"KEY"`
	KeyB64     string        `json:"key_b64,omitempty"`
	ValueBytes int           `json:"value_bytes" col:"BYTES"`
	Timestamp  term.Time     `json:"timestamp" doc:"when the broker appended the record; --timestamp sets the record's own, which consume shows"`
	Segment    string        `json:"segment" col:"SEGMENT,wide"`
	AckedBy    []string      `json:"acked_by" col:"ACKED-BY"`
	TookMs     float64       `json:"took_ms" col:"TOOK" as:"ms"`
	Record     int64         `json:"record" doc:"place in the input, from 1"`
	Trace      *publishTrace `json:"trace,omitempty" doc:"with --trace: where the time went"`
}

// publishFlags are the flags as typed, before parse gives them meaning.
type publishFlags struct {
	key, routingKey, timestamp, valueFile string
	in, keyDelim, recDelim, rate, z       string
	linger, batchBytes                    string
	headers                               []string
	tombstone, goOn, trace                bool
	count                                 int64
}

func newPublishCommand(a *app) *cobra.Command {
	o := &publishOptions{app: a}
	var raw publishFlags
	cmd := &cobra.Command{
		Use:     "publish <topic> [key] [value]",
		Aliases: []string{"pub", "produce"},
		Short:   "Publish one record, or every record on stdin",
		Long: "With a key and a value, publishes that one record, taken literally. With neither, reads records from stdin.\n\n" +
			"Every ack means that all replicas have the record on stable storage (in memory, for a topic created with\n" +
			"--durability replicated). There is no weaker setting, so there is no flag for one.",
		Example: `  publish my_topic user123 "Hello EastGuard!"
  publish my_topic user123 --tombstone
  publish my_topic -K : < pairs.txt
  consume my_topic earliest -o jsonl | publish copy --in jsonl
  publish my_topic 'user{{.Count}}' '{{.Random 10 100}}' -n 1000 --rate 100/s`,
		Args:              argsBetween(1, 3),
		Annotations:       map[string]string{noteChanges: "yes", noteSchema: "publish", noteExits: "4 8", noteDeadline: deadlineOwn},
		ValidArgsFunction: a.completeTopics,
	}
	f := cmd.Flags()
	f.StringVarP(&raw.key, "key", "k", "", "`KEY` of the records read from stdin")
	f.StringVar(&raw.routingKey, "routing-key", "", "choose the range by this `KEY` instead of the record's")
	f.StringArrayVarP(&raw.headers, "header", "H", nil, "header `k=v`; may be repeated")
	f.StringVar(&raw.timestamp, "timestamp", "", "`TIME` of the records (default now)")
	f.BoolVar(&raw.tombstone, "tombstone", false, "publish a null value, which deletes the key for readers that keep the latest")
	f.StringVar(&raw.valueFile, "value-file", "", "the value is the content of `FILE`")
	f.StringVar(&raw.in, "in", "lines", "what stdin holds: `lines`, jsonl, bytes (one record), or a format such as '%k:%v'")
	f.StringVarP(&raw.keyDelim, "key-delimiter", "K", "", "with --in lines: key and value are separated by `TEXT`")
	f.StringVarP(&raw.recDelim, "record-delimiter", "D", `\n`, "records are separated by `TEXT`")
	f.Int64VarP(&raw.count, "count", "n", 0, "publish `N` records, expanding {{.Count}} {{.Time}} {{.Random 10 100}} in key and value")
	f.StringVar(&raw.rate, "rate", "", "at most this many records a second, as `100/s`")
	f.StringVarP(&raw.z, "compression", "z", "", "`CODEC`: none, lz4 or zstd (default: the topic's)")
	f.StringVar(&raw.linger, "linger", "", "wait this `DURATION` for more records before a batch is sent (default 5ms)")
	f.StringVar(&raw.batchBytes, "batch-bytes", "", "send a batch at this `SIZE` (default 1MiB)")
	f.BoolVar(&raw.goOn, "continue-on-error", false, "go on after a record that failed, and exit 8 at the end")
	f.BoolVar(&raw.trace, "trace", false, "of one record: tell where its time went, stage by stage and replica by replica")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.parse(args, raw, cmd.Flags().Changed); err != nil {
			return err
		}
		client, err := a.client()
		if err != nil {
			return err
		}
		return runPublish(cmd.Context(), o, client)
	}
	return cmd
}

func (o *publishOptions) parse(args []string, raw publishFlags, changed func(string) bool) error {
	o.topic, o.in, o.goOn, o.trace = args[0], raw.in, raw.goOn, raw.trace
	if err := o.parseRecordFlags(raw, changed); err != nil {
		return err
	}
	if err := o.parseProducerFlags(raw, changed); err != nil {
		return err
	}
	if changed("in") && o.in != "lines" && o.in != "jsonl" && o.in != "bytes" && !strings.Contains(o.in, "%") {
		return usagef("--in %q is not lines, jsonl, bytes or a format such as '%%k:%%v'", o.in)
	}
	if err := o.parseArgs(args[1:], raw, changed); err != nil {
		return err
	}
	if o.trace && o.single == nil {
		return usagef("--trace traces one record: give its key and value")
	}
	return nil
}

// parseArgs decides between the literal record, the template and stdin.
func (o *publishOptions) parseArgs(words []string, raw publishFlags, changed func(string) bool) error {
	valueGiven := raw.tombstone || raw.valueFile != ""
	if raw.tombstone && raw.valueFile != "" {
		return usagef("--tombstone and --value-file exclude each other")
	}
	switch {
	case len(words) == 2 && valueGiven:
		return usagef("a value is given twice: as an argument and by a flag")
	case len(words) == 1 && !valueGiven:
		return usagef("a value is missing: publish takes a key and a value, or neither (then it reads stdin)").
			WithHint("publish %s %s VALUE, or: echo VALUE | eg-cli publish %s -k %s", o.topic, words[0], o.topic, words[0])
	case len(words) >= 1 && changed("key"):
		return usagef("a key is given twice: as an argument and by -k")
	case len(words) >= 1:
		o.key = []byte(words[0])
	}
	if changed("count") {
		if raw.count < 1 {
			return usagef("-n must be at least 1")
		}
		if len(words) != 2 {
			return usagef("-n needs a key and a value to expand")
		}
		o.count, o.value = raw.count, words[1]
		return nil
	}
	switch {
	case len(words) == 2:
		o.single = o.record([]byte(words[1]))
	case raw.tombstone:
		o.single = o.record(nil)
	case raw.valueFile != "":
		value, err := readValueFile(raw.valueFile)
		if err != nil {
			return err
		}
		o.single = o.record(value)
	}
	return nil
}

func readValueFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, usagef("--value-file: %v", err)
	}
	defer f.Close()
	value, err := readValue(f, name)
	var e *sdk.Error
	if err != nil && !errors.As(err, &e) {
		return nil, usagef("--value-file: %v", err)
	}
	return value, err
}

func (o *publishOptions) record(value []byte) *sdk.Record {
	return &sdk.Record{Key: o.key, Value: value, Headers: o.headers, Timestamp: o.timestamp, RoutingKey: o.routingKey}
}

func (o *publishOptions) parseRecordFlags(raw publishFlags, changed func(string) bool) (err error) {
	if changed("key") {
		o.key = []byte(raw.key)
	}
	if changed("routing-key") {
		o.routingKey = []byte(raw.routingKey)
	}
	for _, h := range raw.headers {
		k, v, ok := strings.Cut(h, "=")
		if !ok || k == "" {
			return usagef("-H %q is not k=v", h)
		}
		o.headers = append(o.headers, sdk.Header{Key: k, Value: []byte(v)})
	}
	if raw.timestamp != "" {
		if o.timestamp, err = term.ParseTime(strings.TrimPrefix(raw.timestamp, "@"), o.Now()); err != nil {
			return flagValueError("timestamp", err)
		}
	}
	if o.keyDelim, err = unescapeText(raw.keyDelim); err != nil {
		return flagValueError("key-delimiter", err)
	}
	if o.recDelim, err = unescapeText(raw.recDelim); err != nil {
		return flagValueError("record-delimiter", err)
	}
	if o.recDelim == "" {
		return usagef("the record delimiter cannot be empty; --in bytes takes all of stdin as one record")
	}
	return nil
}

func (o *publishOptions) parseProducerFlags(raw publishFlags, changed func(string) bool) (err error) {
	if raw.rate != "" {
		if o.rate, err = term.ParseRate(raw.rate); err != nil {
			return flagValueError("rate", err)
		}
	}
	o.producer, err = producerOptions(raw.z, raw.linger, raw.batchBytes)
	return err
}

// producerOptions turns the flags that publish and bench share into options of the SDK.
func producerOptions(z, linger, batchBytes string) ([]sdk.ProducerOption, error) {
	var opts []sdk.ProducerOption
	if z != "" {
		codec, err := sdk.ParseCompression(z)
		if err != nil {
			return nil, usagef("-z %q is not one of none, lz4, zstd", z)
		}
		opts = append(opts, sdk.WithCompression(codec))
	}
	if linger != "" {
		d, err := term.ParseDuration(linger)
		if err != nil {
			return nil, flagValueError("linger", err)
		}
		opts = append(opts, sdk.WithLinger(d))
	}
	if batchBytes != "" {
		n, err := base.ParseSize(batchBytes)
		if err != nil {
			return nil, flagValueError("batch-bytes", err)
		}
		opts = append(opts, sdk.WithMaxBatchBytes(int(n)))
	}
	return opts, nil
}

type producerMaker interface {
	NewProducer(topic string, opts ...sdk.ProducerOption) (Producer, error)
}

type publishClient interface {
	producerMaker
	Admin() Admin
}

func runPublish(ctx context.Context, o *publishOptions, client publishClient) error {
	if o.single == nil {
		return runPublishMany(ctx, o, client)
	}
	if o.set.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.set.timeout)
		defer cancel()
	}
	opts := append([]sdk.ProducerOption{sdk.WithLinger(0)}, o.producer...)
	if o.set.timeout > 0 {
		opts = append(opts, sdk.WithDeliveryTimeout(deliverIn(o.set.timeout)))
	}
	p, err := client.NewProducer(o.topic, opts...)
	if err != nil {
		return err
	}
	start := o.Now()
	var trace sdk.Trace
	var ack sdk.Ack
	if o.trace {
		ack, trace, err = p.SendTraced(ctx, *o.single)
	} else {
		ack, err = p.Send(ctx, *o.single)
	}
	elapsed := o.Now().Sub(start)
	if cerr := p.Close(ctx); err == nil && cerr != nil && !errors.Is(cerr, context.DeadlineExceeded) {
		err = cerr
	}
	if err != nil {
		return o.suggestTopic(ctx, client.Admin(), o.topic, sendError(err))
	}
	ack = (&ackHolders{admin: client.Admin()}).complete(ctx, ack)
	doc := newAckDocument(ack, o.topic, o.single, 1, elapsed)
	if o.trace {
		doc.Trace = newPublishTrace(trace)
	}
	return unprinted(o.output().Object(doc, func(p *term.Page) {
		p.Line("%s", ackLine(doc, o.single.Key))
		doc.Trace.page(p)
	}))
}

// deliverIn is the producer's share of a command's time. It ends a little earlier, because the producer knows why a record
// was not delivered, and whether it ever left; when the command's own time is up all one can say is that it may have.
func deliverIn(timeout time.Duration) time.Duration {
	return timeout - min(timeout/10, 500*time.Millisecond)
}

// sendError keeps a deadline of ours from looking like "nothing happened": a record that was handed to the
// producer may have been written.
func sendError(err error) error {
	var e *sdk.Error
	if !errors.As(err, &e) && errors.Is(err, context.DeadlineExceeded) {
		return errorf(sdk.CodeTimeout, "no answer came in time; the record may have been written").WithOutcome(sdk.OutcomeUnknown)
	}
	return err
}

func newAckDocument(ack sdk.Ack, topic string, r *sdk.Record, n int64, elapsed time.Duration) ackDocument {
	doc := ackDocument{
		Topic: topic, Range: ack.Range.String(), Offset: ack.Offset, ValueBytes: len(r.Value), Timestamp: term.Time{Time: ack.Timestamp},
		Segment: ack.Segment.String(), AckedBy: make([]string, len(ack.Replicas)), TookMs: millis(elapsed), Record: n,
	}
	doc.Key, doc.KeyB64, _ = binaryAuto.encode(r.Key)
	for i, node := range ack.Replicas {
		doc.AckedBy[i] = string(node)
	}
	return doc
}

// ackLine is the human form: my_topic r1 @0  key=user123  16 B  acked by n1  7.9 ms
func ackLine(doc ackDocument, key []byte) string {
	var b strings.Builder
	b.WriteString(term.Escape(doc.Topic) + " " + doc.Range + " @" + itoa(doc.Offset))
	if key != nil {
		b.WriteString("  key=" + shown(key))
	}
	b.WriteString("  " + term.BytesIEC.Format(int64(doc.ValueBytes)))
	b.WriteString("  acked by " + orDash(strings.Join(doc.AckedBy, " ")))
	b.WriteString("  " + took(doc.TookMs))
	return b.String()
}
