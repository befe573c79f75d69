package app

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/component"
	"github.com/eastguard/eastguard/tui/page"
	"github.com/eastguard/eastguard/tui/styles"
)

// execMsg is what a command of eg-cli has answered.
type execMsg struct {
	words []string
	text  string
	err   error
	asker dialog // who waits for it
}

// exec runs a command for a dialog. What it answers goes there and nowhere else: the same command may be asked for again
// by another meanwhile.
func (m *model) exec(asker dialog, words []string) tea.Cmd {
	run := m.env.exec(words)
	return func() tea.Msg {
		msg := run()
		if answer, ok := msg.(execMsg); ok {
			answer.asker = asker
			return answer
		}
		return msg
	}
}

// commandLine is a command as it is typed in a shell.
func commandLine(words []string) string {
	var b strings.Builder
	b.WriteString("eg-cli")
	for _, w := range words {
		b.WriteByte(' ')
		b.WriteString(quoted(w))
	}
	return b.String()
}

// quoted is a word as a shell takes it for itself. What is no text is written in escapes: it is to be pasted into a terminal,
// which may act on it.
func quoted(word string) string {
	switch {
	case strings.ContainsFunc(word, func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }):
		var b strings.Builder
		for _, c := range []byte(word) {
			if c < ' ' || c > '~' || c == '\'' || c == '\\' {
				fmt.Fprintf(&b, `\x%02x`, c)
			} else {
				b.WriteByte(c)
			}
		}
		return "$'" + b.String() + "'"
	case word == "" || strings.ContainsAny(word, " \"'\\$`&|;<>()*?[]{}~#!"):
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return word
}

// elsewhereLine is a command as it is typed in another shell, which may know nothing of the cluster on this screen.
func (m *model) elsewhereLine(words []string) string {
	return commandLine(slices.Concat(m.target(), words))
}

// target is what leads eg-cli to the cluster on the screen; nothing where it goes there by itself.
func (m *model) target() (words []string) {
	usual := []string{sdk.DefaultSeed}
	if name := m.opts.Context.Name; name != "" {
		words = []string{"--context", name}
		for _, c := range m.opts.Contexts {
			if c.Name == name {
				usual = c.Seeds
			}
		}
	}
	if !slices.Equal(m.opts.Seeds, usual) {
		words = append(words, "-s", strings.Join(m.opts.Seeds, ","))
	}
	return words
}

// describe shows what eg-cli says about the selection.
func (m *model) describe(more ...string) tea.Cmd {
	s := page.Get(m.page).About(m.view, m.state())
	switch {
	case len(s.Describe) == 0:
		m.say(styles.Warn, "nothing is selected that can be described")
		return nil
	case m.opts.Exec == nil || m.opts.Replay != "":
		m.say(styles.Warn, "a recording has no cluster to ask: %s", commandLine(s.Describe))
		return nil
	}
	words := slices.Concat(s.Describe, more)
	return m.ask(words)
}

// ask shows what a command answers.
func (m *model) ask(words []string) tea.Cmd {
	d := &textDialog{title: commandLine(words), lines: []string{"asking…"}}
	m.dialog = d
	return m.exec(d, words)
}

// allow is :rw.
func (m *model) allow() {
	switch {
	case m.opts.Context.ReadOnly:
		m.say(styles.Warn, "the context is read-only")
	case m.opts.Exec == nil || m.opts.Replay != "":
		m.say(styles.Warn, "a recording cannot be changed")
	case m.opts.Context.Protected:
		m.dialog = &allowDialog{name: m.opts.Context.Name}
	default:
		m.dialog = &allowDialog{}
	}
}

// allowDialog asks before actions are allowed; for the name, when the context is protected.
type allowDialog struct {
	name  string
	input component.Input
}

func (d *allowDialog) draw(c *component.Canvas) {
	box := component.Dialog{Title: "Allow actions", Style: styles.Warn, Lines: []component.Line{
		{Text: "Actions change the cluster. Each is shown with its plan and asks again before it is done."},
	}}
	if d.name == "" {
		box.Foot = []component.Line{{Text: "y to allow them, n to stay read-only", Style: styles.Key}}
	} else {
		box.Warn, box.Input, box.Ask = "protected context", &d.input, "Type "+d.name+" to allow them: "
	}
	box.Draw(c, stage(c))
}

func (d *allowDialog) keys() []page.KeyHint {
	if d.name != "" {
		return []page.KeyHint{{Key: "⏎", Does: "confirm"}, {Key: "esc", Does: "cancel"}}
	}
	return []page.KeyHint{{Key: "y", Does: "allow"}, {Key: "n", Does: "cancel"}}
}

