package shard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"

	"github.com/hashicorp/go-hclog"

	"github.com/eastguard/eastguard/internal/base"
)

// logger lets raft log through slog. Its Info is what a person sees once per election: our Debug.
type logger struct {
	slog *slog.Logger
	args []any
}

func newLogger(l *slog.Logger) hclog.Logger { return &logger{slog: l.With("component", "raft")} }

func levelOf(l hclog.Level) slog.Level {
	switch l {
	case hclog.Trace, hclog.Debug:
		return slog.LevelDebug - 4
	case hclog.Warn:
		return slog.LevelWarn
	case hclog.Error:
		return slog.LevelError
	case hclog.Info, hclog.NoLevel, hclog.Off:
	}
	return slog.LevelDebug
}

// Log writes one line. hclog's values may be formats (hclog.Fmt), which print themselves.
func (l *logger) Log(level hclog.Level, msg string, args ...any) {
	to := levelOf(level)
	if told(msg, args) {
		to = slog.LevelDebug
	}
	if !l.slog.Enabled(context.Background(), to) {
		return
	}
	values := make([]any, len(args))
	for i, a := range args {
		if f, ok := a.(hclog.Format); ok && len(f) > 0 {
			a = fmt.Sprintf(fmt.Sprint(f[0]), f[1:]...)
		}
		values[i] = a
	}
	l.slog.Log(context.Background(), to, msg, values...)
}

// told reports whether a line is about what happens every day or is told elsewhere, once a node: that a node is away, or
// a log behind. Raft says it once a group, as a warning or an error.
func told(msg string, args []any) bool {
	switch msg {
	case "failed to get previous log", "appendEntries rejected, sending older logs", "failed to contact", "peer has newer term, stopping replication", "rejecting vote request since we have a leader":
		return true
	}
	for _, a := range args {
		if err, ok := a.(error); ok && everyday(err) {
			return true
		}
	}
	return false
}

// everyday reports whether a replica that cannot be spoken with is no news: its node is away, has lost it or has not got
// it yet, which the keepers of seats see to, or the group here stops.
func everyday(err error) bool {
	return isAway(err) || base.CodeOf(err) == base.CodePreconditionFailed || errors.Is(err, context.Canceled)
}

func (l *logger) Trace(msg string, args ...any) { l.Log(hclog.Trace, msg, args...) }
func (l *logger) Debug(msg string, args ...any) { l.Log(hclog.Debug, msg, args...) }
func (l *logger) Info(msg string, args ...any)  { l.Log(hclog.Info, msg, args...) }
func (l *logger) Warn(msg string, args ...any)  { l.Log(hclog.Warn, msg, args...) }
func (l *logger) Error(msg string, args ...any) { l.Log(hclog.Error, msg, args...) }

func (l *logger) on(level hclog.Level) bool {
	return l.slog.Enabled(context.Background(), levelOf(level))
}

func (l *logger) IsTrace() bool { return l.on(hclog.Trace) }
func (l *logger) IsDebug() bool { return l.on(hclog.Debug) }
func (l *logger) IsInfo() bool  { return l.on(hclog.Info) }
func (l *logger) IsWarn() bool  { return l.on(hclog.Warn) }
func (l *logger) IsError() bool { return l.on(hclog.Error) }

func (l *logger) ImpliedArgs() []any { return l.args }

func (l *logger) With(args ...any) hclog.Logger {
	return &logger{slog: l.slog.With(args...), args: append(l.args[:len(l.args):len(l.args)], args...)}
}

func (l *logger) Name() string                   { return "raft" }
func (l *logger) Named(string) hclog.Logger      { return l }
func (l *logger) ResetNamed(string) hclog.Logger { return l }
func (l *logger) SetLevel(hclog.Level)           {}
func (l *logger) GetLevel() hclog.Level          { return hclog.Info }

func (l *logger) StandardLogger(*hclog.StandardLoggerOptions) *log.Logger {
	return slog.NewLogLogger(l.slog.Handler(), slog.LevelDebug)
}

func (l *logger) StandardWriter(*hclog.StandardLoggerOptions) io.Writer { return io.Discard }
