package cli

import (
	"context"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

// app is the world of one command line: the session, its streams, and the global flags as parsed. A command's
// constructor closes over it; its run function reads it.
type app struct {
	*Session
	io    *term.IOStreams
	flags globalFlags
	set   settings
	path  string // of the command, for hints

	// outputFlag is -o as found in the raw arguments, for errors that come before flags are parsed.
	outputFlag string
}

// Annotations of commands. They are facts about a command that the root acts on.
const (
	// noteDeadline says what --timeout means for the command: absent, the default holds.
	noteDeadline = "deadline"
	// noteChanges marks commands that change the cluster: refused under --read-only.
	noteChanges = "changes"
	// noteExits lists the exit codes of a command beyond those that every command may give.
	noteExits = "exits"
	// noteSchema names the command's document in eg-cli schema.
	noteSchema = "schema"
	// noteDot marks commands that take -o dot, for Graphviz.
	noteDot = "dot"
)

// Values of noteDeadline.
const (
	deadlineStream = "stream" // none by default; reaching it is a normal end
	deadlineOwn    = "own"    // the command has a default of its own
	deadlineNone   = "none"   // none by default
)

// prepare settles everything between parsing and running: settings, colour, and what the command may do.
func (a *app) prepare(cmd *cobra.Command) error {
	a.path = cmd.CommandPath()
	set, err := a.resolve(cmd.Flags())
	if err != nil {
		return err
	}
	if set.dot && cmd.Annotations[noteDot] == "" {
		_, err := term.ParseFormat(formatDot)
		return err
	}
	a.set = set
	a.io.Decide(set.colorMode, set.ascii, a.Getenv)
	if err := a.flags.check(); err != nil {
		return err
	}
	if set.readOnly && cmd.Annotations[noteChanges] != "" {
		return denied(set.values["read_only"])
	}
	return nil
}

// client connects on first use.
func (a *app) client() (Client, error) {
	a.asked = true
	return a.Session.client(Target{Seeds: a.set.seeds, Logger: a.logger(), Guard: a.Guard})
}

func (a *app) admin() (Admin, error) {
	c, err := a.client()
	if err != nil {
		return nil, err
	}
	return c.Admin(), nil
}

// logger writes the SDK's log to stderr: -v for information, -vv for everything.
func (a *app) logger() *slog.Logger {
	if a.flags.verbose == 0 {
		return nil
	}
	level := slog.LevelInfo
	if a.flags.verbose > 1 {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(a.io.Err, &slog.HandlerOptions{Level: level}))
}

// output is the command's choice of format and shape.
func (a *app) output() *term.Output {
	width := 0
	if a.io.IsOutTTY() {
		width, _ = a.io.Size()
	}
	return &term.Output{
		W: a.io.Out, Format: a.set.format,
		Columns: a.flags.columns, NoHeaders: a.flags.noHeaders, SortBy: a.flags.sortBy, Limit: a.flags.limit,
		JQ: a.flags.jq, Template: a.flags.template,
		Human: a.human(), Width: width, TTY: a.io.IsOutTTY(), ASCII: a.io.ASCII(), Style: a.io.OutStyle(),
	}
}

func (a *app) human() term.Human {
	return term.Human{Time: a.set.timeMode, Bytes: a.set.bytesMode, Now: a.Now()}
}

// machine reports whether stdout is for a program.
func (a *app) machine() bool { return a.output().Machine() }

// deadline gives ctx the command's time limit. The caller must call cancel.
func (a *app) deadline(ctx context.Context, cmd *cobra.Command) (context.Context, context.CancelFunc) {
	timeout := a.set.timeout
	switch cmd.Annotations[noteDeadline] {
	case deadlineOwn, deadlineStream:
		return context.WithCancel(ctx)
	case deadlineNone:
		if !a.timeoutGiven() {
			return context.WithCancel(ctx)
		}
	}
	if timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, timeout)
}

// answerIn bounds the questions that a command without a deadline asks before it begins.
func (a *app) answerIn(ctx context.Context) (context.Context, context.CancelFunc) {
	if a.set.timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, a.set.timeout)
}

// reach finds out that topic exists and somebody answers for it.
func (a *app) reach(ctx context.Context, admin Admin, topic string) error {
	ctx, cancel := a.answerIn(ctx)
	defer cancel()
	if _, err := admin.Offsets(ctx, topic, sdk.Earliest()); err != nil {
		return a.suggestTopic(ctx, admin, topic, err)
	}
	return nil
}

// timeoutGiven reports whether the user gave this line, or its front end, a timeout. What the environment or a
// file says is for commands that answer; it must not end a stream.
func (a *app) timeoutGiven() bool {
	source := a.set.values["timeout"].Source
	return source == "flag --timeout" || source == sourcePrompt
}

// note prints one line for people on stderr, unless -q or a program is reading.
func (a *app) note(format string, args ...any) {
	if !a.flags.quiet && !a.machine() {
		fprintf(a.io.Err, format+"\n", args...)
	}
}
