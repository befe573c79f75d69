package keymap

import "fmt"

// Action is what a key means.
type Action uint8

// The actions.
const (
	None Action = iota
	Up
	Down
	PageUp
	PageDown
	Top
	Bottom
	NextPanel
	PrevPanel
	View1 // View1 to View9 are the views; Action.View has the number
	View2
	View3
	View4
	View5
	View6
	View7
	View8
	View9
	Open
	Back

	Filter
	Command
	NextMatch
	PrevMatch
	Find
	Help

	SortNext
	SortPrev
	Invert
	Wide
	Follow
	Zoom
	ASCII
	Pause
	StepBack
	StepForward
	Live
	Faster
	Slower

	Mark
	ClearMarks
	Actions
	Delete
	CopyName
	CopyCommand
	JSON
	Describe
	Events
	Logs
	Save
	Resync
	Redraw
	Retry
	Suspend
	Quit

	actions
)

// Group is a heading of the help.
type Group string

// The groups, in the order of the help.
const (
	Move    Group = "MOVE"
	Show    Group = "SHOW"
	Search  Group = "FIND AND COMMAND"
	Act     Group = "ACT"
	Program Group = "PROGRAM"
)

// Key is a line of the table.
type Key struct {
	Action Action
	Keys   []string // as the terminal reports them: "ctrl+p", "pgup", "space"
	Label  string   // as a person reads them, on the help
	Short  string   // as the footer has it; Label unless set
	Foot   string   // what it does, in the footer: a word or two
	Text   string   // what it does, on the help
	Group  Group
}