func (d *allowDialog) key(m *model, name, text string) tea.Cmd {
	yes := d.name == "" && (name == "y" || name == "Y") || d.name != "" && name == "enter" && d.input.Text == d.name
	switch {
	case yes:
		m.closeDialog()
		m.rw = true
		m.say(styles.Warn, "actions are allowed; :ro forbids them again")
	case name == "esc", d.name == "" && (name == "n" || name == "q"):
		m.closeDialog()
	case d.name != "":
		if in, ok := edit(d.input, name, text); ok {
			d.input = in
		}
	}
	return nil
}

// menuDialog lists what can be done to the selection. What cannot is there too, with the reason.
type menuDialog struct {
	subject   page.Subject
	reason    string // why nothing can be changed
	elsewhere string // why nobody can even be asked
	at        int
}

// why an action cannot be done now; empty when it can.
func (d *menuDialog) why(a page.Action) string { return whyNot(a, d.reason, d.elsewhere) }

func whyNot(a page.Action, forbidden, elsewhere string) string {
	switch {
	case a.Why != "":
		return a.Why
	case a.Level == page.LevelNone:
		return elsewhere
	}
	return forbidden
}

// menu opens the actions of the selection.
func (m *model) menu() {
	s := page.Get(m.page).About(m.view, m.state())
	if len(s.Actions) == 0 {
		m.say(styles.Info, "there is nothing that can be done to %s", orThis(s.Name))
		return
	}
	d := &menuDialog{subject: s, reason: m.forbidden(), elsewhere: m.elsewhere()}
	for i := range s.Actions { // what can be done is chosen before what cannot
		if d.why(s.Actions[i]) == "" {
			d.at = i
			break
		}
	}
	m.dialog = d
}

func orThis(name string) string {
	if name == "" {
		return "this"
	}
	return name
}

// elsewhere is why there is no cluster to ask; empty when there is.
func (m *model) elsewhere() string {
	switch {
	case m.opts.Replay != "" || m.opts.Exec == nil:
		return "this is a recording"
	case m.past.on:
		return "this is the past: L goes back to now"
	}
	return ""
}

// forbidden is why nothing can be changed; empty when it can.
func (m *model) forbidden() string {
	if why := m.elsewhere(); why != "" || m.rw {
		return why
	}
	return "read-only: needs --allow-actions or :rw"
}

func (d *menuDialog) draw(c *component.Canvas) {
	box := component.Dialog{Title: "Actions: " + d.subject.Title(), Note: "esc to close"}
	for i, a := range d.subject.Actions {
		style, text := styles.Plain, fmt.Sprintf("%c  %s", a.Key, a.Title)
		if d.why(a) != "" {
			style = styles.Dim
		}
		if a.Why != "" {
			text += "  (" + a.Why + ")"
		}
		if i == d.at {
			style = style.Reverse()
		}
		box.Lines = append(box.Lines, component.Line{Text: text, Style: style})
	}
	box.Foot = []component.Line{{Text: "$ " + commandLine(d.subject.Actions[d.at].Command), Style: styles.Info}}
	if d.reason != "" {
		box.Foot = append(box.Foot, component.Line{Text: d.reason, Style: styles.Warn})
	}
	box.Draw(c, stage(c))
}

func (d *menuDialog) keys() []page.KeyHint {
	return []page.KeyHint{{Key: "⏎", Does: "plan"}, {Key: "↑↓", Does: "choose"}, {Key: "C", Does: "copy command"}, {Key: "esc", Does: "close"}}
}

func (d *menuDialog) key(m *model, name, _ string) tea.Cmd {
	n := len(d.subject.Actions)
	switch name {
	case "esc", "q":
		m.closeDialog()
	case "up", "k":
		d.at = (d.at + n - 1) % n
	case "down", "j":
		d.at = (d.at + 1) % n
	case "enter":
		return m.plan(d.subject, d.subject.Actions[d.at])
	case "C":
		return m.copy(m.elsewhereLine(d.subject.Actions[d.at].Command))
	default:
		for _, a := range d.subject.Actions {
			if name == string(a.Key) {
				return m.plan(d.subject, a)
			}
		}
	}
	return nil
}

// delete is ctrl-d: the action that deletes, if the selection has one.
func (m *model) delete() tea.Cmd {
	s := page.Get(m.page).About(m.view, m.state())
	for _, a := range s.Actions {
		if slices.Contains(a.Command, "delete") {
			return m.plan(s, a)
		}
	}
	m.say(styles.Info, "%s cannot be deleted from here", orThis(s.Name))
	return nil
}
