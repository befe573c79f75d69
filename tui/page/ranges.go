package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/component"
	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/styles"
)

// ranges is page 5: one topic's key space, where its ranges come from, and each of them.
type ranges struct{}

// ID is 5.
func (ranges) ID() ID { return Ranges }

// TopicOf is the topic that a page is about: the one named, else the busiest.
func TopicOf(v *store.View, st *State) string {
	if st.Topic != "" {
		return st.Topic
	}
	return Busiest(v, st)
}

// Busiest is the topic that is written to most. It stays the one that it was until another is clearly busier.
func Busiest(v *store.View, st *State) string {
	m := st.remembered()
	best := v.Topics.Get(m.busiest)
	for _, t := range v.Topics.Rows() {
		if best == nil || t.InBytes > best.InBytes && store.Steady(best.InBytes, t.InBytes) != best.InBytes {
			best = t
		}
	}
	m.busiest = ""
	if best != nil {
		m.busiest = best.Name
	}
	return m.busiest
}

var rangeTable = &table[*store.Range]{
	name: "ranges",
	sort: "RATE",
	id:   func(r *store.Range) string { return r.Key.Topic + "/" + r.Key.Range.String() },
	text: func(r *store.Range) string {
		return r.Key.Range.String() + " " + r.State + " " + r.Load + " " + string(r.Leader) + " " + r.Segment.String()
	},
	source: func(v *store.View, st *State) source[*store.Range] {
		topic := TopicOf(v, st)
		list := v.RangesOf(topic)
		t := v.Topics.Get(topic)
		part, all := t == nil, 0
		if t != nil {
			part, all = t.Detailed.IsZero() && len(list) < t.Ranges, t.Ranges
		}
		return source[*store.Range]{
			version: v.Ranges.Version, scope: topic, n: len(list), part: part, all: all, at: func(i int) *store.Range { return list[i] },
			find: func(id string) int {
				key, ok := rangeKey(id)
				if !ok {
					return -1
				}
				return slices.IndexFunc(list, func(r *store.Range) bool { return r.Key == key })
			},
		}
	},
	faded: func(d *drawing, r *store.Range) bool {
		return r.State != "active" || r.Leader != "" && d.v.Stale(r.Leader)
	},
	cols: []col[*store.Range]{
		{name: "RANGE", w: 5, most: 8, less: func(a, b *store.Range) int { return cmp.Compare(a.Key.Range, b.Key.Range) }, cell: func(_ *drawing, r *store.Range) (string, styles.Style) { return r.Key.Range.String(), styles.Accent }},
		{name: "START", w: 6, less: func(a, b *store.Range) int { return cmp.Compare(a.Start, b.Start) }, cell: func(_ *drawing, r *store.Range) (string, styles.Style) { return plain(hash(r.Start)) }},
		{name: "END", w: 6, cell: func(_ *drawing, r *store.Range) (string, styles.Style) { return plain(end(r.End)) }},
		{name: "STATE", w: 6, less: func(a, b *store.Range) int { return cmp.Compare(a.State, b.State) }, cell: func(_ *drawing, r *store.Range) (string, styles.Style) { return plain(strings.ToUpper(r.State)) }},
		{name: "LOAD", w: 10, rank: 2, less: func(a, b *store.Range) int {
			return cmp.Or(cmp.Compare(a.Load, b.Load), cmp.Compare(b.Streak, a.Streak))
		}, cell: load},
		{name: "RATE", w: 10, right: true, rough: true, value: rangeRate, cell: func(_ *drawing, r *store.Range) (string, styles.Style) {
			if !r.Counted || r.State != "active" {
				return dim(none)
			}
			return plain(tight(r.InBytes))
		}},
		{name: "REC/s", w: 6, right: true, rough: true, rank: 5, value: func(r *store.Range) float64 { return r.InRecords }, cell: func(_ *drawing, r *store.Range) (string, styles.Style) {
			if !r.Counted || r.State != "active" {
				return dim(none)
			}
			return plain(component.Short(r.InRecords))
		}},
		{name: "SEGS", w: 5, right: true, rank: 3, value: func(r *store.Range) float64 { return float64(r.Segments) }, cell: func(_ *drawing, r *store.Range) (string, styles.Style) {
			if r.Segments == 0 {
				return dim(none)
			}
			return plain(component.Count(r.Segments))
		}},
		{name: "SIZE", w: 9, right: true, rank: 4, value: func(r *store.Range) float64 { return float64(r.Bytes) }, cell: func(_ *drawing, r *store.Range) (string, styles.Style) {
			if r.Bytes == 0 {
				return dim(none)
			}
			return plain(component.Bytes(uint64(r.Bytes)))
		}},
		{name: "OFFSET", w: 11, right: true, rank: 6, value: func(r *store.Range) float64 { return float64(r.Offset) }, cell: index(func(r *store.Range) uint64 { return uint64(max(r.Offset, 0)) })},
		{name: "LEADER", w: 6, most: 8, less: func(a, b *store.Range) int { return cmp.Compare(a.Leader, b.Leader) }, cell: func(_ *drawing, r *store.Range) (string, styles.Style) { return plain(orNone(string(r.Leader))) }},
		{name: "SEG", w: 6, most: 9, rank: 1, cell: func(_ *drawing, r *store.Range) (string, styles.Style) {
			if r.Segment == 0 {
				return dim(none)
			}
			return plain(r.Segment.String())
		}},
		{name: "FROM", w: 8, rank: 7, cell: func(_ *drawing, r *store.Range) (string, styles.Style) { return dim(orNone(joined(r.Parents, " "))) }},
		{name: "AGE", w: 5, right: true, value: func(r *store.Range) float64 { return float64(since(r).UnixMilli()) }, cell: func(d *drawing, r *store.Range) (string, styles.Style) {
			text := brief(since(r), d.st.Frame.Now)
			if t := since(r); !t.IsZero() && d.st.Frame.Now.Sub(t) < time.Minute {
				return text, styles.Info.Bold()
			}
			return plain(text)
		}},
	},
}

