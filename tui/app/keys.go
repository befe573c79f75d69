package app

import (
	"regexp"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/component"
	"github.com/eastguard/eastguard/tui/keymap"
	"github.com/eastguard/eastguard/tui/page"
	"github.com/eastguard/eastguard/tui/styles"
)

// key is a key, for whatever has the keys now.
func (m *model) key(msg tea.KeyPressMsg) tea.Cmd {
	name := msg.String()
	switch {
	case name == "ctrl+c":
		return tea.Quit
	case m.dialog != nil:
		return m.dialog.key(m, name, msg.Text)
	case m.prompt != nil:
		return m.promptKey(name, msg.Text)
	}
	return m.act(keymap.Lookup(name))
}

// act does what a key means.
func (m *model) act(a keymap.Action) tea.Cmd {
	if n := a.View(); n > 0 {
		m.visit(page.ID(n))
		return nil
	}
	if m.move(a) || m.arrange(a) || m.travel(a) {
		return nil
	}
	switch a {
	case keymap.Open:
		m.open()
	case keymap.Back:
		m.back()
	case keymap.Filter:
		m.prompt = newPrompt(promptFilter, m.state().Filter.Text)
	case keymap.Command:
		m.prompt = newPrompt(promptCommand, "")
	case keymap.Find:
		m.dialog = newFinder(m)
	case keymap.Help:
		m.dialog = &helpDialog{}
	case keymap.Actions:
		m.menu()
	case keymap.Delete:
		return m.delete()
	case keymap.CopyName:
		return m.copyName()
	case keymap.CopyCommand:
		return m.copyCommand()
	case keymap.JSON:
		return m.describe("-o", "json")
	case keymap.Describe:
		return m.describe()
	case keymap.Events:
		m.related(page.Events)
	case keymap.Logs:
		m.related(page.Logs)
	case keymap.Save:
		m.save()
	case keymap.Resync, keymap.Retry:
		m.env.retry()
		m.say(styles.Info, "asking the cluster for everything again")
	case keymap.Redraw:
		return tea.ClearScreen
	case keymap.Suspend:
		return m.suspend()
	case keymap.Quit:
		return tea.Quit
	default:
	}
	return nil
}

// move changes what is selected.
func (m *model) move(a keymap.Action) bool {
	st, p := m.state(), page.Get(m.page)
	rows := func() page.Rows { return p.Rows(m.view, st) }
	switch a {
	case keymap.Up, keymap.PrevMatch:
		st.Move(rows(), -1)
	case keymap.Down, keymap.NextMatch:
		st.Move(rows(), 1)
	case keymap.PageUp:
		st.Move(rows(), -st.Page())
	case keymap.PageDown:
		st.Move(rows(), st.Page())
	case keymap.Top:
		st.Select(rows(), 0)
	case keymap.Bottom:
		r := rows()
		st.Select(r, r.Len()-1)
	case keymap.NextPanel:
		m.panel(1)
	case keymap.PrevPanel:
		m.panel(-1)
	case keymap.Mark:
		if id := st.Current(rows()); id != "" {
			st.Marked = st.Marked.Toggle(id)
			st.Move(rows(), 1)
		}
	case keymap.ClearMarks:
		st.Marked = nil
	default:
		return false
	}
	return true
}

func (m *model) panel(by int) {
	st := m.state()
	n := max(page.Get(m.page).Panels(m.width, m.height), 1)
	st.Panel = ((st.Panel+by)%n + n) % n
}

// arrange changes how rows are shown.
func (m *model) arrange(a keymap.Action) bool {
	st := m.state()
	columns := func() []string { return page.Get(m.page).Columns(st) }
	switch a {
	case keymap.SortNext:
		st.SortBy(columns(), 1)
	case keymap.SortPrev:
		st.SortBy(columns(), -1)
	case keymap.Invert:
		st.Focus().Invert = !st.Focus().Invert
	case keymap.Wide:
		st.Wide = !st.Wide
	case keymap.Follow:
		st.Follow = !st.Follow
		m.say(styles.Info, "follow the selection: %s", onOff(st.Follow))
	case keymap.Zoom:
		st.Zoom = !st.Zoom
	case keymap.ASCII:
		m.toggleASCII()
	default:
		return false
	}
	return true
}

func (m *model) toggleASCII() {
	m.ascii = !m.ascii
	m.theme = styles.NewTheme(m.mode, m.ascii)
	m.canvas = component.NewCanvas(m.width, m.height, m.theme)
}

// travel changes which moment is shown, and how often it changes.
func (m *model) travel(a keymap.Action) bool {
	switch a {
	case keymap.Pause:
		if m.paused || m.past.on {
			m.live()
		} else {
			m.paused = true
		}
	case keymap.StepBack:
		m.step(-stepTime)
	case keymap.StepForward:
		m.step(stepTime)
	case keymap.Live:
		m.live()
	case keymap.Faster:
		m.pace(-1)
	case keymap.Slower:
		m.pace(1)
	default:
		return false
	}
	return true
}

