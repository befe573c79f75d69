package page

import (
	"strings"

	"github.com/eastguard/eastguard/tui/component"
	"github.com/eastguard/eastguard/tui/store"
)

// ID names a page by the digit that opens it.
type ID int

// The pages.
const (
	Overview ID = iota + 1
	Ring
	Shards
	Topics
	Ranges
	Segments
	Groups
	Events
	Logs
)

var names = [...]string{"", "Overview", "Ring", "Shards", "Topics", "Ranges", "Segments", "Groups", "Events", "Logs"}

// String is the page's name as the tabs show it.
func (id ID) String() string {
	if id < Overview || id > Logs {
		return "Unknown"
	}
	return names[id]
}

// Page is one view.
type Page interface {
	ID() ID
	// Draw draws the body: what lies between the tabs and the footer.
	Draw(c *component.Canvas, body component.Rect, v *store.View, st *State)
	// Rows are the rows of the focused panel, filtered and in their order.
	Rows(v *store.View, st *State) Rows
	// Columns are the names of the columns that the focused panel can be sorted by.
	Columns(st *State) []string
	// Panels is how many panels can have the focus at this size.
	Panels(w, h int) int
	// About is what the selection stands for.
	About(v *store.View, st *State) Subject
	// Head is what the header says on its right side for this page alone.
	Head(v *store.View, st *State) string
	// Alarm is the line above the keys.
	Alarm(v *store.View, st *State) Line
}

// Pages are all pages, in their order.
func Pages() []Page {
	return []Page{overview{}, ring{}, shards{}, topics{}, ranges{}, segments{}, groups{}, events{}, logs{}}
}

// Get is a page by its id; the overview for those that do not exist.
func Get(id ID) Page {
	if id < Overview || id > Logs {
		id = Overview
	}
	return Pages()[id-1]
}

// Rows are the rows of a panel in the order in which they are shown.
type Rows interface {
	Len() int
	// ID is what the row at a place is held by.
	ID(i int) string
	// Index is the place of an id, or -1.
	Index(id string) int
}

// Kind is what a subject is.
type Kind uint8

// The kinds of subjects.
const (
	KindNone Kind = iota
	KindNode
	KindShard
	KindTopic
	KindRange
	KindSegment
	KindGroup
	KindEvent
	KindLog
)

var kinds = [...]string{"", "node", "shard", "topic", "range", "segment", "group", "event", "line"}

// String is what a kind is called.
func (k Kind) String() string {
	if int(k) >= len(kinds) {
		return ""
	}
	return kinds[k]
}

// Subject is what a row stands for: what can be opened, copied and acted on.
type Subject struct {
	Kind Kind
	Name string // orders, orders/r9, s905, n3, 12
	// Topic and Range are of subjects that lie in one.
	Topic string
	Range string
	// Open is the page that ⏎ leads to, Row the row to be selected there, and Describe the words behind eg-cli that tell
	// all about it.
	Open     ID
	Row      string
	Describe []string
	Actions  []Action
}

// Title names a subject with its kind: shard 12, topic orders.
func (s Subject) Title() string { return strings.TrimSpace(s.Kind.String() + " " + s.Name) }

// Level is how much a confirmation asks for.
type Level uint8

// The levels: none, for what changes nothing; a y; the name typed.
const (
	LevelNone Level = iota
	LevelYes
	LevelName
)

// Action is something that can be done to a subject.
type Action struct {
	Key     rune
	Title   string   // leave…, as the menu has it
	Head    string   // Let node n3 leave, as the question is headed
	Command []string // the words behind eg-cli
	Level   Level
	Why     string // why it is not possible now; empty: it is
}