// table is OPERATOR's list of keys. Keys that a person sees as one are one line of the help: its further lines have
// no Text.
var table = []Key{
	{Action: Up, Keys: []string{"up", "k"}, Label: "↑ ↓ j k", Short: "↑↓", Foot: "move", Text: "row", Group: Move},
	{Action: Down, Keys: []string{"down", "j"}, Group: Move},
	{Action: PageUp, Keys: []string{"pgup"}, Label: "pgup pgdn", Text: "page", Group: Move},
	{Action: PageDown, Keys: []string{"pgdown"}, Group: Move},
	{Action: Top, Keys: []string{"g", "home"}, Label: "g G", Text: "top, bottom", Group: Move},
	{Action: Bottom, Keys: []string{"G", "end"}, Group: Move},
	{Action: NextPanel, Keys: []string{"tab"}, Label: "tab ⇧tab", Short: "tab", Foot: "panel", Text: "next, previous panel", Group: Move},
	{Action: PrevPanel, Keys: []string{"shift+tab"}, Group: Move},
	{Action: View1, Keys: []string{"1"}, Label: "1 … 9", Text: "view", Group: Move},
	{Action: View2, Keys: []string{"2"}, Group: Move},
	{Action: View3, Keys: []string{"3"}, Group: Move},
	{Action: View4, Keys: []string{"4"}, Group: Move},
	{Action: View5, Keys: []string{"5"}, Group: Move},
	{Action: View6, Keys: []string{"6"}, Group: Move},
	{Action: View7, Keys: []string{"7"}, Group: Move},
	{Action: View8, Keys: []string{"8"}, Group: Move},
	{Action: View9, Keys: []string{"9"}, Group: Move},
	{Action: Open, Keys: []string{"enter"}, Label: "⏎ esc", Short: "⏎", Foot: "open", Text: "open, back", Group: Move},
	{Action: Back, Keys: []string{"esc"}, Short: "esc", Foot: "back", Group: Move},

	{Action: SortPrev, Keys: []string{"<"}, Label: "< > I", Short: "< >", Foot: "sort", Text: "sort column, invert", Group: Show},
	{Action: SortNext, Keys: []string{">"}, Group: Show},
	{Action: Invert, Keys: []string{"I"}, Short: "I", Foot: "invert", Group: Show},
	{Action: Wide, Keys: []string{"w"}, Label: "w", Foot: "wide", Text: "wide columns", Group: Show},
	{Action: Follow, Keys: []string{"F"}, Label: "F", Foot: "follow", Text: "follow selection", Group: Show},
	{Action: Pause, Keys: []string{"p"}, Label: "p", Foot: "pause", Text: "pause", Group: Show},
	{Action: StepBack, Keys: []string{","}, Label: ", . L", Short: ", .", Foot: "time", Text: "back, forward, live", Group: Show},
	{Action: StepForward, Keys: []string{"."}, Group: Show},
	{Action: Live, Keys: []string{"L"}, Short: "L", Foot: "live", Group: Show},
	{Action: Faster, Keys: []string{"+", "="}, Label: "+ -", Text: "refresh rate", Group: Show},
	{Action: Slower, Keys: []string{"-"}, Group: Show},
	{Action: Zoom, Keys: []string{"z"}, Label: "z", Foot: "zoom", Text: "zoom panel", Group: Show},
	{Action: ASCII, Keys: []string{"A"}, Label: "A", Text: "ASCII glyphs", Group: Show},

	{Action: Filter, Keys: []string{"/"}, Label: "/", Foot: "filter", Text: "filter (regex; !re inverts)", Group: Search},
	{Action: Command, Keys: []string{":"}, Label: ":", Foot: "cmd", Text: "command (tab completes)", Group: Search},
	{Action: NextMatch, Keys: []string{"n"}, Label: "n N", Text: "next, previous match", Group: Search},
	{Action: PrevMatch, Keys: []string{"N"}, Group: Search},
	{Action: Find, Keys: []string{"ctrl+p"}, Label: "ctrl-p", Foot: "find", Text: "find anything (fuzzy)", Group: Search},
	{Action: Help, Keys: []string{"?"}, Label: "?", Foot: "help", Text: "this help", Group: Search},

	{Action: Actions, Keys: []string{"x"}, Label: "x", Foot: "actions", Text: "actions for the selection", Group: Act},
	{Action: Mark, Keys: []string{"space"}, Label: `space ctrl-\`, Short: "space", Foot: "mark", Text: "mark, clear marks", Group: Act},
	{Action: ClearMarks, Keys: []string{`ctrl+\`}, Group: Act},
	{Action: Delete, Keys: []string{"ctrl+d"}, Label: "ctrl-d", Text: "delete, with confirmation", Group: Act},
	{Action: CopyName, Keys: []string{"c"}, Label: "c C", Short: "c", Foot: "copy", Text: "copy name, eg-cli command", Group: Act},
	{Action: CopyCommand, Keys: []string{"C"}, Short: "C", Foot: "copy command", Group: Act},
	{Action: JSON, Keys: []string{"y"}, Label: "y d", Short: "y", Foot: "json", Text: "JSON, describe", Group: Act},
	{Action: Describe, Keys: []string{"d"}, Short: "d", Foot: "describe", Group: Act},
	{Action: Events, Keys: []string{"e"}, Label: "e l", Short: "e", Foot: "events", Text: "its events, its logs", Group: Act},
	{Action: Logs, Keys: []string{"l"}, Short: "l", Foot: "logs", Group: Act},

	{Action: Save, Keys: []string{"ctrl+s"}, Label: "ctrl-s", Text: "save screen to file", Group: Program},
	{Action: Retry, Keys: []string{"r"}, Label: "r ctrl-r", Short: "r", Foot: "retry", Text: "connect, ask again now", Group: Program},
	{Action: Resync, Keys: []string{"ctrl+r"}, Group: Program},
	{Action: Redraw, Keys: []string{"ctrl+l"}, Label: "ctrl-l ctrl-z", Short: "ctrl-l", Text: "redraw, suspend", Group: Program},
	{Action: Suspend, Keys: []string{"ctrl+z"}, Group: Program},
	{Action: Quit, Keys: []string{"q", "ctrl+c"}, Label: "q", Foot: "quit", Text: "quit", Group: Program},
}

// byKey and byAction are the table, indexed.
var byKey, byAction = index()

func index() (map[string]Action, [actions]*Key) {
	keys, lines := make(map[string]Action), [actions]*Key{}
	for i := range table {
		line := &table[i]
		for _, k := range line.Keys {
			if other := keys[k]; other != None {
				panic(fmt.Sprintf("keymap: %q has two meanings, %d and %d", k, other, line.Action))
			}
			keys[k] = line.Action
		}
		lines[line.Action] = line
	}
	return keys, lines
}

// Lookup is what a key means; None for one without a meaning.
func Lookup(key string) Action { return byKey[key] }

// View is the number of the view that an action opens, 0 for other actions.
func (a Action) View() int {
	if a < View1 || a > View9 {
		return 0
	}
	return int(a-View1) + 1
}

// Key is the table's line of an action.
func (a Action) Key() Key {
	if a >= actions || byAction[a] == nil {
		return Key{}
	}
	return *byAction[a]
}

// All lists the table.
func All() []Key { return append([]Key(nil), table...) }

// Groups lists the groups in the order of the help.
func Groups() []Group { return []Group{Move, Show, Search, Act, Program} }

// Lines are the lines of a group on the help.
func Lines(g Group) []Key {
	var lines []Key
	for _, k := range table {
		if k.Group == g && k.Text != "" {
			lines = append(lines, k)
		}
	}
	return lines
}

// Hint is an entry of the footer.
type Hint struct{ Key, Text string }

// Hint is how the footer names an action; its text is empty for one that the footer never shows.
func (a Action) Hint() Hint {
	k := a.Key()
	if k.Short == "" {
		k.Short = k.Label
	}
	return Hint{k.Short, k.Foot}
}

// With is the hint with words of a view's own: "⏎ segments" instead of "⏎ open".
func (a Action) With(text string) Hint { return Hint{a.Hint().Key, text} }
