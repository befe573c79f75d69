package cli

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/eastguard/eastguard/internal/term"
)

// replOptions are what :set changes besides the global settings. They hold for the session.
type replOptions struct {
	hints  bool
	timing bool
	vi     bool
}

// metaCommands are the lines that begin with a colon, for help and completion.
var metaCommands = map[string]string{
	"set":     "change a setting for this session",
	"use":     "switch to a context",
	"connect": "switch to the brokers at HOST:PORT",
	"watch":   "repeat a command: :watch 2 topic list",
	"source":  "run the commands in a file",
	"history": "show the last lines",
	"clear":   "clear the screen",
	"quit":    "leave",
	"exit":    "leave",
	"help":    "help on the prompt",
}

// runMeta runs one meta command and reports its error.
func (s *Session) runMeta(ctx context.Context, streams *term.IOStreams, words []string) error {
	err := s.meta(ctx, streams, words[0], words[1:])
	if err != nil && !errors.Is(err, errQuit) {
		s.reportTo(streams, err)
	}
	return err
}

func (s *Session) meta(ctx context.Context, streams *term.IOStreams, name string, args []string) error {
	switch name {
	case "set":
		return s.metaSet(streams, args)
	case "use":
		if len(args) != 1 {
			return usagef(":use takes the name of a context")
		}
		if err := s.metaUse(args[0]); err != nil {
			return err
		}
		s.tellSeeds(streams)
		return nil
	case "connect":
		if len(args) != 1 {
			return usagef(":connect takes HOST:PORT")
		}
		if _, err := parseSeeds(args[0]); err != nil {
			return err
		}
		s.overrides.set("seeds", args[0])
		s.lost = false
		s.tellSeeds(streams)
		return nil
	case "watch":
		return s.metaWatch(ctx, streams, args)
	case "source":
		if len(args) != 1 {
			return usagef(":source takes a file")
		}
		text, err := readScript(args[0], streams.In)
		if err != nil {
			return err
		}
		return s.runBatch(ctx, streams, text, false)
	case "history":
		return s.metaHistory(streams, args)
	case "clear":
		if streams.RepaintsOut() {
			fprintf(streams.Out, "\x1b[H\x1b[2J")
		}
		return nil
	case "quit", "exit":
		return errQuit
	case "help":
		fprintf(streams.Out, "%s", helpREPL)
		return nil
	}
	err := usagef("unknown command %q", ":"+name)
	var names []string
	for n := range metaCommands {
		names = append(names, n)
	}
	if best := suggest(name, names); best != "" {
		return err.WithHint("did you mean :%s?", best)
	}
	return err.WithHint("see: help repl")
}

// metaSet changes a setting of the prompt or a global one; without arguments it shows them.
func (s *Session) metaSet(streams *term.IOStreams, args []string) error {
	if len(args) == 0 {
		fprintf(streams.Out, "hints %s  timing %s  vi %s\n", onOff(s.repl.hints), onOff(s.repl.timing), onOff(s.repl.vi))
		for _, g := range globalSettings {
			if v, ok := s.overrides.values[g.key]; ok {
				fprintf(streams.Out, "%s %s\n", g.key, term.Escape(v))
			}
		}
		return nil
	}
	if len(args) != 2 {
		return usagef(":set takes a name and a value").WithHint("for example :set output json, :set hints off")
	}
	key, value := strings.ReplaceAll(args[0], "-", "_"), args[1]
	switch key {
	case "hints", "timing", "vi":
		on, err := parseBool(key, value)
		if err != nil {
			return err
		}
		*map[string]*bool{"hints": &s.repl.hints, "timing": &s.repl.timing, "vi": &s.repl.vi}[key] = on
		return nil
	}
	var keys []string
	for _, g := range globalSettings {
		if g.key == key {
			return s.trySet(key, value)
		}
		keys = append(keys, g.key)
	}
	err := usagef("there is no setting %q", args[0])
	if best := suggest(key, append(keys, "hints", "timing", "vi")); best != "" {
		return err.WithHint("did you mean %q?", best)
	}
	return err.WithHint("settings are hints, timing, vi, %s", strings.Join(keys, ", "))
}

