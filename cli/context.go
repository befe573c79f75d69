package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/internal/term"
)

// contextRow is a row of context list.
type contextRow struct {
	Current   bool     `json:"current" col:"CURRENT"`
	Name      string   `json:"name" col:"NAME"`
	Seeds     []string `json:"seeds" col:"SEEDS"`
	Protected bool     `json:"protected" col:"PROTECTED"`
	ReadOnly  bool     `json:"read_only" col:"READ-ONLY"`
	Color     string   `json:"color" col:"COLOR,wide"`
}

func newContextCommand(a *app) *cobra.Command {
	return newGroup("context", "Named clusters in the configuration file",
		&cobra.Command{
			Use: "list", Short: "List the contexts", Args: argsBetween(0, 0),
			Annotations: map[string]string{noteSchema: "context.list"},
			RunE:        func(*cobra.Command, []string) error { return runContextList(a) },
		},
		newContextShowCommand(a),
		newContextAddCommand(a),
		newContextEditCommand(a),
		newContextValidateCommand(a),
		&cobra.Command{
			Use: "use <name>", Short: "Make a context the current one; - is the previous", Args: argsBetween(1, 1),
			Example:           "  context use prod-eu\n  context use -",
			Annotations:       map[string]string{noteExits: "4"},
			ValidArgsFunction: a.completeContexts,
			RunE:              func(_ *cobra.Command, args []string) error { return runContextUse(a, args[0]) },
		},
		&cobra.Command{
			Use: "remove <name>", Short: "Forget a context", Args: argsBetween(1, 1),
			Annotations:       map[string]string{noteExits: "4"},
			ValidArgsFunction: a.completeContexts,
			RunE:              func(cmd *cobra.Command, args []string) error { return runContextRemove(cmd.Context(), a, args[0]) },
		},
	)
}

func newContextAddCommand(a *app) *cobra.Command {
	var c term.Context
	cmd := &cobra.Command{
		Use:         "add <name>",
		Short:       "Remember a cluster under a name; its seeds are those of -s",
		Example:     "  context add prod-eu -s 10.0.0.11:2921,10.0.0.12:2921 --protected",
		Args:        argsBetween(1, 1),
		Annotations: map[string]string{noteExits: "5"},
	}
	cmd.Flags().BoolVar(&c.Protected, "protected", false, "ask before small changes as before large ones")
	cmd.Flags().StringVar(&c.Color, "prompt-color", "", "`COLOR` of the prompt: red, yellow, green or cyan")
	var readOnly bool
	cmd.Flags().BoolVar(&readOnly, "refuse-changes", false, "refuse every change in this context")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		c.Name, c.Seeds, c.ReadOnly = args[0], a.set.seeds, readOnly
		return runContextAdd(a, c)
	}
	return cmd
}

func newContextRow(a *app, c term.Context) contextRow {
	return contextRow{
		Current: c.Name == a.set.context.Value, Name: c.Name, Seeds: append([]string{}, c.Seeds...), Protected: c.Protected, ReadOnly: c.ReadOnly, Color: c.Color,
	}
}

func runContextList(a *app) error {
	rows := []contextRow{}
	for _, c := range a.set.file.Contexts {
		rows = append(rows, newContextRow(a, c))
	}
	if len(rows) == 0 && !a.machine() {
		a.note("no contexts in %s. add one: context add NAME -s HOST:PORT", a.set.configPath.Value)
		return nil
	}
	return a.output().List(rows)
}

func runContextAdd(a *app, c term.Context) error {
	if strings.ContainsFunc(c.Name, func(r rune) bool { return r <= ' ' || r == 0x7f }) || c.Name == "" || c.Name == "-" {
		return usagef("%q cannot name a context", c.Name)
	}
	f := a.set.file
	if slices.ContainsFunc(f.Contexts, func(old term.Context) bool { return old.Name == c.Name }) {
		return &failure{name: "CONTEXT_EXISTS", exit: ExitConflict, msg: "context \"" + c.Name + "\" exists already", hint: "remove it first: eg-cli context remove " + c.Name}
	}
	f.Contexts = append(slices.Clone(f.Contexts), c)
	if f.Current == "" {
		f.Current = c.Name
	}
	if err := f.Save(a.set.configPath.Value); err != nil {
		return err
	}
	a.note("added context %s (%s)", term.Escape(c.Name), strings.Join(c.Seeds, ","))
	return nil
}

func runContextUse(a *app, name string) error {
	f := a.set.file
	c, err := f.Find(name)
	if err != nil {
		return err
	}
	if f.Current != c.Name {
		f.Previous, f.Current = f.Current, c.Name
	}
	if err := f.Save(a.set.configPath.Value); err != nil {
		return err
	}
	a.note("using context %s (%s)", term.Escape(c.Name), strings.Join(c.Seeds, ","))
	return nil
}

func runContextRemove(_ context.Context, a *app, name string) error {
	f := a.set.file
	c, err := f.Find(name)
	if err != nil {
		return err
	}
	f.Contexts = slices.DeleteFunc(slices.Clone(f.Contexts), func(old term.Context) bool { return old.Name == c.Name })
	if f.Current == c.Name {
		f.Current = ""
	}
	if f.Previous == c.Name {
		f.Previous = ""
	}
	if err := f.Save(a.set.configPath.Value); err != nil {
		return err
	}
	a.note("removed context %s", term.Escape(c.Name))
	return nil
}

func (a *app) completeContexts(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var names []cobra.Completion
	if len(args) == 0 && a.prepare(cmd) == nil {
		for _, c := range a.set.file.Contexts {
			names = append(names, c.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
