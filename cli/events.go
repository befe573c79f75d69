package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/cli/script"
	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

// watchSource is sdk.Client.Watch.
type watchSource interface {
	Watch(ctx context.Context, opts sdk.WatchOptions) iter.Seq2[sdk.WatchEvent, error]
}

// eventRow is an event in events, cluster status and shard describe.
type eventRow struct {
	Time    term.Time `json:"time" col:"TIME" as:"stamp"`
	Node    string    `json:"node" col:"NODE"`
	Type    string    `json:"type" col:"TYPE" doc:"GAP: events of the node may be missing here"`
	Subject string    `json:"subject" col:"SUBJECT"`
	Cause   string    `json:"cause" col:"CAUSE"`
	Detail  string    `json:"detail" col:"DETAIL"`
	GapMs   int64     `json:"gap_ms" doc:"how long producers waited"`
	Before  string    `json:"before"`
	After   string    `json:"after"`
	Actor   string    `json:"actor"`
	Boot    uint64    `json:"boot" doc:"the start of the node that seq counts in; 0: not said"`
	Seq     uint64    `json:"seq" doc:"per node and start, without holes"`
}

func newEventRow(node sdk.NodeID, boot uint64, e sdk.Event) eventRow {
	return eventRow{
		Time: timeOf(e.TimeMs), Node: string(node), Type: e.Type, Subject: e.Subject, Cause: e.Cause, Detail: e.Detail, GapMs: e.GapMs,
		Before: e.Before, After: e.After, Actor: e.Actor, Boot: boot, Seq: e.Seq,
	}
}

// typeGap is the event that this program makes where a node's own may be missing.
const typeGap = "GAP"

// newGapRow puts a gap of the watch into words.
func newGapRow(ev sdk.WatchEvent) eventRow {
	row := eventRow{Time: term.Time{Time: ev.Time}, Node: string(ev.Node), Type: typeGap, Subject: string(ev.Node), Boot: ev.Boot}
	switch g := ev.Gap; {
	case g.Err != nil:
		row.Cause, row.Detail = "UNREACHABLE", "not reached: "+describe(g.Err).Message
	case g.Restarted:
		row.Cause, row.Detail = "RESTARTED", "the node has started anew; what it had not told is gone with its journal"
	case g.Lost > 0:
		row.Cause, row.Detail = "DROPPED", plural(int64(g.Lost), "event")+" fell out of the journal before they were read"
	default:
		row.Cause, row.Detail = "BACK", "the node answers again; nothing was missed"
	}
	return row
}

type eventsOptions struct {
	*app
	follow bool
	since  time.Time
	types  []string
	topic  string
	nodes  []sdk.NodeID
	count  int64
	argv   []string // --exec

	shown   int64
	held    []eventRow // the last of them, until all are read
	silent  []string   // nodes that could not be asked
	failed  int        // runs of --exec
	program execRunner
}

type eventsFlags struct {
	since, topic, exec string
	types, nodes       []string
	count              int64
}

// eventsBack is how far events looks back unless it is told otherwise.
const eventsBack = time.Hour

func newEventsCommand(a *app, use string) *cobra.Command {
	var raw eventsFlags
	o := &eventsOptions{app: a}
	cmd := &cobra.Command{
		Use:   use,
		Short: "What has happened in the cluster: from the journals of all nodes, in the order of time",
		Long: "Reads the journal of every node and merges them by time; each keeps its last 10,000 events. Without -f it shows the\n" +
			"last hour and ends, and exits 8 if a node could not be asked. With -f it shows what happens from now on, or from\n" +
			"--since, until Ctrl-C, --timeout or -n: a node that is lost is told of and followed again when it is back.\n" +
			"--exec runs a program for each event, one after the other, with the event as a line of JSON on its stdin. There is no\n" +
			"shell, and nothing of an event becomes part of the command.",
		Example: `  events -f
  events --since 10m --type SEAL,SPLIT --topic orders
  events -f -o json --jq 'select(.gap_ms > 200)'
  events -f --type DISK --exec 'logger -t eastguard'`,
		Args:        argsBetween(0, 0),
		Annotations: map[string]string{noteSchema: "events", noteExits: "4 8", noteDeadline: deadlineStream},
	}
	f := cmd.Flags()
	f.BoolVarP(&o.follow, "follow", "f", false, "wait for more until Ctrl-C")
	f.StringVar(&raw.since, "since", "", "begin at this `TIME`: 10m ago, or as for consume, @2026-11-29T12:00Z")
	f.StringSliceVar(&raw.types, "type", nil, "only these `TYPES`, by their words: SEAL is SEGMENT_SEALED")
	f.StringVar(&raw.topic, "topic", "", "only events of this `TOPIC`, its ranges and segments")
	f.StringSliceVar(&raw.nodes, "node", nil, "only the journals of these `NODES`")
	f.Int64VarP(&raw.count, "count", "n", 0, "only the last `N` events; with -f end after N")
	f.StringVar(&raw.exec, "exec", "", "run this `COMMAND` for each event, which it finds on its stdin")
	completeWith(cmd, "topic", a.completeTopics)
	completeWith(cmd, "type", oneOfWords("DAMAGED", "DISK", "LEADER", "NODE", "QUARANTINED", "RANGE", "RECOVERED", "SEAL", "SEGMENT", "SHARD", "STORE", "TOPIC"))
	completeWith(cmd, "node", a.completeNodesMany)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := o.parse(raw); err != nil {
			return err
		}
		client, err := a.client()
		if err != nil {
			return err
		}
		return runEvents(cmd.Context(), o, client)
	}
	return cmd
}

