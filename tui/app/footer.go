package app

import (
	"strings"

	"github.com/eastguard/eastguard/tui/keymap"
	"github.com/eastguard/eastguard/tui/page"
	"github.com/eastguard/eastguard/tui/store"
)

// footKeys are the keys that the footer names, and which of them give way first where there is not room for all.
var footKeys = []struct {
	action keymap.Action
	rank   int
}{
	{keymap.Live, 0},
	{keymap.Help, 0},
	{keymap.Filter, 1},
	{keymap.Command, 0},
	{keymap.Open, 1},
	{keymap.NextPanel, 4},
	{keymap.SortPrev, 4},
	{keymap.Invert, 6},
	{keymap.Wide, 5},
	{keymap.Zoom, 5},
	{keymap.Mark, 7},
	{keymap.Pause, 2},
	{keymap.StepBack, 2},
	{keymap.Actions, 1},
	{keymap.JSON, 6},
	{keymap.CopyName, 6},
	{keymap.Back, 1},
	{keymap.Quit, 0},
}

// lostKeys are those while no broker answers.
var lostKeys = []keymap.Action{keymap.Help, keymap.Retry, keymap.Command, keymap.StepBack, keymap.Quit}

// hints are the keys that mean something now.
func (m *model) hints() (hints []page.KeyHint) {
	add := func(h keymap.Hint, rank int) {
		hints = append(hints, page.KeyHint{Key: h.Key, Does: h.Text, Rank: rank})
	}
	switch {
	case m.dialog != nil:
		return m.dialog.keys()
	case m.view.Cluster.Link.State == store.LinkLost:
		for _, a := range lostKeys {
			add(a.Hint(), 0)
		}
		return hints
	}
	subject := page.Get(m.page).About(m.view, m.state())
	for _, k := range footKeys {
		switch {
		case !m.means(k.action, subject):
		case k.action == keymap.Open:
			add(k.action.With(strings.ToLower(subject.Open.String())), k.rank)
		default:
			add(k.action.Hint(), k.rank)
		}
	}
	return hints
}

// means reports whether a key of the footer would do something now.
func (m *model) means(a keymap.Action, s page.Subject) bool {
	p, st := page.Get(m.page), m.state()
	switch a {
	case keymap.Live:
		return m.past.on || m.paused
	case keymap.Open:
		return m.opens(s)
	case keymap.NextPanel:
		return p.Panels(m.width, m.height) > 1
	case keymap.SortPrev, keymap.Invert:
		return len(p.Columns(st)) > 0
	case keymap.Actions:
		return len(s.Actions) > 0
	case keymap.JSON:
		return len(s.Describe) > 0
	case keymap.CopyName, keymap.Mark:
		return s.Name != ""
	case keymap.Back:
		return len(m.trail) > 0 || st.Filter.On() || st.Zoom || st.Scope != page.Scope{}
	default:
		return true
	}
}
