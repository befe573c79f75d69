package page

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/component"
	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/styles"
)

// segments is page 6: when segments ended and how long producers waited, and what is where.
type segments struct{}

// ID is 6.
func (segments) ID() ID { return Segments }

var segmentTable = &table[*store.Segment]{
	name: "segments",
	sort: "STATE",
	id:   func(s *store.Segment) string { return s.ID.String() },
	text: func(s *store.Segment) string {
		text := s.ID.String() + " " + s.Range.Topic + "/" + s.Range.Range.String() + " " + strings.ToUpper(s.State) + " " + s.Cause
		for _, r := range s.Replicas {
			text += " " + string(r.Node)
		}
		return text
	},
	source: func(v *store.View, st *State) source[*store.Segment] {
		s := source[*store.Segment]{version: v.Segments.Version, n: v.Segments.Len(), at: v.Segments.At, scope: st.Topic + "/" + st.Range}
		s.part, s.all = !v.Cluster.ListedSegments.Has(st.Topic), allSegments(v, st)
		if st.Topic != "" {
			s.pass = func(g *store.Segment) bool {
				return g.Range.Topic == st.Topic && (st.Range == "" || g.Range.Range.String() == st.Range)
			}
		}
		s.find = func(id string) int {
			n, err := strconv.ParseUint(strings.TrimPrefix(id, "s"), 10, 64)
			if err != nil {
				return -1
			}
			return v.Segments.Index(sdk.SegmentID(n))
		}
		return s
	},
	cols: []col[*store.Segment]{
		{name: "SEGMENT", w: 7, most: 9, less: func(a, b *store.Segment) int { return cmp.Compare(a.ID, b.ID) }, cell: func(_ *drawing, s *store.Segment) (string, styles.Style) { return s.ID.String(), styles.Accent }},
		{name: "RANGE", w: 11, most: 20, less: func(a, b *store.Segment) int {
			return cmp.Or(cmp.Compare(a.Range.Topic, b.Range.Topic), cmp.Compare(a.Range.Range, b.Range.Range))
		}, cell: func(_ *drawing, s *store.Segment) (string, styles.Style) {
			return plain(s.Range.Topic + "/" + s.Range.Range.String())
		}},
		{name: "STATE", w: 8, less: bySegmentState, cell: segmentState},
		{name: "CAUSE", w: 8, most: 9, rank: 1, less: func(a, b *store.Segment) int { return cmp.Compare(a.Cause, b.Cause) }, cell: segmentCause},
		{name: "BASE", w: 11, right: true, rank: 5, value: func(s *store.Segment) float64 { return float64(s.Base) }, cell: number(func(s *store.Segment) int64 { return s.Base })},
		{name: "END", w: 11, right: true, rank: 4, value: func(s *store.Segment) float64 { return float64(s.End) }, cell: func(_ *drawing, s *store.Segment) (string, styles.Style) {
			if s.Unknown {
				return "unknown", styles.Warn
			}
			return plain(component.Count(s.End))
		}},
		{name: "SIZE", w: 8, right: true, value: func(s *store.Segment) float64 { return float64(s.Bytes) }, cell: func(_ *drawing, s *store.Segment) (string, styles.Style) {
			if s.Unknown {
				return dim(none)
			}
			return plain(component.Bytes(uint64(max(s.Bytes, 0))))
		}},
		{name: "REPLICAS", w: 17, most: 48, paint: paintReplicas},
		{name: "GAP", w: 6, right: true, value: func(s *store.Segment) float64 { return float64(s.GapMs) }, cell: func(_ *drawing, s *store.Segment) (string, styles.Style) {
			if s.GapMs <= 0 {
				return dim(none)
			}
			return plain(stood(s.GapMs))
		}},
		{name: "AGE", w: 4, right: true, value: func(s *store.Segment) float64 { return float64(lastOf(s).UnixMilli()) }, cell: func(d *drawing, s *store.Segment) (string, styles.Style) {
			return plain(brief(lastOf(s), d.st.Frame.Now))
		}},
	},
}

