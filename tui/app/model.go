package app

import (
	"errors"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/component"
	"github.com/eastguard/eastguard/tui/feed"
	"github.com/eastguard/eastguard/tui/page"
	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/styles"
)

// noticeTime is how long a notice stands above the keys.
const noticeTime = 8 * time.Second

// stepTime is how far "," and "." go.
const stepTime = 5 * time.Second

// rates are those that + and - go through.
var rates = []time.Duration{250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second}

// model is the program as Bubble Tea sees it. It belongs to Bubble Tea's loop.
type model struct {
	opts  Options
	env   environment
	theme *styles.Theme
	mode  styles.Mode
	ascii bool

	width, height int
	canvas        *component.Canvas
	content       string // the last frame
	dirty         bool

	latest *store.View // as it came last
	view   *store.View // on the screen
	now    time.Time   // of latest
	at     time.Time   // of view
	paused bool
	past   pastState
	over   bool // the recording has ended

	page   page.ID
	states [page.Logs + 1]page.State
	trail  []place // where esc leads
	every  time.Duration
	rw     bool // actions are allowed

	prompt *prompt
	dialog dialog
	notice page.Line
	until  time.Time     // of the notice
	shown  feed.Viewport // told to the feed last
	click  click
	end    error    // why the program ends
	next   *Options // to go on with, when it is another cluster
	count  int      // of views shown

	troubled  bool       // it was told that a recording is damaged
	suspended bool       // the screen has ended, to go on when the shell gives the terminal back
	underway  [][]string // commands that change the cluster, and have not answered yet
}

// pastState is where in the past the screen is.
type pastState struct {
	on      bool
	at      time.Time
	asking  bool      // an answer is under way
	want    time.Time // asked for meanwhile
	oldest  time.Time
	hasWant bool
}

// place is a page and how it was looked at.
type place struct {
	page  page.ID
	state page.State
}

// environment is what the model may do to the world outside.
type environment struct {
	ask   func(func(*pump)) bool
	look  func(feed.Viewport)
	retry func()
	// trouble is what is wrong with a recording.
	trouble func() error
	seeds   func([]string)
	exec    func(words []string) tea.Cmd
	save    func(name, text string) error
	wall    func() time.Time
	cpu     func() string
	shell   func() bool    // there is one that can take the terminal, and give it back
	take    func() tea.Cmd // the terminal, as it was before somebody else had it
}

func newModel(opts Options, mode styles.Mode, ascii bool, env environment) *model {
	m := &model{
		opts: opts, env: env, mode: mode, ascii: ascii, theme: styles.NewTheme(mode, ascii), width: opts.Width, height: opts.Height,
		view: &store.View{}, latest: &store.View{}, every: opts.Refresh, rw: opts.AllowActions && !opts.Context.ReadOnly, dirty: true,
	}
	if m.width == 0 || m.height == 0 {
		m.width, m.height = 80, 24
	}
	m.canvas = component.NewCanvas(m.width, m.height, m.theme)
	for i := range m.states {
		m.states[i] = page.NewState()
	}
	m.page = pageNamed(opts.View)
	if f, err := ParseFilter(opts.Filter); err == nil && f.String() != "" {
		m.states[m.page].Filter = pageFilter(f)
	}
	return m
}

// pageNamed is the page that a view's name means; the overview for none.
func pageNamed(name string) page.ID {
	for id := page.Overview; id <= page.Logs; id++ {
		if strings.EqualFold(id.String(), name) {
			return id
		}
	}
	return page.Overview
}

func pageFilter(f Filter) page.Filter {
	if f.String() == "" {
		return page.Filter{}
	}
	return page.Filter{Text: f.String(), Match: f.Match}
}

// Init asks for nothing: the pump tells what there is.
func (m *model) Init() tea.Cmd { return nil }

// Update is one step of the program.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		if m.opts.Width == 0 {
			m.width, m.height, m.dirty = msg.Width, msg.Height, true
		}
	case viewMsg:
		cmd = m.receive(msg)
	case pastMsg:
		m.arrive(msg)
	case tea.KeyPressMsg:
		m.dirty = true
		cmd = m.key(msg)
	case tea.PasteMsg:
		m.dirty = true
		m.paste(msg.Content)
	case tea.MouseClickMsg:
		m.dirty = true
		cmd = m.mouse(msg.Mouse())
	case tea.MouseWheelMsg:
		m.dirty = true
		m.wheel(msg.Mouse())
	case execMsg:
		m.dirty = true
		cmd = m.executed(msg)
	case stopMsg:
		m.end = msg.cause
		cmd = tea.Quit
	case suspendMsg:
		cmd = m.suspend()
	case continuedMsg:
		m.dirty = true
		cmd = m.env.take()
	}
	return m, cmd
}

// suspend gives the terminal to the shell, if there is one.
func (m *model) suspend() tea.Cmd {
	if !m.env.shell() {
		m.say(styles.Info, "there is no shell to go back to")
		return nil
	}
	m.suspended = true
	return tea.Quit
}

// stopMsg ends the program.
type stopMsg struct{ cause error }

// receive takes a new view. It is shown unless the screen is to stand still.
func (m *model) receive(msg viewMsg) tea.Cmd {
	m.trouble(msg.over && !m.over)
	m.latest, m.now, m.over = msg.view, msg.now, msg.over
	if m.opts.ExitOnDisconnect && msg.view.Cluster.Link.State == store.LinkLost {
		m.end = failureOf(msg.view.Cluster.Link)
		return tea.Quit
	}
	if m.still() {
		return nil
	}
	m.view, m.at, m.dirty = m.latest, m.now, true
	if m.count++; m.opts.Count > 0 && m.count >= m.opts.Count {
		return tea.Quit
	}
	return nil
}

