package page

import (
	"fmt"
	"strings"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/tui/component"
	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/styles"
)

// label is an event's type in one word, and its look.
func label(e *store.Event) (string, styles.Style) {
	switch e.Type {
	case "SEGMENT_SEALED":
		if strings.HasSuffix(e.Cause, "FAILURE") || field(e.Detail, "loss") != "" {
			return "SEAL", styles.Warn
		}
		return "SEAL", styles.Plain
	case "SEGMENT_OPENED":
		return "ROLL", styles.Plain
	case "RANGE_SPLIT":
		return "SPLIT", styles.Info
	case "RANGE_MERGED":
		return "MERGE", styles.Info
	case "REPAIR_STARTED", "SEGMENT_REPAIRED", "REPLICA_MENDED":
		return "REPAIR", styles.OK
	case "REPLICA_SHORT":
		return "REPAIR", styles.Warn
	case "NODE_DEAD":
		return "SWIM", styles.Bad
	case "NODE_SUSPECT":
		return "SWIM", styles.Warn
	case "NODE_JOINED", "NODE_REFUTED":
		return "SWIM", styles.OK
	case "NODE_LEFT":
		return "SWIM", styles.Plain
	case "LEADER_CHANGED", "SHARD_LED_AGAIN":
		return "LEADER", styles.Accent
	case "SHARD_LEADERLESS":
		return "LEADER", styles.Bad
	case "DATA_DAMAGED", "FILE_QUARANTINED", "DISK_FULL", "SHARD_RECOVERED":
		return first(e.Type), styles.Bad
	case "CLIENT_LOST", "STREAM_LOST":
		return "CLIENT", styles.Warn
	}
	return first(e.Type), styles.Plain
}

// first is the first word of a type: NODE of NODE_STARTED.
func first(kind string) string {
	word, _, _ := strings.Cut(kind, "_")
	return word
}

// field is the value that a detail has for a key. A value goes on until the next word with a = in it.
func field(detail, key string) string {
	rest := detail
	if !strings.HasPrefix(rest, key+"=") {
		at := strings.Index(rest, " "+key+"=")
		if at < 0 {
			return ""
		}
		rest = rest[at+1:]
	}
	rest = rest[len(key)+1:]
	for i := 0; i < len(rest); i++ {
		if rest[i] == ' ' && startsField(rest[i+1:]) {
			return rest[:i]
		}
	}
	return rest
}

func startsField(s string) bool {
	word, _, _ := strings.Cut(s, " ")
	return strings.IndexByte(word, '=') > 0
}

// tell is what an event says, in parts; long is with all there is.
func (d *drawing) tell(e *store.Event, long bool) string {
	var b strings.Builder
	add := func(parts ...string) {
		for _, p := range parts {
			if p == "" {
				return
			}
		}
		if b.Len() > 0 {
			b.WriteString("  ")
		}
		for _, p := range parts {
			b.WriteString(p)
		}
	}
	arrow := d.arrow(long)
	add(e.Subject)
	switch e.Type {
	case "SEGMENT_SEALED":
		add(field(e.Detail, "segment"), arrow, field(e.Detail, "next"))
		add(e.Cause)
		add("lost ", field(e.Detail, "lost"))
		d.gap(add, e, long)
		add("replicas ", strings.ReplaceAll(field(e.Detail, "replicas"), ",", " "))
		if field(e.Detail, "loss") != "" {
			add("acked records may be gone")
		}
	case "SEGMENT_OPENED":
		add(field(e.Detail, "previous"), arrow, field(e.Detail, "segment"))
		add(e.Cause)
		d.gap(add, e, long)
	case "RANGE_SPLIT":
		b.WriteString(" " + d.say("→", ">") + " " + strings.ReplaceAll(field(e.Detail, "children"), ",", " "))
		add("at ", shortHash(field(e.Detail, "at"), d))
		add(e.Cause, d.say("×", "x"), field(e.Detail, "streak"))
	case "RANGE_MERGED":
		b.Reset()
		topic, child, _ := strings.Cut(e.Subject, "/")
		add(topic + "/" + strings.ReplaceAll(field(e.Detail, "parents"), ",", " + ") + " " + d.say("→", ">") + " " + child)
		add(e.Cause)
	case "SEGMENT_REPAIRED":
		add(field(e.Detail, "segment"))
		add(field(e.Detail, "target"), " caught up ", field(e.Detail, "took"))
	case "NODE_SUSPECT", "NODE_DEAD", "NODE_REFUTED", "NODE_JOINED", "NODE_LEFT":
		add(e.Before, arrow, e.After)
		if e.Before == "" {
			add(strings.ToLower(strings.TrimPrefix(e.Type, "NODE_")))
		}
		add("inc ", field(e.Detail, "boot"))
		add("by ", string(e.Node)) // each node tells what it believes
	case "STREAM_LOST":
		b.WriteString(" is not heard any more")
		add(e.Detail)
	case "STREAM_BACK":
		b.WriteString(" is heard again")
	case "CLIENT_LOST":
		add("no broker answers")
		add(e.Detail)
	default:
		add(verb(e))
		add(e.Before, arrow, e.After)
		if e.Before == "" {
			add(e.After)
		}
		add(e.Cause)
		d.gap(add, e, long)
		add(withoutShard(e.Detail, e.Subject))
	}
	if long {
		add("by ", e.Actor)
	}
	return b.String()
}

// verb is what a type says behind its first word: created, of TOPIC_CREATED. Where a state follows it is said already.
func verb(e *store.Event) string {
	_, rest, _ := strings.Cut(e.Type, "_")
	if e.After != "" && (strings.HasPrefix(e.Type, "NODE_") || e.Type == "LEADER_CHANGED" || e.Type == "GROUP_MEMBER") {
		return ""
	}
	return strings.ToLower(strings.ReplaceAll(rest, "_", " "))
}

func (d *drawing) arrow(long bool) string {
	if long {
		return " " + d.say("→", ">") + " "
	}
	return d.say("→", ">")
}

func (d *drawing) gap(add func(...string), e *store.Event, long bool) {
	switch {
	case e.GapMs <= 0:
	case e.Type == "LEADER_CHANGED" || e.Type == "SHARD_LED_AGAIN":
		add(fmt.Sprintf("leaderless %d ms", e.GapMs))
	case long:
		add(fmt.Sprintf("produce gap %d ms", e.GapMs))
	default:
		add(fmt.Sprintf("gap %dms", e.GapMs))
	}
}

// withoutShard leaves out of a detail what the subject says already.
func withoutShard(detail, subject string) string {
	if strings.HasPrefix(subject, "shard ") {
		if s := field(detail, "shard"); s != "" {
			detail = strings.TrimSpace(strings.Replace(detail, "shard="+s, "", 1))
		}
	}
	return strings.TrimPrefix(detail, "detail=")
}

// shortHash is a position in 16 digits as 0x5000…
func shortHash(s string, d *drawing) string {
	if len(s) != 18 {
		return s
	}
	return s[:6] + string(d.c.Glyphs().Ellipsis)
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
	long := line.W >= 100
	word, style := label(e)
	pen := d.c.Pen(line).Text(d.stamp(e, long), styles.Dim).Skip(1)
	if long {
		pen.Skip(1)
	}
	pen.Field(max(7, d.c.Width(word)+1), word, style)
	if long && line.W >= 150 {
		pen.Field(6, string(e.Node), styles.Dim)
	}
	pen.Text(term.Escape(d.tell(e, long)), styles.Plain)
}
