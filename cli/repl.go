package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/eastguard/eastguard/cli/lineedit"
	"github.com/eastguard/eastguard/cli/script"
	"github.com/eastguard/eastguard/internal/term"
)

const (
	promptReady     = "eastguard> "
	promptOffline   = "eastguard(offline)> "
	promptMore      = "       ...> "
	doubleCtrlC     = time.Second // a second Ctrl-C on an empty line within this leaves
	defaultTookOver = 500 * time.Millisecond
)

// repl is the prompt: it reads lines, runs each on a fresh tree, and outlives whatever they do.
type repl struct {
	*Session
	editor   lineedit.Editor
	tookOver time.Duration
	lastC    time.Time // the last Ctrl-C on an empty line
}

// runREPL is the front end for a terminal. args are global flags that hold for every line.
func (s *Session) runREPL(ctx context.Context, args []string) error {
	root, a := newTree(s, s.IO)
	if err := root.ParseFlags(args); err != nil {
		err = flagError(root, err)
		a.report(err)
		return err
	}
	s.adopt(root)
	set, err := s.resolve(root.Flags())
	if err != nil {
		a.report(err)
		return err
	}
	s.IO.Decide(set.colorMode, set.ascii, s.Getenv)
	return s.withTermination(ctx, func(ctx context.Context) error {
		r, err := s.openREPL(ctx, set)
		if err != nil {
			a.report(err)
			return err
		}
		defer r.editor.Close()
		return r.loop(ctx)
	})
}

// withTermination makes SIGTERM and SIGHUP end the prompt in order. SIGINT is a matter of each command.
func (s *Session) withTermination(ctx context.Context, run func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	go func() {
		select {
		case sig := <-signals:
			cancel(signalled{sig.(syscall.Signal)})
		case <-ctx.Done():
		}
	}()
	return run(ctx)
}

func (s *Session) openREPL(ctx context.Context, set settings) (*repl, error) {
	in, inOK := s.IO.In.(*os.File)
	out, outOK := s.IO.Out.(*os.File)
	if !inOK || !outOK {
		return nil, usagef("the prompt needs a terminal")
	}
	r := &repl{Session: s, tookOver: defaultTookOver}
	s.repl = replOptions{hints: true, vi: set.file.REPL.Vi}
	if set.file.REPL.Hints != nil {
		s.repl.hints = *set.file.REPL.Hints
	}
	if over := set.file.REPL.TimingOver; over != "" {
		d, err := term.ParseDuration(over)
		if err != nil {
			return nil, usagef("%s: repl.timing_over: %s", set.configPath.Value, describe(err).Message)
		}
		r.tookOver = d
	}
	h := newHinter(s)
	editor, err := lineedit.Open(lineedit.Options{
		In: in, Out: out, Context: ctx, Dumb: !s.IO.RepaintsOut(),
		HistoryFile: term.StatePath(s.Getenv, "history"),
		Complete:    func(line string) []lineedit.Candidate { return s.completeLine(ctx, line) },
		Hint:        h.hint,
		Vi:          func() bool { return s.repl.vi },
	})
	if err != nil {
		return nil, err
	}
	r.editor, s.history = editor, editor.History
	r.clirc(ctx, set)
	return r, nil
}

// clirc runs the user's own start-up lines.
func (r *repl) clirc(ctx context.Context, set settings) {
	if set.configPath.Value == "" {
		return
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(set.configPath.Value), "clirc"))
	if err != nil {
		return
	}
	if err := r.runBatch(ctx, r.IO, string(text), true); err != nil {
		r.reportTo(r.IO, err)
	}
}

func (r *repl) loop(ctx context.Context) error {
	fprintf(r.IO.Err, "EastGuard CLI %s, %s.\nhelp shows what there is, TAB completes, exit leaves.\n", r.Version, r.seedsText())
	r.atPrompt = true
	var pending string
	for {
		line, err := r.editor.ReadLine(r.prompt(pending))
		switch {
		case errors.Is(err, lineedit.ErrInterrupt):
			if leave := r.interrupted(pending + line.Text); leave {
				return nil
			}
			pending = ""
			continue
		case errors.Is(err, io.EOF):
			if ctx.Err() != nil {
				fprintf(r.IO.Out, "\n")
				return context.Cause(ctx)
			}
			return nil
		case err != nil:
			return err
		}
		text := line.Text
		if pending != "" {
			text = pending + "\n" + text
		}
		lines, err := script.Parse(text)
		if errors.Is(err, script.ErrUnfinished) && !line.Pasted {
			pending = text
			continue
		}
		pending = ""
		r.remember(text, lines)
		if err != nil {
			r.reportTo(r.IO, scriptError(err))
			continue
		}
		if line.Pasted && !r.confirmPaste(text, len(lines)) {
			continue
		}
		if quit := r.run(ctx, lines); quit {
			return context.Cause(ctx)
		}
	}
}

