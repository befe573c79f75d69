package page

import (
	"strings"
	"time"

	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/component"
	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/styles"
)

// How long a change of the topology is shown.
const (
	freshFor = 3 * time.Second  // in reverse
	notedFor = 10 * time.Second // with a note below
	// splitStreak is how many segments in a row must be under pressure before a range splits.
	splitStreak = 3
)

// keyspace is a topic's active ranges as a bar.
func (d *drawing) keyspace(topic string, most float64) component.Keyspace {
	active := d.v.KeyspaceOf(topic)
	k := component.Keyspace{Slices: make([]component.Slice, len(active)), Most: most}
	now := d.st.Frame.Now
	for i, r := range active {
		s := component.Slice{Start: r.Start, End: r.End, Rate: r.Steady}
		s.Fresh = !d.st.Frame.Still && len(r.Parents) > 0 && !r.Created.IsZero() && now.Sub(r.Created) < freshFor
		switch {
		case r.Load == "pressure" && r.Streak == splitStreak-1:
			s.Sign = '!'
		case r.Load == "idle" && (i > 0 && active[i-1].Load == "idle" || i+1 < len(active) && active[i+1].Load == "idle"):
			s.Sign = '~'
		}
		k.Slices[i] = s
	}
	return k
}

// hottest is the rate of the busiest range, which all bars of a screen have as their full height.
func (d *drawing) hottest() float64 {
	m := d.st.remembered()
	m.hottest = store.Steady(m.hottest, max(d.v.Cluster.Busiest, 1))
	return m.hottest
}

// lastChange is the newest split or merge of a topic, if it is recent.
func (d *drawing) lastChange(topic string, within time.Duration) *store.Change {
	all := d.v.Changes.All()
	for i := len(all) - 1; i >= 0; i-- {
		c := all[i]
		if d.st.Frame.Now.Sub(c.Time) > within {
			return nil
		}
		if c.Topic == topic {
			return c
		}
	}
	return nil
}

// changeNote is what stands below the bar: ▲▲ r17 ⟶ r41 r42 split 4s ago. Of is what to put in front: the topic, where
// the bar above may be another's.
func (d *drawing) changeNote(c *store.Change, of string, long bool) component.Note {
	g := d.c.Glyphs()
	sign, word, at := g.SplitAt, "split", c.At
	if c.Merge {
		sign, word, at = g.MergeAt, "merged", c.Start
	}
	between := " "
	if c.Merge {
		between = " + "
	}
	text := string([]rune{sign, sign}) + " " + of + joined(c.Parents, between) + " " + string(g.Arrow) + " " + joined(c.Children, " ")
	text += "  " + word + " " + age(c.Time, d.st.Frame.Now) + " ago"
	if long {
		if !c.Merge {
			text += "  at " + hash(c.At)
		}
		if c.Cause != "" {
			text += "  " + c.Cause
			if c.Streak > 0 {
				text += d.say("×", " x") + component.Count(c.Streak)
			}
		}
	}
	return component.Note{At: at, Text: text, Style: styles.Info}
}

func joined(ids []sdk.RangeID, between string) string {
	var b strings.Builder
	for i, id := range ids {
		if i > 0 {
			b.WriteString(between)
		}
		b.WriteString(id.String())
	}
	return b.String()
}

