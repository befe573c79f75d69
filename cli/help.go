package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/eastguard/eastguard/internal/term"
)

// helpMaxWidth keeps help readable on wide terminals.
const helpMaxWidth = 100

// rootHelp is the first thing a user reads. It names only what works.
const rootHelp = `EastGuard CLI: talk to a zero-controller log.

USAGE
  eg-cli <noun> <verb> [args] [flags]        one command
  eg-cli                                     interactive prompt
  eg-cli -e 'cmd; cmd'  |  eg-cli run FILE   batch, also from a pipe

TRY
  create-topic my_topic 3                    replication factor 3
  publish my_topic user123 "Hello EastGuard!"
  consume my_topic earliest 10               up to 10 records, then stop

DATA      publish consume
TOPICS    topic route            LAYOUT  segment shard
NODES     node cluster events    SCRIPT  wait run
MEASURE   bench top              SETUP   config context completion version
LEARN     help <command | topic>, explain <code>, cheat <topic>, schema <name>

Help topics: %s.
Flags of every command: help flags. Settings: help environment.
`

func newHelpCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "help [command | topic]",
		Short: "Help on a command or a topic",
		Args:  cobra.ArbitraryArgs,
		// Help must come even when the configuration is broken.
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			at, _, err := cmd.Root().Find(args)
			var names []cobra.Completion
			if err == nil {
				for _, sub := range at.Commands() {
					if sub.IsAvailableCommand() {
						names = append(names, cobra.CompletionWithDesc(sub.Name(), sub.Short))
					}
				}
			}
			if len(args) == 0 {
				names = append(names, helpTopicNames()...)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runHelp(a, cmd.Root(), args) },
	}
}

func runHelp(a *app, root *cobra.Command, words []string) error {
	if len(words) == 1 {
		if words[0] == helpFlags {
			a.helpPage().flags("FLAGS OF EVERY COMMAND", root.PersistentFlags())
			return nil
		}
		if topic, ok := helpTopics[words[0]]; ok {
			width, _ := a.io.Size()
			_, err := io.WriteString(a.helpPage().w, term.Fold(topic(), width))
			return err
		}
	}
	cmd, rest, err := root.Find(words)
	if err != nil || len(rest) > 0 {
		word := strings.Join(words, " ")
		f := &failure{name: "HELP_NOT_FOUND", exit: ExitNotFound, msg: "there is no help on \"" + word + "\"", hint: "see: eg-cli help"}
		names := helpTopicNames()
		for _, sub := range root.Commands() {
			names = append(names, sub.Name())
		}
		slices.Sort(names)
		if best := suggest(word, names); best != "" {
			f.hint = "did you mean \"help " + best + "\"?"
		}
		return f
	}
	a.help(cmd, nil)
	return nil
}

// help is what --help and a noun without a verb print.
func (a *app) help(cmd *cobra.Command, _ []string) {
	if set, err := a.resolve(cmd.Flags()); err == nil {
		a.io.Decide(set.colorMode, set.ascii, a.Getenv)
	}
	h := a.helpPage()
	if !cmd.HasParent() {
		fprintf(h.w, rootHelp, strings.Join(helpTopicNames(), ", "))
		return
	}
	h.command(cmd)
}

func (a *app) helpPage() *helpPage {
	out := a.io.Out
	if a.io.ASCII() {
		out = asciiWriter{out}
	}
	width, _ := a.io.Size()
	return &helpPage{w: out, style: a.io.OutStyle(), width: min(width, helpMaxWidth)}
}

// asciiWriter spells out the few glyphs of our own texts that are not ASCII.
type asciiWriter struct{ w io.Writer }

var asciiGlyphs = strings.NewReplacer("…", "...", "⁶⁴", "^64")

