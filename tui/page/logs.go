package page

import (
	"strconv"
	"strings"

	"github.com/eastguard/eastguard/tui/component"
	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/styles"
)

// logs is page 9: the logs of all nodes as one, the newest at the bottom, where a log grows.
type logs struct{}

// ID is 9.
func (logs) ID() ID { return Logs }

var logTable = &table[*store.LogLine]{
	name: "logs",
	id: func(l *store.LogLine) string {
		return string(l.Node) + "/" + strconv.FormatUint(l.Seq, 10) + "/" + strconv.FormatInt(l.TimeMs, 10)
	},
	text: func(l *store.LogLine) string {
		var b strings.Builder
		b.WriteString(l.Level + " " + string(l.Node) + " " + l.Message)
		for _, a := range l.Attrs {
			b.WriteString(" " + a.Key + "=" + a.Value)
		}
		return b.String()
	},
	source: logSource,
}

func logSource(v *store.View, st *State) source[*store.LogLine] {
	log := v.Logs
	s := source[*store.LogLine]{version: log.Version, n: log.Len(), came: log.Dropped + uint64(log.Len()), at: log.At, scope: string(st.Node) + "/" + st.Level}
	if st.Node != "" || st.Level != "" {
		least := severity(st.Level)
		s.pass = func(l *store.LogLine) bool {
			return (st.Node == "" || l.Node == st.Node) && severity(l.Level) >= least
		}
	}
	s.find = func(id string) int {
		node, rest, _ := strings.Cut(id, "/")
		seq, at, _ := strings.Cut(rest, "/")
		for i := s.n - 1; i >= 0; i-- {
			if l := log.At(i); string(l.Node) == node && same(l.Seq, seq) && same(uint64(l.TimeMs), at) {
				return i
			}
		}
		return -1
	}
	return s
}

func severity(level string) int {
	switch strings.ToLower(level) {
	case "info":
		return 1
	case "warn":
		return 2
	case "error":
		return 3
	}
	return 0
}

func levelLook(level string) (string, styles.Style) {
	switch strings.ToLower(level) {
	case "error":
		return "ERROR", styles.Bad
	case "warn":
		return "WARN", styles.Warn
	case "debug":
		return "DEBUG", styles.Dim
	}
	return strings.ToUpper(level), styles.Plain
}

// Draw draws the lines.
func (logs) Draw(c *component.Canvas, body component.Rect, v *store.View, st *State) {
	st.focusable = 1
	d := &drawing{c: c, v: v, st: st}
	level, node := "all levels", "all nodes"
	if st.Level != "" {
		level = st.Level + " and worse"
	}
	if st.Node != "" {
		node = "node " + string(st.Node)
	}
	follows := ""
	if st.Follow && !st.Frame.Paused {
		follows = "follow"
	}
	inside := d.box(body, 0, "Logs", d.join(body, "Logs", d.filtered(0, body.W, logTable.ordered(v, st, 0).o), level, node, follows))
	if st.Follow && st.Panels[0].Selected == "" {
		st.Panels[0].Scroll = v.Logs.Len() // the end: the table comes back to its last screen
	}
	follow := st.Follow
	st.Follow = false
	logTable.drawLines(d, 0, body, inside, d.drawLog, "no lines of log yet", "they are asked for while this page is open; a node keeps its last 5,000")
	st.Follow = follow
}

func (d *drawing) drawLog(line component.Rect, l *store.LogLine) {
	word, style := levelLook(l.Level)
	layout := "15:04:05"
	if line.W >= 100 {
		layout = "15:04:05.000"
	}
	pen := d.c.Pen(line).Text(d.st.Frame.local(l.At).Format(layout), styles.Dim).Skip(1).
		Field(5, word, style).Skip(1).Field(max(d.nodeWidth(), 3), string(l.Node), styles.Accent).Skip(1).Text(l.Message, textStyle(style)).Skip(1)
	for _, a := range l.Attrs {
		pen.Skip(1).Text(a.Key+"=", styles.Dim).Text(quoted(a.Value), styles.Plain)
	}
}

// quoted is a value that is told from what follows it, as eg-cli has it.
func quoted(value string) string {
	if value == "" || strings.ContainsAny(value, ` "=`) {
		return strconv.Quote(value)
	}
	return value
}

// textStyle lets errors stand out; all else is plain.
func textStyle(level styles.Style) styles.Style {
	if level == styles.Bad || level == styles.Dim {
		return level
	}
	return styles.Plain
}

// nodeWidth is the width of the longest name of a node, within reason.
func (d *drawing) nodeWidth() int {
	w := 0
	for _, n := range d.v.Nodes.Rows() {
		w = max(w, d.c.Width(string(n.ID)))
	}
	return min(w, 12)
}

// Rows are the lines.
func (logs) Rows(v *store.View, st *State) Rows { return logTable.ordered(v, st, 0) }

// Columns are none: lines stay in their order.
func (logs) Columns(*State) []string { return nil }

// Panels is 1.
func (logs) Panels(int, int) int { return 1 }

// Head counts the lines.
func (logs) Head(v *store.View, _ *State) string { return plural(v.Logs.Len(), "line") }

// Alarm is that of the cluster.
func (logs) Alarm(v *store.View, st *State) Line { return alarmOf(v, st) }

// About is the node whose line is selected.
func (logs) About(v *store.View, st *State) Subject {
	list := logTable.ordered(v, st, 0)
	i := list.Index(st.Panels[0].Selected)
	if i < 0 {
		return Subject{}
	}
	l := list.at(i)
	return Subject{Kind: KindLog, Name: l.Message, Open: Ring, Row: string(l.Node), Describe: []string{"node", "describe", string(l.Node)}}
}