// rangeKey reads the id of a row: orders/r9.
func rangeKey(id string) (key store.RangeKey, ok bool) {
	at := strings.LastIndexByte(id, '/')
	if at < 0 {
		return key, false
	}
	r, err := sdk.ParseRangeID(id[at+1:])
	return store.RangeKey{Topic: id[:at], Range: r}, err == nil
}

// rangeRate puts what is sealed behind everything else.
func rangeRate(r *store.Range) float64 {
	if r.State != "active" {
		return -1
	}
	return r.InBytes
}

func since(r *store.Range) time.Time {
	if r.State != "active" && !r.Sealed.IsZero() {
		return r.Sealed
	}
	return r.Created
}

func load(_ *drawing, r *store.Range) (string, styles.Style) {
	switch {
	case r.State != "active" || r.Load == "":
		return dim(none)
	case r.Load == "pressure":
		style := styles.Plain
		if r.Streak >= splitStreak-1 {
			style = styles.Warn
		}
		return fmt.Sprintf("pressure %d", r.Streak), style
	case r.Load == "idle":
		return dim(fmt.Sprintf("idle %d", r.Streak))
	}
	return plain(r.Load)
}

// Draw draws key space and table.
func (p ranges) Draw(c *component.Canvas, body component.Rect, v *store.View, st *State) {
	st.focusable = 1
	d := &drawing{c: c, v: v, st: st}
	topic := TopicOf(v, st)
	if topic == "" {
		d.empty(d.box(body, 0, "Ranges", ""), noTopics(v)...)
		return
	}
	if !st.Zoom {
		var top component.Rect
		top, body = body.CutTop(min(max(body.H/2, 6), 16))
		d.keyspaceOf(top, topic)
	}
	inside := d.box(body, 0, "Ranges", d.join(body, "Ranges", rangeTable.notes(d, 0, body.W)...))
	rangeTable.draw(d, 0, body, inside, "no range of "+topic+" is known yet", "they are asked for while this page is open")
}

