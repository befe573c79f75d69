package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

// TopRunner runs the dashboard. The front end brings it: this package knows nothing of screens. It returns when the
// dashboard has ended and the terminal is as it was before.
type TopRunner func(ctx context.Context, io *term.IOStreams, t Top) error

// Top is how the dashboard was asked to run, with every setting resolved. A front end hands it on as the dashboard's own
// options, which have the same fields.
type Top struct {
	Seeds        []string
	Context      term.Context   // the one in use; without a name, none is
	Contexts     []term.Context // to switch to
	AllowActions bool           // actions that change the cluster may be asked for
	Version      string
	Getenv       func(string) string
	// Exec runs another command of eg-cli against a cluster, without asking anything, and returns what it printed. What it
	// starts runs under guard, as with sdk.WithGuard.
	Exec func(ctx context.Context, at term.Context, words []string, guard func(run func())) (text string, err error)

	View     string
	Refresh  time.Duration // between two changes of the screen
	Filter   string
	Once     bool
	Format   term.Format
	Count    int           // documents to print; 0: one, or no end
	Duration time.Duration // after which it ends; 0: never
	Width    int           // 0: as the terminal is
	Height   int

	NoMouse          bool
	NoAnimation      bool
	Record           string // a file
	Replay           string // a file
	Speed            float64
	ExitOnDisconnect bool
	GlyphsChosen     bool // somebody has said whether to draw with ASCII alone: fonts of the locale decide nothing
	FormatChosen     bool // by -o, which leaves no screen; what usually holds for commands does not
}

type topOptions struct {
	*app
	top                            Top
	refresh, duration, size, speed string
}

const (
	topProgram     = "eg-top"
	defaultRefresh = 250 * time.Millisecond
	minRefresh     = 100 * time.Millisecond
	maxRefresh     = time.Minute
)

var topViews = []string{"overview", "ring", "shards", "topics", "ranges", "segments", "groups", "events", "logs"}

func newTopCommand(a *app, use string) *cobra.Command {
	o := &topOptions{app: a}
	cmd := &cobra.Command{
		Use:   use,
		Short: "The cluster on one screen, live: health, load, what moves, and the last 15 minutes",
		Long: "Shows the cluster on the terminal, live. Keys 1 to 9 change the view, ? lists the keys, q quits. Nothing can be\n" +
			"changed from it without --allow-actions. Without a terminal, or with --once, it prints one look and exits 0, or 10\n" +
			"when the cluster is not healthy.",
		Example: `  top
  top segments --context prod-eu
  top --once -o json
  top --record incident.jsonl
  top --replay incident.jsonl --speed 4`,
		Args:        argsBetween(0, 1),
		ValidArgs:   topViews,
		Annotations: map[string]string{noteExits: "10", noteDeadline: deadlineOwn},
	}
	f := cmd.Flags()
	f.StringVar(&o.top.View, "view", "overview", "begin with this `VIEW`")
	f.StringVar(&o.refresh, "refresh", "", "change the screen at most once in `DURATION` (default 250ms)")
	f.StringVar(&o.top.Filter, "filter", "", "narrow the view's table to what matches `RE`; ! in front inverts, -f is fuzzy")
	f.BoolVar(&o.top.Once, "once", false, "print one look and exit")
	f.IntVarP(&o.top.Count, "count", "n", 0, "with -o jsonl: print `N` documents; on the screen: end after N changes of it")
	f.StringVar(&o.duration, "duration", "", "end after `DURATION`")
	f.StringVar(&o.size, "size", "", "draw for `WIDTHxHEIGHT` instead of the terminal's size")
	f.BoolVar(&o.top.AllowActions, "allow-actions", false, "allow actions that change the cluster, each after a question")
	f.BoolVar(&o.top.NoMouse, "no-mouse", false, "leave the mouse to the terminal")
	f.BoolVar(&o.top.NoAnimation, "no-animation", false, "nothing blinks (ACCESSIBLE)")
	f.StringVar(&o.top.Record, "record", "", "write what is seen to `FILE`, to be replayed")
	f.StringVar(&o.top.Replay, "replay", "", "show what was recorded in `FILE` instead of a cluster")
	f.StringVar(&o.speed, "speed", "1", "replay so many `TIMES` as fast")
	f.BoolVar(&o.top.ExitOnDisconnect, "exit-on-disconnect", false, "end when no broker can be reached")
	// The only errors are functions registered twice, which a fresh tree cannot have.
	_ = cmd.RegisterFlagCompletionFunc("view", cobra.FixedCompletions(topViews, cobra.ShellCompDirectiveNoFileComp))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			o.top.View = args[0]
		}
		o.top.FormatChosen = cmd.Flags().Changed("output")
		if err := o.resolveTop(); err != nil {
			return err
		}
		return o.run(cmd.Context())
	}
	return cmd
}

