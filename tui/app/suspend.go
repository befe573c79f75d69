package app

import (
	"context"
	"os"
	"os/signal"
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
	tell    func(tea.Msg) // the screen, if there is one
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
				j.tell(suspendMsg{})
			case j.untilInFront(ctx): // it was stopped without a word, with the terminal in its hands
				j.tell(continuedMsg{})
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
	j.tty.keeper.Load().Dismiss() // what is said now can be read
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

// park stops the process group, as the shell expects, and returns when it is in the foreground again; false: it is to end
// before that. The terminal was given back before.
func (j *jobs) park(ctx context.Context) bool {
	j.parked.Store(true)
	defer j.parked.Store(false)
	return j.halt(ctx) && j.untilInFront(ctx)
}

// halt returns when the process goes on; false: it is to end. It is SIGSTOP that stops: the runtime keeps its handler of a
// SIGTSTP that was listened to once, which then does nothing.
func (j *jobs) halt(ctx context.Context) bool {
	select {
	case <-j.awake: // of an earlier time
	default:
	}
	if syscall.Kill(0, syscall.SIGSTOP) != nil {
		return ctx.Err() == nil
	}
	select {
	case <-j.awake:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
