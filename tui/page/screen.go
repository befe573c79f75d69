package page

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/eastguard/eastguard/tui/component"
	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/styles"
)

// Least size of a screen: on a smaller one there is one line of health.
const (
	LeastWidth  = 60
	LeastHeight = 15
)

// Draw draws the whole screen: header, tabs, the page's body, the alarm and the keys.
func Draw(c *component.Canvas, p Page, v *store.View, st *State) {
	if v == nil {
		v = &store.View{}
	}
	st.Shown = Shown{Panels: st.Shown.Panels[:0], Tabs: st.Shown.Tabs[:0]}
	screen := c.Bounds()
	if screen.W < LeastWidth || screen.H < LeastHeight {
		drawTiny(c, v, st)
		return
	}
	head, body := screen.CutTop(1)
	tabs, body := body.CutTop(1)
	body, foot := body.CutBottom(2)
	drawHeader(c, head, p, v, st)
	drawTabs(c, tabs, p.ID(), st)
	alarm := p.Alarm(v, st)
	if v.Cluster.Link.State == store.LinkLost {
		alarm = Line{}
		var banner component.Rect
		banner, body = body.CutTop(5)
		drawLost(c, banner, v, st)
	}
	p.Draw(c, body, v, st)
	if v.Cluster.Link.State == store.LinkLost {
		c.Fade(body)
	}
	drawFooter(c, foot, alarm, st)
}

// drawTiny is the one line of a screen that is too small for more.
func drawTiny(c *component.Canvas, v *store.View, st *State) {
	line := c.Pen(c.Bounds().Line(0))
	sign, style, text := link(c, v, st)
	line.Skip(1).Sign(sign, style).Skip(1).Text(text, style)
	if a := alarmOf(v, st); a.Text != "" {
		line.Text("  "+a.Text, a.Style)
	}
	if h := c.Bounds().H; h > 1 {
		c.Pen(c.Bounds().Line(1)).Skip(1).Text(fmt.Sprintf("a screen of %dx%d is needed to show more", LeastWidth, LeastHeight), styles.Dim)
	}
}

// link is how the cluster is heard, with its sign.
func link(c *component.Canvas, v *store.View, st *State) (sign rune, style styles.Style, text string) {
	g := c.Glyphs()
	cl := &v.Cluster
	switch cl.Link.State {
	case store.LinkLive:
		return g.Alive, styles.OK, fmt.Sprintf("live %d/%d", cl.Streams, cl.Known)
	case store.LinkPartial:
		return g.Suspect, styles.Warn, fmt.Sprintf("partial %d/%d", cl.Streams, cl.Known)
	case store.LinkLost:
		return g.Left, styles.Bad, "disconnected " + age(lastData(v), st.Frame.Now)
	case store.LinkConnecting:
	}
	return g.Left, styles.Info, "connecting"
}

func lastData(v *store.View) time.Time {
	if t := v.Cluster.Link.LastData; !t.IsZero() {
		return t
	}
	return v.Cluster.Link.Since
}

// drawHeader is the first line: which cluster, how much of it is heard, and the time.
func drawHeader(c *component.Canvas, r component.Rect, p Page, v *store.View, st *State) {
	f, g, wide := &st.Frame, c.Glyphs(), r.W >= 100
	pen := c.Pen(r).Skip(1).Text("EastGuard", styles.Title).Skip(1)
	name := v.Cluster.Context
	if name == "" {
		name = f.Context
	}
	if name == "" {
		name = v.Cluster.ID[:min(len(v.Cluster.ID), 8)]
	}
	look := styles.Accent.Bold()
	if f.Alarming {
		look = styles.Bad.Bold()
	}
	if name != "" {
		pen.Sign(g.Crumb, styles.Dim).Skip(1).Text(name, look).Skip(1)
	}
	pen.Skip(2)
	right := headRight(p, v, st, wide)
	pen = headState(c, pen, v, st, wide)
	for len(right) > 0 && c.Width(strings.Join(right, "  "))+3 > pen.Left() {
		right = right[1:] // the clock is the last to go
	}
	gap := "  "
	if wide && c.Width(strings.Join(right, "   "))+4 <= pen.Left() {
		gap = "   "
	}
	pen.AtRight(strings.Join(right, gap)+" ", styles.Plain)
}

// headState says how the cluster is heard, and whether this is now.
func headState(c *component.Canvas, pen *component.Pen, v *store.View, st *State, wide bool) *component.Pen {
	f, g := &st.Frame, c.Glyphs()
	sign, style, text := link(c, v, st)
	lost := v.Cluster.Link.State == store.LinkLost
	if wide && v.Cluster.Known > 0 && !lost {
		text += " streams"
	}
	pen.Sign(sign, style).Skip(1).Text(text, style)
	switch {
	case f.Dialog:
		text := " frozen while dialog is open"
		if pen.Left() < 42 {
			text = " frozen"
		}
		pen.Skip(2).Sign(g.Paused, styles.Info).Text(text, styles.Info)
	case f.Past:
		pen.Skip(2).Text("as of "+f.clock(f.Now)+", not live", styles.Warn.Reverse())
	case f.Paused:
		pen.Skip(2).Sign(g.Paused, styles.Info).Text(" paused", styles.Info)
	case wide && v.Cluster.AgreeOf > 0 && !lost:
		style := styles.Plain
		if v.Cluster.Agree < v.Cluster.AgreeOf {
			style = styles.Warn
		}
		pen.Skip(3).Text(fmt.Sprintf("view agreement %d/%d", v.Cluster.Agree, v.Cluster.AgreeOf), style)
	}
	return pen
}

