package page

import (
	"slices"
	"strings"
	"time"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/tui/component"
	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/styles"
)

// labels are types of events in one word, and how it looks; all others have their first word, plain.
var labels = map[string]struct {
	word  string
	style styles.Style
}{
	"SEGMENT_SEALED":   {"SEAL", styles.Plain},
	"SEGMENT_OPENED":   {"ROLL", styles.Plain},
	"RANGE_SPLIT":      {"SPLIT", styles.Info},
	"RANGE_MERGED":     {"MERGE", styles.Info},
	"REPAIR_STARTED":   {"REPAIR", styles.OK},
	"SEGMENT_REPAIRED": {"REPAIR", styles.OK},
	"REPLICA_MENDED":   {"REPAIR", styles.OK},
	"REPLICA_SHORT":    {"REPAIR", styles.Warn},
	"NODE_DEAD":        {"SWIM", styles.Bad},
	"NODE_SUSPECT":     {"SWIM", styles.Warn},
	"NODE_JOINED":      {"SWIM", styles.OK},
	"NODE_REFUTED":     {"SWIM", styles.OK},
	"NODE_LEFT":        {"SWIM", styles.Plain},
	"LEADER_CHANGED":   {"LEADER", styles.Accent},
	"SHARD_LED_AGAIN":  {"LEADER", styles.Accent},
	"SHARD_LEADERLESS": {"LEADER", styles.Bad},
	"SHARD_RECOVERED":  {"SHARD", styles.Bad},
	"DATA_DAMAGED":     {"DATA", styles.Bad},
	"FILE_QUARANTINED": {"FILE", styles.Bad},
	"DISK_FULL":        {"DISK", styles.Bad},
	"CLIENT_LOST":      {"CLIENT", styles.Warn},
	"CLIENT_BACK":      {"CLIENT", styles.OK},
	"STREAM_LOST":      {"CLIENT", styles.Warn},
	"STREAM_BACK":      {"CLIENT", styles.OK},
	"CLIENT_CLOCK":     {"CLIENT", styles.Warn},
	"CLIENT_REFUSED":   {"CLIENT", styles.Warn},
}

// label is an event's type in one word, and its look.
func label(e *store.Event) (string, styles.Style) {
	l, ok := labels[e.Type]
	switch {
	case !ok:
		return first(e.Type), styles.Plain
	case strings.HasPrefix(e.Type, "SEGMENT_") && (strings.HasSuffix(e.Cause, "FAILURE") || store.Field(e.Detail, "loss") != ""):
		return l.word, styles.Warn
	}
	return l.word, l.style
}

// first is the first word of a type: NODE of NODE_STARTED.
func first(kind string) string {
	word, _, _ := strings.Cut(kind, "_")
	return word
}

// telling is what an event says, part by part.
type telling struct {
	e     *store.Event
	long  bool   // with all there is
	told  bool   // who tells of it stands beside it
	arrow string // between what was and what is
	times string // before how often
	parts []string
}

// tellers tell of an event behind its subject, by its type; of all others tellRest does.
var tellers = map[string]func(*telling){
	"SEGMENT_SEALED":   (*telling).sealed,
	"SEGMENT_OPENED":   (*telling).opened,
	"RANGE_SPLIT":      (*telling).split,
	"RANGE_MERGED":     (*telling).merged,
	"SEGMENT_REPAIRED": (*telling).repaired,
	"NODE_SUSPECT":     (*telling).believed,
	"NODE_DEAD":        (*telling).believed,
	"NODE_REFUTED":     (*telling).believed,
	"NODE_JOINED":      (*telling).believed,
	"NODE_LEFT":        (*telling).believed,
	"STREAM_LOST":      (*telling).silent,
	"STREAM_BACK":      (*telling).heard,
	"CLIENT_LOST":      (*telling).alone,
	"CLIENT_BACK":      (*telling).back,
}

// tell is what an event says, in parts; long is with all there is, told where the node that tells it stands beside it.
func (d *drawing) tell(e *store.Event, long, told bool) []string {
	t := &telling{e: e, long: long, told: told, arrow: d.say("→", ">"), times: d.say("×", "x")}
	t.add(e.Subject)
	if tell := tellers[e.Type]; tell != nil {
		tell(t)
	} else {
		t.rest()
	}
	if long {
		t.add("by ", e.Actor)
	}
	return t.parts
}

// whole are as many parts as there is room for. Words may end anywhere; half of a number would be another one.
func (d *drawing) whole(parts []string, room int) string {
	text := term.Escape(strings.Join(parts, "  "))
	for n := len(parts) - 1; n > 0 && d.c.Width(text) > room && d.isNumber(parts[n]); n-- {
		text = term.Escape(strings.Join(parts[:n], "  ")) + " " + string(d.c.Glyphs().Ellipsis)
	}
	return text
}

// isNumber reports whether a part is a number with a word or two, and no text.
func (d *drawing) isNumber(part string) bool {
	return strings.ContainsAny(part, "0123456789") && d.c.Width(part) < 24
}

// add adds a part that is made of pieces, unless one of them is missing.
func (t *telling) add(pieces ...string) {
	if !slices.Contains(pieces, "") {
		t.parts = append(t.parts, strings.Join(pieces, ""))
	}
}

