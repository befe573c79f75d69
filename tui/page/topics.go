package page

import (
	"fmt"
	"strings"
	"time"

	"github.com/eastguard/eastguard/tui/component"
	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/styles"
)

// topics is page 4: all topics, and where in the key space each is written.
type topics struct{}

// ID is 4.
func (topics) ID() ID { return Topics }

var topicTable = &table[*store.Topic]{
	name:   "topics",
	sort:   "RATE",
	id:     func(t *store.Topic) string { return t.Name },
	text:   topicText,
	source: topicSource,
	cols: []col[*store.Topic]{
		{name: "TOPIC", w: 14, most: 28, less: func(a, b *store.Topic) int { return strings.Compare(a.Name, b.Name) }, cell: func(_ *drawing, t *store.Topic) (string, styles.Style) { return t.Name, styles.Accent }},
		{name: "RANGES", w: 6, right: true, value: func(t *store.Topic) float64 { return float64(t.Ranges) }, cell: number(func(t *store.Topic) int64 { return int64(t.Ranges) })},
		{name: "RF", w: 2, right: true, rank: 2, cell: replication},
		{name: "RATE", w: 11, right: true, rough: true, value: func(t *store.Topic) float64 { return t.InBytes }, cell: topicRate},
		{name: "REC/s", w: 6, right: true, rough: true, rank: 3, value: func(t *store.Topic) float64 { return t.InRecords }, cell: func(_ *drawing, t *store.Topic) (string, styles.Style) { return plain(component.Short(t.InRecords)) }},
		{name: "SIZE", w: 9, right: true, rank: 1, value: func(t *store.Topic) float64 { return float64(t.Bytes) }, cell: topicSize},
		{name: "RECORDS", w: 7, right: true, rank: 5, value: func(t *store.Topic) float64 { return float64(t.Records) }, cell: func(_ *drawing, t *store.Topic) (string, styles.Style) {
			if t.Listed.IsZero() {
				return dim(none)
			}
			return plain(component.Short(float64(t.Records)))
		}},
		{name: "SEGS", w: 6, right: true, rank: 4, value: func(t *store.Topic) float64 { return float64(t.Segments) }, cell: number(func(t *store.Topic) int64 { return int64(t.Segments) })},
		{name: "SHORT", w: 5, right: true, rank: 3, value: func(t *store.Topic) float64 { return float64(t.UnderReplicated) }, cell: func(_ *drawing, t *store.Topic) (string, styles.Style) {
			if t.UnderReplicated > 0 {
				return component.Count(t.UnderReplicated), styles.Warn
			}
			return dim(none)
		}},
		{name: "RETENTION", w: 9, right: true, rank: 6, cell: retention},
		{name: "SHARD", w: 6, right: true, rank: 7, cell: func(_ *drawing, t *store.Topic) (string, styles.Style) {
			if t.Listed.IsZero() {
				return dim(none)
			}
			return plain(t.Shard.String())
		}},
		{name: "LEADER", w: 6, rank: 7, cell: func(_ *drawing, t *store.Topic) (string, styles.Style) { return plain(orNone(string(t.ShardLeader))) }},
		{name: "AGE", w: 5, right: true, rank: 8, wide: true, value: func(t *store.Topic) float64 { return -float64(t.CreatedMs) }, cell: func(d *drawing, t *store.Topic) (string, styles.Style) {
			if t.CreatedMs == 0 {
				return dim(none)
			}
			return plain(brief(time.UnixMilli(t.CreatedMs), d.st.Frame.Now))
		}},
		{name: "KEYSPACE", w: 30, share: 40, grow: true, bare: true, paint: func(d *drawing, place component.Rect, t *store.Topic) {
			d.keyspace(t.Name, d.hottest()).Bar(d.c, place)
		}},
	},
}

func topicText(t *store.Topic) string {
	text := t.Name + " " + t.Compression
	for k, v := range t.Labels {
		text += " " + k + "=" + v
	}
	return text
}

func topicSource(v *store.View, _ *State) source[*store.Topic] {
	return source[*store.Topic]{
		version: v.Topics.Version, n: v.Topics.Len(), at: v.Topics.At, find: v.Topics.Index,
		part: !v.Cluster.ListedTopics.Has(""), all: v.Cluster.Totals.Topics,
	}
}