// keyspaceOf is a topic's key space at full width, and the lineage below.
func (d *drawing) keyspaceOf(r component.Rect, topic string) {
	t := d.v.Topics.Get(topic)
	active := len(d.v.KeyspaceOf(topic))
	note := plural(active, "active range")
	if t != nil {
		text, _ := topicRate(d, t)
		if t.Detailed.IsZero() && active < t.Ranges {
			note = fmt.Sprintf("%d of %d active ranges known", active, t.Ranges)
		}
		note += fmt.Sprintf("  RF %d  %s", t.ReplicationFactor, padded(component.RateWidth, text))
	}
	inside := d.plainBox(r, topic+d.say(" — ", " - ")+"keyspace", note, styles.Dim)
	if active == 0 {
		d.empty(inside, "no active range of "+topic+" is known yet", "they are asked for while this page is open")
		return
	}
	k := d.keyspace(topic, 0)
	if !k.Dense(inside.W) {
		for i, r := range d.v.KeyspaceOf(topic) {
			k.Slices[i].Name = r.Key.Range.String()
		}
	}
	scale, rest := inside.CutTop(1)
	k.Scale(d.c, scale)
	bar, rest := rest.CutTop(min(max(rest.H-9, 1), 4)) // the room that lineage of some depth leaves
	k.Bar(d.c, bar)
	names, rest := rest.CutTop(1)
	k.Names(d.c, names)
	line, rest := rest.CutTop(1) // blank while nothing has changed, so that nothing moves when it does
	if change := d.lastChange(topic, 5*time.Minute); change != nil && !line.Empty() {
		component.DrawNote(d.c, line, d.changeNote(change, "", true))
	}
	d.lineage(rest, topic)
}

// lineage draws where a range comes from: its ancestors, and what else became of each.
func (d *drawing) lineage(r component.Rect, topic string) {
	if r.H < 1 {
		return
	}
	pen := d.c.Pen(r.Line(0)).Field(9, "lineage", styles.Dim)
	target := d.lineageTarget(topic)
	if target == nil || len(target.Parents) == 0 {
		pen.Text("every range is as old as the topic: nothing has split or merged yet", styles.Dim)
		return
	}
	chain := d.ancestors(target)
	if len(chain) > r.H {
		chain = chain[len(chain)-r.H:]
		pen.Text(string(d.c.Glyphs().Ellipsis)+" ", styles.Dim)
	}
	d.branches(r, pen, chain, target)
}

// branches draws the chain as a staircase: each step one generation, the brothers beside it.
func (d *drawing) branches(r component.Rect, pen *component.Pen, chain []*store.Range, target *store.Range) {
	g := d.c.Glyphs()
	pen.Text(chain[0].Key.Range.String(), styles.Plain)
	for i := 0; i+1 < len(chain); i++ {
		parent, next := chain[i], chain[i+1]
		column := pen.Rest().X - r.X
		pen.Text(" ", styles.Dim).Sign(g.Horizontal, styles.Dim).Sign(g.Fork, styles.Dim).Sign(g.Horizontal, styles.Dim).Skip(1)
		brothers := make([]string, 0, 4)
		for _, c := range parent.Children {
			if c != next.Key.Range {
				brothers = append(brothers, c.String())
			}
		}
		if len(brothers) == 0 {
			brothers = append(brothers, none)
		}
		pen.Text(strings.Join(brothers, " "), styles.Dim)
		line := r.Line(i + 1)
		if line.Empty() {
			return
		}
		pen = d.c.Pen(line).To(column+2).Sign(g.LastBranch, styles.Dim).Sign(g.Horizontal, styles.Dim).Skip(1)
		style := styles.Plain
		if next == target {
			style = styles.Accent.Bold()
		}
		pen.Text(next.Key.Range.String(), style)
		if next == target {
			pen.Skip(1).Sign(g.Pointer, styles.Accent)
		}
	}
}

