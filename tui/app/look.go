package app

import (
	"slices"

	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/feed"
	"github.com/eastguard/eastguard/tui/page"
)

// viewport is what is on the screen, so that the feed asks for no more than that.
func (m *model) viewport() feed.Viewport {
	st := m.state()
	v := feed.Viewport{Still: m.paused || m.past.on}
	switch m.page {
	case page.Overview:
		v.Health, v.Nodes, v.TopicList = true, true, true
		if hot := m.busiest(); hot != "" {
			v.Topics = []string{hot}
		}
	case page.Ring:
		v.Nodes = true
	case page.Shards:
		v.Shards = true
	case page.Topics:
		v.TopicList, v.Topics = true, m.visible()
	case page.Ranges:
		v.TopicList, v.Topics = true, []string{m.topic()}
	case page.Segments:
		v.Segments = &feed.SegmentsShown{Topic: st.Topic}
		if st.Topic != "" {
			v.Topics = []string{st.Topic}
		}
	case page.Logs:
		v.Logs = &feed.LogsShown{Level: st.Level}
		if st.Node != "" {
			v.Logs.Nodes = []sdk.NodeID{st.Node}
		}
	case page.Groups, page.Events:
	}
	v.Topics = slices.DeleteFunc(v.Topics, func(name string) bool { return name == "" })
	return v
}

// topic is the one whose ranges are shown.
func (m *model) topic() string {
	if t := m.state().Topic; t != "" {
		return t
	}
	return m.busiest()
}

// visible are the rows of the focused panel that can be seen.
func (m *model) visible() (ids []string) {
	st := m.state()
	for _, p := range st.Shown.Panels {
		if p.Panel != st.Panel {
			continue
		}
		rows := page.Get(m.page).Rows(m.view, st)
		for i := p.Table.Top; i < min(p.Table.Top+p.Table.Visible, rows.Len()); i++ {
			ids = append(ids, rows.ID(i))
		}
	}
	return ids
}

// tell lets the feed know what was drawn, if it is something else than before.
func (m *model) tell() {
	v := m.viewport()
	if !sameViewport(v, m.shown) {
		m.shown = v
		m.env.look(v)
	}
}

func sameViewport(a, b feed.Viewport) bool {
	return slices.Equal(a.Topics, b.Topics) && a.TopicList == b.TopicList && samePtr(a.Segments, b.Segments) && a.Shards == b.Shards &&
		a.Health == b.Health && a.Nodes == b.Nodes && a.Still == b.Still && (a.Logs == nil) == (b.Logs == nil) &&
		(a.Logs == nil || slices.Equal(a.Logs.Nodes, b.Logs.Nodes) && a.Logs.Level == b.Logs.Level)
}

func samePtr[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }
