package page

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/component"
	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/styles"
)

// ring is page 2: the nodes as a ring, one of them in detail, and what each believes of the others.
type ring struct{}

// ID is 2.
func (ring) ID() ID { return Ring }

// Draw draws ring and node above, the matrix below.
func (ring) Draw(c *component.Canvas, body component.Rect, v *store.View, st *State) {
	st.focusable = 1
	d := &drawing{c: c, v: v, st: st}
	if st.Zoom {
		drawMatrix(d, body)
		return
	}
	lower := min(v.Nodes.Len()+3, max(body.H-12, 5), body.H/2)
	if body.H >= 50 {
		lower = min(v.Nodes.Len()+3, body.H-22)
	}
	upper, lowerBox := body.CutBottom(max(lower, 4))
	left, right := upper.CutLeft(upper.W*46/80 + upper.W%2)
	drawRing(d, left, 0, true)
	d.nodeDetail(right)
	drawMatrix(d, lowerBox)
}

// chosenNode is the node in detail: the selected one, or the one that is worst off.
func (d *drawing) chosenNode(panel int) *store.Node {
	if n := d.v.Nodes.Get(sdk.NodeID(d.st.Panels[panel].Selected)); n != nil {
		return n
	}
	var worst *store.Node
	for _, n := range d.v.Nodes.Rows() {
		if worst == nil || trouble(n) > trouble(worst) {
			worst = n
		}
	}
	return worst
}

// drawRing draws the nodes around what holds for all of them.
func drawRing(d *drawing, r component.Rect, panel int, alone bool) {
	nodes := d.v.Nodes.Rows()
	vnodes := 0
	for _, n := range nodes {
		vnodes = max(vnodes, n.Vnodes)
	}
	note := ""
	if len(nodes) > 0 {
		note = fmt.Sprintf("%d %s %s vnodes", len(nodes), d.say("×", "x"), component.Count(vnodes))
		if r.W >= 60 {
			note = strings.Replace(note, " ", " nodes ", 1)
		}
	}
	inside := d.box(r, panel, "SWIM ring", note)
	at := PanelAt{Panel: panel, Box: r}
	defer func() { d.st.Shown.Panels = append(d.st.Shown.Panels, at) }()
	if len(nodes) == 0 {
		d.empty(inside, "no node is known yet", "the first broker that answers tells of the others")
		return
	}
	circle := inside
	if alone && inside.H >= 9 {
		var foot component.Rect
		circle, foot = inside.CutBottom(2)
		d.owns(foot.Line(1), nodes)
	}
	chosen := d.chosenNode(panel)
	at.Chosen = string(chosen.ID)
	placed := d.around(circle, nodes, chosen, panel == d.st.Panel)
	facts := d.ringFacts(nodes, circle.H-4)
	if !alone && circle.H > len(facts)+10 {
		facts = append(facts, "")
		facts = append(facts, d.nodeFacts(chosen, false, circle.W-2*10)...)
	}
	d.middle(circle, facts, placed)
}

// owns is the share of each node of the ring, as a line.
func (d *drawing) owns(line component.Rect, nodes []*store.Node) {
	pen := d.c.Pen(line).Text("owns ", styles.Dim)
	least := math.MaxInt
	for _, n := range nodes {
		if n.OwnsPerMillion > 0 {
			least = min(least, n.OwnsPerMillion)
		}
	}
	if least == math.MaxInt {
		pen.Text("not known yet", styles.Dim)
		return
	}
	if d.ownsEach(pen, nodes) {
		return
	}
	ramp := d.c.Glyphs().Ramp
	for _, n := range nodes {
		level := 0
		if n.OwnsPerMillion > 0 { // from the least to a quarter more
			level = 3 + min(max((n.OwnsPerMillion-least)*20/least, 0), 5)
		}
		pen.Sign(ramp[level], styles.Accent)
	}
}

// ownsEach writes the share of each node as a number, where there is room for all.
func (d *drawing) ownsEach(pen *component.Pen, nodes []*store.Node) bool {
	w := 0
	for _, n := range nodes {
		w += d.c.Width(string(n.ID)) + 1 + 5 + 2
	}
	if w-2 > pen.Left() {
		return false
	}
	for _, n := range nodes {
		pen.Text(string(n.ID)+" ", styles.Accent).Number(5, perMillion(n.OwnsPerMillion), styles.Plain).Skip(2)
	}
	return true
}

// spot is where a node's name stands.
type spot struct{ x, y, w int }

