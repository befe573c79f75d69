package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/internal/term"
)

// watchDefault is -w without a value.
const watchDefault = "2s"

// watchable gives a read command its RunE: once, or with -w again and again.
func (a *app) watchable(cmd *cobra.Command, run func(ctx context.Context, args []string) error) {
	var every string
	cmd.Flags().StringVarP(&every, "watch", "w", "", "repeat every `INTERVAL` until q or Ctrl-C (default 2s)")
	cmd.Flags().Lookup("watch").NoOptDefVal = watchDefault
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if every == "" {
			return a.withDeadline(func(ctx context.Context, _ *cobra.Command, args []string) error {
				return a.paged(func() error { return run(ctx, args) })
			})(cmd, args)
		}
		interval, err := term.ParseDuration(every)
		if err != nil || interval < 100*time.Millisecond {
			return usagef("--watch %q is not an interval of at least 100ms", every)
		}
		w := &watcher{app: a, out: a.io, interval: interval, title: cmd.CommandPath(), run: func(ctx context.Context) error { return run(ctx, args) }}
		return w.loop(cmd.Context())
	}
}

// watcher repeats one command. On a terminal it repaints the screen and marks what changed; for a program, or where
// nothing can be repainted, it prints a document whenever the document has changed.
type watcher struct {
	*app
	out      *term.IOStreams
	interval time.Duration
	title    string
	run      func(ctx context.Context) error
	last     string // the document shown
	trouble  string // why the last look failed, or brought less than everything; empty when all is well
	answers  int
}

func (w *watcher) loop(ctx context.Context) error {
	if w.timeoutGiven() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, w.set.timeout, errTimeUp)
		defer cancel()
	}
	if w.repaints() {
		var quit context.CancelCauseFunc
		ctx, quit = context.WithCancelCause(ctx)
		defer quit(nil)
		defer term.Keys(ctx, w.out, func(key byte) bool {
			if key != 'q' && key != 'Q' {
				return true
			}
			quit(errTimeUp)
			return false
		})()
	}
	ticker := time.NewTicker(w.interval)
	defer ticker.Stop()
	for {
		if err := w.look(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return w.end(ctx)
		case <-ticker.C:
		}
	}
}

// repaints reports whether the screen is written over, rather than added to.
func (w *watcher) repaints() bool { return w.out.RepaintsOut() && !w.machine() }

// errTimeUp is the cause of a streaming command's end by --timeout or by the key q, which are normal ones.
var errTimeUp = errors.New("the time is up")

// end is how the watch ends when its context has.
func (w *watcher) end(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), errTimeUp) {
		return nil
	}
	w.ended = true
	return context.Cause(ctx)
}

// look runs the command once and shows what came of it.
func (w *watcher) look(ctx context.Context) error {
	text, err := w.once(ctx)
	if ctx.Err() != nil && err != nil {
		return w.end(ctx)
	}
	if err == nil {
		w.trouble = ""
	} else {
		if !w.survives(err) {
			return err
		}
		w.complain(err)
		if text == "" {
			text = w.last
		}
	}
	w.answers++
	return w.show(text)
}

// survives reports whether to go on after an error. What is watched may be away for a while, and whoever watches wants
// to see it come back; a look that brought less than everything, or a verdict, is one more thing to show. An error of
// the first look is for whoever asked the wrong thing, or the wrong address.
func (w *watcher) survives(err error) bool {
	switch describe(err).Exit {
	case ExitPartial, ExitUnhealthy, ExitNotMet, ExitWarn:
		return true
	}
	return w.answers > 0 && worthWaiting(err)
}

// complain keeps what is wrong for the screen. Where nothing is repainted it is said on stderr, once.
func (w *watcher) complain(err error) {
	before := w.trouble
	w.trouble = describe(err).Message
	var said quiet
	if errors.As(err, &said) {
		w.trouble = "" // the document shows it
	}
	if !w.repaints() && w.trouble != before && w.trouble != "" {
		w.report(err)
	}
}

// once runs the command into a buffer.
func (w *watcher) once(ctx context.Context) (string, error) {
	var b bytes.Buffer
	own := *w.out
	own.Out = &b
	if w.repaints() {
		own.Err = &b // a note beside the screen would spoil it
	}
	w.io = &own
	defer func() { w.io = w.out }()
	ctx, cancel := context.WithTimeout(ctx, max(w.interval, w.set.timeout))
	defer cancel()
	err := w.run(ctx)
	return b.String(), err
}

func (w *watcher) show(text string) error {
	now := w.Now()
	if w.repaints() {
		return w.repaint(text, now)
	}
	if text == w.last {
		return nil
	}
	w.last = text
	doc, err := w.dated(text, now)
	if err != nil {
		return err
	}
	_, err = w.out.Out.Write(doc)
	return err
}