// allSegments is how many there are of what the page is about, as whoever counts them tells; 0 if nobody has.
func allSegments(v *store.View, st *State) int {
	switch key, ok := rangeKey(st.Topic + "/" + st.Range); {
	case ok:
		if r := v.Ranges.Get(key); r != nil {
			return r.Segments
		}
	case st.Topic != "":
		if t := v.Topics.Get(st.Topic); t != nil {
			return t.Segments
		}
	default:
		return v.Cluster.Totals.Segments
	}
	return 0
}

func lastOf(s *store.Segment) time.Time {
	if s.State != "active" && !s.Sealed.IsZero() {
		return s.Sealed
	}
	return s.Created
}

// bySegmentState: what waits, then repairs, then what lacks copies, then the active ones, then the rest; those of one
// state stand together, the youngest first.
func bySegmentState(a, b *store.Segment) int {
	return cmp.Or(cmp.Compare(segmentRank(a), segmentRank(b)), cmp.Compare(a.State, b.State), lastOf(b).Compare(lastOf(a)), cmp.Compare(b.ID, a.ID))
}

func segmentRank(s *store.Segment) int {
	switch {
	case s.Waits != "" || s.Unknown:
		return 0
	case s.Repair != nil:
		return 1
	case s.Short():
		return 2
	case s.State == "active":
		return 3
	}
	return 4
}

func segmentState(_ *drawing, s *store.Segment) (string, styles.Style) {
	state := strings.ToUpper(s.State)
	switch {
	case s.Repair != nil:
		return "REPAIR", styles.Info
	case s.Waits != "" || s.Unknown:
		return state + "?", styles.Bad
	case s.Short():
		return state + "!", styles.Warn
	case s.State == "active":
		return state, styles.OK
	}
	return dim(state)
}

func segmentCause(_ *drawing, s *store.Segment) (string, styles.Style) {
	if s.Cause == "" {
		return dim(none)
	}
	word := s.Cause
	switch s.Cause {
	case "REPLICA_FAILURE", "LEADER_FAILURE":
		return "FAILURE", styles.Warn
	case "DATA_PRESSURE":
		word = "PRESSURE"
	}
	return plain(word)
}

// paintReplicas: n1* n2 (n3): the leader, a copy, one that does not count.
func paintReplicas(d *drawing, place component.Rect, s *store.Segment) {
	pen := d.c.Pen(place)
	for i, r := range s.Replicas {
		if i > 0 {
			pen.Skip(1)
		}
		text, style := string(r.Node), styles.Plain
		switch r.State {
		case "leader":
			text += "*"
		case "", "in_sync":
		default:
			text, style = "("+text+")", styles.Warn
		}
		if d.v.Stale(r.Node) {
			style = styles.Warn
		}
		pen.Text(text, style)
	}
	if p := s.Repair; p != nil {
		pen.Skip(1)
		if pen.Left() > 24 {
			pen.Text("to "+string(p.Target)+" ", styles.Info)
		}
		rest := pen.Rest()
		rest.W = min(rest.W, 24)
		d.c.Meter(rest, float64(p.Bytes)/float64(max(p.Total, 1)), styles.Info)
		return
	}
	if s.Waits != "" {
		pen.Skip(2).Text("waits: "+s.Waits, styles.Warn)
	}
}

// Draw draws the timeline and the table.
func (segments) Draw(c *component.Canvas, body component.Rect, v *store.View, st *State) {
	st.focusable = 1
	d := &drawing{c: c, v: v, st: st}
	if !st.Zoom {
		var top component.Rect
		top, body = body.CutTop(min(v.Nodes.Len()+4, max(body.H/2, 6)))
		drawTimeline(d, top)
	}
	title := "Segments"
	if st.Topic != "" {
		title += " of " + st.Topic
		if st.Range != "" {
			title += "/" + st.Range
		}
	}
	inside := d.box(body, 0, title, d.join(body, title, segmentTable.notes(d, 0, body.W)...))
	segmentTable.draw(d, 0, body, inside, noSegments(v, st)...)
}