func (o *eventsOptions) parse(raw eventsFlags) (err error) {
	if o.count = raw.count; o.count == 0 {
		o.count = int64(o.flags.limit)
	}
	if o.count < 0 {
		return usagef("-n cannot be negative")
	}
	now := o.Now()
	o.since = now.Add(-eventsBack)
	if o.follow {
		o.since = now
	}
	if raw.since != "" {
		if o.since, err = parseSince(raw.since, now); err != nil {
			return err
		}
	}
	for _, t := range raw.types {
		o.types = append(o.types, strings.ToUpper(strings.ReplaceAll(t, "-", "_")))
	}
	o.topic = raw.topic
	for _, n := range raw.nodes {
		o.nodes = append(o.nodes, sdk.NodeID(n))
	}
	if raw.exec == "" {
		return nil
	}
	lines, err := script.Parse(raw.exec)
	if err != nil || len(lines) != 1 || lines[0].Meta || lines[0].Redirect != "" || lines[0].Repeat != 1 {
		return usagef("--exec %q is not one command with its arguments", raw.exec).WithHint("no pipes, no redirection: there is no shell; write a script for those")
	}
	o.argv = lines[0].Words
	o.program = runProgram
	return nil
}

// parseSince reads "10m", which is so long ago, or a time.
func parseSince(text string, now time.Time) (time.Time, error) {
	if d, err := term.ParseDuration(text); err == nil {
		return now.Add(-d), nil
	}
	t, err := term.ParseTime(strings.TrimPrefix(text, "@"), now)
	if err != nil {
		return t, usagef("--since %q is neither a duration such as 10m nor a time", text)
	}
	return t, nil
}

func runEvents(ctx context.Context, o *eventsOptions, source watchSource) error {
	ctx, cancel := o.bound(ctx)
	defer cancel()
	stream, err := o.output().Stream()
	if err != nil {
		return err
	}
	if err := o.read(ctx, source, stream); err != nil {
		return errors.Join(err, stream.Flush())
	}
	if err := stream.Flush(); err != nil {
		return err
	}
	switch {
	case ctx.Err() != nil && !errors.Is(context.Cause(ctx), errTimeUp):
		o.ended = o.follow
		return context.Cause(ctx)
	case o.failed > 0:
		return partly(false, "%s of --exec failed", plural(int64(o.failed), "run"))
	case !o.follow && ctx.Err() != nil:
		return errorf(sdk.CodeTimeout, "the journals were not read to their ends in time")
	case !o.follow && len(o.silent) > 0:
		return errorf(sdk.CodePartial, "the list is not complete: %s could not be asked", strings.Join(o.silent, ", ")).
			WithHint("what only those nodes saw is not here; see: eg-cli node list")
	}
	if o.shown == 0 && !o.follow {
		o.note("no events since %s", o.human().Time.FormatDate(o.since, o.Now()))
	}
	return nil
}

// bound is the time for the whole: none to follow unless one is given, and then its end is a normal one.
func (o *eventsOptions) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if o.set.timeout == 0 || o.follow && !o.timeoutGiven() {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, o.set.timeout, errTimeUp)
}

func (o *eventsOptions) read(ctx context.Context, source watchSource, stream *term.Stream) error {
	opts := sdk.WatchOptions{Since: o.since, Nodes: o.nodes, Once: !o.follow}
	for ev, err := range source.Watch(ctx, opts) {
		if err != nil {
			return err
		}
		row, ok := o.row(ev)
		if !ok {
			continue
		}
		if !o.follow && o.count > 0 {
			o.hold(row)
			continue
		}
		if err := o.show(ctx, stream, row); err != nil {
			return err
		}
		if o.count > 0 && o.shown >= o.count {
			return nil
		}
	}
	for _, row := range o.lastHeld() {
		if err := o.show(ctx, stream, row); err != nil {
			return err
		}
	}
	return nil
}

