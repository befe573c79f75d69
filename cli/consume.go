package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

type consumeOptions struct {
	*app
	topic    string
	start    startForm
	count    int64 // 0 = no limit
	follow   bool
	until    untilForm
	ranges   []sdk.RangeID
	idle     time.Duration
	expect   int64 // -1 = nothing is expected
	format   *recordFormat
	pretty   bool
	metaOnly bool
	byTime   bool // --order time
	binary   binaryForm
	filter   recordFilter
}

type consumeFlags struct {
	count, expect                                int64
	follow, pretty, metaOnly                     bool
	until, key, grep, where, idle, format, order string
	binary                                       string
	ranges, headers                              []string
}

func newConsumeCommand(a *app) *cobra.Command {
	o := &consumeOptions{app: a}
	var raw consumeFlags
	cmd := &cobra.Command{
		Use:     "consume <topic> [start] [count]",
		Aliases: []string{"sub"},
		Short:   "Print records, from a place to the end of the log or onwards",
		Long: "Prints records from start (default earliest) and stops at the end of the log as it was when the command began,\n" +
			"or after count records, whichever is first. -f goes on with what is written later.\n\n" +
			"start is earliest, latest (which implies -f), an offset N, +N or -N records from the beginning or the end of\n" +
			"each range, @TIME such as @-10m or @2026-11-29T12:00Z, or r41:1200 for one range and offset.",
		Example: `  consume my_topic earliest 10
  consume my_topic -f
  consume my_topic @-10m -k user123
  consume my_topic -10 -F '%d %k=%v'
  consume my_topic earliest -o jsonl | publish copy --in jsonl`,
		Args:              argsBetween(1, 3),
		Annotations:       map[string]string{noteSchema: "consume", noteExits: "4 9 12", noteDeadline: deadlineStream},
		ValidArgsFunction: a.completeStart,
	}
	f := cmd.Flags()
	f.Int64VarP(&raw.count, "count", "n", 0, "at most `N` records, the same as the third argument")
	f.BoolVarP(&raw.follow, "follow", "f", false, "go on with new records until Ctrl-C")
	f.StringVar(&raw.until, "until", "", "stop at `latest` (the end as it is now), at an offset, or at @TIME")
	f.StringSliceVarP(&raw.ranges, "range", "r", nil, "only these `RANGES`, such as r1,r2")
	f.StringVarP(&raw.key, "key", "k", "", "only records with this `KEY`")
	f.StringArrayVarP(&raw.headers, "header", "H", nil, "only records with header `k=v`, or with header k")
	f.StringVar(&raw.grep, "grep", "", "only records whose key or value matches this regular `EXPRESSION`")
	f.StringVar(&raw.where, "where", "", "only records for which this jq `EXPRESSION` is true; .json is the value parsed")
	f.StringVar(&raw.idle, "idle", "", "stop when nothing new came for this `DURATION`")
	f.Int64Var(&raw.expect, "expect", -1, "exit 12 unless exactly `N` records came; with -f stop at N")
	f.StringVarP(&raw.format, "format", "F", "", "print each record by this `TEMPLATE`: '%o %k=%v' or '{{.Offset}} {{.Key}}'")
	f.BoolVar(&raw.pretty, "pretty", false, "several lines a record: headers, and JSON values indented")
	f.BoolVar(&raw.metaOnly, "meta-only", false, "sizes in place of key and value")
	f.StringVar(&raw.order, "order", "arrival", "`arrival`, or time to sort what was read by timestamp")
	f.StringVar(&raw.binary, "binary", "auto", "`FORM` of bytes in JSON: auto (text, else b64), b64 or hex")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.parse(args, raw, cmd.Flags().Changed); err != nil {
			return err
		}
		client, err := a.client()
		if err != nil {
			return err
		}
		return runConsume(cmd.Context(), o, client)
	}
	return cmd
}

func (o *consumeOptions) parse(args []string, raw consumeFlags, changed func(string) bool) (err error) {
	o.topic, o.pretty, o.metaOnly, o.expect = args[0], raw.pretty, raw.metaOnly, raw.expect
	start := "earliest"
	if len(args) > 1 {
		start = args[1]
	}
	if o.start, err = parseStart(start, o.Now()); err != nil {
		return err
	}
	o.follow = raw.follow || o.start.kind == startLatest
	if err := o.parseCount(args, raw, changed); err != nil {
		return err
	}
	if o.until, err = parseUntil(raw.until, o.Now()); err != nil {
		return err
	}
	if err := o.parseRanges(raw.ranges); err != nil {
		return err
	}
	if raw.idle != "" {
		if o.idle, err = term.ParseDuration(raw.idle); err != nil || o.idle == 0 {
			return usagef("--idle %q is not a duration such as 2s", raw.idle)
		}
	}
	if err := o.parseShape(raw, changed); err != nil {
		return err
	}
	o.filter, err = newRecordFilter(raw, changed)
	return err
}

