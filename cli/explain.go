package cli

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/term"
)

const schemaExplain = "explain/1"

// explainDocument is the document of explain.
type explainDocument struct {
	Schema    string `json:"schema"`
	Code      string `json:"code"`
	Summary   string `json:"summary"`
	Exit      int    `json:"exit"`
	Retryable bool   `json:"retryable"`
	Cause     string `json:"cause"`
	Check     string `json:"check"`
	Fix       string `json:"fix"`
	Hint      string `json:"hint"`
}

// explanation is what the table of codes does not say.
type explanation struct{ cause, check, fix string }

func newExplainCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:         "explain <code>",
		Short:       "A page on an error code: its cause, what to check, how to mend it",
		Example:     "  explain TOPIC_EXISTS\n  explain not_enough_nodes -o json",
		Args:        argsBetween(1, 1),
		Annotations: map[string]string{noteExits: "4", noteSchema: "explain"},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return slices.Sorted(maps.Keys(explainable())), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error { return runExplain(a, args[0]) },
	}
}

// explainable is every code by name: those of the wire and those of this program.
func explainable() map[string]explainDocument {
	all := map[string]explainDocument{}
	for _, info := range base.Codes() {
		e := explanations[info.Name]
		all[info.Name] = explainDocument{
			Schema: schemaExplain, Code: info.Name, Summary: info.Summary, Exit: int(info.Exit), Retryable: info.Retryable,
			Cause: e.cause, Check: e.check, Fix: e.fix, Hint: info.Hint,
		}
	}
	for _, own := range ownCodes {
		e := explanations[own.Code]
		own.Schema, own.Cause, own.Check, own.Fix = schemaExplain, e.cause, e.check, e.fix
		all[own.Code] = own
	}
	for id, c := range healthChecks {
		all[id] = explainDocument{
			Schema: schemaExplain, Code: id, Summary: c.name, Exit: ExitUnhealthy, Cause: c.cause, Check: c.check, Fix: c.fix, Hint: "see: eg-cli cluster health",
		}
	}
	return all
}

// ownCodes are errors that never travel.
var ownCodes = []explainDocument{
	{Code: nameContextNotFound, Exit: ExitNotFound, Summary: "the configuration has no context of that name", Hint: "see: eg-cli context list"},
	{Code: "CONTEXT_EXISTS", Exit: ExitConflict, Summary: "the configuration has a context of that name already", Hint: "remove it first, or choose another name"},
	{Code: "SCHEMA_NOT_FOUND", Exit: ExitNotFound, Summary: "there is no schema of that name", Hint: "see: eg-cli schema"},
	{Code: "EXPLANATION_NOT_FOUND", Exit: ExitNotFound, Summary: "there is no error code of that name", Hint: "see: eg-cli help errors"},
	{Code: "HELP_NOT_FOUND", Exit: ExitNotFound, Summary: "there is no help on that", Hint: "see: eg-cli help"},
	{Code: nameInterrupted, Exit: ExitInterrupted, Summary: "stopped by Ctrl-C (SIGINT)", Hint: "what was printed is valid; start again when you want"},
	{Code: nameTerminated, Exit: ExitTerminated, Summary: "stopped by SIGTERM", Hint: "what was printed is valid; start again when you want"},
	{Code: nameWarn, Exit: ExitWarn, Summary: "healthy, with warnings (only with --warn-exit)", Hint: "see the checks with WARN"},
	{Code: nameLost, Exit: ExitIntegrity, Summary: "bench e2e read something else than it wrote", Hint: "report it with the brokers' logs"},
}

func runExplain(a *app, code string) error {
	all := explainable()
	name := strings.ToUpper(strings.ReplaceAll(strings.Trim(code, "[]"), "-", "_"))
	doc, ok := all[name]
	if !ok {
		f := &failure{name: "EXPLANATION_NOT_FOUND", exit: ExitNotFound, msg: "there is no error code \"" + code + "\"", hint: "see: eg-cli help errors"}
		if best := suggest(name, slices.Sorted(maps.Keys(all))); best != "" {
			f.hint = "did you mean " + best + "?"
		}
		return f
	}
	return a.output().Object(doc, func(p *term.Page) {
		p.Line("%s: %s", p.Style().Bold(doc.Code), doc.Summary)
		p.Line("")
		width := min(p.Width(), 100)
		for _, part := range [][2]string{{"Cause", doc.Cause}, {"Check", doc.Check}, {"Fix", doc.Fix}, {"Hint", doc.Hint}} {
			for i, line := range term.Wrap(part[1], width-8) {
				label := ""
				if i == 0 {
					label = part[0]
				}
				p.Line("%-6s  %s", label, line)
			}
		}
		p.Line("%-6s  %d%s", "Exit", doc.Exit, map[bool]string{true: ", the same request may succeed later"}[doc.Retryable])
	})
}
