package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

// Changes come in three levels. L0 asks nothing. L1 shows its plan and asks y or N. L2 destroys: it shows its plan
// with counts and wants the name typed. Without a terminal L1 and L2 need --yes, and in a protected context L1 is
// as L2 and L2 needs --confirm NAME besides.

func addPlanFlags(f *pflag.FlagSet, dryRun, detailed *bool) {
	f.BoolVar(dryRun, "dry-run", false, "show what would change, and change nothing")
	f.BoolVar(detailed, "detailed-exitcode", false, "with --dry-run: exit 12 if there would be a change")
}

// loss is a change that gives something up for good, D its document.
type loss[D any] struct {
	name    string // of what it is done to: typed to confirm it
	would   string // what --detailed-exitcode reports
	warning string
	plan    func(context.Context) (D, error)
	do      func(context.Context) (D, error)
	page    func(*term.Page, D)
}

// run plans, asks and does it; a dry run ends with the plan.
func (l *loss[D]) run(ctx context.Context, a *app, dryRun, detailed bool) error {
	doc, err := l.plan(ctx)
	if err != nil {
		return err
	}
	if dryRun {
		if err := l.print(a, doc); err != nil {
			return err
		}
		if detailed {
			return notMet("%s", l.would)
		}
		return nil
	}
	if err := a.confirmL2(ctx, l.name, func(p *term.Page) { l.page(p, doc) }, l.warning); err != nil {
		return err
	}
	if doc, err = l.do(ctx); err != nil {
		return err
	}
	return unprinted(l.print(a, doc))
}

func (l *loss[D]) print(a *app, doc D) error {
	return a.output().Object(doc, func(p *term.Page) { l.page(p, doc) })
}

// notMet is the difference that --detailed-exitcode, --expect and the like report. It has been shown already.
func notMet(format string, args ...any) error { return quiet{errorf(sdk.CodeNotMet, format, args...)} }

// confirmL1 returns nil when the plan may be carried out.
func (a *app) confirmL1(ctx context.Context, name string, plan func(*term.Page), warning string) error {
	if a.set.protected {
		return a.confirmL2(ctx, name, plan, warning)
	}
	if a.flags.yes {
		return nil
	}
	if err := a.mayAsk(name); err != nil {
		return err
	}
	if err := a.showPlan(plan, warning); err != nil {
		return err
	}
	answer, err := a.ask(ctx, "Proceed? [y/N] ")
	if err != nil {
		return err
	}
	if answer = strings.ToLower(answer); answer != "y" && answer != "yes" {
		return errDeclined()
	}
	return nil
}

// confirmL2 is confirmL1 for what cannot be undone.
func (a *app) confirmL2(ctx context.Context, name string, plan func(*term.Page), warning string) error {
	if a.flags.yes {
		if a.set.protected && a.flags.confirm != name {
			return usagef("the context %s is protected: --yes alone is not enough", a.set.context.Value).
				WithHint("add --confirm %q", name)
		}
		return nil
	}
	if err := a.mayAsk(name); err != nil {
		return err
	}
	if err := a.showPlan(plan, warning); err != nil {
		return err
	}
	typed := term.Escape(name)
	if strings.Contains(name, " ") {
		typed = strconv.Quote(name) // or "Type 2 topics" reads as if two names were wanted
	}
	answer, err := a.ask(ctx, "Type "+typed+" to confirm: ")
	if err != nil {
		return err
	}
	if answer != name {
		return errDeclined()
	}
	return nil
}

func errDeclined() error {
	return errorf(sdk.CodeCanceled, "nothing was changed").WithHint("answer as asked, or pass --yes")
}

// mayAsk refuses to ask where nobody can answer.
func (a *app) mayAsk(name string) error {
	if a.io.IsInTTY() && a.io.IsErrTTY() && !a.set.noInput {
		return nil
	}
	hint := "pass --yes to do it, or --dry-run to see what would happen"
	if a.set.protected {
		hint = "pass --yes --confirm " + name + ", or --dry-run to see what would happen"
	}
	return usagef("refusing to change %q without a confirmation", name).WithHint("%s", hint)
}

// showPlan prints the plan on stderr, so that stdout stays the result's.
func (a *app) showPlan(plan func(*term.Page), warning string) error {
	var b bytes.Buffer
	out := &term.Output{W: &b, Human: a.human(), ASCII: a.io.ASCII(), Style: a.io.ErrStyle()}
	if err := out.Object(struct{}{}, plan); err != nil {
		return err
	}
	fprintf(a.io.Err, "%s%s\n", b.String(), a.io.ErrStyle().Warn(warning))
	return nil
}

// ask reads one line from the terminal.
func (a *app) ask(ctx context.Context, question string) (string, error) {
	fprintf(a.io.Err, "%s", question)
	line, err := readLine(term.Interruptible(ctx, a.io.In))
	a.answered = a.Now()
	if err != nil && line == "" {
		fprintf(a.io.Err, "\n")
		if errors.Is(err, io.EOF) {
			return "", nil
		}
		return "", err
	}
	return strings.TrimSpace(line), nil
}

// readLine reads byte by byte, so that nothing behind the line is taken from the next reader.
func readLine(r io.Reader) (string, error) {
	var line []byte
	var one [1]byte
	for {
		n, err := r.Read(one[:])
		switch {
		case n > 0 && one[0] == '\n':
			return string(line), nil
		case n > 0:
			line = append(line, one[0])
		case err != nil:
			return string(line), err
		}
	}
}