// headRight is what stands at the right, the least important first.
func headRight(p Page, v *store.View, st *State, wide bool) []string {
	f := &st.Frame
	clock := f.Clock
	if clock.IsZero() {
		clock = f.Now
	}
	if v.Cluster.Link.State == store.LinkLost {
		return []string{"last data " + f.clock(lastData(v))}
	}
	var right []string
	if own := p.Head(v, st); own != "" {
		right = append(right, own)
	}
	up := ""
	if v.Cluster.UptimeMs > 0 {
		up = "up " + component.Age(time.Duration(v.Cluster.UptimeMs)*time.Millisecond)
	}
	rate := f.Rate
	if v.Cluster.Polling != "" {
		rate = "poll " + v.Cluster.Polling
	}
	if !wide {
		rate = strings.ReplaceAll(rate, " ", "")
	}
	if wide || p.ID() == Overview {
		for _, s := range []string{version(v, wide), up, rate} {
			if s != "" {
				right = append(right, s)
			}
		}
		if wide && f.CPU != "" {
			right = append(right, f.CPU)
		}
	}
	return append(right, f.clock(clock))
}

// version is the one that the brokers run, if it is one.
func version(v *store.View, wide bool) string {
	if !wide || len(v.Cluster.Versions) == 0 {
		return ""
	}
	if n := len(v.Cluster.Versions); n > 1 {
		return fmt.Sprintf("%d versions", n)
	}
	return v.Cluster.Versions[0].Version
}

// The widths from which on the tabs have room for blanks, and for whole names.
const (
	roomyTabs = 100
	wholeTabs = 77
)

// drawTabs is the second line: the pages.
func drawTabs(c *component.Canvas, r component.Rect, on ID, st *State) {
	pen := c.Pen(r).Skip(1)
	for id := Overview; id <= Logs; id++ {
		from := pen.Rest().X
		digit, name := string(rune('0'+id)), id.String()
		if r.W < wholeTabs && id != on {
			name = name[:3]
		}
		gap := 1
		switch {
		case id == on:
			pen.Text("["+digit+" "+name+"]", styles.Accent.Bold())
			gap = 2
		case r.W >= roomyTabs:
			pen.Text(digit, styles.Key).Text(" "+name, styles.Plain)
			gap = 3
		default:
			pen.Text(digit, styles.Key).Text(name, styles.Plain)
		}
		st.Shown.Tabs = append(st.Shown.Tabs, TabAt{id, component.Rect{X: from, Y: r.Y, W: pen.Rest().X - from, H: 1}})
		if r.W < roomyTabs {
			gap = 1
		}
		pen.Skip(gap)
	}
}

// drawFooter is the last two lines: what is wrong or was done last, and the keys or what is typed.
func drawFooter(c *component.Canvas, r component.Rect, alarm Line, st *State) {
	f := &st.Frame
	if f.Notice.Text != "" {
		alarm = f.Notice
	}
	c.Pen(r.Line(0)).Skip(1).Text(alarm.Text, alarm.Style)
	line := r.Line(1)
	if f.Prompt != nil {
		_, place := line.CutLeft(1)
		f.Prompt.Draw(c, place, "", styles.Plain)
		return
	}
	pen := c.Pen(line).Skip(1)
	for _, k := range fitting(c, f.Keys, line.W-2) {
		pen.Text(k.Key, styles.Key).Text(" "+k.Does, styles.Plain).Skip(2)
	}
}

// fitting are the keys that there is room for: those of the highest rank give way first, of those the last.
func fitting(c *component.Canvas, keys []KeyHint, w int) []KeyHint {
	keys = slices.Clone(keys)
	for {
		used, least := -2, -1
		for i, k := range keys {
			used += c.Width(k.Key) + 1 + c.Width(k.Does) + 2
			if least < 0 || k.Rank >= keys[least].Rank {
				least = i
			}
		}
		if used <= w || len(keys) < 2 {
			return keys
		}
		keys = slices.Delete(keys, least, least+1)
	}
}

// drawLost is the banner while no broker answers.
func drawLost(c *component.Canvas, r component.Rect, v *store.View, st *State) {
	link := &v.Cluster.Link
	inside := component.Box{Title: "No broker reachable", TitleStyle: styles.Bad.Bold(), Frame: styles.Bad}.Draw(c, r)
	tried := "nothing was tried yet"
	if len(link.Tried) > 0 {
		tried = "tried " + strings.Join(link.Tried, " ")
	}
	c.Pen(inside.Line(0)).Text(tried, styles.Plain)
	next := "trying now"
	if wait := link.Next.Sub(st.Frame.Now); !link.Next.IsZero() && wait > 0 {
		next = fmt.Sprintf("next try in %.1fs", wait.Seconds())
	}
	if link.Attempt > 0 && inside.W >= 70 {
		next += fmt.Sprintf(" (attempt %d)", link.Attempt)
	}
	pen := c.Pen(inside.Line(1)).AtRight(next, styles.Plain).Text("last error: ", styles.Dim)
	c.TextMiddle(pen.Rest().X, pen.Rest().Y, pen.Left()-2, lastWords(c, link.Error, pen.Left()-2), styles.Bad)
	pen = c.Pen(inside.Line(2)).Text("r", styles.Key).Text(" retry now    ", styles.Plain).Text(":", styles.Key).
		Text(" seeds HOST:PORT    ", styles.Plain).Text("q", styles.Key).Text(" quit", styles.Plain)
	old := "there is no data yet"
	if !lastData(v).IsZero() {
		old = "the data below is " + age(lastData(v), st.Frame.Now) + " old"
	}
	pen.AtRight(old, styles.Warn)
}

// lastWords is as much of an error as there is room for, by its parts: what it ends with is why.
func lastWords(c *component.Canvas, text string, w int) string {
	for c.Width(text) > w {
		_, why, more := strings.Cut(text, ": ")
		if !more {
			break
		}
		text = why
	}
	return text
}
