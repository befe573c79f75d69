package cli

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"time"

	"github.com/eastguard/eastguard/internal/term"
)

// execRunner runs a program with stdin and returns what it said and how it ended.
type execRunner func(ctx context.Context, argv []string, stdin []byte) (said string, err error)

// execTime is how long a program of --exec may take: the next event waits for it.
const execTime = 30 * time.Second

// execSaid is how much of a program's output is shown.
const execSaid = 4 << 10

// runProgram runs argv without a shell.
func runProgram(ctx context.Context, argv []string, stdin []byte) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, execTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	said := &limitedBuffer{most: execSaid}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), said, said
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	return said.b.String(), err
}

// limitedBuffer keeps the beginning of what is written.
type limitedBuffer struct {
	b    bytes.Buffer
	most int
}

func (l *limitedBuffer) Write(p []byte) (int, error) {
	if room := l.most - l.b.Len(); room > 0 {
		l.b.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// run hands one event to the program of --exec. What the program says goes to stderr: stdout is for the events.
func (o *eventsOptions) run(ctx context.Context, row eventRow) {
	var line bytes.Buffer
	out := &term.Output{W: &line, Format: term.FormatJSONL}
	if err := out.Object(row, nil); err != nil {
		o.failed++
		return
	}
	said, err := o.program(ctx, o.argv, line.Bytes())
	if said = strings.TrimRight(said, "\n"); said != "" && !o.flags.quiet {
		fprintf(o.io.Err, "%s\n", term.EscapeLines(said))
	}
	if err != nil {
		o.failed++
		fprintf(o.io.Err, "%s %s: %v\n", o.io.ErrStyle().Warn("exec:"), term.Escape(o.argv[0]), err)
	}
}
