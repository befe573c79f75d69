package cli

import (
	"bufio"
	"context"
	"errors"
	"iter"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

// logReader is sdk.Client.Logs.
type logReader interface {
	Logs(ctx context.Context, opts sdk.LogOptions) iter.Seq2[sdk.LogEvent, error]
}

// logRow is a line of node logs.
type logRow struct {
	Time    term.Time         `json:"time" col:"TIME" as:"stamp"`
	Node    string            `json:"node" col:"NODE"`
	Level   string            `json:"level" col:"LEVEL" doc:"debug, info, warn, error; gap: lines of the node may be missing here"`
	Message string            `json:"message" col:"MESSAGE"`
	Attrs   map[string]string `json:"attrs" col:"ATTRS" doc:"of attributes of one name the last"`
	Boot    uint64            `json:"boot" doc:"the start of the node that seq counts in"`
	Seq     uint64            `json:"seq" doc:"per node and start, without holes among lines of all levels"`
}

// levelGap is the level of the lines that this program makes where a node's own may be missing.
const levelGap = "gap"

type nodeLogsOptions struct {
	*app
	follow bool
	level  string
	grep   string
	last   int
	nodes  []sdk.NodeID
	silent []string // nodes that could not be asked
}

// defaultLogLines is how many lines of each node are shown unless it is told otherwise.
const defaultLogLines = 100

func newNodeLogsCommand(a *app) *cobra.Command {
	o := &nodeLogsOptions{app: a}
	cmd := &cobra.Command{
		Use:   "logs [node]…",
		Short: "The logs of nodes, in the order of time",
		Long: "Reads what each node keeps of its log in memory: its last 5,000 lines from level info on. Without -f it shows the last\n" +
			"100 of each node and ends, and exits 8 if a node could not be asked. With -f it goes on with what is logged from now on,\n" +
			"until Ctrl-C or --timeout: a node that is lost is told of and followed again when it is back.",
		Example: `  node logs
  node logs n3 --level warn -f
  node logs --grep fsync --last 1000`,
		Args:              argsAtLeast(0),
		Annotations:       map[string]string{noteSchema: "node.logs", noteExits: "4 8", noteDeadline: deadlineStream},
		ValidArgsFunction: a.completeNodesMany,
	}
	f := cmd.Flags()
	f.BoolVarP(&o.follow, "follow", "f", false, "wait for more until Ctrl-C")
	f.StringVar(&o.level, "level", "", "only this `LEVEL` and worse: debug, info, warn, error")
	f.StringVar(&o.grep, "grep", "", "only lines with this `TEXT` in them, in any case")
	f.IntVar(&o.last, "last", defaultLogLines, "begin with the last `N` lines of each node; 0 = all that it keeps")
	completeWith(cmd, "level", oneOfWords("debug", "info", "warn", "error"))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.parse(args); err != nil {
			return err
		}
		client, err := a.client()
		if err != nil {
			return err
		}
		return runNodeLogs(cmd.Context(), o, client)
	}
	return cmd
}

func (o *nodeLogsOptions) parse(args []string) error {
	switch o.level {
	case "", "debug", "info", "warn", "error":
	default:
		return usagef("--level %q is none of debug, info, warn and error", o.level)
	}
	if o.last < 0 {
		return usagef("--last cannot be negative")
	}
	for _, n := range args {
		o.nodes = append(o.nodes, sdk.NodeID(n))
	}
	return nil
}

