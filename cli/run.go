package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/cli/script"
	"github.com/eastguard/eastguard/internal/term"
)

// maxNesting stops a file that runs itself.
const maxNesting = 8

// maxScript bounds a batch read from stdin or a file.
const maxScript = 16 << 20

func newRunCommand(a *app) *cobra.Command {
	var keepGoing bool
	cmd := &cobra.Command{
		Use:         "run <file>",
		Short:       "Run the commands in a file; - is stdin",
		Example:     "  run setup.eg\n  run setup.eg --keep-going",
		Args:        argsBetween(1, 1),
		Annotations: map[string]string{noteExits: "8", noteDeadline: deadlineStream},
	}
	cmd.Flags().BoolVar(&keepGoing, "keep-going", false, "go on after an error and exit 8 at the end")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		text, err := readScript(args[0], a.io.In)
		if err != nil {
			return err
		}
		return a.runBatch(cmd.Context(), a.io, text, keepGoing)
	}
	return cmd
}

func readScript(path string, stdin io.Reader) (string, error) {
	r := stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return "", usagef("%v", err)
		}
		defer f.Close()
		r = f
	}
	b, err := io.ReadAll(io.LimitReader(r, maxScript+1))
	if err != nil {
		return "", usagef("read %s: %v", path, err)
	}
	if len(b) > maxScript {
		return "", usagef("%s is larger than %d MiB", path, maxScript>>20)
	}
	return string(b), nil
}

// runBatch runs a script without a prompt. It stops at the first error and returns it; with keepGoing it runs to
// the end and says that some failed. Errors have been reported when it returns.
func (s *Session) runBatch(ctx context.Context, streams *term.IOStreams, text string, keepGoing bool) error {
	if s.nested >= maxNesting {
		return usagef("scripts run scripts more than %d deep", maxNesting)
	}
	s.nested++
	defer func() { s.nested-- }()
	lines, err := script.Parse(text)
	if err != nil {
		return scriptError(err)
	}
	failed, total, open := 0, 0, false
	defer func(outer string) { s.at = outer }(s.at)
	for _, line := range lines {
		total++
		s.at = ""
		if len(lines) > 1 {
			s.at = fmt.Sprintf("in line %d: %s", line.Number, excerpt(line.Text))
		}
		err := s.runLine(ctx, streams, line)
		s.at = ""
		switch {
		case errors.Is(err, errQuit):
			return nil
		case err == nil:
			continue
		case ctx.Err() != nil:
			return quiet{context.Cause(ctx)}
		case !keepGoing:
			return quiet{err}
		}
		failed++
		open = open || unknown(err)
	}
	if failed > 0 {
		return partly(open, "%d of %s failed", failed, plural(int64(total), "command"))
	}
	return nil
}

// excerpt is enough of a command to recognise it by.
func excerpt(text string) string {
	const most = 80
	text, _, more := strings.Cut(text, "\n")
	if runes := []rune(text); len(runes) > most {
		text, more = string(runes[:most]), true
	}
	if more {
		text += " …"
	}
	return text
}

func scriptError(err error) error {
	var syntax *script.SyntaxError
	if errors.As(err, &syntax) {
		return usagef("%s", syntax.Error())
	}
	return usagef("%s", err.Error())
}

// errQuit is how a line asks the front end to end.
var errQuit = errors.New("quit")

// runLine runs one parsed line: its redirect, its repeats. Errors are reported before it returns.
func (s *Session) runLine(ctx context.Context, streams *term.IOStreams, line script.Line) error {
	if line.Meta {
		return s.runMeta(ctx, streams, line.Words)
	}
	words := line.Words
	if words[0] == program && len(words) > 1 {
		words = words[1:]
	}
	switch words[0] {
	case "exit", "quit":
		return errQuit
	case "?":
		words = append([]string{"help"}, words[1:]...)
	}
	if line.Redirect != "" {
		f, err := openRedirect(line)
		if err != nil {
			s.reportTo(streams, err)
			return err
		}
		err = s.repeat(ctx, streams.WithOut(f), line.Repeat, words)
		if cerr := f.Close(); err == nil && cerr != nil {
			err = usagef("%v", cerr)
			s.reportTo(streams, err)
		}
		return err
	}
	return s.repeat(ctx, streams, line.Repeat, words)
}

func openRedirect(line script.Line) (*os.File, error) {
	mode := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if line.Append {
		mode = os.O_WRONLY | os.O_CREATE | os.O_APPEND
	}
	f, err := os.OpenFile(line.Redirect, mode, 0o644)
	if err != nil {
		return nil, usagef("%v", err)
	}
	return f, nil
}

func (s *Session) repeat(ctx context.Context, streams *term.IOStreams, times int, words []string) error {
	for range times {
		if err := s.execute(ctx, streams, words); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// reportTo reports an error that no command's own app can.
func (s *Session) reportTo(streams *term.IOStreams, err error) {
	own := *streams
	a := &app{Session: s, io: &own}
	a.report(err)
}