func replication(_ *drawing, t *store.Topic) (string, styles.Style) {
	if t.ReplicationFactor == 0 {
		return dim(none)
	}
	return plain(component.Count(t.ReplicationFactor))
}

func topicRate(d *drawing, t *store.Topic) (string, styles.Style) {
	text := component.Rate(t.InBytes)
	if t.AtLeast {
		text = d.say("≥", ">") + text
	}
	return plain(text)
}

func topicSize(d *drawing, t *store.Topic) (string, styles.Style) {
	if t.Listed.IsZero() {
		return dim(none)
	}
	text := component.Bytes(uint64(max(t.Bytes, 0)))
	if t.Partial {
		text = d.say("≥", ">") + text
	}
	return plain(text)
}

func retention(_ *drawing, t *store.Topic) (string, styles.Style) {
	switch {
	case t.Listed.IsZero():
		return dim(none)
	case t.RetentionMs > 0:
		return plain(whole(time.Duration(t.RetentionMs) * time.Millisecond))
	case t.RetentionBytes > 0:
		return plain(component.Short(float64(t.RetentionBytes)))
	}
	return dim("for ever")
}

// whole is a setting's duration in its largest unit: 7d.
func whole(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d%day == 0:
		return fmt.Sprintf("%dd", d/day)
	case d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return component.Age(d)
}

// Draw draws the list.
func (topics) Draw(c *component.Canvas, body component.Rect, v *store.View, st *State) {
	st.focusable = 1
	d := &drawing{c: c, v: v, st: st}
	notes := topicTable.notes(d, 0, body.W)
	if body.W >= 100 {
		notes = append(notes, string(d.c.Glyphs().Quiet)+" not among the busiest ranges")
	}
	inside := d.box(body, 0, "Topics", d.join(body, "Topics", notes...))
	topicTable.draw(d, 0, body, inside, noTopics(v)...)
}

// noTopics says why there are none.
func noTopics(v *store.View) []string {
	if v.Cluster.Counted.IsZero() {
		return []string{"the topics are not known yet", "they come with the first answer of the metadata shards"}
	}
	if n := len(v.Cluster.Totals.Missing); n > 0 {
		return []string{"no topic is known", plural(n, "shard") + " did not answer: their topics are missing"}
	}
	if n := v.Cluster.Totals.Topics; n > 0 {
		return []string{"none of the " + plural(n, "topic") + " is listed yet", "they are asked for while they can be seen"}
	}
	return []string{"no topics yet", "eg-cli create-topic my_topic 3 makes one"}
}

// Rows are the topics.
func (topics) Rows(v *store.View, st *State) Rows { return topicTable.ordered(v, st, 0) }

// Columns are those of the table.
func (topics) Columns(*State) []string { return topicTable.columns() }

// Panels is 1.
func (topics) Panels(int, int) int { return 1 }

// Head counts the topics.
func (topics) Head(v *store.View, _ *State) string { return countTopics(v) }

func countTopics(v *store.View) string {
	n := max(v.Cluster.Totals.Topics, v.Topics.Len())
	if len(v.Cluster.Totals.Missing) > 0 {
		return "at least " + plural(n, "topic")
	}
	return plural(n, "topic")
}

// Alarm is that of the cluster.
func (topics) Alarm(v *store.View, st *State) Line { return alarmOf(v, st) }

// About is the selected topic.
func (topics) About(v *store.View, st *State) Subject {
	return aboutTopic(v, selected(topicTable.ordered(v, st, 0), st.Panels[0].Selected))
}

// selected is the row of a selection; the first when nothing is selected, which is what the table shows.
func selected[R any](list rows[R], id string) (r R) {
	i := list.Index(id)
	if i < 0 {
		i = 0
	}
	if i < list.Len() {
		r = list.at(i)
	}
	return r
}

func aboutTopic(_ *store.View, t *store.Topic) Subject {
	if t == nil {
		return Subject{}
	}
	return Subject{
		Kind: KindTopic, Name: t.Name, Topic: t.Name, Open: Ranges, Describe: []string{"topic", "describe", t.Name},
		Actions: []Action{
			{Key: 'a', Title: "alter…", Head: "Alter topic " + t.Name, Command: []string{"topic", "alter", t.Name}, Level: LevelYes, Why: "name the setting in eg-cli: C copies the command"},
			{Key: 'd', Title: "delete…", Head: "Delete topic " + t.Name, Command: []string{"topic", "delete", t.Name}, Level: LevelName},
		},
	}
}
