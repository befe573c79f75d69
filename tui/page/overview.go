package page

import (
	"fmt"
	"slices"
	"time"

	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/component"
	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/styles"
)

// overview is page 1: the whole cluster on one screen.
type overview struct{}

// The panels of the overview that can have the focus.
const (
	panelNodes = iota
	panelTopics
	panelEvents
	panelGroups // on wide screens only
)

// ID is 1.
func (overview) ID() ID { return Overview }

// Draw lays out what the size has room for.
func (o overview) Draw(c *component.Canvas, body component.Rect, v *store.View, st *State) {
	st.focusable = o.Panels(body.W, body.H)
	d := &drawing{c: c, v: v, st: st}
	switch {
	case st.Zoom:
		d.zoomed(body)
	case body.W >= 160 && body.H >= 44:
		d.large(body)
	case body.W >= 100 && body.H >= 28:
		d.medium(body)
	default:
		d.small(body)
	}
}

func (d *drawing) zoomed(body component.Rect) {
	switch d.st.Panel {
	case panelTopics:
		drawHottest(d, body, panelTopics)
	case panelEvents:
		drawEvents(d, body, panelEvents, false)
	case panelGroups:
		drawGroups(d, body, panelGroups)
	default:
		drawNodes(d, body, panelNodes)
	}
}

// small is two columns above, then topics and events: 80x24.
func (d *drawing) small(body component.Rect) {
	if d.v.Cluster.Link.State == store.LinkLost { // the banner has taken its place
		drawNodes(d, body, panelNodes)
		return
	}
	top := min(max(8, d.v.Nodes.Len()+3), max(8, body.H*2/5))
	if body.H < 18 {
		top = min(8, body.H)
	}
	upper, rest := body.CutTop(top)
	left, right := upper.CutLeft(upper.W / 2)
	d.cluster(left)
	drawNodes(d, right, panelNodes)
	if rest.H < 6 {
		drawEvents(d, rest, panelEvents, false)
		return
	}
	middle, lower := rest.CutTop(rest.H / 2)
	drawHottest(d, middle, panelTopics)
	drawEvents(d, lower, panelEvents, false)
}

// medium is four bands: 120x40.
func (d *drawing) medium(body component.Rect) {
	upper, rest := body.CutTop(9)
	left, right := upper.CutLeft(upper.W / 2)
	d.throughput(left, false)
	d.health(right)
	nodes := min(max(d.v.Nodes.Len(), 2)+3, max(rest.H/3, 9))
	band, rest := rest.CutTop(nodes)
	drawNodes(d, band, panelNodes)
	band, rest = rest.CutTop(max(rest.H/2, 5))
	drawHottest(d, band, panelTopics)
	drawEvents(d, rest, panelEvents, false)
}

// large is all seven panels: 200x60.
func (d *drawing) large(body component.Rect) {
	upper, rest := body.CutTop(10)
	left, right := upper.CutLeft(upper.W / 2)
	d.throughput(left, true)
	d.health(right)
	lower := min(max(rest.H/4, 8), 14)
	band, rest := rest.CutTop(rest.H - lower - min(13, rest.H/4))
	left, right = band.CutLeft(band.W / 3)
	drawRing(d, left, panelNodes, false)
	d.topicsAndRanges(right)
	band, rest = rest.CutTop(rest.H - lower)
	left, right = band.CutLeft(band.W * 2 / 3)
	drawTimeline(d, left)
	drawGroups(d, right, panelGroups)
	drawEvents(d, rest, panelEvents, false)
}

