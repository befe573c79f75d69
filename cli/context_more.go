package cli

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/cli/script"
	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

const schemaContextShow = "context.show/1"

// contextDocument is the document of context show.
type contextDocument struct {
	Schema string `json:"schema"`
	contextRow
	File string `json:"file"`
}

func newContextShowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:               "show [name]",
		Short:             "Show one context; without a name the current one",
		Example:           "  context show\n  context show prod-eu -o json",
		Args:              argsBetween(0, 1),
		Annotations:       map[string]string{noteSchema: "context.show", noteExits: "4"},
		ValidArgsFunction: a.completeContexts,
		RunE: func(_ *cobra.Command, args []string) error {
			name := a.set.context.Value
			if len(args) > 0 {
				name = args[0]
			}
			if name == "" {
				return usagef("no context is in use").WithHint("name one, or choose one: eg-cli context use NAME")
			}
			return runContextShow(a, name)
		},
	}
}

func runContextShow(a *app, name string) error {
	c, err := a.set.file.Find(name)
	if err != nil {
		return err
	}
	doc := contextDocument{Schema: schemaContextShow, contextRow: newContextRow(a, c), File: a.set.configPath.Value}
	return a.output().Object(doc, func(p *term.Page) {
		yes := map[bool]string{true: "yes", false: "no"}
		p.Fields(
			"Context", doc.Name, "Current", yes[doc.Current], "Seeds", strings.Join(doc.Seeds, ", "),
			"Protected", yes[doc.Protected], "Read-only", yes[doc.ReadOnly], "Colour", orDash(doc.Color), "File", doc.File,
		)
	})
}

func newContextValidateCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "validate [file]",
		Short:   "Check a configuration file; exit 2 says what is wrong with it",
		Example: "  context validate\n  context validate ./cli.yaml",
		Args:    argsBetween(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			path := a.set.configPath.Value
			if len(args) > 0 {
				path = args[0]
			}
			f, err := checkFile(path)
			if err != nil {
				return err
			}
			a.note("%s is right: %s", term.Escape(path), plural(int64(len(f.Contexts)), "context"))
			return nil
		},
	}
	cmd.PersistentPreRunE = a.prepareWithoutFile
	return cmd
}

// prepareWithoutFile is prepare for commands that must work though the configuration file is wrong.
func (a *app) prepareWithoutFile(cmd *cobra.Command, _ []string) error {
	err := a.prepare(cmd)
	if err == nil {
		return nil
	}
	a.set, a.path = settings{}, cmd.CommandPath()
	changed := func(name string) (string, bool) {
		f := cmd.Flags().Lookup(name)
		if f == nil || !f.Changed {
			return "", false
		}
		return flagText(f), true
	}
	// The path is settled before the file is read, and the error of reading it is what the command is about.
	_ = a.resolveFile(&a.set, changed)
	if a.set.configPath.Value == "" {
		return err
	}
	a.set.format = term.FormatTable
	return nil
}

// checkFile reads a configuration file and everything in it that is only looked at when it is used.
func checkFile(path string) (term.File, error) {
	f, err := term.LoadFile(path, true)
	if err != nil {
		return f, err
	}
	wrong := func(format string, args ...any) error {
		return usagef("%s: "+format, append([]any{path}, args...)...)
	}
	for _, name := range []string{f.Current, f.Previous} {
		if name == "" {
			continue
		}
		if _, err := f.Find(name); err != nil {
			return f, wrong("current or previous: %v", err)
		}
	}
	for _, c := range f.Contexts {
		if len(c.Seeds) == 0 {
			return f, wrong("context %q has no seeds", c.Name)
		}
		client, err := sdk.NewClient(sdk.WithSeeds(c.Seeds...)) // it connects to nobody
		if err != nil {
			return f, wrong("context %q: %s", c.Name, describe(err).Message)
		}
		if err := client.Close(); err != nil {
			return f, err
		}
		switch c.Color {
		case "", "red", "yellow", "green", "cyan":
		default:
			return f, wrong("context %q: color %q is not one of red, yellow, green, cyan", c.Name, c.Color)
		}
	}
	return f, checkDefaults(f, wrong)
}

