package page

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/component"
	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/styles"
)

// nodeTable is the nodes, on the overview.
var nodeTable = &table[*store.Node]{
	name: "nodes",
	sort: "NODE",
	id:   func(n *store.Node) string { return string(n.ID) },
	text: func(n *store.Node) string {
		return string(n.ID) + " " + n.State + " " + n.Status + " " + n.Address + " " + n.Rack + " " + n.Software
	},
	source: func(v *store.View, _ *State) source[*store.Node] {
		return source[*store.Node]{
			version: v.Nodes.Version, n: v.Nodes.Len(), at: v.Nodes.At,
			find: func(id string) int { return v.Nodes.Index(sdk.NodeID(id)) },
		}
	},
	faded: func(_ *drawing, n *store.Node) bool { return n.State == "dead" || n.State == "left" },
	cols: []col[*store.Node]{
		{name: "NODE", w: 4, most: 7, less: byNode, cell: func(_ *drawing, n *store.Node) (string, styles.Style) { return string(n.ID), styles.Accent }},
		{name: "ST", w: 2, most: 9, less: byState, paint: paintState},
		{name: "BOOT", w: 4, right: true, rank: 2, value: func(n *store.Node) float64 { return float64(n.Boot) }, cell: told(func(n *store.Node) int64 { return int64(n.Boot) })},
		{name: "ADDRESS", w: 15, most: 21, rank: 6, cell: func(_ *drawing, n *store.Node) (string, styles.Style) { return plain(n.Address) }},
		{name: "RACK", w: 5, rank: 7, cell: func(_ *drawing, n *store.Node) (string, styles.Style) { return plain(orNone(n.Rack)) }},
		{name: "VNODES", w: 6, right: true, rank: 8, cell: told(func(n *store.Node) int64 { return int64(n.Vnodes) })},
		{name: "OWNS", w: 5, right: true, rank: 7, value: func(n *store.Node) float64 { return float64(n.OwnsPerMillion) }, cell: func(_ *drawing, n *store.Node) (string, styles.Style) {
			return perMillion(n.OwnsPerMillion), freshness(n)
		}},
		{name: "SHARDS", w: 6, right: true, rank: 1, value: func(n *store.Node) float64 { return float64(n.ShardLeaders) }, cell: told(func(n *store.Node) int64 { return int64(n.ShardLeaders) })},
		{name: "SEGS", w: 4, right: true, rank: 1, value: func(n *store.Node) float64 { return float64(n.Segments) }, cell: told(func(n *store.Node) int64 { return int64(n.Segments) })},
		{name: "IN/s", w: 6, right: true, rough: true, rank: 3, value: func(n *store.Node) float64 { return n.InBytes }, cell: counted(func(n *store.Node) string { return component.Short(n.InBytes) })},
		{name: "OUT/s", w: 6, right: true, rough: true, rank: 3, value: func(n *store.Node) float64 { return n.OutBytes }, cell: counted(func(n *store.Node) string { return component.Short(n.OutBytes) })},
		{name: "FSYNC p99", w: 9, right: true, rough: true, rank: 5, value: func(n *store.Node) float64 { return float64(n.Raw.Fsync.P99Us) }, cell: counted(func(n *store.Node) string { return latency(n.Raw.Fsync.P99Us) })},
		{name: "ACK p99", w: 7, right: true, rough: true, rank: 9, value: func(n *store.Node) float64 { return float64(n.Raw.Ack.P99Us) }, cell: counted(func(n *store.Node) string { return latency(n.Raw.Ack.P99Us) })},
		{name: "DISK", w: 4, most: 6, right: true, rank: 1, value: func(n *store.Node) float64 { return portion(n.DiskUsed, n.DiskTotal) }, paint: paintDisk},
		{name: "RTT", w: 9, right: true, rough: true, value: func(n *store.Node) float64 { return float64(n.RttUs) }, cell: rtt},
	},
}

func byNode(a, b *store.Node) int { return cmp.Compare(a.ID, b.ID) }

// byState puts the worst first.
func byState(a, b *store.Node) int {
	return cmp.Or(cmp.Compare(trouble(b), trouble(a)), byNode(a, b))
}

func trouble(n *store.Node) int {
	switch n.State {
	case "dead":
		return 4
	case "suspect":
		return 3
	case "alive":
		if n.Stream != store.StreamLive {
			return 2
		}
		return 0
	case "left":
		return 1
	}
	return 2
}

func orNone(s string) string {
	if s == "" {
		return none
	}
	return s
}

// number is a whole number's cell.
func number[R any](of func(R) int64) func(*drawing, R) (string, styles.Style) {
	return func(_ *drawing, r R) (string, styles.Style) { return component.Count(of(r)), styles.Plain }
}

// told is a number that a node told of itself: dim when that is old.
func told(of func(*store.Node) int64) func(*drawing, *store.Node) (string, styles.Style) {
	return func(_ *drawing, n *store.Node) (string, styles.Style) { return component.Count(of(n)), freshness(n) }
}