// drawHottest draws the busiest topics with their key space.
func drawHottest(d *drawing, r component.Rect, panel int) {
	wide := r.W >= 100
	note := "keyspace 0 " + strings.Repeat(string(d.c.Glyphs().Horizontal), 5) + string(d.c.Glyphs().Crumb) + d.say(" 2⁶⁴", " 2^64")
	if wide {
		note = "keyspace 0x0000 " + strings.Repeat(string(d.c.Glyphs().Horizontal), 13) + string(d.c.Glyphs().Crumb) + " 0xffff"
	}
	list := topicTable.ordered(d.v, d.st, panel)
	inside := d.box(r, panel, "Hottest topics", d.join(r, "Hottest topics", d.filtered(panel, r.W, list.o), list.known(), note))
	at := PanelAt{Panel: panel, Box: r, Table: component.TableView{Rows: inside}}
	if list.Len() == 0 {
		d.st.Shown.Panels = append(d.st.Shown.Panels, at)
		d.empty(inside, noTopics(d.v)...)
		return
	}
	if wide {
		var head component.Rect
		head, inside = inside.CutTop(1)
		d.c.Pen(head).Field(15, "TOPIC", styles.Head).Number(6, "RANGES", styles.Head).Number(12, "RATE", styles.Head)
	}
	foot := component.Rect{}
	roomy := inside.H >= 2*list.Len() || inside.H > 16
	per := 1
	switch {
	case roomy: // each has a line for what becomes of its ranges
		per = 2
	case inside.H > 2: // all share one
		inside, foot = inside.CutBottom(1)
	}
	f := &d.st.Panels[panel]
	chosen := list.Index(f.Selected)
	f.Scroll = scroll(f.Scroll, chosen, list.Len(), max(inside.H/per, 1))
	if chosen < 0 && panel == d.st.Panel {
		chosen = f.Scroll
	}
	at.Table = component.TableView{Rows: inside, Top: f.Scroll}
	var bar component.Rect
	for y, i := 0, f.Scroll; y < inside.H && i < list.Len(); i++ {
		t := list.at(i)
		line := inside.Line(y)
		bar = d.hotTopic(line, t, wide)
		if i == chosen && panel == d.st.Panel {
			d.c.Select(component.Rect{X: line.X, Y: line.Y, W: bar.X - line.X - 1, H: 1})
		}
		for range per {
			at.Lines = append(at.Lines, i)
		}
		if change := d.lastChange(t.Name, notedFor); roomy && change != nil && y+1 < inside.H {
			component.DrawNote(d.c, component.Rect{X: bar.X, Y: inside.Y + y + 1, W: bar.W, H: 1}, d.changeNote(change, "", wide))
		}
		y += per
		at.Table.Visible = i - f.Scroll + 1
	}
	at.IDs = list.ids(at.Table.Top, at.Table.Visible)
	if chosen >= 0 {
		at.Chosen = list.ID(chosen)
	}
	d.st.Shown.Panels = append(d.st.Shown.Panels, at)
	if !foot.Empty() {
		d.hottestFoot(foot, bar, list.Len()-f.Scroll-at.Table.Visible, wide)
	}
}

// hottestFoot is the line below the topics: how many more there are, and below its place in the key space the last
// split or merge. It is there when there is nothing to say, too, so that no row moves when there is.
func (d *drawing) hottestFoot(line, bar component.Rect, more int, wide bool) {
	if more > 0 {
		d.c.Text(line.X, line.Y, bar.X-line.X-1, string(d.c.Glyphs().Ellipsis)+" "+component.Count(more)+" more", styles.Dim)
	}
	for _, c := range d.v.Changes.Last(1) {
		if d.st.Frame.Now.Sub(c.Time) <= notedFor {
			component.DrawNote(d.c, component.Rect{X: bar.X, Y: line.Y, W: bar.W, H: 1}, d.changeNote(c, c.Topic+"/", wide))
		}
	}
}

// hotTopic is one topic's line; it returns the place of the bar.
func (d *drawing) hotTopic(line component.Rect, t *store.Topic, wide bool) component.Rect {
	pen := d.c.Pen(line)
	if wide {
		text, style := topicRate(d, t)
		pen.Field(14, t.Name, styles.Accent).Skip(1).Number(6, component.Count(t.Ranges), styles.Plain).Number(12, text, style).Skip(2)
	} else {
		text, style := topicRate(d, t)
		pen.Field(10, t.Name, styles.Accent).Number(5, component.Count(t.Ranges)+"r", styles.Plain).Number(10, strings.ReplaceAll(text, " ", ""), style).Skip(1)
	}
	bar := pen.Rest()
	d.keyspace(t.Name, d.hottest()).Bar(d.c, bar)
	return bar
}
