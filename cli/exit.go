package cli

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

// Exit codes. They are a public contract; eg-cli help exit-codes prints them.
const (
	ExitOK             = 0
	ExitError          = 1
	ExitUsage          = 2
	ExitUnreachable    = 3
	ExitNotFound       = 4
	ExitConflict       = 5
	ExitDenied         = 6
	ExitUnknownOutcome = 7
	ExitPartial        = 8
	ExitIntegrity      = 9
	ExitUnhealthy      = 10
	ExitWarn           = 11
	ExitNotMet         = 12
	ExitHungUp         = 129
	ExitInterrupted    = 130
	ExitTerminated     = 143
)

const hintDeadline = "raise --timeout, or check that a broker runs at the given seeds (-s host:port)"

// failure is an error that only this package can have, with a name and exit code of its own.
type failure struct {
	name string
	exit int
	msg  string
	hint string
	err  error
}

func (f *failure) Error() string { return f.msg }
func (f *failure) Unwrap() error { return f.err }

// Errors without a code on the wire; explain has a page for each.
const (
	nameContextNotFound = "CONTEXT_NOT_FOUND"
	nameInterrupted     = "INTERRUPTED"
	nameTerminated      = "TERMINATED"
	nameWarn            = "WARN"
	nameLost            = "RECORDS_LOST"
)

// quiet wraps an error that the command has reported already: it only decides the exit code.
type quiet struct{ err error }

func (q quiet) Error() string { return q.err.Error() }
func (q quiet) Unwrap() error { return q.err }

// signalled is the cause of a context that a signal cancelled.
type signalled struct{ sig syscall.Signal }

func (s signalled) Error() string { return "stopped by " + s.sig.String() }

// halfway is a signal that ended a command while an answer to a change was still to come.
type halfway struct{ signalled }

func (h halfway) Error() string {
	return h.signalled.Error() + "; what was under way may have been done"
}
func (h halfway) Unwrap() error { return h.signalled }

// stopped is what to say of a command that failed with err because a signal cancelled its context: the cause, which
// is silent, unless the fate of a change is open.
func stopped(cause, err error) error {
	var sig signalled
	if errors.As(cause, &sig) && unknown(err) {
		return halfway{sig}
	}
	return cause
}

// unknown reports whether err says that a change may or may not have happened. An error that says nothing of the kind
// is about something else.
func unknown(err error) bool {
	var e *sdk.Error
	return errors.As(err, &e) && e.Outcome == sdk.OutcomeUnknown
}

// mostTelling is the error to report of several about one command: the first that leaves the fate of a change open,
// else the first.
func mostTelling(errs ...error) error {
	for _, err := range errs {
		if unknown(err) {
			return err
		}
	}
	return firstError(errs...)
}

// partly is the error of a command of which parts failed and others were carried out. open says that some that failed
// may have been carried out as well.
func partly(open bool, format string, args ...any) *sdk.Error {
	outcome := sdk.OutcomeApplied
	if open {
		outcome = sdk.OutcomeUnknown
	}
	return errorf(sdk.CodePartial, format, args...).WithOutcome(outcome)
}

// unprinted is the error of a command whose change was made and could not be told of: stdout was full, or a filter
// failed. Nobody may take it for a change that can be tried again. A reader that has seen enough is no error.
func unprinted(err error) error {
	if err == nil || outputClosed(err) {
		return err
	}
	var e *sdk.Error
	if !errors.As(err, &e) {
		e = errorf(sdk.CodeInternal, "it was done, but what came of it could not be printed: %v", err)
	}
	return e.WithOutcome(sdk.OutcomeApplied)
}

// someFailed is partly for records; first is the failure to tell of.
func someFailed(failed, all int64, first error, open bool) error {
	r, label := describe(first), "the first: "
	if unknown(first) {
		label = "one that may be stored all the same: "
	}
	return detailed{
		partly(open, "%s of %s failed", term.FormatCount(failed), plural(all, "record")),
		[]string{label + r.Message + " [" + r.Code + "]"},
	}
}

// detailed adds lines of fact below an error's own.
type detailed struct {
	err   error
	lines []string
}

func (d detailed) Error() string { return d.err.Error() }
func (d detailed) Unwrap() error { return d.err }