// resolveTop fills Top from flags and settings.
func (o *topOptions) resolveTop() (err error) {
	t := &o.top
	t.Context, t.Contexts = o.contexts()
	t.Seeds, t.Format, t.Version, t.Getenv, t.Exec = o.set.seeds, o.set.format, o.Version, o.Getenv, o.exec
	t.GlyphsChosen = o.set.values["ascii"].Source != "default"
	if !t.FormatChosen && !topPrints(t.Format) {
		t.Format = term.FormatTable
	}
	t.NoAnimation = t.NoAnimation || o.Getenv("ACCESSIBLE") != ""
	if t.AllowActions && t.Context.ReadOnly {
		return usagef("--allow-actions and read-only exclude each other (read-only is from %s)", o.set.values["read_only"].Source)
	}
	if t.Refresh, err = o.span("refresh", o.refresh, defaultRefresh); err != nil {
		return err
	}
	if t.Refresh < minRefresh || t.Refresh > maxRefresh {
		return usagef("--refresh is %s to %s", term.FormatSpan(minRefresh), term.FormatSpan(maxRefresh))
	}
	if t.Duration, err = o.span("duration", o.duration, 0); err != nil {
		return err
	}
	if t.Speed, err = strconv.ParseFloat(strings.TrimSuffix(o.speed, "x"), 64); err != nil || !(t.Speed > 0 && t.Speed <= 1000) {
		return usagef("--speed %q is not a number of times up to 1000", o.speed)
	}
	if t.Width, t.Height, err = parseSize(o.size); err != nil {
		return err
	}
	switch {
	case t.Count < 0:
		return usagef("--count cannot be negative")
	case t.Replay != "" && t.Record != "":
		return usagef("--record and --replay exclude each other")
	case !topPrints(t.Format):
		return usagef("top prints table, json or jsonl")
	}
	return o.knownView(t.View)
}

func topPrints(f term.Format) bool {
	return f == term.FormatTable || f == term.FormatJSON || f == term.FormatJSONL
}

// contexts are the one in use, with what flags and the environment say of it, and all there are.
func (o *topOptions) contexts() (current term.Context, all []term.Context) {
	all = o.set.file.Contexts
	for _, c := range all {
		if c.Name == o.set.context.Value {
			current = c
		}
	}
	current.Name, current.Seeds = o.set.context.Value, o.set.seeds
	current.Protected, current.ReadOnly = o.set.protected, o.set.readOnly
	return current, all
}

// exec runs one command for the dashboard. Whatever it has to ask has been asked there.
func (o *topOptions) exec(ctx context.Context, at term.Context, words []string, guard func(run func())) (string, error) {
	var out bytes.Buffer
	streams := *o.io
	streams.In, streams.Out, streams.Err = strings.NewReader(""), &out, &out
	streams.SetTTY(false, false, false)
	args := []string{"--no-input", "--color=never", "--no-pager", "--output=table", "--seeds=" + strings.Join(at.Seeds, ",")}
	if at.Name != "" {
		args = append(args, "--context="+at.Name)
	}
	if o.set.configPath.Source != "default" {
		args = append(args, "--config="+o.set.configPath.Value)
	}
	deps := o.Deps
	deps.Guard = guard
	own := NewSession(deps) // a line of its own: nothing of it may change the session that the dashboard runs in
	defer own.Close()
	err := own.execute(ctx, &streams, append(args, words...))
	return out.String(), err
}