// around places the nodes clockwise; a name that has no room is left out, and how many are is said.
func (d *drawing) around(r component.Rect, nodes []*store.Node, chosen *store.Node, focused bool) []spot {
	name := 1
	for _, n := range nodes {
		name = max(name, min(d.c.Width(string(n.ID)), 8)+1)
	}
	if r.W < name*3 || r.H < 3 {
		return nil
	}
	spots := d.circle(r, len(nodes), name)
	if spots == nil {
		spots = d.edge(r, len(nodes), name)
	}
	for i, s := range spots {
		n := nodes[i]
		sign, _, style := nodeState(d.c, n)
		d.c.Put(s.x, s.y, sign, style)
		look := styles.Plain
		if n == chosen {
			look = styles.Plain.Bold()
			if focused {
				look = look.Reverse()
			}
		}
		d.c.TextMiddle(s.x+1, s.y, name-1, string(n.ID), look)
	}
	if left := len(nodes) - len(spots); left > 0 {
		text := fmt.Sprintf("and %d more", left)
		d.c.Text(r.X+(r.W-len(text))/2, r.Bottom()-2, len(text), text, styles.Dim)
	}
	return spots
}

// circle is the places of few nodes on a circle; nil where they would not fit side by side.
func (d *drawing) circle(r component.Rect, n, name int) []spot {
	ry := float64(r.H-1) / 2
	rx := min(float64(r.W-name-2)/2, ry*4.2)
	cx, cy := float64(r.X)+float64(r.W-name)/2, float64(r.Y)+ry
	at := func(part float64) (x, y int) {
		angle := 2 * math.Pi * part
		return int(math.Round(cx + rx*math.Sin(angle))), int(math.Round(cy - ry*math.Cos(angle)))
	}
	spots := make([]spot, n)
	for i := range n {
		x, y := at(float64(i) / float64(n))
		spots[i] = spot{x, y, name}
		for _, other := range spots[:i] {
			if other.y == y && x < other.x+name+1 && other.x < x+name+1 {
				return nil
			}
		}
	}
	dots := 8 * (r.W + r.H)
	for i := range dots {
		x, y := at(float64(i) / float64(dots))
		d.c.Put(x, y, d.c.Glyphs().Ring, styles.Dim)
	}
	return spots
}

// edge is the places of many nodes along the edge of a rect.
func (d *drawing) edge(r component.Rect, n, name int) []spot {
	var slots []spot
	across := max((r.W-2)/(name+1), 1)
	x := func(i int) int { return r.X + 1 + i*(r.W-2-name)/max(across-1, 1) }
	for i := range across {
		slots = append(slots, spot{x(i), r.Y, name})
	}
	for y := 1; y < r.H-1; y++ {
		slots = append(slots, spot{r.Right() - name, r.Y + y, name})
	}
	for i := across - 1; i >= 0; i-- {
		slots = append(slots, spot{x(i), r.Bottom() - 1, name})
	}
	for y := r.H - 2; y > 0; y-- {
		slots = append(slots, spot{r.X, r.Y + y, name})
	}
	for _, y := range []int{r.Y, r.Bottom() - 1} {
		d.c.Fill(component.Rect{X: r.X + 1, Y: y, W: r.W - 2, H: 1}, d.c.Glyphs().Ring, styles.Dim)
	}
	if n >= len(slots) {
		return slots
	}
	spots := make([]spot, n)
	for i := range n {
		spots[i] = slots[i*len(slots)/n]
	}
	return spots
}

// ringFacts is what holds for all nodes.
func (d *drawing) ringFacts(nodes []*store.Node, room int) []string {
	c := &d.v.Cluster
	agree := "view not known"
	if c.AgreeOf > 0 {
		agree = fmt.Sprintf("view agreement %d/%d", c.Agree, c.AgreeOf)
	}
	facts := []string{agree}
	if c.RingHash != 0 {
		facts = append(facts, fmt.Sprintf("ring %s version %d", hash(c.RingHash), c.RingVersion))
	}
	least, most, sum, n := math.MaxInt, 0, 0, 0
	boots := uint64(0)
	for _, node := range nodes {
		boots = max(boots, node.Boot)
		if o := node.OwnsPerMillion; o > 0 {
			least, most, sum, n = min(least, o), max(most, o), sum+o, n+1
		}
	}
	if n > 0 {
		facts = append(facts, "owns "+perMillion(sum/n)+" each", "max "+perMillion(most)+"  min "+perMillion(least))
	}
	if !c.Disagreed.IsZero() && c.DisagreedFor > 0 {
		facts = append(facts, "agreed "+age(c.Disagreed.Add(c.DisagreedFor), d.st.Frame.Now)+" ago after "+span(c.DisagreedFor))
	}
	facts = append(facts, fmt.Sprintf("boot max %d", boots))
	return facts[:min(len(facts), max(room, 1))]
}