// trySet keeps a new value only if it can be used.
func (s *Session) trySet(key, value string) error {
	before, had := s.overrides.values[key]
	s.overrides.set(key, value)
	root := NewRoot(s)
	if _, err := s.resolve(root.PersistentFlags()); err != nil {
		delete(s.overrides.values, key)
		if had {
			s.overrides.values[key] = before
		}
		return err
	}
	return nil
}

func (s *Session) metaUse(name string) error {
	before := s.overrides.context
	s.overrides.context = &name
	root := NewRoot(s)
	set, err := s.resolve(root.PersistentFlags())
	if err != nil {
		s.overrides.context = before
		return err
	}
	resolved := set.context.Value
	s.overrides.context = &resolved
	delete(s.overrides.values, "seeds")
	s.lost = false
	return nil
}

// seedsText is where the next command goes.
func (s *Session) seedsText() string {
	set, err := s.resolve(NewRoot(s).PersistentFlags())
	if err != nil || len(set.seeds) == 0 {
		return "no brokers" // the next command says why
	}
	text := term.Escape(set.seeds[0])
	if more := len(set.seeds) - 1; more > 0 {
		text += " and " + itoa(int64(more)) + " more"
	}
	return text
}

// tellSeeds shows at the prompt where it has been switched to.
func (s *Session) tellSeeds(streams *term.IOStreams) {
	if s.atPrompt {
		fprintf(streams.Err, "EastGuard CLI %s, %s\n", s.Version, s.seedsText())
	}
}

// metaWatch is ":watch 2 topic list": the command with -w.
func (s *Session) metaWatch(ctx context.Context, streams *term.IOStreams, args []string) error {
	if len(args) < 2 {
		return usagef(":watch takes an interval and a command").WithHint("for example :watch 2 topic list")
	}
	interval := args[0]
	if _, err := strconv.ParseFloat(interval, 64); err == nil {
		interval += "s"
	}
	if err := s.execute(ctx, streams, append(args[1:], "--watch="+interval)); err != nil {
		return quiet{err}
	}
	return nil
}

func (s *Session) metaHistory(streams *term.IOStreams, args []string) error {
	n := 20
	if len(args) > 0 {
		var err error
		if n, err = strconv.Atoi(args[0]); err != nil || n < 1 || len(args) > 1 {
			return usagef(":history takes a number of lines")
		}
	}
	if s.history == nil {
		return usagef("there is no history here: this is not the prompt")
	}
	lines := s.history()
	for i := max(0, len(lines)-n); i < len(lines); i++ {
		fprintf(streams.Out, "%5d  %s\n", i+1, term.Escape(lines[i]))
	}
	return nil
}

// adopt makes the global flags given beside a batch or the prompt hold for each of its lines.
func (s *Session) adopt(root *cobra.Command) {
	root.Flags().Visit(func(f *pflag.Flag) {
		switch f.Name {
		case "context":
			name := f.Value.String()
			s.overrides.context = &name
		case "config":
			s.configFlag = f.Value.String()
		case "yes", "quiet", "verbose", "no-pager", "confirm", "columns", "no-headers", "sort-by", "limit", "jq", "template":
			s.inherited = append(s.inherited, inheritedFlag{f.Name, flagText(f)})
		default:
			for _, g := range globalSettings {
				if g.flag == f.Name {
					s.overrides.set(g.key, flagText(f))
				}
			}
		}
	})
}

// inheritedFlag is a flag of the front end's own line that its commands have too.
type inheritedFlag struct{ name, value string }

// inherit gives a fresh tree the front end's flags. They parsed once, so they parse again.
func (s *Session) inherit(f *pflag.FlagSet) {
	for _, in := range s.inherited {
		_ = f.Set(in.name, in.value)
	}
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}
