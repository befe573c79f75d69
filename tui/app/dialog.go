package app

import (
	"slices"
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/tui/component"
	"github.com/eastguard/eastguard/tui/keymap"
	"github.com/eastguard/eastguard/tui/page"
	"github.com/eastguard/eastguard/tui/styles"
)

// dialog lies over a page and has the keys. What is below it stands still.
type dialog interface {
	draw(c *component.Canvas)
	key(m *model, name, text string) tea.Cmd
	keys() []page.KeyHint
}

// closeDialog goes back to the page, which goes on.
func (m *model) closeDialog() {
	m.dialog = nil
	if !m.still() {
		m.view, m.at = m.latest, m.now
	}
}

// stage is where dialogs lie: between the tabs and the footer, which go on telling what is frozen and which keys there are.
func stage(c *component.Canvas) component.Rect {
	screen := c.Bounds()
	if screen.H < page.LeastHeight {
		return screen
	}
	_, below := screen.CutTop(2)
	middle, _ := below.CutBottom(2)
	return middle
}

// helpDialog is the list of keys.
type helpDialog struct{ top int }

func (d *helpDialog) draw(c *component.Canvas) {
	h := component.Help{Title: "Keys", Note: "esc to close"}
	for _, g := range keymap.Groups() {
		group := component.HelpGroup{Title: string(g)}
		for _, k := range keymap.Lines(g) {
			group.Keys = append(group.Keys, component.HelpKey{Keys: k.Label, Text: k.Text})
		}
		h.Groups = append(h.Groups, group)
	}
	d.top = min(d.top, h.Last(c, stage(c)))
	h.Top = d.top
	h.Draw(c, stage(c))
}

func (*helpDialog) keys() []page.KeyHint {
	return []page.KeyHint{{Key: "esc", Does: "close"}}
}

func (d *helpDialog) key(m *model, name, _ string) tea.Cmd {
	switch keymap.Lookup(name) {
	case keymap.Up:
		d.top = max(d.top-1, 0)
	case keymap.Down:
		d.top++
	case keymap.Back, keymap.Help, keymap.Quit, keymap.Open:
		m.closeDialog()
	default:
	}
	return nil
}

// textDialog shows lines that may be longer than the screen.
type textDialog struct {
	title string
	lines []string
	top   int
	bad   bool
}

func newText(title, text string) *textDialog {
	return &textDialog{title: title, lines: strings.Split(strings.TrimRight(term.EscapeLines(text), "\n"), "\n")}
}

func (d *textDialog) draw(c *component.Canvas) {
	screen := stage(c)
	w := 40
	for _, l := range d.lines {
		w = max(w, c.Width(expand(l))+4)
	}
	place := screen.Center(min(w, screen.W-4), min(len(d.lines)+2, screen.H))
	c.Fill(place, ' ', styles.Plain)
	look := styles.Accent
	if d.bad {
		look = styles.Bad
	}
	inside := component.Box{Title: d.title, Note: "esc to close", Frame: look}.Draw(c, place)
	d.top = min(d.top, max(len(d.lines)-inside.H, 0))
	for i := range inside.H {
		if d.top+i < len(d.lines) {
			line := inside.Line(i)
			c.Text(line.X, line.Y, line.W, expand(d.lines[d.top+i]), styles.Plain)
		}
	}
}

// expand makes blanks of tabs, which have no width of their own.
func expand(s string) string { return strings.ReplaceAll(s, "\t", "  ") }

func (d *textDialog) keys() []page.KeyHint {
	return []page.KeyHint{{Key: "↑↓", Does: "scroll"}, {Key: "esc", Does: "close"}}
}

func (d *textDialog) key(m *model, name, _ string) tea.Cmd {
	const jump = 20
	switch keymap.Lookup(name) {
	case keymap.Up:
		d.top--
	case keymap.Down:
		d.top++
	case keymap.PageUp:
		d.top -= jump
	case keymap.PageDown:
		d.top += jump
	case keymap.Top:
		d.top = 0
	case keymap.Bottom:
		d.top = len(d.lines)
	case keymap.Back, keymap.Quit, keymap.Open, keymap.JSON, keymap.Describe:
		m.closeDialog()
	default:
	}
	d.top = min(max(d.top, 0), max(len(d.lines)-1, 0))
	return nil
}