// middle writes lines inside of the ring, as far as they meet no node.
func (d *drawing) middle(r component.Rect, lines []string, taken []spot) {
	top := r.Y + (r.H-len(lines))/2
	widest := r.W * 3 / 5
	x := r.X + r.W/4 // whatever the lines say, so that none moves when another changes
	for i, text := range lines {
		y := top + i
		if y < r.Y || y >= r.Bottom() || text == "" {
			continue
		}
		from, to := r.X, r.Right()
		for _, s := range taken {
			if s.y != y {
				continue
			}
			if s.x < x {
				from = max(from, s.x+s.w+1)
			} else {
				to = min(to, s.x-1)
			}
		}
		if at := max(x, from); to-at > 8 {
			w := min(d.c.Width(text), widest, to-at)
			d.c.Fill(component.Rect{X: at - 1, Y: y, W: min(w+2, to-at+1), H: 1}, ' ', styles.Plain)
			d.c.TextMiddle(at, y, w, text, styles.Plain) // an error may be longer than the ring is wide: its end says why
		}
	}
}

// nodeDetail is all that is known of the chosen node.
func (d *drawing) nodeDetail(r component.Rect) {
	n := d.chosenNode(0)
	if n == nil {
		d.empty(d.plainBox(r, "Node", "", styles.Dim), "no node is known yet")
		return
	}
	sign, _, style := nodeState(d.c, n)
	note := string(sign) + " " + strings.ToUpper(n.State)
	if !n.Since.IsZero() && n.State != "alive" {
		note += " " + age(n.Since, d.st.Frame.Now)
	}
	inside := d.plainBox(r, string(n.ID), note, style)
	lines := d.nodeFacts(n, true, inside.W)
	for i, text := range lines {
		line := inside.Line(i)
		d.c.TextMiddle(line.X, line.Y, line.W, text, styles.Plain)
	}
	if n.Stream != store.StreamLive {
		for i := range lines {
			if i > 2 {
				d.c.Fade(inside.Line(i))
			}
		}
	}
	_, rest := inside.CutTop(len(lines) + 1)
	d.eventsOf(n.ID, rest)
}

// searchedEvents is how many events are looked at for those of one node.
const searchedEvents = 2000

// eventsOf is what happened to a node, where there is room for it.
func (d *drawing) eventsOf(id sdk.NodeID, r component.Rect) {
	if r.H < 3 {
		return
	}
	head, rest := r.CutTop(1)
	d.c.Pen(head).Text("lately", styles.Head)
	y := 0
	for _, e := range slices.Backward(d.v.Events.Last(searchedEvents)) {
		if y == rest.H {
			return
		}
		if about(e, id) {
			d.drawEvent(rest.Line(y), e)
			y++
		}
	}
	if y == 0 {
		d.c.Pen(rest.Line(0)).Text("nothing has happened to it", styles.Dim)
	}
}

// nodeFacts are the lines about one node, each of the facts that w cells have room for.
func (d *drawing) nodeFacts(n *store.Node, all bool, w int) []string {
	now := d.st.Frame.Now
	lines := []string{d.parts(w, n.Address, "rack "+orNone(n.Rack)), d.parts(w, fmt.Sprintf("boot %d", n.Boot), "vnodes "+component.Count(n.Vnodes))}
	if n.Status != "normal" && n.Status != "" {
		lines = append(lines, "it is "+n.Status)
	}
	if !all {
		lines = append([]string{"selected " + string(n.ID) + "  " + strings.ToUpper(n.State)}, lines...)
	}
	if len(n.SuspectedBy) > 0 {
		by := make([]string, len(n.SuspectedBy))
		for i, id := range n.SuspectedBy {
			by[i] = string(id)
		}
		text := "missed by " + strings.Join(by[:min(len(by), 4)], " ")
		if len(by) > 4 {
			text += fmt.Sprintf(" and %d more", len(by)-4)
		}
		lines = append(lines, text)
	}
	switch n.Stream {
	case store.StreamLive:
		lines = append(lines, "heard just now")
	case store.StreamStale, store.StreamLost:
		text := "not heard for " + age(n.Heard, now)
		lines = append(lines, text)
		if n.Error != "" {
			lines = append(lines, n.Error)
		}
	case store.StreamNone:
		lines = append(lines, "nobody listens to it")
	}
	lines = append(lines,
		fmt.Sprintf("leads %d shards of %d here", n.ShardLeaders, n.Replicas),
		fmt.Sprintf("segments %s (%s led)", component.Count(n.Segments), component.Count(n.Leaders)),
		d.parts(w, "disk "+padded(4, share(n.DiskUsed, n.DiskTotal)), "fsync p99 "+padded(6, latency(n.Raw.Fsync.P99Us))))
	if !all {
		return lines
	}
	return append(lines,
		d.parts(w, "in "+padded(component.RateWidth, component.Rate(n.InBytes)), "out "+padded(component.RateWidth, component.Rate(n.OutBytes))),
		d.parts(w, "up "+component.Age(time.Duration(n.UptimeMs)*time.Millisecond), "version "+orNone(n.Software)),
		d.parts(w, fmt.Sprintf("clock %+d ms", n.SkewMs), fmt.Sprintf("connections %d", n.Connections)),
		d.parts(w, fmt.Sprintf("damaged %d", n.Damaged), fmt.Sprintf("short %d", n.Short), fmt.Sprintf("put aside %d", n.Quarantined)))
}