func (r *repl) prompt(pending string) string {
	switch {
	case pending != "":
		return promptMore
	case r.lost:
		return promptOffline
	}
	return promptReady
}

// interrupted handles Ctrl-C at the prompt and reports whether to leave.
func (r *repl) interrupted(text string) bool {
	if strings.TrimSpace(text) != "" {
		r.lastC = time.Time{}
		return false
	}
	now := r.Now()
	if now.Sub(r.lastC) < doubleCtrlC {
		return true
	}
	r.lastC = now
	fprintf(r.IO.Err, "Ctrl-C again, Ctrl-D or exit leaves\n")
	return false
}

// confirmPaste shows several pasted lines and asks before they run.
func (r *repl) confirmPaste(text string, lines int) bool {
	if lines < 2 {
		return lines == 1
	}
	style := r.IO.OutStyle()
	for _, l := range strings.Split(text, "\n") {
		fprintf(r.IO.Out, "%s %s\n", style.Dim("|"), term.Escape(l))
	}
	answer, err := r.editor.ReadLine("run " + itoa(int64(lines)) + " lines? [y/N] ")
	if err != nil {
		return false
	}
	a := strings.ToLower(strings.TrimSpace(answer.Text))
	return a == "y" || a == "yes"
}

// remember keeps a line for the history, but not one that begins with a space or holds a secret. A line with
// newlines in it is kept as the one line that means the same.
func (r *repl) remember(text string, lines []script.Line) {
	if strings.HasPrefix(text, " ") || secret(text) {
		return
	}
	if strings.Contains(text, "\n") {
		parts := make([]string, len(lines))
		for i, l := range lines {
			parts[i] = l.OneLine()
		}
		text = strings.Join(parts, "; ")
	}
	r.editor.Remember(text)
}

// secret reports whether a line may hold a password or token.
func secret(text string) bool {
	low := strings.ToLower(text)
	for _, word := range []string{"passwd", "password", "--token", "user create", "secret"} {
		if strings.Contains(low, word) {
			return true
		}
	}
	return false
}

// run runs the commands of one entry, until one fails, and reports whether the prompt should end.
func (r *repl) run(ctx context.Context, lines []script.Line) (quit bool) {
	for _, l := range lines {
		err := r.runOne(ctx, l)
		switch {
		case errors.Is(err, errQuit):
			return true
		case ctx.Err() != nil:
			return true
		case err != nil:
			return false
		}
	}
	return false
}

// runOne runs a command with Ctrl-C as its cancellation.
func (r *repl) runOne(ctx context.Context, l script.Line) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT)
	defer signal.Stop(signals)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-signals:
			fprintf(r.IO.Err, "%s", overEcho(r.IO))
			cancel(quiet{signalled{syscall.SIGINT}})
		case <-ctx.Done():
		}
	}()
	start := r.Now()
	r.ended, r.answered = false, time.Time{}
	err := r.runLine(ctx, r.IO, l)
	var sig signalled
	interrupted := errors.As(context.Cause(ctx), &sig) && sig.sig == syscall.SIGINT
	cancel(nil)
	<-watched
	if interrupted {
		if !r.ended { // Ctrl-C is how a command that follows ends
			fprintf(r.IO.Err, "^C cancelled\n")
		}
		return err
	}
	if r.answered.After(start) {
		start = r.answered // how long the person thought is no news to them
	}
	r.showTook(r.Now().Sub(start), l)
	return err
}

// overEcho gets rid of the ^C that the terminal has echoed where the command was about to write, or leaves its line.
func overEcho(io *term.IOStreams) string {
	if io.RepaintsErr() {
		return "\r\x1b[K"
	}
	return "\n"
}

func (r *repl) showTook(d time.Duration, l script.Line) {
	if l.Meta || (d < r.tookOver && !r.Session.repl.timing) {
		return
	}
	fprintf(r.IO.Err, "%s\n", r.IO.ErrStyle().Dim("("+term.FormatTook(d)+")"))
}