// usagef is a call that has to be changed: exit 2.
func usagef(format string, args ...any) *sdk.Error {
	return errorf(sdk.CodeInvalidArgument, format, args...)
}

// ExitCode is the process's exit code for what a command returned.
func ExitCode(err error) int {
	if err == nil {
		return ExitOK
	}
	return describe(err).Exit
}

// report is everything there is to say about an error, in the form of its JSON rendering.
type report struct {
	Code      string   `json:"code"`
	Exit      int      `json:"exit"`
	Message   string   `json:"message"`
	Details   []string `json:"details,omitempty"`
	Hint      string   `json:"hint,omitempty"`
	Retryable bool     `json:"retryable"`
	Outcome   string   `json:"outcome"`
	Node      string   `json:"node,omitempty"`
	RequestID string   `json:"request_id,omitempty"`
}

// describe classifies an error. It is the one place that turns errors into exit codes.
func describe(err error) report {
	r := report{Code: sdk.CodeInternal.String(), Exit: ExitError, Message: err.Error(), Outcome: sdk.OutcomeNotApplied.String()}
	var d detailed
	if errors.As(err, &d) {
		r.Details = d.lines
	}
	var sig signalled
	var half halfway
	var f *failure
	var noContext *term.NoContextError
	var e *sdk.Error
	switch {
	case errors.As(err, &sig):
		r.Code, r.Exit, r.Message = nameInterrupted, ExitInterrupted, sig.Error()
		if errors.As(err, &half) {
			r.Message, r.Outcome = half.Error(), sdk.OutcomeUnknown.String()
		}
		switch sig.sig {
		case syscall.SIGTERM:
			r.Code, r.Exit = nameTerminated, ExitTerminated
		case syscall.SIGHUP:
			r.Code, r.Exit = nameTerminated, ExitHungUp
		}
	case errors.As(err, &f):
		r.Code, r.Exit, r.Message, r.Hint = f.name, f.exit, f.msg, f.hint
	case errors.As(err, &noContext):
		r.Code, r.Exit, r.Hint = nameContextNotFound, ExitNotFound, contextHint(noContext)
	case errors.As(err, &e):
		r.fromError(e)
	case errors.Is(err, context.DeadlineExceeded):
		r.fromError(errorf(sdk.CodeTimeout, ""))
	case errors.Is(err, context.Canceled):
		r.fromError(errorf(sdk.CodeCanceled, "cancelled"))
	}
	return r
}

func (r *report) fromError(e *sdk.Error) {
	info := e.Code.Info()
	r.Code, r.Exit, r.Retryable = info.Name, int(info.Exit), info.Retryable
	r.Message, r.Hint, r.Outcome = rootMessage(e), e.HintText(), e.Outcome.String()
	// A deadline that passed and changed nothing is a broker that could not be reached.
	if e.Code == sdk.CodeTimeout && e.Outcome == sdk.OutcomeNotApplied {
		r.Exit = ExitUnreachable
		r.Message, r.Hint = "no answer came before the deadline", hintDeadline
	}
	if r.Message == context.DeadlineExceeded.Error() {
		r.Message = "no answer came before the deadline" // in nobody's words but Go's
	}
	// Whatever the code, a request that may have been applied has to be checked before it is repeated. Of several, the
	// output says which.
	if e.Outcome == sdk.OutcomeUnknown && r.Exit != ExitIntegrity && r.Exit != ExitPartial {
		r.Exit = ExitUnknownOutcome
	}
	if e.Node != "" {
		r.Node = string(e.Node)
	}
	if !e.RequestID.IsZero() {
		r.RequestID = e.RequestID.String()
	}
}

// rootMessage is that of the innermost error: what happened, without the trail of who was doing what.
func rootMessage(e *sdk.Error) string {
	for {
		var inner *sdk.Error
		if e.Err == nil || !errors.As(e.Err, &inner) {
			break
		}
		e = inner
	}
	if e.Msg == "" {
		return e.Code.Info().Summary
	}
	return e.Msg
}

// errorf is an error of this process: nothing was sent.
func errorf(code sdk.Code, format string, args ...any) *sdk.Error {
	return &sdk.Error{Code: code, Msg: fmt.Sprintf(format, args...)}
}