// cluster is the numbers of the cluster in little space.
func (d *drawing) cluster(r component.Rect) {
	c := &d.v.Cluster
	verdict, style := d.verdict()
	inside := d.plainBox(r, "Cluster", verdict, style)
	h := &d.v.History
	flow := func(y int, name string, bytes, records float64, series store.Series) {
		pen := d.c.Pen(inside.Line(y)).Field(4, name, styles.Dim).Number(11, d.atLeast(component.Rate(bytes)), styles.Plain).
			Skip(1).Number(10, component.Records(records), styles.Plain).Skip(1)
		d.spark(pen.Rest(), series, 6, styles.Accent)
	}
	if d.heard() {
		flow(0, "in", c.InBytes, c.InRecords, h.InBytes)
		flow(1, "out", c.OutBytes, c.OutRecords, h.OutBytes)
	} else {
		d.c.Pen(inside.Line(0)).Field(4, "in", styles.Dim).Text("no node tells what it counts", styles.Dim)
		d.c.Pen(inside.Line(1)).Field(4, "out", styles.Dim).Text(none, styles.Dim)
	}
	if c.Ack.Count == 0 {
		d.facts(inside.Line(2), 2, fact{name: "ack", value: d.lately("nothing was written lately")})
	} else {
		d.facts(inside.Line(2), 1, fact{name: "ack p50", value: ms(c.Ack.P50Us), w: 4}, fact{name: "p99", value: ms(c.Ack.P99Us), w: 5},
			fact{name: "p999", value: ms(c.Ack.P999Us) + " ms", w: 8})
	}
	d.facts(inside.Line(3), 2, fact{name: "fsync p99", value: micros(c.Fsync.P99Us, c.Fsync.Count), w: 7}, fact{name: "batch", value: d.batch(), w: 8})
	t := &c.Totals
	if c.Counted.IsZero() {
		leaderless := fact{name: "leaderless", value: none}
		if d.v.Shards.Len() > 0 {
			leaderless = d.hurt("leaderless", d.leaderless())
		}
		d.facts(inside.Line(4), 2, fact{name: "topics", value: "not counted yet"})
		d.facts(inside.Line(5), 2, leaderless)
		return
	}
	d.facts(inside.Line(4), 2, fact{name: "topics", value: d.missing(t.Topics)}, fact{name: "ranges", value: d.missing(t.Ranges)},
		fact{name: "groups", value: component.Count(d.v.Groups.Len())})
	last := []fact{d.hurt("under-repl", t.UnderReplicated), d.hurt("leaderless", d.leaderless())}
	if d.v.Groups.Len() > 0 {
		last = append(last, fact{name: "lag", value: short(d.totalLag())})
	}
	d.facts(inside.Line(5), 2, last...)
}

// heard reports whether any node tells what it counts.
func (d *drawing) heard() bool { return d.v.Cluster.Streams > 0 && len(d.v.History.InBytes) > 0 }

// lately is what is said of something that did not happen; when nobody would tell if it did, that is said.
func (d *drawing) lately(text string) string {
	if !d.heard() {
		return "not known: no node is heard"
	}
	return text
}

// batch is how large batches are.
func (d *drawing) batch() string {
	if d.v.Cluster.BatchRecords <= 0 {
		return none
	}
	return short(int64(d.v.Cluster.BatchRecords)) + " rec"
}

// missing is a sum over the metadata, marked when shards are missing in it.
func (d *drawing) missing(n int) string {
	if len(d.v.Cluster.Totals.Missing) > 0 {
		return d.say("≥", ">") + component.Count(n)
	}
	return component.Count(n)
}

func (d *drawing) leaderless() (n int) {
	for _, s := range d.v.Shards.Rows() {
		if s.Leader == "" {
			n++
		}
	}
	return n
}

func (d *drawing) totalLag() (lag int64) {
	for _, g := range d.v.Groups.Rows() {
		lag += g.Lag
	}
	return lag
}

// spark draws a series of one sample a second, so many seconds a cell. Cells begin at multiples of that, so that what is
// past stays as it was drawn.
func (d *drawing) spark(r component.Rect, s store.Series, seconds int, style styles.Style) {
	d.sparkTo(r, s, seconds, 0, style)
}

// sparkTo is spark with the value of a full block; 0 for the greatest.
func (d *drawing) sparkTo(r component.Rect, s store.Series, seconds int, full float64, style styles.Style) {
	if r.Empty() || len(s) == 0 {
		return
	}
	newest := d.v.History.End.Unix()
	values := make([]float64, 0, r.W)
	sum, n := 0.0, 0
	last := s.Last(r.W * seconds)
	for i, v := range last {
		if v >= 0 { // else no node was heard
			sum, n = sum+float64(v), n+1
		}
		at := newest - int64(len(last)-1-i)
		if at%int64(seconds) == int64(seconds)-1 || i == len(last)-1 {
			values = append(values, sum/float64(n)) // NaN of none
			sum, n = 0, 0
		}
	}
	d.c.Spark(r, values, full, style)
}

