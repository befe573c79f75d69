package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/feed"
	"github.com/eastguard/eastguard/tui/page"
	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/styles"
)

// framesPerSecond bounds how long a key waits for the screen: 20 ms. A frame that is like the one before costs next to
// nothing, so it is the data's pace, not this, that decides what the program takes.
const framesPerSecond = 50

// stopTime is how long the screen may take to end in good order.
const stopTime = 2 * time.Second

// Run shows the cluster until it is told to end, or prints what was asked for. It returns when the terminal is as it
// was before.
func Run(ctx context.Context, opts Options, streams *term.IOStreams) error {
	if _, err := ParseFilter(opts.Filter); err != nil {
		return err
	}
	for {
		next, err := runOnce(ctx, opts, streams, openFeed)
		if err != nil || next == nil {
			return err
		}
		opts = *next
	}
}

// opener makes a feed.
type opener func(opts Options, g *guard) (feed.Feed, error)

// runOnce watches one cluster. next is how to go on with another.
func runOnce(ctx context.Context, opts Options, streams *term.IOStreams, open opener) (next *Options, err error) {
	text, why := textOnly(opts, streams)
	if why != "" {
		_, _ = fmt.Fprintln(streams.Err, why)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	g := newGuard(cancel)
	src, err := open(opts, g)
	if err != nil {
		return nil, err
	}
	if text {
		err = once(ctx, opts, streams, src)
	} else {
		next, err = screenful(ctx, opts, streams, src, g)
	}
	cancel(nil)
	fault, closed := g.finish(func() error { return cmp.Or(src.Close(), src.Err()) })
	if fault != nil {
		_, _ = fmt.Fprintf(streams.Err, "%s\n\n%s\n", fault.Error(), fault.stack)
		return nil, failure(sdk.CodeInternal, "%s", fault.Error())
	}
	if err == nil {
		err = closed
	}
	return next, err
}

// textOnly reports whether there is no screen to draw on, or none is wanted; and what to say about it.
func textOnly(opts Options, streams *term.IOStreams) (text bool, why string) {
	switch {
	case opts.Once:
		return true, ""
	case opts.FormatChosen && opts.Format != term.FormatTable:
		return true, ""
	case !streams.IsOutTTY():
		return true, "eg-top: stdout is no terminal: one look, as with --once"
	case !streams.IsInTTY():
		return true, "eg-top: stdin is no terminal: one look, as with --once"
	case opts.Getenv("TERM") == "dumb":
		return true, "eg-top: TERM is dumb, which has no screen to draw on: one look, as with --once"
	}
	return false, ""
}

// screenful runs the screen.
func screenful(ctx context.Context, opts Options, streams *term.IOStreams, src feed.Feed, guard *guard) (next *Options, err error) {
	tty, err := openTerminal(streams, guard)
	if err != nil {
		return nil, err
	}
	defer tty.giveBack()
	defer thrift(opts.Getenv)()
	if opts.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, opts.Duration, errTimeUp)
		defer cancel()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	lost := func(err error) { cancel(failure(sdk.CodeInternal, "the terminal cannot be used any more: %v", err)) }
	s := &session{opts: opts, src: src, guard: guard, out: &screen{File: tty.out, tty: tty, gone: lost}, jobs: newJobs(tty)}
	s.post = func(m any) { s.deliver(ctx, m) }
	s.model = newModel(opts, colors(opts, streams), asciiOnly(opts, streams), s.environment(ctx))
	s.program.Store(s.newProgram())
	s.jobs.tell = func(m tea.Msg) { s.program.Load().Send(m) }
	s.pump = newPump(src.Messages(), opts.Refresh, src.Now, s.post)
	s.pump.slow = s.out.slow
	guard.Go(func() { s.pump.run(ctx) })
	guard.Go(func() { s.jobs.watch(ctx) })
	next, err = s.run(ctx, tty)
	for _, words := range s.unanswered {
		_, _ = fmt.Fprintf(streams.Err, "eg-top: not waited for, so whether it was done is not known: %s\n", commandLine(words))
	}
	return next, err
}

// errTimeUp is the cause of the end by --duration, which is a normal one.
var errTimeUp = errors.New("the time is up")

