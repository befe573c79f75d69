package page

import (
	"cmp"
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
	line := func(y int, parts ...string) {
		pen := d.c.Pen(inside.Line(y))
		for i := 0; i+1 < len(parts); i += 2 {
			pen.Text(parts[i]+" ", styles.Dim).Text(parts[i+1], styles.Plain).Skip(2)
		}
	}
	if c.Ack.Count == 0 {
		line(2, "ack", d.lately("nothing was written lately"))
	} else {
		line(2, "ack p50", ms(c.Ack.P50Us), "p99", ms(c.Ack.P99Us), "p999", ms(c.Ack.P999Us)+" ms")
	}
	line(3, "fsync p99", micros(c.Fsync.P99Us, c.Fsync.Count), "batch", d.batch())
	t := &c.Totals
	if c.Counted.IsZero() {
		line(4, "topics", "not counted yet")
		leaderless := none
		if d.v.Shards.Len() > 0 {
			leaderless = component.Count(d.leaderless())
		}
		line(5, "leaderless", leaderless)
		return
	}
	line(4, "topics", d.missing(t.Topics), "ranges", d.missing(t.Ranges), "groups", component.Count(d.v.Groups.Len()))
	pen := d.c.Pen(inside.Line(5))
	d.hurt(pen, "under-repl", t.UnderReplicated)
	d.hurt(pen, "leaderless", d.leaderless())
	if d.v.Groups.Len() > 0 {
		pen.Text("lag ", styles.Dim).Text(short(d.totalLag()), styles.Plain)
	}
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

// hurt is a number that should be 0.
func (d *drawing) hurt(pen *component.Pen, name string, n int) {
	style := styles.Plain
	if n > 0 {
		style = styles.Warn.Bold()
	}
	pen.Text(name+" ", styles.Dim).Text(component.Count(n), style).Skip(2)
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

// verdict is the health in a word.
func (d *drawing) verdict() (string, styles.Style) {
	if d.v.Health.At.IsZero() {
		return "not checked yet", styles.Dim
	}
	warn, fail := 0, 0
	for _, c := range d.v.Health.Checks {
		switch c.Result {
		case sdk.HealthWarn:
			warn++
		case sdk.HealthFail:
			fail++
		case sdk.HealthPass:
		}
	}
	switch {
	case fail > 0:
		return fmt.Sprintf("FAIL %d", fail), styles.Bad.Bold()
	case warn > 0:
		return fmt.Sprintf("WARN %d", warn), styles.Warn.Bold()
	}
	return "PASS", styles.OK
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
		sum, n = sum+float64(v), n+1
		at := newest - int64(len(last)-1-i)
		if at%int64(seconds) == int64(seconds)-1 || i == len(last)-1 {
			values = append(values, sum/float64(n))
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
		flow("ack", micros(c.Ack.P99Us, c.Ack.Count)+" p99", h.AckP99, styles.Plain)
	}
	distribution := func(name string, q sdk.Quantiles) {
		pen := d.c.Pen(inside.Line(y)).Field(5, name, styles.Dim)
		y++
		if q.Count == 0 {
			pen.Text(d.lately("nothing was measured lately"), styles.Dim)
			return
		}
		for _, p := range []struct {
			name string
			us   int64
		}{{"p50", q.P50Us}, {"p90", q.P90Us}, {"p99", q.P99Us}, {"p99.9", q.P999Us}, {"max", q.MaxUs}} {
			if p.name == "p90" && !large {
				continue
			}
			pen.Text(p.name, styles.Dim).Number(6, ms(p.us), styles.Plain).Skip(2)
		}
		pen.Text("ms", styles.Dim)
	}
	distribution("ack", c.Ack)
	distribution("fsy", c.Fsync)
	pen := d.c.Pen(inside.Line(y)).Field(5, "bat", styles.Dim)
	if c.BatchesPerSec > 0 {
		pen.Text(component.Short(c.BatchRecords)+" rec   "+component.Bytes(uint64(max(c.BatchBytes, 0)))+"   "+component.Short(c.BatchesPerSec)+"/s", styles.Plain)
	} else {
		pen.Text(d.lately("no batches lately"), styles.Dim)
	}
	if large {
		pen.AtRight(d.sealGap(), styles.Plain)
	}
	y++
	pen = d.c.Pen(inside.Line(y))
	if large {
		hit := d.lately("nothing was read lately")
		if c.CacheHit >= 0 {
			hit = component.Percent(c.CacheHit) + " of reads from memory"
		}
		pen.Text("cache ", styles.Dim).Text(hit, styles.Plain)
		return
	}
	pen.Text(d.sealGap(), styles.Plain)
}

// sealGap is how long producers stood still at the last seals.
func (d *drawing) sealGap() string {
	q := d.v.Cluster.SealGap
	perMinute := 0
	for _, s := range d.v.Seals.All() {
		if d.st.Frame.Now.Sub(s.Time) < time.Minute {
			perMinute++
		}
	}
	if q.Count == 0 {
		return fmt.Sprintf("seal gap none lately   seals/min %d", perMinute)
	}
	return fmt.Sprintf("seal gap p50 %.0f ms  p99 %.0f ms   seals/min %d", float64(q.P50Us)/1000, float64(q.P99Us)/1000, perMinute)
}

// micros are microseconds with their unit; a dash when nothing was measured.
func micros(us int64, n uint64) string {
	if n == 0 {
		return none
	}
	return ms(us) + " ms"
}

// health is the checks with their verdicts.
func (d *drawing) health(r component.Rect) {
	verdict, style := d.verdict()
	h := &d.v.Health
	inside := d.plainBox(r, "Health", verdict, style)
	if h.At.IsZero() {
		d.empty(inside, "no broker has given its verdict yet", "it is asked for every few seconds")
		return
	}
	g := d.c.Glyphs()
	checks := h.Checks
	if len(checks) > inside.H { // what is wrong must be seen
		checks = slices.Clone(checks)
		slices.SortStableFunc(checks, func(a, b sdk.HealthCheck) int { return cmp.Compare(b.Result, a.Result) })
	}
	signs := map[sdk.HealthResult]rune{sdk.HealthPass: g.Good, sdk.HealthWarn: g.Attention, sdk.HealthFail: g.Broken}
	name := 12
	for i := range checks {
		name = max(name, len(checks[i].Name)+2)
	}
	for i, c := range checks {
		pen := d.c.Pen(inside.Line(i)).Sign(signs[c.Result], verdictStyle(c.Result)).Skip(1)
		if name <= inside.W*2/5 || c.Detail == "" {
			pen.Field(name-1, c.Name, styles.Plain).Skip(1)
		} // else the detail says it all
		pen.Text(c.Detail, styles.Plain)
	}
	if old := d.st.Frame.Now.Sub(h.At); old > 30*time.Second {
		d.c.Fade(inside)
		d.c.Pen(inside.Line(inside.H-1)).AtRight("as of "+component.Age(old)+" ago", styles.Warn)
	}
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
	d.c.Pen(inside.Line(0)).Field(19, "busiest", styles.Dim).Text(fmt.Sprintf("pressure %d   normal %d   idle %d   unclassified %d   splits %d   merges %d",
		load["pressure"], load["normal"], load["idle"], load["unknown"], splits, merges), styles.Plain)
	pen := d.c.Pen(inside.Line(1)).Field(19, "by rate", styles.Dim)
	names := []string{"0", "<1k/s", "<10k/s", "<100k/s", "<1M/s", "<10M/s", "more"}
	for i, n := range d.v.Cluster.RateHist {
		if i < len(names) {
			pen.Text(names[i]+" ", styles.Dim).Text(component.Count(n), styles.Plain).Skip(3)
		}
	}
	pen = d.c.Pen(inside.Line(2)).Field(19, "segments", styles.Dim)
	t := &d.v.Cluster.Totals
	if d.v.Cluster.Counted.IsZero() {
		pen.Text("not counted yet", styles.Dim)
		return
	}
	pen.Text(d.missing(t.Segments), styles.Plain).Skip(3)
	d.hurt(pen, "under-repl", t.UnderReplicated)
	pen.Text("repairs ", styles.Dim).Text(component.Count(len(d.v.Repairs())), styles.Plain)
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