// trouble tells of a recording that has come to its end, and of one that cannot be read or written any further; each once.
func (m *model) trouble(ended bool) {
	err := m.env.trouble()
	switch {
	case err != nil && !m.troubled:
		m.troubled = true
		m.say(styles.Warn, "%s", messageOf(err))
	case ended:
		m.say(styles.Info, "the recording has ended")
	}
}

// still reports whether what is on the screen must not change by itself.
func (m *model) still() bool { return m.paused || m.past.on || m.dialog != nil }

// arrive shows an earlier moment.
func (m *model) arrive(msg pastMsg) {
	m.past.asking = false
	if !m.past.on {
		return
	}
	if m.past.hasWant {
		m.past.hasWant = false
		m.lookAt(m.past.want)
		return
	}
	m.dirty = true
	if !msg.ok {
		m.live()
		m.say(styles.Warn, "nothing is kept of the past yet")
		return
	}
	if msg.at.Equal(msg.oldest) {
		m.say(styles.Info, "this is the oldest moment that is kept")
	}
	m.past.at, m.past.oldest = msg.at, msg.oldest
	m.view, m.at = msg.view, msg.at
	m.forgetDrawn()
}

// lookAt goes to an earlier moment. While an answer is under way only the last wish counts.
func (m *model) lookAt(t time.Time) {
	if !t.Before(m.now) {
		m.live()
		return
	}
	m.past.on, m.past.at = true, t
	if m.past.asking {
		m.past.want, m.past.hasWant = t, true
		return
	}
	m.past.asking = true // before the answer can come
	if !m.env.ask(func(p *pump) { p.past(t) }) {
		m.past.asking = false
	}
}

// step goes back or forward in time.
func (m *model) step(by time.Duration) {
	from := m.now
	if m.past.on {
		from = m.past.at
	} else if by > 0 {
		return
	}
	m.lookAt(from.Add(by))
}

// live goes back to now.
func (m *model) live() {
	if m.past.on {
		m.env.ask(func(p *pump) { p.store.Live() })
		m.forgetDrawn()
	}
	m.past, m.paused = pastState{}, false
	m.view, m.at, m.dirty = m.latest, m.now, true
}

// forgetDrawn drops what was drawn or ordered by the versions of other views, which mean nothing in this one.
func (m *model) forgetDrawn() {
	m.canvas = component.NewCanvas(m.width, m.height, m.theme)
	for i := range m.states {
		m.states[i] = fresh(&m.states[i])
	}
}

// fresh is a state that has drawn nothing yet.
func fresh(st *page.State) page.State {
	next := page.NewState()
	next.Panel, next.Panels, next.Filter, next.Marked = st.Panel, st.Panels, st.Filter, st.Marked
	next.Wide, next.Zoom, next.Follow, next.Scope = st.Wide, st.Zoom, st.Follow, st.Scope
	return next
}

// state is that of the page on the screen.
func (m *model) state() *page.State { return &m.states[m.page] }

// say puts a notice above the keys.
func (m *model) say(style styles.Style, format string, args ...any) {
	m.notice = page.Line{Text: fmt.Sprintf(format, args...), Style: style}
	m.until = m.env.wall().Add(noticeTime)
	m.dirty = true
}

func (m *model) complain(err error) {
	if err != nil {
		m.say(styles.Warn, "%s", messageOf(err))
	}
}

// View is the screen. It is drawn only when something has changed.
func (m *model) View() tea.View {
	if m.dirty {
		m.draw()
		m.dirty = false
	}
	v := tea.NewView(m.content)
	v.AltScreen = true
	if !m.opts.NoMouse {
		v.MouseMode = tea.MouseModeCellMotion
	}
	return v
}

func (m *model) draw() {
	m.canvas.Reset(m.width, m.height, m.theme)
	st := m.state()
	m.frame(&st.Frame)
	page.Draw(m.canvas, page.Get(m.page), m.view, st)
	if m.dialog != nil {
		m.dialog.draw(m.canvas)
	}
	lines := m.canvas.Lines()
	m.content = strings.Join(lines, "\n")
	m.tell()
}

// frame is what holds for the whole screen.
func (m *model) frame(f *page.Frame) {
	wall := m.env.wall()
	if wall.After(m.until) {
		m.notice = page.Line{}
	}
	*f = page.Frame{
		Now: m.at, Location: time.Local, Version: m.opts.Version, Rate: hertz(m.every), CPU: m.env.cpu(), Paused: m.paused, Past: m.past.on,
		Dialog: m.dialog != nil, Still: m.opts.NoAnimation, ReadOnly: !m.rw, Context: m.opts.Context.Name,
		Alarming: m.opts.Context.Color == "red", Notice: m.notice, Keys: m.hints(),
	}
	if !m.past.on {
		f.Clock = m.now
	}
	if m.prompt != nil {
		f.Prompt = m.prompt.line()
		if text := m.prompt.hint(); text != "" {
			f.Notice = page.Line{Text: text, Style: m.prompt.look()}
		}
	}
}

// hertz is a refresh rate as the header has it.
func hertz(every time.Duration) string {
	hz := float64(time.Second) / float64(every)
	return strings.TrimSuffix(fmt.Sprintf("%.1f", hz), ".0") + " Hz"
}

// messageOf is an error in one line, without the trail of who was doing what.
func messageOf(err error) string {
	var e *sdk.Error
	if errors.As(err, &e) && e.Msg != "" {
		return term.Escape(e.Msg)
	}
	return term.Escape(strings.TrimSpace(err.Error()))
}
