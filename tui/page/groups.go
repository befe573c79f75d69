package page

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/eastguard/eastguard/tui/component"
	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/styles"
)

// groups is page 7: how far consumers are behind, and who they are.
type groups struct{}

// ID is 7.
func (groups) ID() ID { return Groups }

var groupTable = &table[*store.Group]{
	name: "groups",
	sort: "LAG",
	id:   func(g *store.Group) string { return g.Group },
	text: func(g *store.Group) string { return g.Group + " " + g.State + " " + strings.Join(g.Topics, " ") },
	source: func(v *store.View, _ *State) source[*store.Group] {
		return source[*store.Group]{version: v.Groups.Version, n: v.Groups.Len(), at: v.Groups.At, find: v.Groups.Index}
	},
	faded: func(d *drawing, g *store.Group) bool { return d.v.Stale(g.Coordinator) },
	cols: []col[*store.Group]{
		{name: "GROUP", w: 12, most: 28, less: func(a, b *store.Group) int { return strings.Compare(a.Group, b.Group) }, cell: func(_ *drawing, g *store.Group) (string, styles.Style) { return g.Group, styles.Accent }},
		{name: "STATE", w: 8, most: 13, rank: 1, less: func(a, b *store.Group) int { return strings.Compare(a.State, b.State) }, paint: paintGroupState},
		{name: "GEN", w: 4, right: true, rank: 2, value: func(g *store.Group) float64 { return float64(g.Generation) }, cell: number(func(g *store.Group) int64 { return int64(g.Generation) })},
		{name: "MEMBERS", w: 7, right: true, rank: 3, value: func(g *store.Group) float64 { return float64(present(g)) }, cell: number(func(g *store.Group) int64 { return int64(present(g)) })},
		{name: "RANGES", w: 6, right: true, rank: 3, value: func(g *store.Group) float64 { return float64(g.Ranges) }, cell: number(func(g *store.Group) int64 { return int64(g.Ranges) })},
		{name: "LAG", w: 9, most: 12, right: true, rough: true, value: func(g *store.Group) float64 { return float64(g.Lag) }, cell: number(func(g *store.Group) int64 { return g.Lag })},
		{name: "TIME", w: 6, right: true, rough: true, value: func(g *store.Group) float64 { return float64(g.LagMs) }, cell: func(_ *drawing, g *store.Group) (string, styles.Style) { return plain(lagTime(g.LagMs)) }},
		{name: "RATE", w: 6, right: true, rough: true, rank: 1, value: func(g *store.Group) float64 { return float64(g.RecordsPerSec) }, cell: func(_ *drawing, g *store.Group) (string, styles.Style) {
			return plain(component.Short(float64(g.RecordsPerSec)) + "/s")
		}},
		{name: "TREND", w: 8, most: 24, rank: 2, bare: true, paint: paintTrend},
		{name: "TOPICS", w: 12, grow: true, prose: true, rank: 4, cell: func(_ *drawing, g *store.Group) (string, styles.Style) { return plain(strings.Join(g.Topics, " ")) }},
	},
}

// present counts the members that are in.
func present(g *store.Group) (n int) {
	for i := range g.Members {
		if g.Members[i].Evicted == "" {
			n++
		}
	}
	return n
}

func lagTime(ms int64) string {
	if ms < 60_000 {
		return fmt.Sprintf("%.1fs", float64(ms)/1000)
	}
	return component.Age(time.Duration(ms) * time.Millisecond)
}

func paintGroupState(d *drawing, place component.Rect, g *store.Group) {
	glyphs := d.c.Glyphs()
	sign, style := glyphs.Unknown, styles.Dim
	word := g.State
	switch g.State {
	case "stable":
		sign, style = glyphs.Alive, styles.OK
	case "rebalancing":
		sign, style = glyphs.Suspect, styles.Warn
		if place.W < 13 {
			word = "rebal"
		}
	case "empty":
		sign, style = glyphs.Left, styles.Dim
	}
	d.c.Pen(place).Sign(sign, style).Skip(1).Text(word, style)
}

func paintTrend(d *drawing, place component.Rect, g *store.Group) {
	if place.W < 4 {
		return
	}
	line, mark := place.CutRight(2)
	values := make([]float64, len(g.Trend))
	least, most := math.Inf(1), 0.0
	for i, v := range g.Trend {
		values[i] = float64(v)
		least, most = min(least, values[i]), max(most, values[i])
	}
	shape, full := g.Trend, 2*most // what stays is a line in the middle
	if most-least > most/20 {
		shape, full = make(store.Series, len(values)), most-least // what changes has all of the height
		for i, v := range values {
			shape[i] = float32(v - least)
		}
	}
	d.sparkTo(line, shape, 1, full, styles.Accent)
	trend := d.c.Trend(values)
	style := styles.Dim
	switch trend {
	case d.c.Glyphs().Up:
		style = styles.Warn
	case d.c.Glyphs().Down:
		style = styles.OK
	}
	d.c.Put(mark.X+1, mark.Y, trend, style)
}

