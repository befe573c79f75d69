package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newDocsCommand prints the reference from the tree that runs, so that the two cannot differ. It is for packagers.
func newDocsCommand(a *app) *cobra.Command {
	var dir string
	man := &cobra.Command{
		Use:     "man",
		Short:   "Write manual pages, one a command, into a directory",
		Example: "  docs man --dir ./man1",
		Args:    argsBetween(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dir == "" {
				return usagef("name the directory: --dir DIR")
			}
			return writeManPages(cmd.Root(), dir)
		},
	}
	man.Flags().StringVar(&dir, "dir", "", "`DIRECTORY` for the pages")
	md := &cobra.Command{
		Use:     "md",
		Short:   "Print a reference of all commands in Markdown",
		Example: "  docs md > COMMANDS.md",
		Args:    argsBetween(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var b strings.Builder
			b.WriteString("# eg-cli\n\nThis page is made by `eg-cli docs md`. Exit codes 0, 1, 2, 3, 6 and 7 may come from any command.\n")
			eachDocumented(cmd.Root(), func(c *cobra.Command) { markdown(&b, c) })
			b.WriteString("\n## Flags of every command\n\n")
			markdownFlags(&b, cmd.Root().PersistentFlags())
			_, err := io.WriteString(a.io.Out, b.String())
			return err
		},
	}
	return hidden(newGroup("docs", "Manual pages and a reference, for packagers", man, md))
}

// eachDocumented visits the commands that help lists, nouns before their verbs.
func eachDocumented(cmd *cobra.Command, visit func(*cobra.Command)) {
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			visit(sub)
			eachDocumented(sub, visit)
		}
	}
}

func longText(cmd *cobra.Command) string {
	if cmd.Long != "" {
		return cmd.Long
	}
	return cmd.Short + "."
}

// examplesOf are a command's examples as they are typed in a shell.
func examplesOf(cmd *cobra.Command) []string {
	var lines []string
	for _, l := range strings.Split(cmd.Example, "\n") {
		switch l = strings.TrimSpace(l); {
		case l == "":
		case strings.HasPrefix(l, program+" "), strings.HasPrefix(l, "source "): // a shell's line
			lines = append(lines, l)
		default:
			lines = append(lines, program+" "+l)
		}
	}
	return lines
}

func markdown(b *strings.Builder, cmd *cobra.Command) {
	level := strings.Count(cmd.CommandPath(), " ") + 1
	fmt.Fprintf(b, "\n%s %s\n\n%s\n", strings.Repeat("#", level), strings.TrimPrefix(cmd.CommandPath(), program+" "), longText(cmd))
	if cmd.HasAvailableSubCommands() {
		return
	}
	fmt.Fprintf(b, "\n    %s\n", cmd.UseLine())
	if len(cmd.Aliases) > 0 {
		fmt.Fprintf(b, "\nAlso: `%s`\n", strings.Join(cmd.Aliases, "`, `"))
	}
	if lines := examplesOf(cmd); lines != nil {
		fmt.Fprintf(b, "\n```\n%s\n```\n", strings.Join(lines, "\n"))
	}
	if cmd.NonInheritedFlags().HasAvailableFlags() {
		b.WriteString("\n")
		markdownFlags(b, cmd.NonInheritedFlags())
	}
	if exits := exitsText(cmd); exits != "" {
		fmt.Fprintf(b, "\nExit codes: %s.\n", exits)
	}
	if name := cmd.Annotations[noteSchema]; name != "" {
		fmt.Fprintf(b, "\nFor programs: `eg-cli schema %s`.\n", name)
	}
}

// exitsText lists the exit codes beyond those that every command may give.
func exitsText(cmd *cobra.Command) string {
	var list []string
	for _, code := range strings.Fields(cmd.Annotations[noteExits]) {
		list = append(list, code+" "+exitWords[code])
	}
	return strings.Join(list, ", ")
}

func markdownFlags(b *strings.Builder, flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" {
			left, usage := flagForm(f)
			fmt.Fprintf(b, "- `%s` %s\n", left, strings.ReplaceAll(usage, "|", "\\|"))
		}
	})
}

// flagForm is a flag as it is typed, and what it does.
func flagForm(f *pflag.Flag) (left, usage string) {
	name, usage := pflag.UnquoteUsage(f)
	left = "--" + f.Name
	if f.Shorthand != "" {
		left = "-" + f.Shorthand + ", " + left
	}
	if name == "" || f.Value.Type() == "count" {
		return left, usage
	}
	if f.NoOptDefVal != "" && f.Value.Type() != "bool" {
		return left + "[=" + name + "]", usage
	}
	return left + " " + name, usage
}

func writeManPages(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return usagef("%v", err)
	}
	var err error
	write := func(cmd *cobra.Command) {
		if err != nil {
			return
		}
		var b strings.Builder
		manPage(&b, cmd)
		err = os.WriteFile(filepath.Join(dir, manName(cmd)+".1"), []byte(b.String()), 0o644)
	}
	write(root)
	eachDocumented(root, write)
	if err != nil {
		return usagef("%v", err)
	}
	return nil
}

func manName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage prints one command as roff.
func manPage(b *strings.Builder, cmd *cobra.Command) {
	fmt.Fprintf(b, ".TH %s 1 \"\" EastGuard\n.SH NAME\n%s \\- %s\n", roff(strings.ToUpper(manName(cmd))), roff(manName(cmd)), roff(cmd.Short))
	fmt.Fprintf(b, ".SH SYNOPSIS\n.nf\n%s\n.fi\n.SH DESCRIPTION\n%s\n", roff(cmd.UseLine()), roff(longText(cmd)))
	if lines := examplesOf(cmd); lines != nil {
		fmt.Fprintf(b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(strings.Join(lines, "\n")))
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString(".SH COMMANDS\n")
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(sub.Name()), roff(sub.Short))
			}
		}
	}
	flags := cmd.NonInheritedFlags()
	if flags.HasAvailableFlags() {
		b.WriteString(".SH OPTIONS\n")
		flags.VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				left, usage := flagForm(f)
				fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(left), roff(usage))
			}
		})
	}
	fmt.Fprintf(b, ".SH EXIT STATUS\n0 done, 1 error, 2 usage, 3 unreachable, 6 denied, 7 unknown outcome")
	if exits := exitsText(cmd); exits != "" {
		b.WriteString(", " + roff(exits))
	}
	b.WriteString("\n.SH SEE ALSO\n")
	if cmd.HasParent() {
		fmt.Fprintf(b, ".BR %s (1)\n", roff(manName(cmd.Parent())))
	} else {
		b.WriteString(".BR eastguard (1)\n")
	}
}

var roffEscaper = strings.NewReplacer(`\`, `\\`, "-", `\-`)

// roff makes text harmless for troff: no line may begin with a control character.
func roff(s string) string {
	lines := strings.Split(roffEscaper.Replace(s), "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}