// to adds what became of something: before → after.
func (t *telling) to(before, after string) {
	if t.long {
		t.add(before, " "+t.arrow+" ", after)
	} else {
		t.add(before, t.arrow, after)
	}
}

// become says behind the subject what it is now: orders/r17 → r41 r42.
func (t *telling) become(subject, now string) {
	t.parts = []string{subject + " " + t.arrow + " " + now}
}

func (t *telling) field(key string) string { return store.Field(t.e.Detail, key) }

// list is a field of several names, with something between them.
func (t *telling) list(key, between string) string {
	return strings.ReplaceAll(t.field(key), ",", between)
}

func (t *telling) sealed() {
	t.to(t.field("segment"), t.field("next"))
	t.add(t.e.Cause)
	t.add("lost ", t.field("lost"))
	t.gap()
	t.add("replicas ", t.list("replicas", " "))
	if t.field("loss") != "" {
		t.add("acked records may be gone")
	}
}

func (t *telling) opened() {
	t.to(t.field("previous"), t.field("segment"))
	t.add(t.e.Cause)
	t.gap()
}

func (t *telling) split() {
	t.become(t.e.Subject, t.list("children", " "))
	at := t.field("at")
	if len(at) == 18 { // a position in 16 digits: 0x5000 is enough of it
		at = at[:6]
	}
	t.add("at ", at)
	t.add(t.e.Cause, t.times, t.field("streak"))
}

func (t *telling) merged() {
	topic, child, _ := strings.Cut(t.e.Subject, "/")
	t.become(topic+"/"+t.list("parents", " + "), child)
	t.add(t.e.Cause)
}

func (t *telling) repaired() {
	t.add(t.field("segment"))
	t.add(t.field("target"), " caught up ", t.field("took"))
}

// believed is what a node believes of another: each tells it, so it says who does.
func (t *telling) believed() {
	t.to(t.e.Before, t.e.After)
	if t.e.Before == "" {
		t.add(strings.ToLower(strings.TrimPrefix(t.e.Type, "NODE_")))
	}
	t.add("boot ", t.field("boot"))
	if !t.told {
		t.add("by ", string(t.e.Node))
	}
}

func (t *telling) silent() {
	t.parts = []string{t.e.Subject + " is not heard any more"}
	t.add(t.e.Detail)
}

func (t *telling) heard() { t.parts = []string{t.e.Subject + " is heard again"} }

func (t *telling) alone() {
	t.add("no broker answers")
	t.add(t.e.Detail)
}

func (t *telling) back() { t.add(t.e.Detail) }

// rest is all that an event of any type has.
func (t *telling) rest() {
	e := t.e
	t.add(verb(e))
	if e.Before == "" {
		t.add(e.After)
	} else {
		t.to(e.Before, e.After)
	}
	t.add(e.Cause)
	t.gap()
	t.add(t.details())
}

// gap is how long producers, or a shard, stood still.
func (t *telling) gap() {
	switch gap := span(time.Duration(t.e.GapMs) * time.Millisecond); {
	case t.e.GapMs <= 0:
	case t.e.Type == "LEADER_CHANGED" || t.e.Type == "SHARD_LED_AGAIN":
		t.add("leaderless ", gap)
	case t.long:
		t.add("produce gap ", gap)
	default:
		t.add("gap ", strings.ReplaceAll(gap, " ", ""))
	}
}

// details are the fields of an event but for what its subject says already.
func (t *telling) details() string {
	var list []string
	for key, value := range store.Fields(t.e.Detail) {
		switch {
		case key == "shard" && strings.HasPrefix(t.e.Subject, "shard "):
		case key == "detail":
			list = append(list, value)
		default:
			list = append(list, key+"="+quoted(value))
		}
	}
	return strings.Join(list, " ")
}

// verb is what a type says behind its first word: created, of TOPIC_CREATED. Where a state follows it is said already.
func verb(e *store.Event) string {
	_, rest, _ := strings.Cut(e.Type, "_")
	if e.After != "" && (strings.HasPrefix(e.Type, "NODE_") || e.Type == "LEADER_CHANGED" || e.Type == "GROUP_MEMBER") {
		return ""
	}
	return strings.ToLower(strings.ReplaceAll(rest, "_", " "))
}

// searched is what a filter sees of an event.
func searched(e *store.Event) string {
	word, _ := label(e)
	return word + " " + e.Type + " " + string(e.Node) + " " + e.Subject + " " + e.Cause + " " + e.Before + " " + e.After + " " + e.Detail
}

// stamp is a time of the events and the logs.
func (d *drawing) stamp(e *store.Event, long bool) string {
	t := d.st.Frame.local(e.At)
	if long {
		return t.Format("15:04:05.000")
	}
	return t.Format("15:04:05")
}

// drawEvent draws one line: time, type and what it says.
func (d *drawing) drawEvent(line component.Rect, e *store.Event) {
	long, told := line.W >= 100, line.W >= 150
	word, style := label(e)
	pen := d.c.Pen(line).Text(d.stamp(e, long), styles.Dim).Skip(1)
	if long {
		pen.Skip(1)
	}
	pen.Field(max(7, d.c.Width(word)+1), word, style)
	if told {
		pen.Field(max(d.nodeWidth()+1, 6), string(e.Node), styles.Dim)
	}
	pen.Text(d.whole(d.tell(e, long, told), pen.Left()), styles.Plain)
}