// throughput is what flows and how long it takes.
func (d *drawing) throughput(r component.Rect, large bool) {
	c, h := &d.v.Cluster, &d.v.History
	seconds := 3
	if large {
		seconds = 4
	}
	window := time.Duration(max(r.W-20, 0)*seconds) * time.Second
	inside := d.plainBox(r, "Throughput (last "+component.Age(window)+")", "in / out", styles.Dim)
	y := 0
	flow := func(name, value string, series store.Series, style styles.Style) {
		if !d.heard() {
			value = none
		}
		pen := d.c.Pen(inside.Line(y)).Field(4, name, styles.Dim).Number(11, value, styles.Plain).Skip(1)
		d.spark(pen.Rest(), series, seconds, style)
		y++
	}
	flow("in", d.atLeast(component.Rate(c.InBytes)), h.InBytes, styles.Accent)
	flow("", component.Records(c.InRecords), h.InRecords, styles.Accent)
	flow("out", d.atLeast(component.Rate(c.OutBytes)), h.OutBytes, styles.Info)
	if large {
		flow("ack", micros(c.Ack.P99Us, c.Ack.Count)+" p99", h.AckP99, styles.Dim)
	}
	distribution := func(name string, q sdk.Quantiles) {
		label, line := inside.Line(y).CutLeft(5)
		y++
		d.c.Pen(label).Text(name, styles.Dim)
		if q.Count == 0 {
			d.c.Pen(line).Text(d.lately("nothing was measured lately"), styles.Dim)
			return
		}
		list := []fact{{name: "p50", value: ms(q.P50Us), w: 5}, {name: "p90", value: ms(q.P90Us), w: 5}, {name: "p99", value: ms(q.P99Us), w: 5}, {name: "p99.9", value: ms(q.P999Us), w: 5}, {name: "max", value: ms(q.MaxUs) + " ms", w: 8}}
		if !large {
			list = slices.Delete(list, 1, 2)
		}
		d.facts(line, 2, list...)
	}
	distribution("ack", c.Ack)
	distribution("fsy", c.Fsync)
	label, line := inside.Line(y).CutLeft(5)
	d.c.Pen(label).Text("bat", styles.Dim)
	pen := d.c.Pen(line)
	if c.BatchesPerSec > 0 {
		pen.Number(4, short(int64(c.BatchRecords)), styles.Plain).Text(" rec", styles.Plain).Number(11, component.Bytes(uint64(max(c.BatchBytes, 0))), styles.Plain).
			Number(7, short(int64(c.BatchesPerSec)), styles.Plain).Text("/s", styles.Plain)
	} else {
		pen.Text(d.lately("no batches lately"), styles.Dim)
	}
	if !large {
		d.sealGap(inside.Line(y + 1))
		return
	}
	_, right := line.CutLeft(min(line.W/2, 40))
	d.sealGap(right)
	hit := d.lately("nothing was read lately")
	if c.CacheHit >= 0 {
		hit = component.Percent(c.CacheHit) + " of reads from memory"
	}
	d.facts(inside.Line(y+1), 2, fact{name: "cache", value: hit})
}

// sealGap is how long producers stood still at the last seals.
func (d *drawing) sealGap(line component.Rect) {
	q := d.v.Cluster.SealGap
	perMinute := 0
	for _, s := range d.v.Seals.All() {
		if d.st.Frame.Now.Sub(s.Time) < time.Minute {
			perMinute++
		}
	}
	rate := fact{name: "seals/min", value: component.Count(perMinute), w: 3}
	if q.Count == 0 {
		last := d.lately("none so far")
		if s := d.lastWait(); s != nil {
			last = span(wait(s)) + " " + age(s.Time, d.st.Frame.Now) + " ago"
		}
		d.facts(line, 3, fact{name: "seal gap", value: last}, rate)
		return
	}
	d.facts(line, 2, fact{name: "seal gap p50", value: gapMs(q.P50Us), w: 7}, fact{name: "p99", value: gapMs(q.P99Us), w: 7}, rate)
}

// lastWait is the last seal of which it is known that producers waited for it.
func (d *drawing) lastWait() *store.Seal {
	for _, s := range slices.Backward(d.v.Seals.All()) {
		if s.GapMs > 0 {
			return s
		}
	}
	return nil
}

// wait is how long producers stood still at a seal.
func wait(s *store.Seal) time.Duration { return time.Duration(s.GapMs) * time.Millisecond }

