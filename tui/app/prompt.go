package app

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/eastguard/eastguard/tui/component"
	"github.com/eastguard/eastguard/tui/page"
	"github.com/eastguard/eastguard/tui/styles"
)

// promptKind is what is typed on the last line.
type promptKind uint8

const (
	promptFilter promptKind = iota
	promptCommand
)

// prompt is the line that is typed.
type prompt struct {
	kind   promptKind
	input  component.Input
	before string   // the filter as it was
	offers []string // by TAB
	err    error
}

func newPrompt(kind promptKind, text string) *prompt {
	return &prompt{kind: kind, input: component.NewInput(text), before: text}
}

func (p *prompt) sign() string {
	if p.kind == promptFilter {
		return "/"
	}
	return ":"
}

// line is what the last line of the screen shows.
func (p *prompt) line() *component.Input {
	sign := p.sign()
	return &component.Input{Text: sign + p.input.Text, At: len(sign) + p.input.At}
}

// hint is what stands above it.
func (p *prompt) hint() string {
	switch {
	case p.err != nil:
		return messageOf(p.err)
	case len(p.offers) > 1:
		return strings.Join(p.offers, "  ")
	case p.kind == promptFilter:
		return "regular expression; !re inverts; -f fuzzy"
	}
	if word, _, _ := strings.Cut(strings.TrimSpace(p.input.Text), " "); word != "" {
		if v, err := findVerb(strings.ToLower(word)); err == nil {
			return v.name + ": " + v.help
		}
	}
	return "a view and what it shows, or at, ctx, rw, seeds, quit; tab completes"
}

func (p *prompt) look() styles.Style {
	if p.err != nil {
		return styles.Warn
	}
	return styles.Dim
}

// edit changes a line by an editing key; ok is false for keys that do not edit.
func edit(in component.Input, name, text string) (component.Input, bool) {
	switch name {
	case "left", "ctrl+b":
		return in.Left(), true
	case "right", "ctrl+f":
		return in.Right(), true
	case "home", "ctrl+a":
		return in.Home(), true
	case "end", "ctrl+e":
		return in.End(), true
	case "backspace", "ctrl+h":
		return in.Backspace(), true
	case "delete", "ctrl+d":
		return in.Delete(), true
	case "ctrl+w", "alt+backspace":
		return in.DeleteWord(), true
	case "ctrl+u":
		return in.DeleteToStart(), true
	case "ctrl+k":
		return in.DeleteToEnd(), true
	}
	if text != "" {
		return in.Insert(text), true
	}
	return in, false
}

// promptKey is a key while a line is typed.
func (m *model) promptKey(name, text string) tea.Cmd {
	p := m.prompt
	switch name {
	case "esc":
		if p.kind == promptFilter {
			m.filter(p.before)
		}
		m.prompt = nil
		return nil
	case "enter":
		m.prompt = nil
		if p.kind == promptCommand && strings.TrimSpace(p.input.Text) != "" {
			return m.command(p.input.Text)
		}
		if p.err != nil {
			m.filter(p.before)
			m.complain(p.err)
		}
		return nil
	case "tab":
		if p.kind == promptCommand {
			longer, offers := complete(p.input.Text, m.names())
			p.input, p.offers, p.err = component.NewInput(longer), offers, nil
		}
		return nil
	case "backspace":
		if p.input.Text == "" {
			m.prompt = nil
			return nil
		}
	}
	if in, ok := edit(p.input, name, text); ok {
		m.typed(in)
	}
	return nil
}

// typed takes what the line is now; a filter holds while it is typed.
func (m *model) typed(in component.Input) {
	p := m.prompt
	p.input, p.offers, p.err = in, nil, nil
	if p.kind == promptFilter {
		p.err = m.filter(in.Text)
	}
}

// filter narrows the table, if the text is a filter.
func (m *model) filter(text string) error {
	f, err := ParseFilter(text)
	if err == nil {
		m.state().Filter = pageFilter(f)
	}
	return err
}

// paste is text from the clipboard, for the line that is typed.
func (m *model) paste(text string) {
	switch {
	case m.dialog != nil:
		if d, ok := m.dialog.(interface{ paste(*model, string) }); ok {
			d.paste(m, text)
		}
	case m.prompt != nil:
		m.typed(m.prompt.input.Insert(text))
	}
}

// command does what a line behind ":" says.
func (m *model) command(line string) tea.Cmd {
	c, err := ParseCommand(line)
	if err != nil {
		m.complain(err)
		return nil
	}
	switch c.Verb {
	case "at":
		if at, err := momentOf(c.Arg, m.now); err != nil {
			m.complain(err)
		} else {
			m.lookAt(at)
		}
	case "live":
		m.live()
	case "filter":
		m.complain(m.filter(c.Arg))
	case "refresh":
		m.setRefresh(c.Arg)
	case "seeds", "ctx":
		return m.leaveFor(c)
	case "rw":
		m.allow()
	case "ro":
		m.rw = false
		m.say(styles.Info, "read-only")
	case "ascii":
		m.toggleASCII()
	case "save":
		m.save()
	case "help":
		m.dialog = &helpDialog{}
	case "quit":
		return tea.Quit
	default:
		m.show(c)
	}
	return nil
}

// show goes to the view that a command names, and to what it is to show there.
func (m *model) show(c Command) {
	id := pageNamed(c.Verb)
	if c.Arg == "" {
		m.visit(id)
		m.state().Scope, m.state().Filter = page.Scope{}, page.Filter{}
		return
	}
	m.enter(id, func(st *page.State) {
		switch id {
		case page.Ranges:
			st.Topic = c.Arg
		case page.Segments:
			st.Topic, st.Range = topicAndRange(c.Arg)
			if st.Topic == "" {
				st.Topic = m.busiest()
			}
		case page.Events:
			st.Types = strings.ToUpper(c.Arg)
		case page.Ring, page.Shards, page.Groups:
			st.Focus().Selected = c.Arg
		case page.Topics, page.Logs:
			if id == page.Logs && slices.Contains(levels, strings.ToLower(c.Arg)) {
				st.Level = strings.ToLower(c.Arg)
				return
			}
			if f, err := ParseFilter(c.Arg); err == nil {
				st.Filter = pageFilter(f)
			}
		case page.Overview:
		}
	})
}

// topicAndRange reads orders, orders/r9 and /r9.
func topicAndRange(s string) (topic, id string) {
	topic, id, _ = strings.Cut(s, "/")
	return topic, id
}

// busiest is the topic that is written to most, for a range without one.
func (m *model) busiest() string { return page.Busiest(m.view, m.state()) }

// names are what completion offers: what is known now.
func (m *model) names() names {
	var n names
	v := m.view
	for _, r := range v.Nodes.Rows() {
		n.Nodes = append(n.Nodes, string(r.ID))
	}
	for _, r := range v.Topics.Rows() {
		n.Topics = append(n.Topics, r.Name)
	}
	for id := range v.Groups.All() {
		n.Groups = append(n.Groups, id)
	}
	for id := range v.Shards.All() {
		n.Shards = append(n.Shards, id.String())
	}
	seen := make(map[string]bool)
	for _, e := range v.Events.Last(2000) {
		if !seen[e.Type] {
			seen[e.Type] = true
			n.Types = append(n.Types, e.Type)
		}
	}
	for _, c := range m.opts.Contexts {
		n.Contexts = append(n.Contexts, c.Name)
	}
	return n
}