// hold keeps at least the last -n events: which those are is known at the end. What is too much is cut off at times, not
// one by one.
func (o *eventsOptions) hold(row eventRow) {
	if len(o.held) >= heldSlack && int64(len(o.held))/2 >= o.count {
		o.held = append(o.held[:0], o.lastHeld()...)
	}
	o.held = append(o.held, row)
}

// heldSlack keeps a small -n from being cut to again and again.
const heldSlack = 64

// lastHeld are the last -n of what is held.
func (o *eventsOptions) lastHeld() []eventRow {
	return o.held[max(0, int64(len(o.held))-o.count):]
}

func (o *eventsOptions) show(ctx context.Context, stream *term.Stream, row eventRow) error {
	if err := stream.Item(row, func(w *bufio.Writer) error { return o.line(w, row) }); err != nil {
		return err
	}
	if o.follow {
		if err := stream.Flush(); err != nil {
			return err
		}
	}
	if len(o.argv) > 0 && row.Type != typeGap {
		o.run(ctx, row)
	}
	o.shown++
	return nil
}

// row is what to print of ev, if anything. Gaps are notes for people; a program finds them among the events.
func (o *eventsOptions) row(ev sdk.WatchEvent) (eventRow, bool) {
	if ev.Gap != nil {
		row := newGapRow(ev)
		if ev.Gap.Err != nil {
			o.silent = append(o.silent, row.Node)
		}
		if !o.machine() {
			o.note("%s  %s  %s", row.Time.Format(time.TimeOnly), term.Escape(row.Node), term.Escape(row.Detail))
			return row, false
		}
		return row, len(o.types) == 0 || slices.Contains(o.types, typeGap)
	}
	if ev.Event == nil {
		return eventRow{}, false
	}
	row := newEventRow(ev.Node, ev.Boot, *ev.Event)
	return row, o.wanted(row)
}

func (o *eventsOptions) wanted(row eventRow) bool {
	if o.topic != "" && row.Subject != o.topic && !strings.HasPrefix(row.Subject, o.topic+"/") {
		return false
	}
	return len(o.types) == 0 || slices.ContainsFunc(o.types, func(t string) bool { return typeMatches(row.Type, t) })
}

// typeMatches finds a type by itself or by the beginning of one of its words: SEAL is SEGMENT_SEALED.
func typeMatches(have, want string) bool {
	if have == want {
		return true
	}
	for _, word := range strings.Split(have, "_") {
		if strings.HasPrefix(word, want) {
			return true
		}
	}
	return strings.HasPrefix(have, want)
}

// line prints an event for people.
func (o *eventsOptions) line(w *bufio.Writer, row eventRow) error {
	h := o.human()
	style := o.io.OutStyle()
	rest := []string{}
	for _, s := range []string{row.Cause, changeText(row), gapText(row.GapMs), row.Detail} {
		if s != "" {
			rest = append(rest, term.Escape(s))
		}
	}
	_, err := fmt.Fprintf(w, "%s  %s  %s  %s\n", style.Dim(h.Time.FormatStamp(row.Time.Time, h.Now)),
		term.Pad(term.Escape(row.Node), 4, false), eventStyle(style, row.Type)(term.Pad(term.Escape(row.Type), 16, false)),
		strings.TrimRight(term.Pad(term.Escape(row.Subject), 14, false)+"  "+strings.Join(rest, "  "), " "))
	return err
}

func changeText(row eventRow) string {
	switch row.Before {
	case "", row.After: // nothing was before, or the same again, as of a node that starts anew
		return row.After
	}
	return row.Before + " -> " + row.After
}

func gapText(ms int64) string {
	if ms <= 0 {
		return ""
	}
	return "gap " + term.FormatTook(time.Duration(ms)*time.Millisecond)
}

// eventStyle colours what somebody may have to act on.
func eventStyle(style term.Style, kind string) func(string) string {
	for _, bad := range []string{"DAMAGED", "QUARANTINED", "DISK_FULL", "REFUSED", "DEAD", "LOST"} {
		if strings.Contains(kind, bad) {
			return style.Bad
		}
	}
	for _, warn := range []string{"SUSPECT", "LEFT", "DELETED", "UNREACHABLE"} {
		if strings.Contains(kind, warn) {
			return style.Warn
		}
	}
	return func(s string) string { return s }
}