// noSegments says why there are none.
func noSegments(v *store.View, st *State) []string {
	if v.Cluster.ListedSegments.Has(st.Topic) {
		return []string{"there are no segments", "each range of a topic has one from its beginning on"}
	}
	why := "they are asked for while this page is open"
	if st.Topic == "" {
		why += "; :segments TOPIC shows those of one topic"
	}
	return []string{"no segment is known yet", why}
}

// drawTimeline is when segments ended on each node, and how long producers stood still.
func drawTimeline(d *drawing, r component.Rect) {
	const notes = 15
	names := d.nodeWidth() + 2
	cell := 2 * time.Second
	if r.W >= 100 {
		cell = 3 * time.Second
	}
	window := time.Duration(max(r.W-4-names-notes, 1)) * cell
	title := fmt.Sprintf("Seals (1 cell = %d s)", cell/time.Second)
	if r.W >= 100 {
		title = fmt.Sprintf("Seals (last %s, 1 cell = %d s)", component.Age(window), cell/time.Second)
	}
	lanes, gap := d.lanes(window, max(r.H-4, 1))
	inside := d.plainBox(r, title, d.causes(lanes, r.W-d.c.Width(d.title(title))-9), styles.Dim)
	if len(lanes) == 0 {
		d.empty(inside, "no node is known yet")
		return
	}
	t := component.Timeline{Now: d.st.Frame.Now, Cell: cell, Lanes: lanes, Gap: gap, Name: names, Note: notes}
	t.Notes = longWaits(gap)
	t.Draw(d.c, inside)
}

// longWaits is how long all but one in a hundred of the waits of a lane are.
func longWaits(gap []component.Sample) string {
	if len(gap) == 0 {
		return "none"
	}
	values := make([]float64, len(gap))
	for i, s := range gap {
		values[i] = s.Value
	}
	slices.Sort(values)
	return fmt.Sprintf("p99 %.0f ms", values[(len(values)*99+99)/100-1])
}

// seals are why segments end, by the letters of the lanes.
var seals = [...]string{"Pressure", "Idle", "Failure", "Recovery", "Split", "Merge", "Age", "Drain", "Operator"}

// causes explains as many letters of the lanes as there is room for, those that are there before those that could be.
func (d *drawing) causes(lanes []component.Lane, w int) string {
	seen := make(map[rune]bool)
	for _, l := range lanes {
		for _, m := range l.Marks {
			seen[m.Letter] = true
		}
	}
	var shown [len(seals)]bool
	used := 0
	for _, there := range []bool{true, false} {
		for i, name := range seals {
			if n := len(name) + 3; seen[rune(name[0])] == there && used+n <= w {
				shown[i] = true
				used += n
			}
		}
	}
	var parts []string
	for i, name := range seals {
		if shown[i] {
			parts = append(parts, name[:1]+" "+strings.ToLower(name))
		}
	}
	gap := " "
	if used+len(parts) <= w {
		gap = "  "
	}
	return strings.Join(parts, gap)
}