// noGroups is why there are none.
var noGroups = []string{"no consumer groups yet: this version has none", "consumers of this version read by range and offset, and keep their offsets themselves"}

// drawGroups is the panel of the groups, on the overview too.
func drawGroups(d *drawing, r component.Rect, panel int) {
	var notes []string
	if n := d.v.Groups.Len(); n > 0 {
		notes = append(groupTable.notes(d, panel, r.W), plural(n, "group"))
	}
	inside := d.box(r, panel, "Consumer groups", d.join(r, "Consumer groups", notes...))
	groupTable.draw(d, panel, r, inside, noGroups...)
}

// Draw draws groups above and the members of the chosen one below.
func (groups) Draw(c *component.Canvas, body component.Rect, v *store.View, st *State) {
	st.focusable = 1
	d := &drawing{c: c, v: v, st: st}
	g := selected(groupTable.ordered(v, st, 0), st.Panels[0].Selected)
	if g == nil || st.Zoom {
		drawGroups(d, body, 0)
		return
	}
	top, below := body.CutTop(max(body.H*9/20, 5))
	drawGroups(d, top, 0)
	d.members(below, g)
}

// members are those of one group.
func (d *drawing) members(r component.Rect, g *store.Group) {
	note := fmt.Sprintf("generation %d  converged %d/%d", g.Generation, g.Converged, present(g))
	if g.ConvergedMs > 0 && g.Converged == present(g) {
		note += " in " + span(time.Duration(g.ConvergedMs)*time.Millisecond)
	}
	inside := d.plainBox(r, g.Group, note, styles.Dim)
	if len(g.Members) == 0 {
		d.empty(inside, "nobody is in this group", "what it has committed is kept")
		return
	}
	name := min(max(inside.W/6, 10), 24)
	d.c.Pen(inside.Line(0)).Field(name, "MEMBER", styles.Head).Number(10, "SEQ", styles.Head).Number(7, "LAST", styles.Head).Skip(2).
		Field(max(inside.W-name-10-7-2-10-8, 0), "RANGES", styles.Head).Number(10, "LAG", styles.Head).Number(8, "TOKENS", styles.Head)
	for i := range g.Members {
		m := &g.Members[i]
		pen := d.c.Pen(inside.Line(i+1)).Field(name-1, m.Name, styles.Accent).Skip(1).Number(10, component.Count(m.Sequence), styles.Plain)
		if m.Evicted != "" {
			pen.Skip(2).Text("EVICTED "+age(time.UnixMilli(m.SinceMs), d.st.Frame.Now)+" ago ("+m.Evicted+")", styles.Warn)
			continue
		}
		pen.Number(7, fmt.Sprintf("%.1fs", max(d.st.Frame.Now.Sub(time.UnixMilli(m.HeardMs)).Seconds(), 0)), styles.Plain).Skip(2).
			Field(max(pen.Left()-20, 0), rangesOf(m.Ranges), styles.Plain).Skip(2).Number(10, component.Count(m.Lag), styles.Plain).Number(8, component.Count(m.Tokens), styles.Plain)
	}
}

// rangesOf names ranges, the topic only where it changes: orders/r3 r41.
func rangesOf(list []string) string {
	var b strings.Builder
	before := ""
	for i, s := range list {
		if i > 0 {
			b.WriteByte(' ')
		}
		topic, id, ok := strings.Cut(s, "/")
		if ok && topic == before {
			b.WriteString(id)
			continue
		}
		before = topic
		b.WriteString(s)
	}
	return b.String()
}

// Rows are the groups.
func (groups) Rows(v *store.View, st *State) Rows { return groupTable.ordered(v, st, 0) }

// Columns are those of the table.
func (groups) Columns(*State) []string { return groupTable.columns() }

// Panels is 1.
func (groups) Panels(int, int) int { return 1 }

// Head counts the groups.
func (groups) Head(v *store.View, _ *State) string { return plural(v.Groups.Len(), "group") }

// Alarm is that of the cluster.
func (groups) Alarm(v *store.View, st *State) Line { return alarmOf(v, st) }

// About is the chosen group.
func (groups) About(v *store.View, st *State) Subject {
	return aboutGroup(selected(groupTable.ordered(v, st, 0), st.Panels[0].Selected))
}

func aboutGroup(g *store.Group) Subject {
	if g == nil {
		return Subject{}
	}
	why := "this version has no such command"
	return Subject{
		Kind: KindGroup, Name: g.Group, Open: Groups, Row: g.Group, Describe: []string{"group", "describe", g.Group},
		Actions: []Action{
			{Key: 'r', Title: "reset offsets…", Head: "Reset the offsets of group " + g.Group, Command: []string{"group", "reset-offsets", g.Group}, Level: LevelYes, Why: why},
			{Key: 'd', Title: "delete…", Head: "Delete group " + g.Group, Command: []string{"group", "delete", g.Group}, Level: LevelName, Why: why},
		},
	}
}