// drawMatrix is what each node believes of the others.
func drawMatrix(d *drawing, r component.Rect) {
	inside := d.plainBox(r, "What each node believes", "rows = observer", styles.Dim)
	b := &d.v.Believes
	if len(b.Observers) == 0 {
		d.empty(inside, "no node has told what it believes yet", "each does as soon as its stream is open")
		return
	}
	m := component.Matrix{Notes: "ring hash  version  agrees"}
	for _, id := range b.Members {
		m.Columns = append(m.Columns, string(id))
	}
	for _, o := range b.Observers {
		row := component.MatrixRow{Name: string(o.Node), Style: styles.Accent, Cells: make([]component.MatrixCell, len(b.Members))}
		for i, id := range b.Members {
			if belief, ok := o.Of(id); ok && !o.Stale {
				sign, _, style := stateSign(d.c, belief.State)
				row.Cells[i] = component.MatrixCell{Sign: sign, Style: style}
			}
		}
		row.Note, row.NoteStyle = d.agreement(o)
		m.Rows = append(m.Rows, row)
	}
	rows := max(inside.H-1, 1)
	if at := d.observer(); at >= rows {
		m.Top = min(at-rows+1, max(len(m.Rows)-rows, 0))
	}
	m.Draw(d.c, inside)
}

// observer is the row of the selected node.
func (d *drawing) observer() int {
	for i, o := range d.v.Believes.Observers {
		if string(o.Node) == d.st.Panels[0].Selected {
			return i
		}
	}
	return 0
}

func (d *drawing) agreement(o *store.Observer) (string, styles.Style) {
	c := &d.v.Cluster
	if o.Stale {
		text := "(no stream)"
		if n := d.v.Nodes.Get(o.Node); n != nil && !n.Heard.IsZero() {
			text = "(no stream for " + age(n.Heard, d.st.Frame.Now) + ")"
		}
		return text, styles.Warn
	}
	verdict, style := "yes", styles.Plain
	switch {
	case o.RingHash != c.RingHash:
		verdict, style = "another ring", styles.Bad
	case o.RingVersion < c.RingVersion:
		verdict, style = fmt.Sprintf("%d behind", c.RingVersion-o.RingVersion), styles.Warn
	}
	return fmt.Sprintf("%-9s  %7d  %s", hash(o.RingHash), o.RingVersion, verdict), style
}

// Rows are the nodes.
func (ring) Rows(v *store.View, st *State) Rows { return nodeTable.ordered(v, st, 0) }

// Columns are none.
func (ring) Columns(*State) []string { return nil }

// Panels is 1.
func (ring) Panels(int, int) int { return 1 }

// Head counts the nodes.
func (ring) Head(v *store.View, _ *State) string { return plural(v.Nodes.Len(), "node") }

// Alarm says who disagrees, else what the cluster has.
func (ring) Alarm(v *store.View, st *State) Line {
	behind := 0
	for _, o := range v.Believes.Observers {
		if !o.Stale && o.RingVersion < v.Cluster.RingVersion {
			behind++
		}
	}
	if behind > 0 && v.Cluster.Agree == v.Cluster.AgreeOf {
		return Line{"view: " + plural(behind, "node") + " behind in the version of the ring, which is normal for a moment", styles.Info}
	}
	return alarmOf(v, st)
}

// About is the chosen node.
func (ring) About(v *store.View, st *State) Subject {
	d := &drawing{v: v, st: st}
	if n := d.chosenNode(0); n != nil {
		return aboutNode(v, n.ID)
	}
	return Subject{}
}
