package app

import (
	"context"
	"io"
	"os"
	"os/signal"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	xterm "golang.org/x/term"
)

// frontEvery is how often a program in the background looks whether it was brought to the foreground: a shell does not
// tell one that already runs.
const frontEvery = 250 * time.Millisecond

// jobs is what a shell does with the program: it stops it, continues it, in the foreground or in the background. Each
// way of being stopped that can be noticed gives the terminal back first, as it was; each way of being continued takes it
// again, and draws all anew, as soon as it is this program's.
type jobs struct {
	tty     *terminal
	program *tea.Program
	signals chan os.Signal
	parked  atomic.Bool   // the terminal was given back
	awake   chan struct{} // the process was continued meanwhile
}

type (
	suspendMsg   struct{} // the process is to stop
	continuedMsg struct{} // it was stopped, and could not give the terminal back
)

func newJobs(tty *terminal) *jobs {
	return &jobs{tty: tty, signals: make(chan os.Signal, 4), awake: make(chan struct{}, 1)}
}

// watch listens to the shell until ctx ends. Nothing else may stop for the terminal: it only passes on.
func (j *jobs) watch(ctx context.Context) {
	signal.Notify(j.signals, syscall.SIGTSTP, syscall.SIGCONT, syscall.SIGQUIT)
	defer signal.Stop(j.signals)
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-j.signals:
			switch {
			case s == syscall.SIGQUIT:
				j.dump()
			case s == syscall.SIGCONT && j.parked.Load():
				j.wake()
			case j.parked.Load():
			case s == syscall.SIGTSTP:
				j.program.Send(suspendMsg{})
			case j.untilInFront(ctx): // it was stopped without a word, with the terminal in its hands
				j.program.Send(continuedMsg{})
			}
		}
	}
}

func (j *jobs) wake() {
	select {
	case j.awake <- struct{}{}:
	default:
	}
}

// dump lets SIGQUIT do what it is for, where it can be read.
func (j *jobs) dump() {
	j.tty.rescue()
	signal.Reset(syscall.SIGQUIT)
	_ = syscall.Kill(os.Getpid(), syscall.SIGQUIT)
}

// untilInFront waits for the foreground; it reports false when ctx has ended first.
func (j *jobs) untilInFront(ctx context.Context) bool {
	tick := time.NewTicker(frontEvery)
	defer tick.Stop()
	for !j.tty.inFront() {
		select {
		case <-tick.C:
		case <-j.awake:
		case <-ctx.Done():
			return false
		}
	}
	return ctx.Err() == nil
}

// park is what Bubble Tea runs in place of itself: it has put the terminal back before, and takes it again after.
func (j *jobs) park(ctx context.Context) tea.Cmd {
	return tea.Exec(&parking{j, ctx}, func(error) tea.Msg { return tea.ResumeMsg{} })
}

// take switches on again what a shell may have switched off, beside Bubble Tea, which knows nothing of it.
func (t *terminal) take(mouse bool) tea.Cmd {
	if !t.inFront() {
		return nil
	}
	if _, err := xterm.MakeRaw(int(t.in.Fd())); err != nil {
		return nil
	}
	modes := ansi.SetModeAltScreenSaveCursor + ansi.ResetModeTextCursorEnable + ansi.SetModeBracketedPaste
	if mouse {
		modes += ansi.SetModeMouseButtonEvent + ansi.SetModeMouseExtSgr
	}
	return tea.Sequence(tea.Raw(modes), tea.ClearScreen)
}

// parking is the time between.
type parking struct {
	*jobs
	ctx context.Context
}

// SetStdin, SetStdout and SetStderr are for commands that use the terminal.
func (*parking) SetStdin(io.Reader)  {}
func (*parking) SetStdout(io.Writer) {}
func (*parking) SetStderr(io.Writer) {}

// Run returns in the foreground. If the program is to end before that, it does not return at all: Bubble Tea would take
// the terminal again, which is the shell's, to give it back at once.
func (p *parking) Run() error {
	p.parked.Store(true)
	defer p.parked.Store(false)
	if !p.halt() || !p.untilInFront(p.ctx) {
		runtime.Goexit()
	}
	return nil
}

// halt stops the process group, as the shell expects, and returns when it goes on; false: it is to end. It is SIGSTOP that
// stops: the runtime keeps its handler of a SIGTSTP that was listened to once, which then does nothing.
func (p *parking) halt() bool {
	select {
	case <-p.awake: // of an earlier time
	default:
	}
	runtime.Gosched() // Bubble Tea's renderer has been told to end: it stops a ticker that is started again after this
	if syscall.Kill(0, syscall.SIGSTOP) != nil {
		return p.ctx.Err() == nil
	}
	select {
	case <-p.awake:
	case <-p.ctx.Done():
	}
	return p.ctx.Err() == nil
}