func freshness(n *store.Node) styles.Style {
	if n.Stream != store.StreamLive {
		return styles.Dim
	}
	return styles.Plain
}

// counted is a cell of what a node counts itself: a dash when it is not heard.
func counted(of func(*store.Node) string) func(*drawing, *store.Node) (string, styles.Style) {
	return func(_ *drawing, n *store.Node) (string, styles.Style) {
		if n.Stream != store.StreamLive || n.Raw.ObservedMs == 0 {
			return dim(none)
		}
		return plain(of(n))
	}
}

func latency(us int64) string {
	if us <= 0 {
		return none
	}
	return took(time.Duration(us) * time.Microsecond)
}

// paintState is ●A, or ● alive where there is room.
func paintState(d *drawing, place component.Rect, n *store.Node) {
	sign, letter, style := nodeState(d.c, n)
	pen := d.c.Pen(place).Sign(sign, style)
	if place.W < 9 {
		pen.Text(letter, style)
		return
	}
	word := n.State
	if n.Status != "normal" && n.Status != "" {
		word = n.Status
	}
	pen.Skip(1).Text(word, style)
}

func paintDisk(d *drawing, place component.Rect, n *store.Node) {
	style := freshness(n)
	part := portion(n.DiskUsed, n.DiskTotal)
	switch {
	case n.Full || part > 0.9:
		style = styles.Bad
	case part > 0.8:
		style = styles.Warn
	}
	text, bar := place, component.Rect{}
	if place.W >= 6 {
		text, bar = place.CutLeft(4)
	}
	d.c.Number(text.X, text.Y, text.W, share(n.DiskUsed, n.DiskTotal), style)
	if n.DiskTotal > 0 && !bar.Empty() {
		ramp := d.c.Glyphs().Ramp
		d.c.Put(bar.Right()-1, bar.Y, ramp[1+int(min(max(part, 0)*8, 7))], style)
	}
}

// rtt is the round trip to a node; how old what we know is, when it is silent.
func rtt(d *drawing, n *store.Node) (string, styles.Style) {
	now := d.st.Frame.Now
	switch n.Stream {
	case store.StreamLive:
		if n.RttUs == 0 {
			return dim(none)
		}
		return plain(latency(n.RttUs))
	case store.StreamNone:
		return dim("no stream")
	case store.StreamStale, store.StreamLost:
	}
	if n.Heard.IsZero() {
		return "no answer", styles.Warn
	}
	return "stale " + brief(n.Heard, now), styles.Warn
}

// nodesNote counts the nodes by their state: A4 S1 D0.
func nodesNote(d *drawing, wide bool) string {
	c := &d.v.Cluster
	if wide {
		note := strconv.Itoa(c.Alive) + " alive  " + strconv.Itoa(c.Suspect) + " suspect  " + strconv.Itoa(c.Dead) + " dead"
		if c.Left > 0 {
			note += "  " + strconv.Itoa(c.Left) + " left"
		}
		return note
	}
	note := "A" + strconv.Itoa(c.Alive) + " S" + strconv.Itoa(c.Suspect) + " D" + strconv.Itoa(c.Dead)
	if c.Left > 0 {
		note += " L" + strconv.Itoa(c.Left)
	}
	return note
}

// drawNodes draws the panel of the nodes.
func drawNodes(d *drawing, r component.Rect, panel int) {
	notes := slices.Insert(nodeTable.notes(d, panel, r.W), 1, nodesNote(d, r.W >= 100))
	if r.W < 100 {
		notes = notes[:2] // without the order, which anybody sees
	}
	inside := d.box(r, panel, "Nodes", d.join(r, "Nodes", notes...))
	nodeTable.draw(d, panel, r, inside, "no node is known yet", "the first broker that answers tells of the others")
}

// aboutNode is a node as a subject.
func aboutNode(v *store.View, id sdk.NodeID) Subject {
	n := v.Nodes.Get(id)
	if n == nil {
		return Subject{}
	}
	name := string(id)
	s := Subject{Kind: KindNode, Name: name, Open: Ring, Row: name, Describe: []string{"node", "describe", name}}
	gone := ""
	if n.State == "dead" || n.State == "left" {
		gone = "the node is " + n.State
	}
	living := ""
	if n.State == "alive" {
		living = "the node is alive"
	}
	s.Actions = []Action{
		{Key: 'p', Title: "ping", Head: "Ping node " + name, Command: []string{"node", "ping", name}, Why: gone},
		{Key: 'l', Title: "leave…", Head: "Let node " + name + " leave", Command: []string{"node", "leave", name}, Level: LevelYes, Why: gone},
		{Key: 'f', Title: "forget…", Head: "Forget node " + name, Command: []string{"node", "forget", name}, Level: LevelName, Why: living},
	}
	return s
}
