package page

import (
	"time"

	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/component"
	"github.com/eastguard/eastguard/tui/styles"
)

// Frame is what holds for the whole screen and comes from the program, not from the cluster.
type Frame struct {
	Now      time.Time      // what ages are counted from: the time of the view when it is a view of the past
	Clock    time.Time      // what the header shows; zero: Now
	Location *time.Location // of the times shown; nil: UTC
	Version  string         // of this program
	Rate     string         // 4 Hz
	CPU      string         // cpu 3.1%, shown where there is room
	Paused   bool
	Past     bool // the view is one of the past
	Dialog   bool // one is open: what is below it is frozen
	Still    bool // no motion: nothing blinks
	ReadOnly bool
	// Context is the name of the cluster when the feed knows none, and Alarming that its header is to look so (a
	// context of colour red).
	Context  string
	Alarming bool
	// Notice is the last thing that the program has to say; it takes the place of the alarm.
	Notice Line
	// Prompt is the input line in place of the keys, if one is open.
	Prompt *component.Input
	// Keys is the footer's line, from the key table.
	Keys []KeyHint
}

// Line is one line of text and how it looks.
type Line struct {
	Text  string
	Style styles.Style
}

// KeyHint is one key of the footer. Where there is not room for all, those of the highest rank give way.
type KeyHint struct {
	Key, Does string
	Rank      int
}

// Filter selects rows. The zero Filter lets all pass.
type Filter struct {
	Text  string            // as it was typed
	Match func(string) bool // nil: everything
}

// On reports whether anything is filtered.
func (f Filter) On() bool { return f.Match != nil }

// State is what a page was told to show. It is a value: copies share memos alone.
type State struct {
	Frame Frame

	Panel  int      // the focused one
	Panels [8]Focus // of each panel
	Filter Filter   // of the focused panel
	Marked Marks    // by id
	Wide   bool     // more columns than the width chooses
	Zoom   bool     // the focused panel alone
	Follow bool     // newest rows stay in view; the selection where it moves
	Scope           // of the rows

	Shown Shown // where things are: written by Draw

	focusable int // panels that can have the focus
	memo      *memo
}

// Scope is which part of what there is a page is about. The zero Scope is all of it.
type Scope struct {
	Topic string     // Ranges, Segments: of this topic; empty: the busiest, or all
	Range string     // Segments: of this range (r9)
	Node  sdk.NodeID // Events, Logs: of this node
	Types string     // Events: of these types (SEAL,SPLIT)
	Level string     // Logs: this and worse
}

// Focus is what a panel was told.
type Focus struct {
	Selected string // id of a row
	Scroll   int    // the first visible row, as far as the selection allows
	Sort     string // name of a column; empty: the panel's own order
	Invert   bool
}

// Marks are the ids of marked rows. They are not changed: see Toggle.
type Marks map[string]bool

// Toggle is the marks with one more, or one less.
func (m Marks) Toggle(id string) Marks {
	next := make(Marks, len(m)+1)
	for k := range m {
		next[k] = true
	}
	if next[id] {
		delete(next, id)
	} else {
		next[id] = true
	}
	return next
}

// Shown is where things came to lie in the last frame.
type Shown struct {
	Panels []PanelAt
	Tabs   []TabAt
}

// PanelAt is one panel on screen.
type PanelAt struct {
	Panel int
	Box   component.Rect      // all of it
	Table component.TableView // its rows, as indices into Rows; zero: it has none
	IDs   []string            // of the rows that can be seen
	// Chosen is the row that looks selected: the first, or the worst, where nobody has selected any.
	Chosen string
	Lines  []int // where rows do not lie one below the other: the row of each line
}

// TabAt is the place of a page's name in the header.
type TabAt struct {
	ID   ID
	Rect component.Rect
}

// NewState is the state of a page that was not shown yet.
func NewState() State { return State{Follow: true, memo: newMemo()} }

// Focus is what the focused panel was told.
func (st *State) Focus() *Focus { return &st.Panels[min(max(st.Panel, 0), len(st.Panels)-1)] }

// at finds a panel of the last frame.
func (s *Shown) at(panel int) *PanelAt {
	for i := range s.Panels {
		if s.Panels[i].Panel == panel {
			return &s.Panels[i]
		}
	}
	return nil
}

// Page is how many rows of the focused panel can be seen.
func (st *State) Page() int {
	if p := st.Shown.at(st.Panel); p != nil {
		return max(p.Table.Visible, 1)
	}
	return 1
}

// Hit finds the panel that lies under a cell, and its row there: an index into the panel's Rows, -1 when there is none.
func (st *State) Hit(x, y int) (panel, row int, ok bool) {
	for _, p := range st.Shown.Panels {
		if !p.Box.Contains(x, y) {
			continue
		}
		if i := y - p.Table.Rows.Y; i >= 0 && i < len(p.Lines) {
			return p.Panel, p.Lines[i], true
		}
		if i, ok := p.Table.RowAt(y); ok && len(p.Lines) == 0 && p.Table.Rows.Contains(x, y) {
			return p.Panel, i, true
		}
		return p.Panel, -1, true
	}
	return 0, -1, false
}

// Move moves the selection of the focused panel by so many rows, from what looks selected. Where nothing does it goes
// to the first row that is seen, or up from the end.
func (st *State) Move(rows Rows, by int) {
	f := st.Focus()
	at := rows.Index(st.Current(rows))
	switch {
	case at >= 0:
		at += by
	case by < 0 && f.Selected == "":
		at = rows.Len() - 1
	default:
		at = f.Scroll
	}
	st.Select(rows, at)
}

// Current is the id of the row that is selected, or looks so; empty where none is.
func (st *State) Current(rows Rows) string {
	id := st.Focus().Selected
	if p := st.Shown.at(st.Panel); p != nil && rows.Index(id) < 0 && rows.Index(p.Chosen) >= 0 {
		return p.Chosen
	}
	return id
}

// Select selects a row of the focused panel by its place, the nearest there is.
func (st *State) Select(rows Rows, i int) {
	f := st.Focus()
	if f.Selected = ""; rows.Len() > 0 {
		f.Selected = rows.ID(min(max(i, 0), rows.Len()-1))
	}
}

// SortBy goes to the next column to sort by, or the one before.
func (st *State) SortBy(columns []string, by int) {
	if len(columns) == 0 {
		return
	}
	f := st.Focus()
	at := 0
	for i, name := range columns {
		if name == f.Sort {
			at = i
		}
	}
	f.Sort = columns[((at+by)%len(columns)+len(columns))%len(columns)]
}

func (f *Frame) clock(t time.Time) string { return f.local(t).Format("15:04:05") }

func (f *Frame) local(t time.Time) time.Time {
	if f.Location == nil {
		return t.UTC()
	}
	return t.In(f.Location)
}