func (o *consumeOptions) parseCount(args []string, raw consumeFlags, changed func(string) bool) (err error) {
	if len(args) > 2 {
		if o.count, err = term.ParseCount(args[2]); err != nil || o.count == 0 {
			return usagef("the count %q is not a number from 1", args[2])
		}
	}
	if changed("count") {
		if raw.count < 1 {
			return usagef("-n must be at least 1")
		}
		if o.count != 0 && o.count != raw.count {
			return usagef("two counts are given: %d and -n %d", o.count, raw.count)
		}
		o.count = raw.count
	}
	if changed("expect") && raw.expect < 0 {
		return usagef("--expect cannot be negative")
	}
	return nil
}

func (o *consumeOptions) parseRanges(names []string) error {
	for _, name := range names {
		id, err := sdk.ParseRangeID(name)
		if err != nil {
			return flagValueError("range", err)
		}
		o.ranges = append(o.ranges, id)
	}
	if o.start.kind == startRange {
		if len(o.ranges) > 0 {
			return usagef("the start %s names its range; -r does not go with it", o.start)
		}
		o.ranges = []sdk.RangeID{o.start.at.Range}
	}
	return nil
}

func (o *consumeOptions) parseShape(raw consumeFlags, changed func(string) bool) (err error) {
	switch raw.order {
	case "arrival":
	case "time":
		if o.byTime = true; o.follow {
			return usagef("--order time needs an end; it does not go with -f")
		}
	default:
		return usagef("--order %q is not arrival or time", raw.order)
	}
	switch o.binary = binaryForm(raw.binary); o.binary {
	case binaryAuto, binaryB64, binaryHex:
	default:
		return usagef("--binary %q is not auto, b64 or hex", raw.binary)
	}
	if changed("format") {
		if o.machine() {
			return usagef("-F and a machine format (-o, --jq, --template) exclude each other")
		}
		o.format, err = compileRecordFormat(raw.format, o.human())
	}
	return err
}

type consumeClient interface {
	NewConsumer(opts ...sdk.ConsumerOption) (Consumer, error)
	Admin() Admin
}

func runConsume(ctx context.Context, o *consumeOptions, client consumeClient) error {
	plan, err := o.plan(ctx, client.Admin())
	if err != nil {
		return o.suggestTopic(ctx, client.Admin(), o.topic, err)
	}
	c, err := client.NewConsumer(plan.options...)
	if err != nil {
		return err
	}
	r := &reading{consumeOptions: o, until: plan.until, forMachine: o.machine()}
	if r.stream, err = o.output().Stream(); err != nil {
		return errors.Join(err, c.Close())
	}
	err = r.run(ctx, c)
	if ferr := r.finish(); err == nil {
		err = ferr
	}
	if cerr := c.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return o.suggestTopic(ctx, client.Admin(), o.topic, err)
	}
	return r.verdict()
}

// reading is one consume under way.
type reading struct {
	*consumeOptions
	stream *term.Stream
	until  *untilTracker
	held   []sdk.Message // --order time
	bytes  int
	read   int64
	shown  int64
	why    string // why it ended, for the note

	forMachine bool
}

// maxHeld bounds what --order time sorts in memory.
const maxHeld = 256 << 20

// run polls until there is a reason to stop. Those reasons are normal ends; an error is none.
func (r *reading) run(ctx context.Context, c Consumer) error {
	if r.timeoutGiven() && r.set.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, r.set.timeout, errTimeUp)
		defer cancel()
	}
	for {
		messages, err := r.poll(ctx, c)
		for i := range messages {
			stop, err := r.take(&messages[i])
			if err != nil || stop {
				return err
			}
		}
		if err != nil {
			return r.ended(ctx, err)
		}
		// A pause in the stream is when a reader of the pipe wants what there is.
		if err := r.stream.Flush(); err != nil {
			return err
		}
		if r.until.allDone() {
			r.why = "as far as asked"
			return nil
		}
	}
}

var errIdle = errors.New("nothing new came")

func (r *reading) poll(ctx context.Context, c Consumer) ([]sdk.Message, error) {
	if r.idle == 0 {
		return c.Poll(ctx)
	}
	once, cancel := context.WithTimeoutCause(ctx, r.idle, errIdle)
	defer cancel()
	messages, err := c.Poll(once)
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(once), errIdle) {
		return messages, errIdle
	}
	return messages, err
}

// ended turns the way polling ended into a note, or an error.
func (r *reading) ended(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, io.EOF):
		r.why = "caught up"
		return nil
	case errors.Is(err, errIdle):
		r.why = "nothing new for " + term.FormatSpan(r.idle)
		return nil
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), errTimeUp):
		r.why = "the time is up"
		return nil
	case ctx.Err() != nil:
		r.why = "stopped"
		return context.Cause(ctx)
	}
	return err
}

// take prints one message, if it is wanted, and reports whether it was the last.
func (r *reading) take(m *sdk.Message) (stop bool, err error) {
	if r.until.beyond(m) {
		return false, nil
	}
	r.read++
	ok, err := r.filter.match(m, r.binary)
	if err != nil || !ok {
		return false, err
	}
	if r.byTime {
		r.held = append(r.held, *m)
		if r.bytes += len(m.Key) + len(m.Value) + 128; r.bytes > maxHeld {
			return false, usagef("--order time holds at most %d MiB of records", maxHeld>>20).WithHint("narrow what is read: -n, -r, -k, @TIME")
		}
	} else if err := r.print(m); err != nil {
		return false, err
	}
	r.shown++
	if r.count > 0 && r.shown == r.count {
		r.why = "as asked"
		return true, nil
	}
	if r.follow && r.expect >= 0 && r.shown == r.expect {
		r.why = "as expected"
		return true, nil
	}
	return false, nil
}

