package cli

import (
	"errors"
	"slices"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

// errorDocument is the line of JSON on stderr.
type errorDocument struct {
	Error report `json:"error"`
}

// report prints an error on stderr: for people what, facts and hint; for programs one line of JSON. What the
// command has said itself is not said twice.
func (a *app) report(err error) {
	var said quiet
	if errors.As(err, &said) {
		return
	}
	r := describe(err)
	if a.path != "" && r.Hint == sdk.CodeInvalidArgument.Info().Hint {
		r.Hint = "see: " + a.path + " --help"
	}
	if a.at != "" {
		r.Details = append(slices.Clip(r.Details), a.at)
	}
	if a.wantsJSON() {
		out := &term.Output{W: a.io.Err, Format: term.FormatJSONL}
		if out.Object(errorDocument{r}, nil) == nil {
			return
		}
	}
	style := a.io.ErrStyle()
	fprintf(a.io.Err, "%s %s %s\n", style.Bad("error:"), term.Escape(r.Message), style.Dim("["+r.Code+"]"))
	for _, line := range r.Details {
		fprintf(a.io.Err, "  %s\n", term.Escape(line))
	}
	if r.Hint != "" {
		fprintf(a.io.Err, "%s %s\n", style.Info("hint:"), term.Escape(r.Hint))
	}
}

// wantsJSON also answers for lines that failed before their settings were resolved: a bad flag beside -o json
// gets its error as JSON.
func (a *app) wantsJSON() bool {
	if a.set.format != "" {
		return a.output().JSON()
	}
	if a.flags.jq != "" {
		return true
	}
	for _, want := range []string{a.outputFlag, a.overrides.values["output"], a.Getenv("EG_OUTPUT")} {
		if want != "" {
			f := term.Output{Format: term.Format(want)}
			return f.JSON()
		}
	}
	return false
}

func contextHint(e *term.NoContextError) string {
	if best := suggest(e.Name, e.Known); best != "" {
		return "did you mean " + best + "?"
	}
	return "see: eg-cli context list"
}

func denied(s sourced) error {
	return &failure{
		name: "DENIED", exit: ExitDenied, msg: "this command changes the cluster, and read-only is set (by " + s.Source + ")",
		hint: "leave --read-only out, or use another context",
	}
}
