package app

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/eastguard/eastguard/tui/page"
)

// doubleClick is how soon a second click on the same row must come to open it.
const doubleClick = 400 * time.Millisecond

// click is the last one.
type click struct {
	row string
	at  time.Time
}

// mouse selects what is under the pointer; a tab goes to its page, a second click opens.
func (m *model) mouse(e tea.Mouse) tea.Cmd {
	if e.Button != tea.MouseLeft || m.dialog != nil || m.prompt != nil {
		return nil
	}
	st := m.state()
	for _, t := range st.Shown.Tabs {
		if t.Rect.Contains(e.X, e.Y) {
			m.visit(t.ID)
			return nil
		}
	}
	panel, row, ok := st.Hit(e.X, e.Y)
	if !ok || panel < 0 || panel >= len(st.Panels) {
		return nil
	}
	st.Panel = panel
	rows := page.Get(m.page).Rows(m.view, st)
	if row < 0 || row >= rows.Len() {
		return nil
	}
	id := rows.ID(row)
	st.Focus().Selected = id
	now := m.env.wall()
	if m.click.row == id && now.Sub(m.click.at) < doubleClick {
		m.click = click{}
		m.open()
		return nil
	}
	m.click = click{id, now}
	return nil
}

// wheel moves the selection of the panel under the pointer.
func (m *model) wheel(e tea.Mouse) {
	const lines = 3
	by := lines
	switch e.Button {
	case tea.MouseWheelUp:
		by = -lines
	case tea.MouseWheelDown:
	default:
		return
	}
	if d, ok := m.dialog.(*textDialog); ok {
		d.top = min(max(d.top+by, 0), max(len(d.lines)-1, 0))
		return
	}
	st := m.state()
	panel, _, ok := st.Hit(e.X, e.Y)
	if m.dialog != nil || !ok || panel < 0 || panel >= len(st.Panels) {
		return
	}
	st.Panel = panel
	st.Move(page.Get(m.page).Rows(m.view, st), by)
}