func (r *reading) print(m *sdk.Message) error {
	switch w := r.stream.Text(); {
	case r.forMachine:
		return r.stream.Item(r.document(m), nil)
	case r.format != nil:
		return r.format.write(w, m, r.io.IsOutTTY())
	case r.pretty:
		return writePretty(w, m, r.human(), r.io.OutStyle())
	default:
		return r.writeLine(w, m)
	}
}

func (r *reading) document(m *sdk.Message) recordDocument {
	doc := newRecordDocument(m, r.binary)
	if r.metaOnly {
		doc.Key, doc.KeyB64, doc.KeyHex = term.Text{}, "", ""
		doc.Value, doc.ValueB64, doc.ValueHex = term.Text{}, "", ""
	}
	return doc
}

// writeLine is the default: @0  12:04:31.207  r1  user123  Hello EastGuard!
func (r *reading) writeLine(w *bufio.Writer, m *sdk.Message) error {
	key, value := shownOr(m.Key, "-"), shownOr(m.Value, "<null>")
	if r.metaOnly {
		key, value = sizeOf("key", m.Key), sizeOf("value", m.Value)+"  "+plural(int64(len(m.Headers)), "header")
	}
	_, err := fmt.Fprintf(w, "@%d  %s  %s  %s  %s\n", m.Offset, r.set.timeMode.FormatStamp(m.Timestamp, r.Now()), m.Range, key, value)
	return err
}

func shownOr(b []byte, null string) string {
	if b == nil {
		return null
	}
	return shown(b)
}

func sizeOf(what string, b []byte) string {
	if b == nil {
		return what + " null"
	}
	return what + " " + term.BytesIEC.Format(int64(len(b)))
}

// finish prints what --order time held back and the note.
func (r *reading) finish() error {
	if r.byTime {
		sortByTime(r.held)
		for i := range r.held {
			if err := r.print(&r.held[i]); err != nil {
				return err
			}
		}
	}
	if err := r.stream.Flush(); err != nil {
		return err
	}
	if r.why != "" {
		r.note("%s", r.closing())
	}
	return nil
}

// closing is the note on stderr: 1 record, caught up (asked for up to 10). -f to follow.
func (r *reading) closing() string {
	text := plural(r.shown, "record")
	if r.shown != r.read {
		text = term.FormatCount(r.shown) + " of " + plural(r.read, "record") + " read"
	}
	text += ", " + r.why
	if r.why != "caught up" {
		return text + "."
	}
	if r.count > 0 {
		text += fmt.Sprintf(" (asked for up to %d)", r.count)
	}
	return text + ". -f to follow."
}

func (r *reading) verdict() error {
	if r.expect < 0 || r.shown == r.expect {
		return nil
	}
	return errorf(sdk.CodeNotMet, "%s came, %d expected", plural(r.shown, "record"), r.expect).WithHint("see what came above")
}

// recordFilter is -k, -H, --grep and --where together.
type recordFilter struct {
	key     []byte
	headers []headerFilter
	grep    *regexp.Regexp
	where   *term.Query
}

type headerFilter struct {
	key, value string
	any        bool
}

func newRecordFilter(raw consumeFlags, changed func(string) bool) (f recordFilter, err error) {
	if changed("key") {
		f.key = []byte(raw.key)
	}
	for _, h := range raw.headers {
		k, v, ok := strings.Cut(h, "=")
		if k == "" {
			return f, usagef("-H %q is not k=v", h)
		}
		f.headers = append(f.headers, headerFilter{k, v, !ok})
	}
	if raw.grep != "" {
		if f.grep, err = regexp.Compile(raw.grep); err != nil {
			return f, usagef("--grep %q: %v", raw.grep, err)
		}
	}
	if raw.where != "" {
		if f.where, err = term.CompileQuery(raw.where); err != nil {
			return f, flagValueError("where", err)
		}
	}
	return f, nil
}

func (f *recordFilter) match(m *sdk.Message, form binaryForm) (bool, error) {
	if f.key != nil && (m.Key == nil || string(m.Key) != string(f.key)) {
		return false, nil
	}
	for _, h := range f.headers {
		if !h.match(m.Headers) {
			return false, nil
		}
	}
	if f.grep != nil && !f.grep.Match(m.Key) && !f.grep.Match(m.Value) {
		return false, nil
	}
	if f.where == nil {
		return true, nil
	}
	return f.where.Truthy(whereDocument{newRecordDocument(m, form), jsonOf(m.Value)})
}

func (h headerFilter) match(headers []sdk.Header) bool {
	for _, got := range headers {
		if got.Key == h.key && (h.any || string(got.Value) == h.value) {
			return true
		}
	}
	return false
}
