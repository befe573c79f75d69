package cli

import (
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
	from     sdk.ReadFrom
	fromNode string // when it is one
}

type consumeFlags struct {
	count, expect                                int64
	follow, pretty, metaOnly                     bool
	until, key, grep, where, idle, format, order string
	binary, from                                 string
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
	f.StringVar(&raw.from, "from", "nearest", "read from the `REPLICA` that is nearest, from the leader, or from the NODE of this name what it holds")
	completeWith(cmd, "from", a.completeFrom)
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
	if o.from, err = sdk.ParseReadFrom(raw.from); err != nil {
		return flagValueError("from", err)
	}
	if raw.from != sdk.ReadNearest().String() && raw.from != sdk.ReadLeader().String() {
		o.fromNode = raw.from
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
