package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

const program = "eg-cli"

// NewRoot builds the whole command tree for one line. Flags of a cobra tree keep their values between
// executions, so every line, at the prompt or not, gets a tree of its own; it costs well under a millisecond.
func NewRoot(s *Session) *cobra.Command {
	root, _ := newTree(s, s.IO)
	return root
}

func newTree(s *Session, streams *term.IOStreams) (*cobra.Command, *app) {
	own := *streams
	a := &app{Session: s, io: &own}
	root := &cobra.Command{
		Use:           program,
		Short:         "Talk to a zero-controller log",
		Args:          cobra.ArbitraryArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if version, err := cmd.Flags().GetBool("version"); err == nil && version {
				return runVersion(cmd.Context(), &versionOptions{app: a})
			}
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return cmd.Help()
		},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.prepare(cmd) },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetOut(own.Out)
	root.SetErr(own.Err)
	root.SetIn(own.In)
	a.flags.register(root.PersistentFlags())
	s.inherit(root.PersistentFlags())
	addFrontEndFlags(root.Flags())
	root.SetFlagErrorFunc(flagError)
	root.SetHelpFunc(a.help)
	root.SetHelpCommand(newHelpCommand(a))
	root.AddCommand(commands(a)...)
	for _, extra := range s.Extra {
		root.AddCommand(extra(s))
	}
	completeEnums(root)
	return root, a
}

// addFrontEndFlags adds what only the root has: how to be a batch, and the version.
func addFrontEndFlags(f *pflag.FlagSet) {
	f.StringP("execute", "e", "", "run these `COMMANDS`, separated by ';' or newlines")
	f.Bool("keep-going", false, "in a batch, go on after an error and exit 8 at the end")
	f.Bool("version", false, "print the version")
}

func commands(a *app) []*cobra.Command {
	return []*cobra.Command{
		newCreateTopicCommand(a, "create-topic <topic> [rf]"),
		newPublishCommand(a),
		newConsumeCommand(a),
		newTopicCommand(a),
		newRouteCommand(a),
		newNodeCommand(a),
		newSegmentCommand(a),
		newShardCommand(a),
		newClusterCommand(a),
		newEventsCommand(a, "events"),
		newTopCommand(a, "top [view]"),
		newWaitCommand(a),
		newBenchCommand(a),
		newVersionCommand(a),
		newConfigCommand(a),
		newContextCommand(a),
		newCompletionCommand(a),
		newExplainCommand(a),
		newCheatCommand(a),
		newSchemaCommand(a),
		newRunCommand(a),
		newDocsCommand(a),
		hidden(newTopicListCommand(a, "topics [glob]")),
		hidden(newClusterStatusCommand(a, "status")),
		hidden(newNodeListCommand(a, "nodes")),
		hidden(newShardListCommand(a, "shards")),
		hidden(newSegmentListCommand(a, "segments")),
		hidden(newEventsCommand(a, "monitor")),
	}
}

// hidden is for a short form that help does not list.
func hidden(cmd *cobra.Command) *cobra.Command {
	cmd.Hidden = true
	return cmd
}

// newGroup makes a noun: a command that only holds verbs. cobra by itself prints help and exits 0 for an unknown
// verb under a noun, so groups refuse it themselves.
func newGroup(use, short string, verbs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(verbs...)
	return cmd
}

func unknownCommand(cmd *cobra.Command, word string) error {
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() || sub.Name() == "help" {
			names = append(append(names, sub.Name()), sub.Aliases...)
		}
	}
	err := usagef("unknown command %q for %q", word, cmd.CommandPath())
	if best := suggest(word, names); best != "" {
		return err.WithHint("did you mean %q?", cmd.CommandPath()+" "+best)
	}
	return err.WithHint("see: %s --help", cmd.CommandPath())
}