// pace goes to the next refresh rate.
func (m *model) pace(by int) {
	i := 0
	for j, r := range rates {
		if r <= m.every {
			i = j
		}
	}
	m.refresh(rates[min(max(i+by, 0), len(rates)-1)])
}

func (m *model) refresh(every time.Duration) {
	m.every = every
	m.env.ask(func(p *pump) { p.every = every })
	m.say(styles.Info, "the screen changes at %s", hertz(every))
}

// visit goes to a page of its own accord: esc leads nowhere from it.
func (m *model) visit(id page.ID) {
	m.page, m.trail = id, nil
}

// maxTrail bounds how far esc leads back.
const maxTrail = 32

// enter goes to a page from this one: to all that is there, unless change says otherwise.
func (m *model) enter(id page.ID, change func(*page.State)) {
	if len(m.trail) == maxTrail {
		m.trail = slices.Delete(m.trail, 0, 1)
	}
	m.trail = append(m.trail, place{m.page, *m.state()})
	st := fresh(m.state())
	if id != m.page {
		st = fresh(&m.states[id])
	}
	st.Scope, st.Filter, st.Marked, st.Panel = page.Scope{}, page.Filter{}, nil, 0
	change(&st)
	m.page, m.states[id] = id, st
}

// open goes to where the selection leads.
func (m *model) open() {
	s := page.Get(m.page).About(m.view, m.state())
	if !m.opens(s) {
		return
	}
	if s.Open == page.Events {
		m.related(page.Events)
		return
	}
	m.enter(s.Open, func(st *page.State) {
		switch s.Open {
		case page.Ranges:
			st.Topic = s.Topic
		case page.Segments:
			st.Topic, st.Range = s.Topic, s.Range
		}
		st.Focus().Selected = s.Row
	})
}

// opens reports whether a subject leads anywhere: to another page, or to something else on this one.
func (m *model) opens(s page.Subject) bool {
	return s.Open != 0 && (s.Open != m.page || s.Kind == page.KindTopic || s.Kind == page.KindRange)
}

// back undoes a filter, the last step in, or what the page is narrowed to.
func (m *model) back() {
	st := m.state()
	switch {
	case m.past.on || m.paused:
		m.live()
	case st.Filter.On():
		st.Filter = page.Filter{}
	case st.Zoom:
		st.Zoom = false
	case len(m.trail) > 0:
		last := m.trail[len(m.trail)-1]
		m.trail = m.trail[:len(m.trail)-1]
		st.Scope = page.Scope{} // it was that of the step
		m.page, m.states[last.page] = last.page, fresh(&last.state)
	default:
		st.Scope = page.Scope{}
	}
}

// related shows the events or logs of the selection.
func (m *model) related(id page.ID) {
	s := page.Get(m.page).About(m.view, m.state())
	if s.Name == "" {
		m.visit(id)
		return
	}
	m.enter(id, func(st *page.State) {
		switch s.Kind {
		case page.KindNode:
			st.Node = sdk.NodeID(s.Name)
		case page.KindLog:
			st.Node = sdk.NodeID(s.Row)
		case page.KindShard:
			st.Filter = exactly(s.Title())
		default:
			st.Filter = exactly(s.Name)
		}
	})
}

// exactly is the filter for a name: what only begins with it is another's.
func exactly(name string) page.Filter {
	pattern := regexp.QuoteMeta(name)
	if wordly(name[0]) {
		pattern = `\b` + pattern
	}
	if wordly(name[len(name)-1]) {
		pattern += `\b`
	}
	f, err := ParseFilter(pattern)
	if err != nil { // it is too long: then so is what it would be looked for in
		return page.Filter{}
	}
	return pageFilter(f)
}

// wordly reports whether a byte is of a word, as \b of regular expressions has it.
func wordly(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z'
}

// copyName puts the names of what is marked, or selected, on the clipboard, a line each: what a node calls a thing may hold
// anything, and a clipboard is pasted into shells.
func (m *model) copyName() tea.Cmd {
	st := m.state()
	names := make([]string, 0, len(st.Marked))
	for id := range st.Marked {
		names = append(names, term.Escape(id))
	}
	slices.Sort(names)
	if len(names) == 0 {
		if s := page.Get(m.page).About(m.view, st); s.Name != "" {
			names = []string{term.Escape(s.Name)}
		}
	}
	return m.copy(strings.Join(names, "\n"))
}

// copyCommand puts the command that tells about the selection on the clipboard.
func (m *model) copyCommand() tea.Cmd {
	s := page.Get(m.page).About(m.view, m.state())
	if len(s.Describe) == 0 {
		return m.copy("")
	}
	return m.copy(m.elsewhereLine(s.Describe))
}

func (m *model) copy(text string) tea.Cmd {
	if text == "" {
		m.say(styles.Warn, "nothing is selected that could be copied")
		return nil
	}
	first, _, more := strings.Cut(text, "\n")
	if more {
		first += " …"
	}
	m.say(styles.Info, "copied: %s", first)
	return tea.SetClipboard(text)
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}