// session is what is shown, one screen after the other: each time that a shell takes the terminal one ends, and the next
// begins when the program is back in the foreground. (Bubble Tea could go on with the same one, but what is left of its
// renderer may stop the ticker of the new.)
type session struct {
	opts    Options
	src     feed.Feed
	guard   *guard
	out     *screen
	jobs    *jobs
	pump    *pump
	model   *model
	program atomic.Pointer[tea.Program]
	mail    mailbox
	post    func(any) // tells the model something, whichever screen is there
	usage   usage

	unanswered [][]string // changes that were under way at the end
}

// newProgram is the next screen.
func (s *session) newProgram() *tea.Program {
	return tea.NewProgram(&guarded{s.model, s.guard, &s.mail, s.post},
		tea.WithInput(s.jobs.tty.in), tea.WithOutput(s.out), tea.WithFPS(framesPerSecond), tea.WithColorProfile(s.model.mode.Profile()),
		tea.WithoutSignalHandler(), tea.WithoutCatchPanics())
}

// run shows screens until the program ends.
func (s *session) run(ctx context.Context, tty *terminal) (next *Options, err error) {
	for {
		s.mail.open()
		ended, err := s.show(ctx, tty)
		if !ended {
			return nil, context.Cause(ctx)
		}
		if err != nil || !s.model.suspended || ctx.Err() != nil {
			return s.verdict(ctx, tty, err)
		}
		tty.giveBack()
		s.mail.hold()
		if !s.jobs.park(ctx) {
			return s.verdict(ctx, tty, nil)
		}
		tty.keep()
		s.model.suspended, s.model.dirty = false, true
		s.program.Store(s.newProgram())
	}
}

// show shows one screen until it ends. One that does not end in good order, because a write to the terminal does not
// return, say, is left behind, and the terminal rescued: the process is about to end.
func (s *session) show(ctx context.Context, tty *terminal) (ended bool, err error) {
	program := s.program.Load()
	var failed error // the screen's, until it has been left
	left := s.guard.start(func() { _, failed = program.Run() })
	select {
	case <-left:
		return true, failed
	case <-ctx.Done():
	}
	s.guard.start(func() { program.Send(stopMsg{context.Cause(ctx)}) }) // it blocks while the program does not take it
	if !within(stopTime, left) {
		tty.rescue()
		s.guard.start(program.Kill)
		if !within(stopTime, left) {
			return false, nil
		}
	}
	return true, failed
}

// verdict is how the program has ended, when its last screen has.
func (s *session) verdict(ctx context.Context, tty *terminal, err error) (*Options, error) {
	if err != nil || s.guard.caughtFault() != nil {
		tty.rescue()
	}
	s.unanswered = s.model.underway
	switch cause := context.Cause(ctx); {
	case s.guard.caughtFault() != nil || errors.Is(cause, errTimeUp):
		return nil, nil
	case cause != nil:
		return nil, cause
	case err != nil:
		return nil, failure(sdk.CodeInternal, "the terminal cannot be used any more: %v", err)
	}
	return s.following(), s.model.end
}

// within waits for done, so long at most.
func within(limit time.Duration, done <-chan struct{}) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// following is how to go on, when another cluster was asked for.
func (s *session) following() *Options {
	next := s.model.next
	if next == nil {
		return nil
	}
	next.View = strings.ToLower(s.model.page.String())
	next.AllowActions = false // what was allowed for one cluster is not for another
	return next
}

// environment is the world as the model may touch it.
func (s *session) environment(ctx context.Context) environment {
	return environment{
		ask:     func(f func(*pump)) bool { return s.pump.ask(f) },
		look:    s.src.Show,
		retry:   s.src.Retry,
		trouble: s.src.Err,
		shell:   term.HasShell,
		take:    func() tea.Cmd { return s.jobs.tty.take(!s.opts.NoMouse) },
		seeds:   s.src.SetSeeds,
		exec: func(words []string) tea.Cmd {
			at := s.model.opts.Context // of now: the command runs beside the model
			return func() (msg tea.Msg) {
				s.guard.run(func() {
					text, err := s.opts.Exec(ctx, at, words, s.guard.run)
					msg = execMsg{words: words, text: text, err: err}
				})
				return msg
			}
		},
		save: writeNew,
		wall: time.Now,
		cpu:  s.usage.text,
	}
}

// colors is how many colours the terminal shall get.
func colors(opts Options, streams *term.IOStreams) styles.Mode {
	return styles.ModeFor(streams.OutStyle().On(), opts.Getenv)
}

