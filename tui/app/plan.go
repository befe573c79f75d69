package app

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/tui/component"
	"github.com/eastguard/eastguard/tui/page"
	"github.com/eastguard/eastguard/tui/styles"
)

// planDialog is an action with its plan: what would be done, and the command that does it.
type planDialog struct {
	subject page.Subject
	action  page.Action
	name    string // to be typed; empty: y is enough
	note    string
	input   component.Input
	plan    []string
	ready   bool   // the plan is there, and can be carried out
	failed  bool   // there is none, and the lines say why
	premise string // what the plan was made for, once it is known
	unsaid  string // why that is not known
	changed bool   // it was made for something else before, and was not carried out for that
	doing   bool
}

// The commands of a plan, of which one at a time is asked for. What is shown is text; what must still be the same when it is
// carried out is read from the document.
func (d *planDialog) dryRun() []string   { return append(slices.Clone(d.action.Command), "--dry-run") }
func (d *planDialog) document() []string { return append(d.dryRun(), "-o", "json") }

func (d *planDialog) carryOut(m *model) []string {
	words := append(slices.Clone(d.action.Command), "--yes")
	if m.opts.Context.Protected {
		words = append(words, "--confirm", d.name)
	}
	return words
}

// plan asks for what an action would do.
func (m *model) plan(s page.Subject, a page.Action) tea.Cmd {
	if why := whyNot(a, m.forbidden(), m.elsewhere()); why != "" {
		m.closeDialog()
		m.say(styles.Warn, "%s: %s", a.Head, why)
		return nil
	}
	if a.Level == page.LevelNone {
		return m.ask(a.Command)
	}
	d := &planDialog{subject: s, action: a}
	if a.Level == page.LevelName || m.opts.Context.Protected {
		d.name = confirmName(s)
	}
	if m.opts.Context.Protected {
		d.note = "protected context"
	}
	m.dialog = d
	return d.ask(m)
}

// ask asks for the plan: for its document first, so that what changes between the two is noticed.
func (d *planDialog) ask(m *model) tea.Cmd {
	d.premise, d.unsaid, d.ready, d.failed, d.doing = "", "", false, false, false
	return m.exec(d, d.document())
}

// confirmName is what eg-cli wants typed.
func confirmName(s page.Subject) string {
	if s.Kind == page.KindShard {
		return "shard " + s.Name
	}
	return s.Name
}

func (d *planDialog) draw(c *component.Canvas) {
	box := component.Dialog{Title: d.action.Head, Style: styles.Warn, Warn: d.note}
	look := styles.Plain
	if d.failed {
		box.Style, look = styles.Bad, styles.Bad
	}
	for _, l := range d.plan {
		box.Lines = append(box.Lines, component.Line{Text: expand(l), Style: look})
	}
	box.Foot = []component.Line{{Text: "$ " + commandLine(d.action.Command), Style: styles.Info}}
	last := func(text string, style styles.Style) {
		box.Foot = append(box.Foot, component.Line{}, component.Line{Text: text, Style: style})
	}
	if d.changed && d.ready && !d.doing {
		last("nothing was done: things have changed since the plan was shown, this is the one of now", styles.Warn)
	}
	switch {
	case d.doing:
		last("doing it…", styles.Dim)
	case d.failed:
		last("there is no plan, so nothing can be done", styles.Warn)
	case !d.ready:
		last("asking for the plan…", styles.Dim)
	case d.name != "":
		box.Input, box.Ask = &d.input, "Type "+d.name+" to confirm: "
	default:
		last("y to do it, n to leave it", styles.Key)
	}
	box.Draw(c, stage(c))
}

func (d *planDialog) keys() []page.KeyHint {
	confirm := page.KeyHint{Key: "y", Does: "confirm"}
	if d.name != "" {
		confirm.Key = "⏎"
	}
	hints := []page.KeyHint{{Key: "ctrl-y", Does: "copy command"}, {Key: "esc", Does: "cancel"}}
	if d.failed {
		hints[1].Does = "close"
	}
	if d.ready && !d.doing {
		hints = slices.Insert(hints, 0, confirm)
	}
	return hints
}