func (o *topOptions) knownView(view string) error {
	for _, v := range topViews {
		if v == view {
			return nil
		}
	}
	err := usagef("there is no view %q", view)
	if best := suggest(view, topViews); best != "" {
		return err.WithHint("did you mean %q?", best)
	}
	return err.WithHint("views: %s", strings.Join(topViews, " "))
}

func (o *topOptions) span(flag, text string, def time.Duration) (time.Duration, error) {
	if text == "" {
		return def, nil
	}
	d, err := term.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, usagef("--%s %q is not a span of time", flag, text)
	}
	return d, nil
}

// parseSize reads WIDTHxHEIGHT.
func parseSize(text string) (width, height int, err error) {
	if text == "" {
		return 0, 0, nil
	}
	w, h, ok := strings.Cut(strings.ToLower(text), "x")
	width, errW := strconv.Atoi(w)
	height, errH := strconv.Atoi(h)
	if !ok || errW != nil || errH != nil || width < 1 || height < 1 || width > 1000 || height > 1000 {
		return 0, 0, usagef("--size %q is not WIDTHxHEIGHT, up to 1000 each", text)
	}
	return width, height, nil
}

// run gives the terminal to the dashboard. A line that hangs up is told to it as a signal is, so that it can end in
// good order.
func (o *topOptions) run(ctx context.Context) error {
	if o.Top == nil {
		return errorf(sdk.CodeInternal, "this build has no dashboard")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	go func() {
		select {
		case <-hangup:
			cancel(quiet{signalled{syscall.SIGHUP}})
		case <-ctx.Done():
		}
	}()
	err := o.Top(ctx, o.io, o.top)
	var e *sdk.Error
	if errors.As(err, &e) && e.Code == sdk.CodeUnhealthy {
		return quiet{err} // what was printed shows it
	}
	return err
}

// MainTop is eg-top: the top command as a program of its own.
func MainTop(ctx context.Context, deps Deps, args []string) int {
	s := NewSession(deps)
	defer s.Close()
	signal.Ignore(syscall.SIGPIPE)
	return ExitCode(s.withSignals(ctx, func(ctx context.Context) error { return s.executeTop(ctx, args) }))
}

func (s *Session) executeTop(ctx context.Context, args []string) error {
	root, a := newTopRoot(s)
	root.SetArgs(args)
	a.outputFlag = outputArg(args)
	err := root.ExecuteContext(ctx)
	if err == nil || outputClosed(err) {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = stopped(cause, err)
	}
	a.report(err)
	return err
}

// topFlags are the global flags that mean something to the dashboard.
var topFlags = []string{"seeds", "context", "config", "output", "color", "ascii", "read-only", "help"}

func newTopRoot(s *Session) (*cobra.Command, *app) {
	own := *s.IO
	a := &app{Session: s, io: &own}
	root := newTopCommand(a, topProgram+" [view]")
	root.Example = strings.ReplaceAll(root.Example, "  top", "  "+topProgram)
	root.SilenceUsage, root.SilenceErrors = true, true
	root.SetOut(own.Out)
	root.SetErr(own.Err)
	root.SetIn(own.In)
	root.CompletionOptions.DisableDefaultCmd = true
	a.flags.register(root.PersistentFlags())
	shown := make(map[string]bool)
	for _, name := range topFlags {
		shown[name] = true
	}
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) { f.Hidden = !shown[f.Name] })
	root.Flags().Bool("version", false, "print the version")
	root.SetFlagErrorFunc(flagError)
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return a.prepare(cmd) }
	run := root.RunE
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if version, err := cmd.Flags().GetBool("version"); err == nil && version {
			fprintf(own.Out, "%s %s\n", topProgram, s.Version)
			return nil
		}
		return run(cmd, args)
	}
	return root, a
}