// dated is a document with the time of observation, in a form in which one can follow another. What --jq or --template
// made is whatever its author wants it to be, and stays as it is.
func (w *watcher) dated(text string, now time.Time) ([]byte, error) {
	comment := "# observed_at " + now.UTC().Format(time.RFC3339) + "\n"
	switch {
	case w.flags.jq != "" || w.flags.template != "":
		return []byte(text), nil
	case w.set.format == term.FormatJSON || w.set.format == term.FormatJSONL:
		return observed([]byte(text), term.Time{Time: now})
	case w.set.format == term.FormatYAML:
		return []byte("---\n" + comment + text), nil
	}
	return []byte(comment + text), nil
}

// observed puts the time of observation into a document: beside the members of an object, around a list.
func observed(doc []byte, at term.Time) ([]byte, error) {
	stamp, err := json.Marshal(at)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := json.Compact(&b, bytes.TrimSpace(doc)); err != nil {
		// jsonl of a list: several documents, kept as items.
		lines := bytes.Split(bytes.TrimSpace(doc), []byte("\n"))
		b.Reset()
		b.WriteByte('[')
		b.Write(bytes.Join(lines, []byte(",")))
		b.WriteByte(']')
	}
	text := b.String()
	if rest, ok := strings.CutPrefix(text, "{"); ok && rest != "}" {
		return fmt.Appendf(nil, "{\"observed_at\":%s,%s\n", stamp, rest), nil
	}
	return fmt.Appendf(nil, "{\"observed_at\":%s,\"items\":%s}\n", stamp, text), nil
}

// What is wider than the screen is cut off by the terminal, or each such line would take two and the next repaint would
// miss the rest.
const (
	wrapOff = "\x1b[?7l"
	wrapOn  = "\x1b[?7h"
)

// repaint homes the cursor and writes over the old screen line by line, so that nothing flickers. Lines beyond the
// screen are cut, and what differs from the last screen is shown in reverse.
func (w *watcher) repaint(text string, now time.Time) error {
	cols, rows := w.out.Size()
	style := w.out.OutStyle()
	var b strings.Builder
	if w.last == "" {
		b.WriteString("\x1b[2J")
	}
	b.WriteString("\x1b[H" + wrapOff)
	head := fmt.Sprintf("%s  every %s  %s  q ends", w.title, term.FormatSpan(w.interval), now.Format(time.TimeOnly))
	b.WriteString(style.Dim(term.Truncate(head, cols, w.io.ASCII())) + "\x1b[K\n")
	if w.trouble != "" {
		rows-- // for it, below: what is watched must not jump when trouble comes and goes
	}
	lines, before := splitLines(text), splitLines(w.last)
	for i, line := range lines {
		if i >= rows-2 {
			break
		}
		if w.last != "" && i < len(before) {
			line = markChanges(before[i], line, style)
		}
		b.WriteString(line + "\x1b[K\n")
	}
	if w.trouble != "" {
		b.WriteString(style.Bad(term.Truncate(term.Escape(w.trouble), cols, w.io.ASCII())) + "\x1b[K\n")
	}
	b.WriteString("\x1b[J" + wrapOn)
	w.last = text
	_, err := w.out.Out.Write([]byte(b.String()))
	return err
}

func splitLines(s string) []string {
	return strings.Split(strings.TrimRight(s, "\n"), "\n")
}

// markChanges reverses the cells of a table line that are not those of the line before. Cells are told apart by two
// blanks or more; a line that has gained or lost one is reversed as a whole.
func markChanges(before, after string, style term.Style) string {
	if before == after || strings.Contains(after, "\x1b") {
		return after
	}
	old, now := cellsOf(before), cellsOf(after)
	if len(old) != len(now) {
		return style.Reverse(after)
	}
	var b strings.Builder
	end := 0
	for i, c := range now {
		b.WriteString(after[end:c[0]])
		text := after[c[0]:c[1]]
		if text != before[old[i][0]:old[i][1]] {
			text = style.Reverse(text)
		}
		b.WriteString(text)
		end = c[1]
	}
	return b.String() + after[end:]
}

var cellGap = regexp.MustCompile(`^ +| {2,}| +$`)

// cellsOf are where the cells of a line begin and end.
func cellsOf(line string) (cells [][2]int) {
	start := 0
	for _, gap := range append(cellGap.FindAllStringIndex(line, -1), []int{len(line), len(line)}) {
		if gap[0] > start {
			cells = append(cells, [2]int{start, gap[0]})
		}
		start = gap[1]
	}
	return cells
}