// finder finds anything by its name.
type finder struct {
	input component.Input
	all   []found
	hits  []found
	at    int
}

// found is one object.
type found struct {
	kind  string
	name  string
	page  page.ID
	topic string
	id    string
	score int
}

// maxHits is how many objects the finder shows.
const maxHits = 14

func newFinder(m *model) *finder {
	f := &finder{}
	v := m.view
	for _, r := range v.Nodes.Rows() {
		f.all = append(f.all, found{kind: "node", name: string(r.ID), page: page.Ring, id: string(r.ID)})
	}
	for _, r := range v.Topics.Rows() {
		f.all = append(f.all, found{kind: "topic", name: r.Name, page: page.Ranges, topic: r.Name})
	}
	for id := range v.Groups.All() {
		f.all = append(f.all, found{kind: "group", name: id, page: page.Groups, id: id})
	}
	for id := range v.Shards.All() {
		f.all = append(f.all, found{kind: "shard", name: id.String(), page: page.Shards, id: id.String()})
	}
	for _, r := range v.Ranges.Rows() {
		f.all = append(f.all, found{kind: "range", name: r.Key.Topic + "/" + r.Key.Range.String(), page: page.Segments, topic: r.Key.Topic, id: r.Key.Range.String()})
	}
	for id, r := range v.Segments.All() {
		f.all = append(f.all, found{kind: "segment", name: id.String(), page: page.Segments, topic: r.Range.Topic, id: r.Range.Range.String()})
	}
	f.search()
	return f
}

// search keeps the best that have the letters typed.
func (f *finder) search() {
	f.hits, f.at = f.hits[:0], 0
	for _, o := range f.all {
		var ok bool
		if o.score, ok = fuzzyScore(f.input.Text, o.name); ok || f.input.Text == "" {
			f.hits = append(f.hits, o)
		}
	}
	slices.SortStableFunc(f.hits, func(a, b found) int { return a.score - b.score })
	f.hits = f.hits[:min(len(f.hits), maxHits)]
}

func (f *finder) draw(c *component.Canvas) {
	d := component.Dialog{Title: "Find", Note: "esc to close", Input: &f.input, Ask: "> ", Lines: make([]component.Line, 0, maxHits)}
	for i, o := range f.hits {
		style := styles.Plain
		if i == f.at {
			style = style.Reverse()
		}
		d.Lines = append(d.Lines, component.Line{Text: term.Pad(o.kind, 8, false) + " " + o.name, Style: style})
	}
	if len(f.hits) == 0 {
		d.Lines = append(d.Lines, component.Line{Text: "nothing that is known has these letters", Style: styles.Dim})
	}
	room := min(maxHits, stage(c).H-4)
	for len(d.Lines) < room { // the box keeps its size while letters are typed
		d.Lines = append(d.Lines, component.Line{})
	}
	d.Draw(c, stage(c))
}

func (f *finder) keys() []page.KeyHint {
	return []page.KeyHint{{Key: "⏎", Does: "go"}, {Key: "↑↓", Does: "choose"}, {Key: "esc", Does: "close"}}
}

func (f *finder) key(m *model, name, text string) tea.Cmd {
	switch name {
	case "esc":
		m.closeDialog()
	case "up", "ctrl+p":
		f.at = max(f.at-1, 0)
	case "down", "ctrl+n", "tab":
		f.at = min(f.at+1, max(len(f.hits)-1, 0))
	case "enter":
		m.closeDialog()
		if f.at < len(f.hits) {
			m.goTo(f.hits[f.at])
		}
	default:
		if in, ok := edit(f.input, name, text); ok {
			f.input = in
			f.search()
		}
	}
	return nil
}

func (f *finder) paste(_ *model, text string) {
	if utf8.ValidString(text) {
		f.input = f.input.Insert(text)
		f.search()
	}
}

// goTo shows what was found.
func (m *model) goTo(o found) {
	m.enter(o.page, func(st *page.State) {
		st.Topic = o.topic
		if o.page == page.Segments {
			st.Range = o.id
			return
		}
		st.Focus().Selected = o.id
	})
}