func checkDefaults(f term.File, wrong func(string, ...any) error) error {
	for _, d := range []struct {
		key, value string
		parse      func(string) error
	}{
		{"output", f.Defaults.Output, func(s string) error { _, err := term.ParseFormat(s); return err }},
		{"time", f.Defaults.Time, func(s string) error { _, err := term.ParseTimeMode(s); return err }},
		{"bytes", f.Defaults.Bytes, func(s string) error { _, err := term.ParseBytesMode(s); return err }},
		{"timeout", f.Defaults.Timeout, func(s string) error { _, err := term.ParseDuration(s); return err }},
		{"color", f.Defaults.Color, func(s string) error { _, err := term.ParseColorMode(s); return err }},
		{"repl: timing_over", f.REPL.TimingOver, func(s string) error { _, err := term.ParseDuration(s); return err }},
	} {
		if d.value == "" {
			continue
		}
		if err := d.parse(d.value); err != nil {
			return wrong("%s: %s", d.key, describe(err).Message)
		}
	}
	return nil
}

func newContextEditCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "edit",
		Short: "Open the configuration file in an editor, and keep it only if it is right",
		Long: "Opens a copy of the configuration file in $VISUAL or $EDITOR (vi without either) and puts it in the file's place when\n" +
			"it is right. A copy that is wrong is left where it is, and said where.",
		Args: argsBetween(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return runContextEdit(cmd, a) },
	}
	cmd.PersistentPreRunE = a.prepareWithoutFile
	return cmd
}

func runContextEdit(cmd *cobra.Command, a *app) error {
	path := a.set.configPath.Value
	if path == "" {
		return usagef("there is no home directory for the configuration").WithHint("name a file with -c")
	}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return usagef("%v", err)
	}
	if errors.Is(err, fs.ErrNotExist) {
		text = []byte("# See: eg-cli help environment\ncontexts: []\n")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return usagef("%v", err)
	}
	draft, err := os.CreateTemp(filepath.Dir(path), "cli-*.yaml")
	if err != nil {
		return usagef("%v", err)
	}
	_, werr := draft.Write(text)
	if err := errors.Join(werr, draft.Close()); err != nil {
		return usagef("%v", err)
	}
	if err := a.editor(cmd, draft.Name()); err != nil {
		return errors.Join(err, os.Remove(draft.Name()))
	}
	if _, err := checkFile(draft.Name()); err != nil {
		var e *sdk.Error
		if errors.As(err, &e) {
			return e.WithHint("the file is as it was; your text is in %s", draft.Name())
		}
		return err
	}
	if err := os.Rename(draft.Name(), path); err != nil {
		return usagef("%v", err)
	}
	a.note("%s is right and in use", term.Escape(path))
	return nil
}

// editor runs the user's editor on a file, on the terminal of this process.
func (a *app) editor(cmd *cobra.Command, path string) error {
	text := "vi"
	for _, name := range []string{"VISUAL", "EDITOR"} {
		if v := a.Getenv(name); v != "" {
			text = v
			break
		}
	}
	lines, err := script.Parse(text)
	if err != nil || len(lines) != 1 || len(lines[0].Words) == 0 {
		return usagef("the editor %q is not a command", text).WithHint("set EDITOR to a program and its arguments")
	}
	words := append(lines[0].Words, path)
	run := exec.CommandContext(cmd.Context(), words[0], words[1:]...)
	run.Stdin, run.Stdout, run.Stderr = a.io.In, a.io.Out, a.io.Err
	if err := run.Run(); err != nil {
		return usagef("the editor %s: %v", words[0], err).WithHint("nothing was changed")
	}
	return nil
}