func (w asciiWriter) Write(b []byte) (int, error) {
	if _, err := asciiGlyphs.WriteString(w.w, string(b)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// helpPage prints one command's help: a sentence, examples, arguments, flags, output, exits.
type helpPage struct {
	w     io.Writer
	style term.Style
	width int
}

func (h *helpPage) section(name string) { fprintf(h.w, "\n%s\n", h.style.Bold(name)) }

func (h *helpPage) command(cmd *cobra.Command) {
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	fprintf(h.w, "%s\n", term.Fold(text, h.width))
	if cmd.Example != "" {
		h.section("EXAMPLES")
		for _, line := range examplesOf(cmd) {
			fprintf(h.w, "  %s\n", line)
		}
	}
	h.section("USAGE")
	use := strings.TrimSuffix(cmd.UseLine(), " [flags]")
	if cmd.HasAvailableSubCommands() {
		use += " <verb>"
	}
	fprintf(h.w, "  %s [flags]\n", use)
	if len(cmd.Aliases) > 0 {
		fprintf(h.w, "  also: %s\n", strings.Join(cmd.Aliases, ", "))
	}
	h.verbs(cmd)
	h.flags("FLAGS", cmd.NonInheritedFlags())
	fprintf(h.w, "\nFlags that every command takes, such as -o json, -s and -t: eg-cli help %s\n", helpFlags)
	h.output(cmd)
	h.exits(cmd)
	h.seeAlso(cmd)
}

func (h *helpPage) verbs(cmd *cobra.Command) {
	if !cmd.HasAvailableSubCommands() {
		return
	}
	h.section("VERBS")
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			fprintf(h.w, "%s\n", term.Fold(fmt.Sprintf("  %-11s  %s", sub.Name(), sub.Short), h.width))
		}
	}
}

func (h *helpPage) flags(title string, set *pflag.FlagSet) {
	if !set.HasAvailableFlags() {
		return
	}
	h.section(title)
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		left, usage := flagForm(f)
		if f.Shorthand == "" {
			left = "    " + left
		}
		left = "  " + left
		h.flag(left, usage)
	})
}

// flag prints one flag; text that does not fit beside it goes below.
func (h *helpPage) flag(left, usage string) {
	const column = 30
	lines := term.Wrap(usage, max(h.width-column, 20))
	if term.Width(left) > column-2 {
		fprintf(h.w, "%s\n", left)
		left = ""
	}
	for i, line := range lines {
		if i > 0 {
			left = ""
		}
		fprintf(h.w, "%s%s\n", term.Pad(left, column, false), line)
	}
}

func (h *helpPage) output(cmd *cobra.Command) {
	name := cmd.Annotations[noteSchema]
	if name == "" {
		return
	}
	h.section("OUTPUT")
	fprintf(h.w, "  Text for people; -o json and others for programs: eg-cli schema %s\n", name)
}

func (h *helpPage) exits(cmd *cobra.Command) {
	if !cmd.Runnable() || cmd.HasAvailableSubCommands() {
		return
	}
	h.section("EXIT CODES")
	codes := append([]string{"0", "1", "2", "3", "6", "7"}, strings.Fields(cmd.Annotations[noteExits])...)
	slices.SortFunc(codes, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	for i, code := range codes {
		codes[i] += " " + exitWords[code]
	}
	for _, l := range term.Wrap(strings.Join(codes, ", "), h.width-2) {
		fprintf(h.w, "  %s\n", l)
	}
}

func (h *helpPage) seeAlso(cmd *cobra.Command) {
	var names []string
	for _, sub := range cmd.Parent().Commands() {
		if sub != cmd && sub.IsAvailableCommand() && cmd.Parent().HasParent() {
			names = append(names, cmd.Parent().Name()+" "+sub.Name())
		}
	}
	names = append(names, "help formatting", "help exit-codes")
	h.section("SEE ALSO")
	for _, l := range term.Wrap(strings.Join(names, ", "), h.width-2) {
		fprintf(h.w, "  %s\n", l)
	}
}

var exitWords = map[string]string{
	"0": "done", "1": "error", "2": "usage", "3": "unreachable", "6": "denied", "7": "unknown outcome",
	"4": "not found", "5": "conflict", "8": "partial", "9": "integrity", "10": "unhealthy", "11": "warnings", "12": "not met",
}