func flagError(cmd *cobra.Command, err error) error {
	name, unknown := flagNameOf(err)
	msg := err.Error()
	if !unknown {
		return usagef("%s", msg).WithHint("see: %s --help", cmd.CommandPath())
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	if best := suggest(name, names); best != "" {
		return usagef("%s", msg).WithHint("did you mean %s?", best)
	}
	return usagef("%s", msg).WithHint("see: %s --help", cmd.CommandPath())
}

// execute runs one parsed line on a fresh tree and reports its error. It returns the error for the exit code.
func (s *Session) execute(ctx context.Context, streams *term.IOStreams, args []string) error {
	root, a := newTree(s, streams)
	root.SetArgs(keepNegatives(root, args))
	a.outputFlag = outputArg(args)
	s.asked = false
	err := root.ExecuteContext(ctx)
	if err == nil {
		s.lost = s.lost && !s.asked
		return nil
	}
	if outputClosed(err) {
		return nil
	}
	// A command that a signal or Ctrl-C stopped fails in whatever it was doing; the cause is what happened.
	if cause := context.Cause(ctx); cause != nil {
		err = stopped(cause, err)
	}
	if s.asked {
		s.lost = ExitCode(err) == ExitUnreachable
	}
	a.report(err)
	return err
}

// outputClosed reports whether whoever read the output has seen enough: consume t | head -1 is no error. A connection
// to a broker can break with EPIPE too, which is one; it comes as the SDK's error.
func outputClosed(err error) bool {
	var e *sdk.Error
	return errors.Is(err, syscall.EPIPE) && !errors.As(err, &e)
}

// withDeadline wraps a run function with the command's time limit.
func (a *app) withDeadline(run func(ctx context.Context, cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, cancel := a.deadline(cmd.Context(), cmd)
		defer cancel()
		return run(ctx, cmd, args)
	}
}

// keepNegatives lets "consume t -10" mean an offset. No flag is a digit, so a word such as -10 is an argument
// unless it is some flag's value; pflag takes it for a flag all the same. Where one occurs, the arguments are
// moved behind "--", in order, and the flags before it.
func keepNegatives(root *cobra.Command, args []string) []string {
	cmd, rest, err := root.Find(args)
	if err != nil || !cmd.Runnable() || !hasNegative(rest) {
		return args
	}
	var flags, words []string
	for i := 0; i < len(rest); i++ {
		arg := rest[i]
		switch {
		case arg == "--":
			words = append(words, rest[i+1:]...)
			i = len(rest)
		case len(arg) < 2 || arg[0] != '-' || isNegative(arg):
			words = append(words, arg)
		default:
			flags = append(flags, arg)
			if takesNext(cmd, arg) && i+1 < len(rest) {
				i++
				flags = append(flags, rest[i])
			}
		}
	}
	out := strings.Fields(strings.TrimPrefix(cmd.CommandPath(), root.CommandPath()))
	return append(append(append(out, flags...), "--"), words...)
}

func hasNegative(args []string) bool {
	for _, a := range args {
		if isNegative(a) {
			return true
		}
	}
	return false
}

func isNegative(s string) bool { return len(s) > 1 && s[0] == '-' && '0' <= s[1] && s[1] <= '9' }

// takesNext reports whether the flag's value is the next word.
func takesNext(cmd *cobra.Command, arg string) bool {
	if strings.Contains(arg, "=") {
		return false
	}
	if name, long := strings.CutPrefix(arg, "--"); long {
		return wantsValue(cmd.Flag(name))
	}
	// In a cluster of short flags (-fn 5) only the last can take the next word, and only if none before it
	// takes the rest of the cluster.
	for i := 1; i < len(arg); i++ {
		if wantsValue(shorthand(cmd, arg[i:i+1])) {
			return i == len(arg)-1
		}
	}
	return false
}

func wantsValue(f *pflag.Flag) bool { return f != nil && f.NoOptDefVal == "" }

func shorthand(cmd *cobra.Command, c string) *pflag.Flag {
	if f := cmd.Flags().ShorthandLookup(c); f != nil {
		return f
	}
	return cmd.InheritedFlags().ShorthandLookup(c)
}

// outputArg finds -o in arguments that may not parse.
func outputArg(args []string) string {
	for i, arg := range args {
		if v, ok := strings.CutPrefix(arg, "--output="); ok {
			return v
		}
		if (arg == "-o" || arg == "--output") && i+1 < len(args) {
			return args[i+1]
		}
		if v, ok := strings.CutPrefix(arg, "-o"); ok && v != "" {
			return strings.TrimPrefix(v, "=")
		}
	}
	return ""
}

// fprintf prints where an error has nowhere to go: stderr, and notes.
func fprintf(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }
