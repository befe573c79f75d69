package page

import (
	"slices"
	"strings"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/tui/component"
	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/styles"
)

// drawing is one frame being drawn.
type drawing struct {
	c  *component.Canvas
	v  *store.View
	st *State
}

// col is one column of a table of rows R.
type col[R any] struct {
	name  string
	w     int  // cells that it needs
	most  int  // cells that it takes if there is room; 0: w
	right bool // numbers
	share int  // percent of the table's width that it needs, if that is more
	rank  int  // columns of a higher rank give way first; 0 never does
	grow  bool // takes what is left
	prose bool // its end may be cut; else its middle
	wide  bool // only in the wide layout
	bare  bool // a bar, which no selection reverses
	cell  func(d *drawing, r R) (string, styles.Style)
	paint func(d *drawing, place component.Rect, r R) // in place of cell
	value func(r R) float64                           // sorted by it, greatest first
	rough bool                                        // the value wobbles: it is told from others where it differs by a tenth
	less  func(a, b R) int                            // sorted by it
}

func (c *col[R]) sorts() bool { return c.value != nil || c.less != nil }

// source is where a table's rows come from.
type source[R any] struct {
	version uint64
	scope   string // what else decides on which rows there are
	n       int
	part    bool   // there may be more than is known
	all     int    // how many there are, if that is known
	came    uint64 // of a log: rows ever; else 0
	newest  bool   // of a log: the newest comes first
	at      func(i int) R
	pass    func(r R) bool      // nil: all
	find    func(id string) int // the place of an id, or -1
}

// table is a kind of rows and its columns.
type table[R any] struct {
	name  string
	cols  []col[R]
	sort  string // the column by which it is sorted if not told otherwise; empty: as it comes
	id    func(r R) string
	text  func(r R) string           // what a filter looks at
	faded func(d *drawing, r R) bool // stale rows
	// version says what a row's cells depend on; nil: they are drawn anew each time.
	version func(d *drawing, r R) uint64
	source  func(v *store.View, st *State) source[R]
}

// rows are a table's rows in their order.
type rows[R any] struct {
	t   *table[R]
	src source[R]
	o   *order
}

// Len is the number of rows.
func (r rows[R]) Len() int { return len(r.o.rows) }

// ID is what a row is held by.
func (r rows[R]) ID(i int) string { return r.t.id(r.at(i)) }

// Index is the place of an id, or -1.
func (r rows[R]) Index(id string) int {
	if id == "" {
		return -1
	}
	place := r.src.find(id)
	if place < 0 {
		return -1
	}
	return slices.Index(r.o.rows, int32(place))
}

// ids are those of some rows.
func (r rows[R]) ids(from, n int) []string {
	list := make([]string, 0, n)
	for i := from; i < min(from+n, r.Len()); i++ {
		list = append(list, r.ID(i))
	}
	return list
}

func (r rows[R]) at(i int) R { return r.src.at(int(r.o.rows[i])) }

// ordered are the rows of a panel.
func (t *table[R]) ordered(v *store.View, st *State, panel int) rows[R] {
	src := t.source(v, st)
	f := &st.Panels[panel]
	l := list{name: t.name, scope: src.scope, version: src.version, n: src.n, came: src.came, newest: src.newest, sort: t.sortName(f), invert: f.Invert}
	if panel == st.Panel {
		l.filter = st.Filter
	}
	l.text = func(i int) string { return t.text(src.at(i)) }
	if src.pass != nil {
		l.pass = func(i int) bool { return src.pass(src.at(i)) }
	}
	if c := t.sortCol(f); c != nil {
		if c.value != nil {
			l.value, l.rough = func(i int) float64 { return c.value(src.at(i)) }, c.rough
		} else {
			l.compare = func(a, b int) int { return c.less(src.at(a), src.at(b)) }
		}
	}
	return rows[R]{t, src, st.order(l)}
}

func (t *table[R]) sortName(f *Focus) string {
	if c := t.sortCol(f); c != nil {
		return c.name
	}
	return ""
}

// sortCol is the column that a panel is sorted by.
func (t *table[R]) sortCol(f *Focus) *col[R] {
	for _, name := range []string{f.Sort, t.sort} {
		for i := range t.cols {
			if c := &t.cols[i]; name != "" && c.name == name && c.sorts() {
				return c
			}
		}
	}
	return nil
}

// columns are the names of those that can be sorted by.
func (t *table[R]) columns() (names []string) {
	for i := range t.cols {
		if t.cols[i].sorts() {
			names = append(names, t.cols[i].name)
		}
	}
	return names
}

// notes are what the panel's frame says of its rows, the most important first: what they are filtered by, how many of
// those that there are they are, and their order.
func (t *table[R]) notes(d *drawing, panel, width int) []string {
	list := t.ordered(d.v, d.st, panel)
	parts := []string{d.filtered(panel, width, list.o), list.known()}
	f, g := &d.st.Panels[panel], d.c.Glyphs()
	if c := t.sortCol(f); c != nil {
		mark := g.Ascend
		if (c.value != nil) != f.Invert {
			mark = g.Descend
		}
		parts = append(parts, "sort: "+strings.ToLower(c.name)+" "+string(mark))
	}
	return parts
}

// known says of how many there are the rows are all that is known: filter and order are of those alone. It is empty where
// all are known.
func (r rows[R]) known() string {
	switch n := component.Count(r.o.total); {
	case !r.src.part:
		return ""
	case r.src.all > r.o.total:
		return n + " of " + component.Count(r.src.all) + " known"
	default:
		return n + " known so far"
	}
}

// join puts as many notes into one as the frame of a box has room for beside its title; those that say nothing are left
// out.
func (d *drawing) join(r component.Rect, title string, notes ...string) string {
	notes = slices.DeleteFunc(slices.Clone(notes), func(text string) bool { return text == "" })
	room := r.W - 8 - d.c.Width(d.title(title))
	for n := len(notes); n > 0; n-- {
		if text := strings.Join(notes[:n], "  "); d.c.Width(text) <= room {
			return text
		}
	}
	return ""
}

// filterRoom is how much of a filter a panel's frame shows at most, in cells; one of a narrow panel a quarter of it.
const filterRoom = 28

// filtered says what a panel's rows are filtered by, and how many pass; nothing where all do.
func (d *drawing) filtered(panel, width int, o *order) string {
	if panel != d.st.Panel || !d.st.Filter.On() {
		return ""
	}
	text := term.Truncate(term.Escape(d.st.Filter.Text), min(filterRoom, width/4), d.c.Theme().ASCII)
	return "filter: " + text + "  " + component.Count(len(o.rows)) + " of " + component.Count(o.total)
}

// draw draws a panel's rows, and empty in place of them if there are none.
func (t *table[R]) draw(d *drawing, panel int, box, inside component.Rect, empty ...string) {
	list := t.ordered(d.v, d.st, panel)
	at := PanelAt{Panel: panel, Box: box}
	if list.Len() == 0 || inside.H < 2 {
		d.st.Shown.Panels = append(d.st.Shown.Panels, at)
		if list.o.total > 0 && d.st.Filter.On() {
			empty = []string{"nothing passes the filter " + d.st.Filter.Text, "esc clears it"}
			if list.src.part {
				empty[0] = "none of the " + component.Count(list.o.total) + " that are known passes the filter " + d.st.Filter.Text
			}
		}
		d.empty(inside, empty...)
		return
	}
	f := &d.st.Panels[panel]
	look := component.TableState{Selected: f.Selected, At: list.Index(f.Selected), Top: f.Scroll, Focused: panel == d.st.Panel, Wide: d.st.Wide}
	if look.At < 0 {
		look.Selected, look.At = "", min(f.Scroll, list.Len()-1)
	}
	if len(d.st.Marked) > 0 {
		look.Marked = func(id string) bool { return d.st.Marked[id] }
	}
	at.Table = t.component(d, list, panel).Draw(d.c, inside, look)
	f.Scroll = at.Table.Top
	at.IDs = list.ids(at.Table.Top, at.Table.Visible)
	at.Chosen = list.ID(look.At)
	d.st.Shown.Panels = append(d.st.Shown.Panels, at)
}

// drawLines draws rows without columns, each as a whole line.
func (t *table[R]) drawLines(d *drawing, panel int, box, inside component.Rect, line func(component.Rect, R), empty ...string) {
	list := t.ordered(d.v, d.st, panel)
	at := PanelAt{Panel: panel, Box: box, Table: component.TableView{Rows: inside}}
	if list.Len() == 0 || inside.Empty() {
		t.draw(d, panel, box, inside, empty...)
		return
	}
	f := &d.st.Panels[panel]
	selected := list.Index(f.Selected)
	f.Scroll = scroll(f.Scroll, selected, list.Len(), inside.H)
	if selected < 0 && d.st.Follow {
		f.Scroll = 0
	}
	at.Table.Top, at.Table.Visible = f.Scroll, min(inside.H, list.Len()-f.Scroll)
	for y := range at.Table.Visible {
		place := inside.Line(y)
		line(place, list.at(f.Scroll+y))
		if f.Scroll+y == selected && panel == d.st.Panel {
			d.c.Select(place)
		}
	}
	at.IDs = list.ids(at.Table.Top, at.Table.Visible)
	if list.Len() > inside.H && f.Scroll > 0 {
		d.position(box, f.Scroll+1, f.Scroll+at.Table.Visible, list.Len())
	}
	d.st.Shown.Panels = append(d.st.Shown.Panels, at)
}