// lanes are a line for each node, as many as fit: those that are in trouble and those that sealed most.
func (d *drawing) lanes(window time.Duration, room int) (lanes []component.Lane, gap []component.Sample) {
	now := d.st.Frame.Now
	marks := make(map[sdk.NodeID][]component.Mark)
	gap = []component.Sample{}
	all := d.v.Seals.All()
	for i := len(all) - 1; i >= 0; i-- {
		s := all[i]
		if now.Sub(s.Time) > window {
			break
		}
		marks[s.Node] = append(marks[s.Node], component.Mark{At: s.Time, Letter: rune(s.Letter()), Style: letterStyle(s.Letter())})
		if s.GapMs > 0 {
			gap = append(gap, component.Sample{At: s.Time, Value: float64(s.GapMs)})
		}
	}
	nodes := slices.Clone(d.v.Nodes.Rows())
	if len(nodes) > room {
		slices.SortStableFunc(nodes, func(a, b *store.Node) int {
			return cmp.Or(cmp.Compare(trouble(b), trouble(a)), cmp.Compare(len(marks[b.ID]), len(marks[a.ID])))
		})
		nodes = nodes[:room]
		slices.SortFunc(nodes, byNode)
	}
	for _, n := range nodes {
		seals := marks[n.ID]
		slices.Reverse(seals) // the newest of a cell is the one that is seen
		lane := component.Lane{Name: string(n.ID), Marks: append(d.unheard(n.ID, window), seals...), Note: fmt.Sprintf("%3d", len(seals))}
		if n.State != "alive" {
			lane.Note += " " + string(d.c.Glyphs().Pointer) + " " + n.State
			lane.Style = styles.Warn
		}
		lanes = append(lanes, lane)
	}
	return lanes, gap
}

// unheard marks when a node was not heard: what it did then may be missing.
func (d *drawing) unheard(node sdk.NodeID, window time.Duration) (marks []component.Mark) {
	now := d.st.Frame.Now
	for _, g := range d.v.Gaps.All() {
		to := g.To
		if to.IsZero() || to.After(now) {
			to = now
		}
		if g.Node != node && g.Node != "" || now.Sub(to) > window {
			continue
		}
		from := g.From
		if now.Sub(from) > window {
			from = now.Add(-window)
		}
		for at := from; !at.After(to); at = at.Add(time.Second) {
			marks = append(marks, component.Mark{At: at, Letter: d.c.Glyphs().Unknown, Style: styles.Dim})
		}
	}
	return marks
}

func letterStyle(letter byte) styles.Style {
	switch letter {
	case 'F':
		return styles.Bad
	case 'S', 'M':
		return styles.Info
	case 'R':
		return styles.OK
	case 'I', 'A':
		return styles.Dim
	}
	return styles.Plain
}

// Rows are the segments.
func (segments) Rows(v *store.View, st *State) Rows { return segmentTable.ordered(v, st, 0) }

// Columns are those of the table.
func (segments) Columns(*State) []string { return segmentTable.columns() }

// Panels is 1.
func (segments) Panels(int, int) int { return 1 }

// Head counts the segments.
func (segments) Head(v *store.View, st *State) string {
	if st.Topic != "" {
		return strings.TrimSuffix(st.Topic+"/"+st.Range, "/")
	}
	n := v.Segments.Len()
	if !v.Cluster.ListedSegments.Has("") {
		n = max(n, v.Cluster.Totals.Segments)
	}
	if n == 0 {
		return ""
	}
	return plural(n, "segment")
}

// Alarm says what lacks copies before all else.
func (segments) Alarm(v *store.View, st *State) Line {
	if l := dataInTrouble(v, st); l.Text != "" {
		if r := v.Repairs(); len(r) > 0 {
			l.Text += ", to " + string(r[0].Repair.Target)
		}
		return l
	}
	return alarmOf(v, st)
}

// About is the selected segment.
func (segments) About(v *store.View, st *State) Subject {
	s := selected(segmentTable.ordered(v, st, 0), st.Panels[0].Selected)
	if s == nil {
		return Subject{}
	}
	id := s.ID.String()
	return Subject{
		Kind: KindSegment, Name: id, Topic: s.Range.Topic, Range: s.Range.Range.String(), Open: Events,
		Describe: []string{"segment", "describe", id},
		Actions: []Action{
			{Key: 'V', Title: "verify", Head: "Verify segment " + id, Command: []string{"segment", "verify", id}, Why: "this version has no such command"},
			sealAction(s.ID, s.State),
		},
	}
}
