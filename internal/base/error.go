package base

import (
	"errors"
	"fmt"
)

// Outcome says whether the request that failed took effect. It matters more than the code: a timeout never
// turns Unknown into NotApplied.
type Outcome uint8

// The outcomes.
const (
	NotApplied Outcome = iota
	Applied
	Unknown
)

// String prints not_applied, applied or unknown.
func (o Outcome) String() string {
	switch o {
	case Applied:
		return "applied"
	case Unknown:
		return "unknown"
	case NotApplied:
	}
	return "not_applied"
}

// Redirect names the node that can serve a request, where the error knows it.
type Redirect struct {
	Node    NodeID `cbor:"1,keyasint,omitempty"`
	Address string `cbor:"2,keyasint,omitempty"` // host:port of its client port
}

// Error is the one error shape of EastGuard: what was being done (Op), what went wrong (Code, Msg, Err), what to
// do about it (Hint) and whether the request took effect (Outcome). It travels on the wire without Err.
type Error struct {
	Code      Code
	Op        string // what was being done, lower case: "create topic"
	Msg       string // for people, lower case, no period; empty = the code's own sentence
	Hint      string // the next step; empty = the code's own hint
	Outcome   Outcome
	Redirect  Redirect
	Node      NodeID // who answered; empty when it never left this process
	RequestID RequestID
	Err       error // the cause, not sent on the wire
}

// Errorf makes an *Error whose message is the formatted text. A %w argument becomes the cause as well.
func Errorf(code Code, op, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Op: op, Msg: err.Error(), Err: errors.Unwrap(err)}
}

// Wrap gives cause a code and says what was being done. The cause's text becomes the message. A cause that is
// already an *Error keeps its own code, hint and outcome and only gains op in front.
func Wrap(code Code, op string, cause error) *Error {
	var e *Error
	if errors.As(cause, &e) {
		w := *e
		w.Op, w.Msg, w.Err = op, cause.Error(), cause
		return &w
	}
	return &Error{Code: code, Op: op, Msg: cause.Error(), Err: cause}
}

// WithHint returns a copy of e with the next step replaced.
func (e *Error) WithHint(format string, args ...any) *Error {
	w := *e
	w.Hint = fmt.Sprintf(format, args...)
	return &w
}

// WithOutcome returns a copy of e with the outcome replaced.
func (e *Error) WithOutcome(o Outcome) *Error {
	w := *e
	w.Outcome = o
	return &w
}

// WithRedirect returns a copy of e that names the node to ask instead.
func (e *Error) WithRedirect(r Redirect) *Error {
	w := *e
	w.Redirect = r
	return &w
}

// Error prints "op: message".
func (e *Error) Error() string {
	msg := e.Msg
	if msg == "" {
		msg = e.Code.Info().Summary
	}
	if e.Op == "" {
		return msg
	}
	return e.Op + ": " + msg
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is compares codes, so that errors.Is(err, base.CodeNotLeader) and errors.Is(err, &Error{Code: …}) work on both
// ends of a connection.
func (e *Error) Is(target error) bool {
	switch t := target.(type) {
	case Code:
		return e.Code == t
	case *Error:
		return e.Code == t.Code
	}
	return false
}

// HintText is the error's own hint, or its code's.
func (e *Error) HintText() string {
	if e.Hint != "" {
		return e.Hint
	}
	return e.Code.Info().Hint
}

// CodeOf is the code of err: that of the outermost *Error in its chain, CodeInternal for any other error.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}

// OutcomeOf is what err says of the request's effect; an error that is not an *Error says nothing, so Unknown.
func OutcomeOf(err error) Outcome {
	var e *Error
	if errors.As(err, &e) {
		return e.Outcome
	}
	return Unknown
}