// position says in the lower edge of a box which of its rows are seen.
func (d *drawing) position(box component.Rect, from, to, of int) {
	text := " " + component.Count(from) + "-" + component.Count(to) + " of " + component.Count(of) + " "
	if w := d.c.Width(text); box.W > w+6 {
		d.c.Text(box.Right()-2-w, box.Bottom()-1, w, text, styles.Dim)
	}
}

// scroll is the first row to be seen: where it was, as far as the selection stays in sight and no row is wasted.
func scroll(was, selected, n, h int) int {
	first := was
	if selected >= 0 {
		first = min(max(first, selected-h+1), selected)
	}
	return max(min(first, n-h), 0)
}

// component is the table to draw.
func (t *table[R]) component(d *drawing, list rows[R], panel int) *component.Table {
	shown := &component.Table{Name: t.name, Len: list.Len(), ID: list.ID, Columns: make([]component.Column, len(t.cols))}
	for i := range t.cols {
		c := &t.cols[i]
		shown.Columns[i] = component.Column{
			Title: c.name, Width: max(c.w, c.most), Min: c.w, Share: c.share, Grow: c.grow, Right: c.right, Priority: c.rank, Wide: c.wide, Bare: c.bare,
		}
	}
	if c := t.sortCol(&d.st.Panels[panel]); c != nil && d.st.Panels[panel].Sort != "" {
		shown.SortBy, shown.Descending = c.name, (c.value != nil) != d.st.Panels[panel].Invert
	}
	if t.version != nil {
		shown.Version = func(i int) uint64 { return t.version(d, list.at(i)) }
	}
	shown.Row = func(i int, row *component.Row) {
		r := list.at(i)
		for k := range t.cols {
			t.drawCell(d, row, k, r)
		}
		if t.faded != nil && t.faded(d, r) {
			row.Fade()
		}
	}
	return shown
}

func (t *table[R]) drawCell(d *drawing, row *component.Row, k int, r R) {
	c := &t.cols[k]
	if !row.Shows(k) {
		return
	}
	if c.paint != nil {
		c.paint(d, row.Cell(k), r)
		return
	}
	text, style := c.cell(d, r)
	switch {
	case c.right:
		row.Number(k, text, style)
	case c.grow || c.prose:
		row.Text(k, text, style)
	default:
		row.ID(k, text, style)
	}
}

// empty says why there is nothing: the first line what is missing, the others why.
func (d *drawing) empty(r component.Rect, lines ...string) {
	if len(lines) == 0 || r.Empty() {
		return
	}
	type part struct {
		text  string
		style styles.Style
	}
	var parts []part
	for i, text := range lines {
		style := styles.Dim
		if i == 0 {
			style = styles.Plain
		}
		for _, piece := range d.c.Wrap(text, r.W) {
			parts = append(parts, part{piece, style})
		}
	}
	top := 0
	if r.H > 6 {
		top = max((r.H-len(parts))/2, 0)
	}
	for i, p := range parts {
		line := r.Line(top + i)
		if line.Empty() {
			return
		}
		w := min(d.c.Width(p.text), line.W)
		d.c.Text(line.X+(line.W-w)/2, line.Y, w, p.text, p.style)
	}
}

// title is a panel's title. A panel below a lost connection says that it is stale.
func (d *drawing) title(text string) string {
	switch {
	case d.v.Cluster.Link.State != store.LinkLost:
		return text
	case strings.HasSuffix(text, ")"):
		return strings.TrimSuffix(text, ")") + ", stale)"
	}
	return text + " (stale)"
}

// box draws a panel's frame.
func (d *drawing) box(r component.Rect, panel int, title, note string) component.Rect {
	return component.Box{Title: d.title(title), Note: note, Focused: panel >= 0 && panel == d.st.Panel && d.st.manyPanels()}.Draw(d.c, r)
}

// plainBox is a box without rows to select.
func (d *drawing) plainBox(r component.Rect, title, note string, noteStyle styles.Style) component.Rect {
	return component.Box{Title: d.title(title), Note: note, NoteStyle: noteStyle}.Draw(d.c, r)
}

// manyPanels reports whether the focus can be elsewhere, so that it must be shown.
func (st *State) manyPanels() bool { return st.focusable > 1 }

// say replaces what only the full set of glyphs has.
func (d *drawing) say(unicode, ascii string) string {
	if d.c.Theme().ASCII {
		return ascii
	}
	return unicode
}

// atLeast marks a sum to which nodes are missing.
func (d *drawing) atLeast(text string) string {
	if d.v.Cluster.AtLeast {
		return d.say("≥", ">") + text
	}
	return text
}

func plain(s string) (string, styles.Style) { return s, styles.Plain }

func dim(s string) (string, styles.Style) { return s, styles.Dim }