// asciiOnly reports whether to draw with ASCII alone: where it was asked for or the locale has no other signs, and where
// the fonts of the locale may draw boxes and blocks two cells wide, unless somebody has said what they want.
func asciiOnly(opts Options, streams *term.IOStreams) bool {
	return streams.ASCII() || !opts.GlyphsChosen && styles.WideGlyphs(opts.Getenv)
}

// usage is what the program itself takes.
type usage struct {
	at    time.Time
	spent time.Duration
	last  string
}

// usageEvery is how often it is looked at.
const usageEvery = 4 * time.Second

func (u *usage) text() string {
	now := time.Now()
	if now.Sub(u.at) < usageEvery {
		return u.last
	}
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return ""
	}
	spent := time.Duration(r.Utime.Nano() + r.Stime.Nano())
	if !u.at.IsZero() {
		u.last = fmt.Sprintf("cpu %4.1f%%", 100*float64(spent-u.spent)/float64(now.Sub(u.at)))
	}
	u.at, u.spent = now, spent
	return u.last
}

// guarded is the model with its panics caught: the program then ends as by q, with the terminal as it was.
type guarded struct {
	*model
	guard *guard
	mail  *mailbox
	post  func(any)
}

// Init looks for what was posted between two screens.
func (m *guarded) Init() tea.Cmd { return func() tea.Msg { return mailMsg{} } }

func (m *guarded) Update(msg tea.Msg) (next tea.Model, cmd tea.Cmd) {
	next, cmd = m, tea.Quit
	m.guard.run(func() {
		msgs := []tea.Msg{msg}
		if _, posted := msg.(mailMsg); posted {
			msgs = m.mail.take()
		}
		cmds, before := make([]tea.Cmd, 0, len(msgs)+1), m.shape()
		for _, msg := range msgs {
			_, cmd := m.model.Update(msg)
			cmds = append(cmds, m.posted(cmd))
		}
		if m.shape() != before {
			cmds = append(cmds, tea.ClearScreen) // nothing of what was there is worth moving about
		}
		cmd = tea.Batch(cmds...)
	})
	return next, cmd
}

// shape is what a screen shares with the next one, unless that is drawn from nothing.
type shape struct {
	page          page.ID
	width, height int
}

func (m *guarded) shape() shape { return shape{m.page, m.width, m.height} }

// posted is a command whose answer comes by mail: it may take longer than the screen is there.
func (m *guarded) posted(cmd tea.Cmd) tea.Cmd {
	if cmd == nil {
		return nil
	}
	return func() tea.Msg {
		msg := cmd()
		if answer, ok := msg.(execMsg); ok {
			m.post(answer)
			return nil
		}
		return msg
	}
}

func (m *guarded) View() (v tea.View) {
	v.AltScreen = true
	m.guard.run(func() { v = m.model.View() })
	return v
}

// leaveFor ends this screen to go on with another cluster.
func (m *model) leaveFor(c Command) tea.Cmd {
	next := m.opts
	switch {
	case m.opts.Replay != "":
		m.say(styles.Warn, "this is a recording")
		return nil
	case c.Verb == "seeds":
		seeds := strings.FieldsFunc(c.Arg, func(r rune) bool { return r == ',' || r == ' ' })
		m.opts.Seeds, m.opts.Context.Seeds = seeds, seeds
		m.env.seeds(seeds)
		m.say(styles.Info, "looking for brokers at %s", strings.Join(seeds, " "))
		return nil
	case m.opts.Record != "":
		m.say(styles.Warn, "%s is of this cluster alone: quit to watch another", term.Escape(m.opts.Record))
		return nil
	default:
		found := false
		for _, known := range m.opts.Contexts {
			if known.Name == c.Arg {
				next.Context, next.Seeds, found = known, known.Seeds, true
			}
		}
		if !found {
			m.say(styles.Warn, "there is no context %s", term.Escape(c.Arg))
			return nil
		}
	}
	m.next = &next
	return tea.Quit
}

// setRefresh is :refresh.
func (m *model) setRefresh(arg string) {
	every, err := term.ParseDuration(arg)
	if err != nil || every < 100*time.Millisecond || every > time.Minute {
		m.say(styles.Warn, "refresh wants 100ms to 1m")
		return
	}
	m.refresh(every)
}

// failureOf is the error of a cluster that cannot be reached.
func failureOf(l store.Link) error {
	text := l.Error
	if text == "" {
		text = "no broker answers"
	}
	return failure(sdk.CodeUnreachable, "%s", text)
}
