package wire

import (
	"context"
	"errors"
	"strings"

	"github.com/eastguard/eastguard/internal/base"
)

// ErrorMessage is a base.Error on the wire: everything but its cause, whose text is in Message.
type ErrorMessage struct {
	Code      base.Code      `cbor:"1,keyasint"`
	Op        string         `cbor:"2,keyasint,omitempty"`
	Message   string         `cbor:"3,keyasint,omitempty"` // "" = the code's own sentence
	Hint      string         `cbor:"4,keyasint,omitempty"` // "" = the code's own
	Outcome   base.Outcome   `cbor:"5,keyasint,omitempty"`
	Redirect  *base.Redirect `cbor:"6,keyasint,omitempty"`
	Node      base.NodeID    `cbor:"7,keyasint,omitempty"`
	RequestID base.RequestID `cbor:"8,keyasint,omitempty"`
}

// maxErrorText bounds the free text of an error, which may quote what a client sent.
const maxErrorText = 4 << 10

// ErrorFrom puts any error into wire form. One that is no *base.Error is internal; of a context's errors the
// outcome is unknown.
func ErrorFrom(err error) ErrorMessage {
	var e *base.Error
	if !errors.As(err, &e) || e == nil {
		e = classify(err)
	}
	m := ErrorMessage{
		Code: e.Code, Op: clip(e.Op), Message: clip(e.Msg), Hint: clip(e.Hint),
		Outcome: e.Outcome, Node: e.Node, RequestID: e.RequestID,
	}
	if e.Redirect != (base.Redirect{}) {
		m.Redirect = &e.Redirect
	}
	return m
}

func classify(err error) *base.Error {
	var code base.Code
	switch {
	case err == nil:
		return base.Errorf(base.CodeInternal, "", "failed without an error").WithOutcome(base.Unknown)
	case errors.As(err, &code):
		return &base.Error{Code: code}
	case errors.Is(err, context.DeadlineExceeded):
		return base.Errorf(base.CodeTimeout, "", "%w", err).WithOutcome(base.Unknown)
	case errors.Is(err, context.Canceled):
		return base.Errorf(base.CodeCanceled, "", "%w", err).WithOutcome(base.Unknown)
	}
	return base.Errorf(base.CodeInternal, "", "%w", err).WithOutcome(base.Unknown)
}

// Err is the error as the client's code sees it.
func (m ErrorMessage) Err() *base.Error {
	e := &base.Error{
		Code: m.Code, Op: m.Op, Msg: m.Message, Hint: m.Hint,
		Outcome: m.Outcome, Node: m.Node, RequestID: m.RequestID,
	}
	if m.Redirect != nil {
		e.Redirect = *m.Redirect
	}
	if e.Code == base.CodeOK { // an error frame that says "no error" is the peer's bug, not a success
		e.Code = base.CodeInternal
	}
	return e
}

// EncodeError is the message of a frame with FlagError.
func EncodeError(err error) []byte { return Encode(ErrorFrom(err)) }

// DecodeError reads such a message. It always returns an error: one that cannot be read is itself corrupt.
func DecodeError(b []byte) *base.Error {
	var m ErrorMessage
	if err := Decode(b, &m); err != nil {
		return base.Wrap(base.CodeCorruptFrame, "read answer", err).WithOutcome(base.Unknown)
	}
	return m.Err()
}

// clip cuts text at maxErrorText bytes and drops what is not UTF-8 (half a rune at the cut for one), which a decoder
// would refuse.
func clip(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), maxErrorText)], "")
}