// gapMs is a wait in whole milliseconds.
func gapMs(us int64) string { return fmt.Sprintf("%.0f ms", float64(us)/1000) }

// micros are microseconds with their unit; a dash when nothing was measured.
func micros(us int64, n uint64) string {
	if n == 0 {
		return none
	}
	return ms(us) + " ms"
}

// topicsAndRanges is the hottest topics, and what the ranges are like as a whole.
func (d *drawing) topicsAndRanges(r component.Rect) {
	top, below := r.CutBottom(5)
	drawHottest(d, top, panelTopics)
	inside := d.plainBox(below, "Ranges", d.missing(d.v.Cluster.Totals.Ranges)+" active", styles.Dim)
	d.population(inside)
}

func (d *drawing) population(inside component.Rect) {
	load := map[string]int{}
	for _, r := range d.v.Ranges.Rows() {
		if r.State == "active" && r.Counted {
			load[r.Load]++
		}
	}
	splits, merges := 0, 0
	for _, c := range d.v.Changes.All() {
		if d.st.Frame.Now.Sub(c.Time) < time.Hour {
			if c.Merge {
				merges++
			} else {
				splits++
			}
		}
	}
	row := func(y int, name string) component.Rect {
		label, line := inside.Line(y).CutLeft(19)
		d.c.Pen(label).Text(name, styles.Dim)
		return line
	}
	count := func(name string, n int) fact { return fact{name: name, value: component.Count(n)} }
	d.facts(row(0, "busiest"), 3, count("pressure", load["pressure"]), count("normal", load["normal"]), count("idle", load["idle"]),
		count("unknown", load["unknown"]), count("splits", splits), count("merges", merges))
	var rates []fact
	names := []string{"none", "<1k/s", "<10k/s", "<100k/s", "<1M/s", "<10M/s", "more"}
	for i, n := range d.v.Cluster.RateHist {
		if i < len(names) {
			rates = append(rates, count(names[i], n))
		}
	}
	line := row(1, "by rate")
	if len(rates) == 0 {
		d.c.Pen(line).Text(d.lately("nothing is counted yet"), styles.Dim)
	}
	d.facts(line, 3, rates...)
	line = row(2, "segments")
	t := &d.v.Cluster.Totals
	if d.v.Cluster.Counted.IsZero() {
		d.c.Pen(line).Text("not counted yet", styles.Dim)
		return
	}
	d.facts(line, 3, fact{name: "all", value: d.missing(t.Segments)}, d.hurt("under-repl", t.UnderReplicated), count("repairs", len(d.v.Repairs())))
}

// Rows are those of the focused panel.
func (overview) Rows(v *store.View, st *State) Rows {
	switch st.Panel {
	case panelTopics:
		return topicTable.ordered(v, st, panelTopics)
	case panelEvents:
		return eventTable.ordered(v, st, panelEvents)
	case panelGroups:
		return groupTable.ordered(v, st, panelGroups)
	}
	return nodeTable.ordered(v, st, panelNodes)
}

// Columns are those of the focused panel.
func (overview) Columns(st *State) []string {
	switch st.Panel {
	case panelTopics:
		return topicTable.columns()
	case panelEvents:
		return nil
	case panelGroups:
		return groupTable.columns()
	}
	return nodeTable.columns()
}

// Panels is three; four where the groups have room.
func (overview) Panels(w, h int) int {
	if w >= 160 && h >= 44 {
		return 4
	}
	return 3
}

// Head is empty: the overview has the cluster's own words there.
func (overview) Head(v *store.View, _ *State) string { return "" }

// Alarm is that of the cluster.
func (overview) Alarm(v *store.View, st *State) Line { return alarmOf(v, st) }

// About is what is selected in the focused panel.
func (overview) About(v *store.View, st *State) Subject {
	f := st.Focus()
	switch st.Panel {
	case panelTopics:
		return aboutTopic(v, selected(topicTable.ordered(v, st, panelTopics), f.Selected))
	case panelEvents:
		return aboutEvent(v, st, panelEvents)
	case panelGroups:
		return aboutGroup(selected(groupTable.ordered(v, st, panelGroups), f.Selected))
	}
	if n := selected(nodeTable.ordered(v, st, panelNodes), f.Selected); n != nil {
		return aboutNode(v, n.ID)
	}
	return Subject{}
}
