package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// Main is the whole program but for its exit: it chooses the front end, runs it, and returns the exit code.
func Main(ctx context.Context, deps Deps, args []string) int {
	s := NewSession(deps)
	defer s.Close()
	// A closed pipe is an error of the write, not the end of the process: offsets and summaries still matter.
	signal.Ignore(syscall.SIGPIPE)
	front, rest := chooseFront(args, s.IO.IsInTTY())
	var err error
	switch front {
	case frontREPL:
		err = s.runREPL(ctx, rest)
	case frontBatch:
		err = s.withSignals(ctx, func(ctx context.Context) error { return s.batchFront(ctx, rest) })
	case frontOnce:
		err = s.withSignals(ctx, func(ctx context.Context) error { return s.execute(ctx, s.IO, rest) })
	}
	return ExitCode(err)
}

type frontEnd uint8

const (
	frontOnce frontEnd = iota
	frontREPL
	frontBatch
)

// chooseFront looks for words: with one it is a command, without any the prompt or a batch, by what stdin is. -e
// makes a batch.
func chooseFront(args []string, tty bool) (frontEnd, []string) {
	words := false
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			words = words || i+1 < len(args)
			i = len(args)
		case arg == "-e" || arg == "--execute" || len(arg) > 2 && arg[:2] == "-e" || len(arg) > 10 && arg[:10] == "--execute=":
			if !words {
				return frontBatch, args
			}
		case arg == "-h" || arg == "--help" || arg == "--version":
			return frontOnce, args
		case len(arg) > 1 && arg[0] == '-':
			if frontFlagTakesNext(arg) {
				i++
			}
		default:
			words = true
		}
	}
	switch {
	case words:
		return frontOnce, args
	case tty:
		return frontREPL, args
	}
	return frontBatch, args
}

// frontFlagTakesNext knows the global flags with a value, so that "-s host:1" is not taken for a command.
func frontFlagTakesNext(arg string) bool {
	switch arg {
	case "-s", "-c", "-o", "-t", "--seeds", "--context", "--config", "--output", "--timeout", "--columns", "--sort-by", "--limit",
		"--jq", "--template", "--confirm", "--color", "--time", "--bytes":
		return true
	}
	return false
}

// withSignals runs a one-shot or batch front end with SIGINT and SIGTERM as cancellation, the signal being the
// cause.
func (s *Session) withSignals(ctx context.Context, run func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)
	go func() {
		select {
		case sig := <-signals:
			cancel(quiet{signalled{sig.(syscall.Signal)}})
			// A second signal ends the process the ordinary way, should the first one not be enough.
			signal.Reset(syscall.SIGINT, syscall.SIGTERM)
		case <-ctx.Done():
		}
	}()
	return run(ctx)
}

// batchFront runs -e or stdin as a script, under the global flags that stand beside it.
func (s *Session) batchFront(ctx context.Context, args []string) error {
	root, a := newTree(s, s.IO)
	a.outputFlag = outputArg(args)
	err := func() error {
		if err := root.ParseFlags(args); err != nil {
			return flagError(root, err)
		}
		if rest := root.Flags().Args(); len(rest) > 0 {
			return usagef("-e and a command on the same line: %q", rest[0])
		}
		s.adopt(root)
		keepGoing, err := root.Flags().GetBool("keep-going")
		if err != nil {
			return err
		}
		text, err := root.Flags().GetString("execute")
		if err != nil {
			return err
		}
		if !root.Flags().Changed("execute") {
			if text, err = readScript("-", s.IO.In); err != nil {
				return err
			}
		}
		return s.runBatch(ctx, s.IO, text, keepGoing)
	}()
	if err != nil && !errors.Is(err, errQuit) {
		a.report(err)
		return err
	}
	return nil
}
