package page

import (
	"strconv"
	"strings"

	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/component"
	"github.com/eastguard/eastguard/tui/store"
)

// events is page 8: everything that happened, the newest first.
type events struct{}

// ID is 8.
func (events) ID() ID { return Events }

// eventTable has no columns: a line is drawn as a whole.
var eventTable = &table[*store.Event]{
	name: "events",
	id:   eventID, text: searched, source: eventSource,
}

func eventID(e *store.Event) string {
	if e.Local {
		return "/" + e.Type + "/" + strconv.FormatInt(e.TimeMs, 10)
	}
	return string(e.Node) + "/" + strconv.FormatUint(e.Boot, 10) + "/" + strconv.FormatUint(e.Seq, 10)
}

func eventSource(v *store.View, st *State) source[*store.Event] {
	log := v.Events
	s := source[*store.Event]{version: log.Version, n: log.Len(), came: log.Dropped + uint64(log.Len()), newest: true}
	s.scope = string(st.Node) + "/" + st.Types + "/" + strconv.FormatUint(log.Moved, 10) // one that came late moves others
	s.at = func(i int) *store.Event { return log.At(log.Len() - 1 - i) }
	if st.Node != "" || st.Types != "" {
		s.pass = func(e *store.Event) bool { return (st.Node == "" || about(e, st.Node)) && ofType(e, st.Types) }
	}
	s.find = func(id string) int {
		node, rest, _ := strings.Cut(id, "/")
		boot, number, _ := strings.Cut(rest, "/")
		for i := range s.n {
			e := s.at(i)
			if string(e.Node) == node && (e.Local && id == eventID(e) || !e.Local && same(e.Seq, number) && same(e.Boot, boot)) {
				return i
			}
		}
		return -1
	}
	return s
}

func same(n uint64, s string) bool {
	parsed, err := strconv.ParseUint(s, 10, 64)
	return err == nil && parsed == n
}

// about reports whether an event was told by a node or is about it.
func about(e *store.Event, node sdk.NodeID) bool {
	return e.Node == node || e.Subject == string(node) || e.Before == string(node) || e.After == string(node)
}

// ofType reports whether an event is of one of some types, by their words or their labels.
func ofType(e *store.Event, types string) bool {
	if types == "" {
		return true
	}
	word, _ := label(e)
	for want := range strings.SplitSeq(strings.ToUpper(types), ",") {
		if want == word || want == e.Type || strings.Contains(e.Type, want) {
			return true
		}
	}
	return false
}

// Draw draws the list.
func (events) Draw(c *component.Canvas, body component.Rect, v *store.View, st *State) {
	st.focusable = 1
	d := &drawing{c: c, v: v, st: st}
	drawEvents(d, body, 0, true)
}

// drawEvents draws a panel of events; it is on the overview too.
func drawEvents(d *drawing, r component.Rect, panel int, full bool) {
	filter := d.filtered(panel, r.W, eventTable.ordered(d.v, d.st, panel).o)
	order, types, node, kept := "newest first", "all types", "", ""
	if d.st.Frame.Paused || d.st.Frame.Past {
		order = "as of " + d.st.Frame.clock(d.st.Frame.Now)
	}
	if d.st.Types != "" {
		types = d.st.Types
	} else if r.W < 100 && !full {
		types = ""
	}
	if d.st.Node != "" {
		node = "node " + string(d.st.Node)
	}
	if full && filter == "" {
		kept = component.Count(d.v.Events.Len()) + " kept"
	}
	inside := d.box(r, panel, "Events", d.join(r, "Events", filter, order, types, node, kept))
	eventTable.drawLines(d, panel, r, inside, d.drawEvent, "nothing has happened yet", "brokers keep their last 10,000 events, from their start on")
}

// Rows are the events.
func (events) Rows(v *store.View, st *State) Rows { return eventTable.ordered(v, st, 0) }

// Columns are none: events stay in their order.
func (events) Columns(*State) []string { return nil }

// Panels is 1.
func (events) Panels(int, int) int { return 1 }

// Head is empty.
func (events) Head(v *store.View, _ *State) string {
	return component.Count(v.Events.Len()) + " events"
}

// Alarm is that of the cluster.
func (events) Alarm(v *store.View, st *State) Line { return alarmOf(v, st) }

// About is what the selected event is about.
func (events) About(v *store.View, st *State) Subject { return aboutEvent(v, st, 0) }

func aboutEvent(v *store.View, st *State, panel int) Subject {
	list := eventTable.ordered(v, st, panel)
	i := list.Index(st.Panels[panel].Selected)
	if i < 0 {
		return Subject{}
	}
	e := list.at(i)
	s := Subject{Kind: KindEvent, Name: e.Subject, Open: Events, Row: e.Subject}
	topic, rng, inTopic := strings.Cut(e.Subject, "/")
	switch shard, inShard := strings.CutPrefix(e.Subject, "shard "); {
	case strings.HasPrefix(e.Type, "NODE_"), e.Type == "STREAM_LOST", e.Type == "STREAM_BACK":
		s.Open, s.Describe = Ring, []string{"node", "describe", e.Subject}
	case inShard:
		s.Open, s.Row, s.Describe = Shards, shard, []string{"shard", "describe", shard}
	case strings.HasPrefix(e.Type, "SEGMENT_"), strings.HasPrefix(e.Type, "RE") && inTopic:
		s.Topic, s.Range, s.Open, s.Row = topic, rng, Segments, store.Field(e.Detail, "segment")
	case strings.HasPrefix(e.Type, "RANGE_"):
		s.Topic, s.Range, s.Open = topic, rng, Ranges
	case strings.HasPrefix(e.Type, "TOPIC_"):
		s.Topic, s.Open, s.Describe = topic, Topics, []string{"topic", "describe", topic}
	case strings.HasPrefix(e.Type, "GROUP_"):
		s.Open = Groups
	}
	return s
}