func runNodeLogs(ctx context.Context, o *nodeLogsOptions, source logReader) error {
	ctx, cancel := o.bound(ctx)
	defer cancel()
	stream, err := o.output().Stream()
	if err != nil {
		return err
	}
	shown, err := o.read(ctx, source, stream)
	if err = errors.Join(err, stream.Flush()); err != nil {
		return err
	}
	switch {
	case ctx.Err() != nil && !errors.Is(context.Cause(ctx), errTimeUp):
		o.ended = o.follow
		return context.Cause(ctx)
	case !o.follow && ctx.Err() != nil:
		return errorf(sdk.CodeTimeout, "the logs were not read to their ends in time")
	case !o.follow && len(o.silent) > 0:
		return errorf(sdk.CodePartial, "the logs are not complete: %s could not be asked", strings.Join(o.silent, ", ")).
			WithHint("what only those nodes logged is not here; see: eg-cli node list")
	}
	if shown == 0 && !o.follow {
		o.note("no lines that fit")
	}
	return nil
}

// bound is the time for the whole: none to follow unless one is given, and then its end is a normal one.
func (o *nodeLogsOptions) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if o.set.timeout == 0 || o.follow && !o.timeoutGiven() {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, o.set.timeout, errTimeUp)
}

func (o *nodeLogsOptions) read(ctx context.Context, source logReader, stream *term.Stream) (shown int, err error) {
	opts := sdk.LogOptions{Nodes: o.nodes, Level: o.level, Contains: o.grep, Last: o.last, Follow: o.follow}
	for ev, err := range source.Logs(ctx, opts) {
		if err != nil {
			return shown, err
		}
		row, ok := o.row(ev)
		if !ok {
			continue
		}
		if err := stream.Item(row, func(w *bufio.Writer) error { return o.line(w, ev.Line, row) }); err != nil {
			return shown, err
		}
		shown++
		if o.follow {
			if err := stream.Flush(); err != nil {
				return shown, err
			}
		}
	}
	return shown, nil
}

// row is what to print, if anything. Gaps are notes for people; a program finds them among the lines.
func (o *nodeLogsOptions) row(ev sdk.LogEvent) (logRow, bool) {
	row := logRow{Node: string(ev.Node), Boot: ev.Boot, Attrs: map[string]string{}}
	if ev.Line != nil {
		row.Time, row.Level, row.Message, row.Seq = timeOf(ev.Line.TimeMs), ev.Line.Level, ev.Line.Message, ev.Line.Seq
		for _, a := range ev.Line.Attrs {
			row.Attrs[a.Key] = a.Value
		}
		return row, true
	}
	row.Time, row.Level = term.Time{Time: o.Now()}, levelGap
	switch {
	case ev.Err != nil:
		row.Message = "not reached: " + describe(ev.Err).Message
		o.silent = append(o.silent, row.Node)
	case ev.Lost > 0:
		row.Message = plural(int64(ev.Lost), "line") + " were dropped before they were read"
	default:
		row.Message = "the node answers again"
	}
	if !o.machine() {
		o.note("%s  %s  %s", row.Time.Format("15:04:05"), term.Escape(row.Node), term.Escape(row.Message))
		return row, false
	}
	return row, true
}

// line prints a line for people, with every value escaped: what is logged may come from anybody.
func (o *nodeLogsOptions) line(w *bufio.Writer, l *sdk.LogLine, row logRow) error {
	h, style := o.human(), o.io.OutStyle()
	level := strings.ToUpper(row.Level)
	switch row.Level {
	case "warn":
		level = style.Warn(level)
	case "error":
		level = style.Bad(level)
	}
	pad := strings.Repeat(" ", max(5-len(row.Level), 0))
	text := style.Dim(h.Time.FormatStamp(row.Time.Time, h.Now)) + "  " + term.Escape(row.Node) + "  " + level + pad + "  " + term.Escape(row.Message)
	for _, a := range l.Attrs {
		text += "  " + style.Dim(term.Escape(a.Key)+"=") + escapeValue(a.Value)
	}
	_, err := w.WriteString(text + "\n")
	return err
}

// escapeValue quotes a value that would not be seen to end.
func escapeValue(v string) string {
	if v == "" || strings.ContainsAny(v, " =\"") {
		return term.Escape(strconv.Quote(v))
	}
	return term.Escape(v)
}