// lineageTarget is the range whose lineage is shown: the selected one, else the youngest that came from others.
func (d *drawing) lineageTarget(topic string) *store.Range {
	if key, ok := rangeKey(d.st.Panels[0].Selected); ok && key.Topic == topic {
		if r := d.v.Ranges.Get(key); r != nil {
			return r
		}
	}
	var young *store.Range
	for _, r := range d.v.RangesOf(topic) {
		if len(r.Parents) > 0 && (young == nil || r.Created.After(young.Created)) {
			young = r
		}
	}
	return young
}

// ancestors are the first parents of a range, the oldest first, itself last.
func (d *drawing) ancestors(r *store.Range) []*store.Range {
	chain := []*store.Range{r}
	for len(r.Parents) > 0 && len(chain) < 64 {
		r = d.v.Ranges.Get(store.RangeKey{Topic: r.Key.Topic, Range: r.Parents[0]})
		if r == nil {
			break
		}
		chain = append(chain, r)
	}
	slices.Reverse(chain)
	return chain
}

// covered is the part of the key space that active ranges hold.
func covered(list []*store.Range) (sum float64) {
	for _, r := range list {
		sum += width(r)
	}
	return sum
}

// Rows are the ranges.
func (ranges) Rows(v *store.View, st *State) Rows { return rangeTable.ordered(v, st, 0) }

// Columns are those of the table.
func (ranges) Columns(*State) []string { return rangeTable.columns() }

// Panels is 1.
func (ranges) Panels(int, int) int { return 1 }

// Head is the topic.
func (ranges) Head(v *store.View, st *State) string { return TopicOf(v, st) }

// Alarm says what of the key space is covered.
func (ranges) Alarm(v *store.View, st *State) Line {
	topic := TopicOf(v, st)
	t := v.Topics.Get(topic)
	active := v.KeyspaceOf(topic)
	if t == nil || len(active) == 0 || t.Detailed.IsZero() {
		return alarmOf(v, st)
	}
	part := covered(active)
	line := Line{fmt.Sprintf("%s active; keyspace covered %.1f%%", plural(len(active), "range"), part*100), styles.Plain}
	if part < 0.9999 {
		line.Style = styles.Warn
	}
	d := &drawing{v: v, st: st}
	if c := d.lastChange(topic, time.Minute); c != nil {
		done := " sealed; "
		line.Text = joined(c.Parents, " ") + done + plural(len(c.Children), "successor") + "; " + line.Text
	}
	return line
}

// About is the selected range.
func (ranges) About(v *store.View, st *State) Subject {
	return aboutRange(selected(rangeTable.ordered(v, st, 0), st.Panels[0].Selected))
}

func aboutRange(r *store.Range) Subject {
	if r == nil {
		return Subject{}
	}
	topic, id := r.Key.Topic, r.Key.Range.String()
	why := "this version has no such command"
	s := Subject{Kind: KindRange, Name: topic + "/" + id, Topic: topic, Range: id, Open: Segments, Describe: []string{"topic", "describe", topic, "--ranges"}}
	s.Actions = []Action{
		{Key: 's', Title: "split…", Head: "Split range " + s.Name, Command: []string{"range", "split", topic, id, "--at", "mid"}, Level: LevelYes, Why: why},
		{Key: 'm', Title: "merge…", Head: "Merge range " + s.Name, Command: []string{"range", "merge", topic, id}, Level: LevelYes, Why: why},
	}
	if r.Segment != 0 {
		s.Actions = append(s.Actions, sealAction(r.Segment, r.State))
	}
	return s
}

func sealAction(id sdk.SegmentID, state string) Action {
	a := Action{Key: 'e', Title: "end its segment…", Head: "End segment " + id.String(), Command: []string{"segment", "seal", id.String()}, Level: LevelYes}
	if state != "active" {
		a.Why = "it is sealed already"
	}
	return a
}