func (d *planDialog) key(m *model, name, text string) tea.Cmd {
	yes := d.ready && !d.doing && (d.name == "" && (name == "y" || name == "Y") || d.name != "" && name == "enter" && d.input.Text == d.name)
	switch {
	case yes:
		d.doing = true
		return m.exec(d, d.document()) // whether the plan still holds
	case name == "ctrl+y":
		return m.copy(m.elsewhereLine(d.action.Command))
	case name == "esc", d.name == "" && (name == "n" || name == "q"):
		m.closeDialog()
	case d.name != "" && d.ready && !d.doing:
		if in, ok := edit(d.input, name, text); ok {
			d.input = in
		}
	}
	return nil
}

func (d *planDialog) paste(_ *model, text string) {
	if d.name != "" && d.ready && !d.doing {
		d.input = d.input.Insert(text)
	}
}

// executed takes what a command has answered to where it was asked for; what nobody waits for any more is dropped, but
// for what became of a change.
func (m *model) executed(msg execMsg) tea.Cmd {
	changed := slices.Contains(msg.words, "--yes")
	if changed {
		m.crossOut(msg.words)
	}
	if msg.asker == m.dialog {
		switch d := m.dialog.(type) {
		case *textDialog:
			next := newText(d.title, msg.text)
			next.bad = msg.err != nil
			m.dialog = next
			return nil
		case *planDialog:
			if !changed {
				return d.answered(m, msg)
			}
			m.closeDialog()
		}
	}
	if changed {
		m.outcome(msg)
	}
	return nil
}

// crossOut notes that a change has answered.
func (m *model) crossOut(words []string) {
	at := slices.IndexFunc(m.underway, func(other []string) bool { return slices.Equal(other, words) })
	if at >= 0 {
		m.underway = slices.Delete(m.underway, at, at+1)
	}
}

// answered takes an answer to what the dialog has asked before it changes anything, and goes on.
func (d *planDialog) answered(m *model, msg execMsg) tea.Cmd {
	switch document := slices.Equal(msg.words, d.document()); {
	case document && msg.err != nil: // the text says why, for people
		d.unsaid, d.doing, d.ready = msg.text, false, false
		return m.exec(d, d.dryRun())
	case document && !d.doing:
		d.premise = premiseOf(msg.text)
		return m.exec(d, d.dryRun())
	case document && premiseOf(msg.text) != d.premise:
		d.changed, d.input = true, component.Input{}
		return d.ask(m)
	case document:
		words := d.carryOut(m)
		m.underway = append(m.underway, words)
		return m.exec(d, words)
	}
	text := msg.text
	d.failed = msg.err != nil || d.unsaid != ""
	if msg.err == nil && d.failed {
		text = d.unsaid
	}
	d.plan = strings.Split(strings.TrimRight(term.EscapeLines(text), "\n"), "\n")
	d.ready = !d.failed
	return nil
}

// premises are the fields of plans that say what is changed, and from what to what. The others only measure.
var premises = []string{"topic", "id", "version", "range", "old", "lossy", "shard", "from", "to", "result", "node", "change", "before", "after"}

// isPremise reports whether what a field of an object says must still hold. How many segments have their only copies on a
// node is what its loss costs; of a topic it is how far it has come.
func isPremise(object map[string]any, key string) bool {
	_, ofNode := object["node"]
	return slices.Contains(premises, key) || ofNode && key == "segments"
}

// premiseOf is what a plan was made for, as text to be compared.
func premiseOf(document string) string {
	var parts []string
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				if isPremise(v, key) {
					parts = append(parts, fmt.Sprintf("%s=%q", key, fmt.Sprint(v[key])))
				} else {
					walk(v[key])
				}
			}
		}
	}
	for dec := json.NewDecoder(strings.NewReader(document)); ; {
		var v any
		if dec.Decode(&v) != nil {
			return strings.Join(parts, " ")
		}
		walk(v)
	}
}

// outcome says what became of a change.
func (m *model) outcome(msg execMsg) {
	text := strings.TrimSpace(term.EscapeLines(msg.text))
	first, _, more := strings.Cut(text, "\n")
	switch {
	case msg.err != nil || more:
		d := newText(commandLine(msg.words), text)
		d.bad = msg.err != nil
		m.dialog = d
	case first == "":
		m.say(styles.OK, "done: %s", commandLine(msg.words))
	default:
		m.say(styles.OK, "%s", first)
	}
}
