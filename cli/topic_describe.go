package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

type topicDescriber interface {
	DescribeTopic(ctx context.Context, name string) (sdk.TopicDetail, error)
}

type topicDescribeOptions struct {
	*app
	name                     string
	ranges, segments, config bool
}

const schemaTopicDescribe = "topic.describe/1"

// topicDocument is the document of topic describe.
type topicDocument struct {
	Schema string `json:"schema"`
	topicRow
	Version    uint64       `json:"version"`
	Durability string       `json:"durability"`
	Copies     int          `json:"copies" doc:"replicas that a segment is to have"`
	FewCopies  int          `json:"under_replicated" doc:"segments with fewer copies than the replication factor"`
	Losses     int          `json:"losses" doc:"seals above whose ends acked records may be gone, ever"`
	LossList   []lossRow    `json:"loss_list" doc:"the last of them, oldest first"`
	RangeList  []rangeRow   `json:"range_list"`
	Config     []settingRow `json:"config"`
}

// lossRow is one seal above whose end acked records may be gone.
type lossRow struct {
	Range   string    `json:"range" col:"RANGE"`
	Segment string    `json:"segment" col:"SEGMENT"`
	End     int64     `json:"end" col:"END"`
	At      term.Time `json:"at" col:"AT" as:"stamp"`
	Why     string    `json:"why" col:"WHY" doc:"forced: an operator accepted it; restarted: no replica had run unbroken, and the topic acks before fsync"`
	Reason  string    `json:"reason" col:"REASON" doc:"the operator's words"`
	Silent  []string  `json:"silent" col:"UNKNOWN-COPIES" doc:"replicas whose copies were not known"`
}

type rangeRow struct {
	ID        string       `json:"id" col:"RANGE"`
	Start     term.Hash    `json:"start" col:"START" as:"hash"`
	End       string       `json:"end" col:"END" as:"hash" doc:"exclusive; 2^64 is 0x10000000000000000"`
	Span      float64      `json:"span_percent" col:"SPAN" as:"percent"`
	State     string       `json:"state" col:"STATE"`
	Load      string       `json:"load" col:"LOAD"`
	InPerSec  int64        `json:"in_per_sec" col:"IN/s" as:"bytes"`
	Earliest  int64        `json:"earliest_offset" col:"FIRST"`
	EndOffset int64        `json:"end_offset" col:"NEXT"`
	Records   int64        `json:"records" col:"RECORDS,wide" as:"count"`
	Bytes     int64        `json:"bytes" col:"SIZE" as:"bytes"`
	Leader    string       `json:"leader" col:"LEADER"`
	Parents   []string     `json:"parents" col:"PARENTS,wide"`
	Children  []string     `json:"children" col:"CHILDREN,wide"`
	Cause     string       `json:"cause,omitempty"`
	CreatedAt term.Time    `json:"created_at" col:"AGE,wide" as:"age"`
	Segments  []segmentRow `json:"segments"`
}

type segmentRow struct {
	ID        string       `json:"id" col:"SEGMENT"`
	Topic     string       `json:"topic"`
	Range     string       `json:"range" col:"RANGE"`
	State     string       `json:"state" col:"STATE"`
	Cause     string       `json:"cause" col:"CAUSE"`
	Epoch     int32        `json:"epoch"`
	Base      int64        `json:"base" col:"BASE"`
	End       int64        `json:"end" col:"END"`
	Records   int64        `json:"records" col:"RECORDS" as:"count"`
	Bytes     int64        `json:"bytes" col:"SIZE" as:"bytes"`
	Replicas  []string     `json:"replicas" col:"REPLICAS"`
	Copies    int          `json:"copies" doc:"replicas that hold it whole, as far as they answered"`
	States    []replicaRow `json:"replica_states"`
	CreatedAt term.Time    `json:"created_at" col:"AGE" as:"age"`
	SealedAt  term.Time    `json:"sealed_at" col:"SEALED,wide"`
	GapMs     int64        `json:"gap_ms" col:"GAP,wide" as:"ms"`
	Unknown   bool         `json:"unknown" doc:"no replica answered: end, records and bytes are not known"`
	Waits     string       `json:"waits,omitempty" doc:"its range takes no records: what its end, or the next segment, waits for"`
}

// replicaRow is one replica of a segment in topic describe.
type replicaRow struct {
	Node       string `json:"node"`
	State      string `json:"state" doc:"leader, in_sync, behind, missing, restarted, damaged, no_answer"`
	DurableEnd *int64 `json:"durable_end" doc:"null: not known"`
}

type settingRow struct {
	Key     string `json:"key" col:"KEY"`
	Value   string `json:"value" col:"VALUE"`
	Default string `json:"default" col:"DEFAULT,wide"`
	Source  string `json:"source" col:"SOURCE"`
	Help    string `json:"description" col:"DESCRIPTION,wide"`
}

func newTopicDescribeCommand(a *app) *cobra.Command {
	o := &topicDescribeOptions{app: a}
	cmd := &cobra.Command{
		Use:   "describe <topic>",
		Short: "Show one topic: summary, key space, ranges, segments, settings",
		Example: `  topic describe my_topic
  topic describe my_topic --segments
  topic describe my_topic -o json --jq '.range_list[].end_offset'`,
		Args:              argsBetween(1, 1),
		Annotations:       map[string]string{noteSchema: "topic.describe", noteExits: "4"},
		ValidArgsFunction: a.completeTopics,
	}
	cmd.Flags().BoolVar(&o.ranges, "ranges", false, "only the ranges")
	cmd.Flags().BoolVar(&o.segments, "segments", false, "only the segments")
	cmd.Flags().BoolVar(&o.config, "config-only", false, "only the settings")
	o.watchable(cmd, func(ctx context.Context, args []string) error {
		o.name = args[0]
		admin, err := a.admin()
		if err != nil {
			return err
		}
		return runTopicDescribe(ctx, o, admin)
	})
	return cmd
}

func runTopicDescribe(ctx context.Context, o *topicDescribeOptions, admin interface {
	topicDescriber
	topicLister
},
) error {
	t, err := admin.DescribeTopic(ctx, o.name)
	if err != nil {
		return o.suggestTopic(ctx, admin, o.name, err)
	}
	doc := newTopicDocument(t)
	return o.output().Object(doc, func(p *term.Page) { o.page(p, doc) })
}

func newTopicDocument(t sdk.TopicDetail) topicDocument {
	doc := topicDocument{
		Schema: schemaTopicDescribe, topicRow: newTopicRow(t.Summary), Version: uint64(t.Summary.Version),
		Durability: t.Config.Durability.String(), Copies: t.Copies, RangeList: []rangeRow{}, Config: []settingRow{},
		Losses: t.Losses, LossList: lossRows(t.Lost),
	}
	for _, r := range t.Ranges {
		doc.RangeList = append(doc.RangeList, newRangeRow(t.Summary.Name, r))
	}
	for _, r := range doc.RangeList {
		for _, s := range r.Segments {
			if s.lacks(doc.ReplicationFactor) > 0 {
				doc.FewCopies++
			}
		}
	}
	for _, s := range t.Settings {
		doc.Config = append(doc.Config, settingRow{Key: s.Key, Value: s.Value, Default: s.Default, Source: s.Source, Help: s.Help})
	}
	return doc
}

func lossRows(lost []sdk.SegmentLoss) []lossRow {
	rows := []lossRow{}
	for _, l := range lost {
		row := lossRow{Range: l.Range.String(), Segment: l.Segment.String(), End: l.End, At: timeOf(l.TimeMs), Why: "restarted", Silent: []string{}}
		if f := l.Forced; f != nil {
			row.Why, row.Reason, row.Silent = "forced", f.Reason, nodeIDs(f.Silent)
		}
		rows = append(rows, row)
	}
	return rows
}

func newRangeRow(topic string, r sdk.RangeDetail) rangeRow {
	row := rangeRow{
		ID: r.ID.String(), Start: term.Hash(r.Span.Start), End: spanEnd(r.Span.End), Span: 100 * r.Span.Width(),
		State: r.State.String(), Load: r.Load, InPerSec: r.InBytesPerSec, Earliest: r.Earliest, EndOffset: r.End,
		Records: r.Records, Bytes: r.Bytes, Leader: string(r.Leader), Cause: r.Cause.String(), CreatedAt: timeOf(r.CreatedMs),
		Parents: rangeNames(r.Parents), Children: rangeNames(r.Children), Segments: []segmentRow{},
	}
	if row.Load == "" {
		row.Load = "unknown"
	}
	for _, s := range r.Segments {
		row.Segments = append(row.Segments, newSegmentRow(topic, r.ID, s))
	}
	return row
}

func newSegmentRow(topic string, r sdk.RangeID, s sdk.SegmentDetail) segmentRow {
	row := segmentRow{
		ID: s.ID.String(), Topic: topic, Range: r.String(), State: s.State.String(), Cause: s.Cause.String(), Epoch: int32(s.Epoch),
		Base: s.Base, End: s.End, Records: s.Records, Bytes: s.Bytes, CreatedAt: timeOf(s.CreatedMs), SealedAt: timeOf(s.SealedMs),
		GapMs: s.GapMs, Replicas: []string{}, Unknown: s.Unknown, Waits: s.Waits, Copies: s.Copies, States: []replicaRow{},
	}
	for _, rep := range s.Replicas {
		row.Replicas = append(row.Replicas, string(rep.Node))
		state := replicaRow{Node: string(rep.Node), State: rep.State}
		if rep.State != noAnswer {
			state.DurableEnd = &rep.DurableEnd
		}
		row.States = append(row.States, state)
	}
	return row
}

// spanEnd prints the exclusive end of a span, which for the last one is 2^64.
func spanEnd(end uint64) string {
	if end == 0 {
		return "0x10000000000000000"
	}
	return term.Hash(end).String()
}

func rangeNames(ids []sdk.RangeID) []string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = id.String()
	}
	return names
}

func (o *topicDescribeOptions) page(p *term.Page, doc topicDocument) {
	all := !o.ranges && !o.segments && !o.config
	if all {
		o.summary(p, doc)
	}
	if all && doc.Losses > 0 {
		p.Heading(plural(int64(doc.Losses), "seal") + " above whose ends acked records may be gone")
		p.Table(doc.LossList)
	}
	if all || o.ranges {
		section(p, all, "Ranges")
		p.Table(doc.RangeList)
	}
	if all || o.segments {
		var segments []segmentRow
		for _, r := range doc.RangeList {
			segments = append(segments, r.Segments...)
		}
		for i := range segments {
			segments[i].forPeople(doc.ReplicationFactor)
		}
		section(p, all, "Segments")
		p.Table(segments)
	}
	if (all || o.config) && len(doc.Config) > 0 {
		section(p, all, "Settings")
		p.Table(inWords(doc.Config))
	}
}

func (s *segmentRow) figures(factor int) segmentFigures {
	return segmentFigures{s.State, s.Waits, s.Unknown, s.Base, s.End, s.Copies, factor}
}

func (s *segmentRow) lacks(factor int) int { return s.figures(factor).lacks() }

// forPeople says in STATE what the figures of the row are worth, and in REPLICAS which copies do not count.
func (s *segmentRow) forPeople(factor int) {
	s.State = s.figures(factor).stateInWords()
	if s.Unknown {
		return
	}
	s.Replicas = make([]string, len(s.States))
	for i, r := range s.States {
		s.Replicas[i] = r.Node
		switch r.State {
		case "", "leader", "in_sync":
		default:
			s.Replicas[i] += " (" + r.State + ")"
		}
	}
}

// section separates the parts of a page; a single part has no heading.
func section(p *term.Page, heading bool, text string) {
	if heading {
		p.Heading(text)
	}
}

func (o *topicDescribeOptions) summary(p *term.Page, doc topicDocument) {
	h := p.Human()
	retention := "for ever"
	if doc.RetentionMs > 0 {
		retention = formatSpan(doc.RetentionMs)
	}
	p.Fields(
		"Topic", doc.Name,
		"Id", doc.ID,
		"Created", h.Time.FormatDate(doc.CreatedAt.Time, h.Now),
		"Replication", "factor "+strconv.Itoa(doc.ReplicationFactor)+copiesText(doc),
		"Durability", durabilityText(doc.Durability),
		"Retention", retention,
		"Data", h.Bytes.Format(doc.Bytes)+" in "+plural(doc.Records, "record")+", "+plural(int64(doc.Segments), "segment")+lackingText(doc),
		"Shard", doc.Shard+" (leader "+orDash(doc.ShardLeader)+")",
	)
	for _, r := range doc.RangeList {
		for _, s := range r.Segments {
			if s.Waits != "" {
				p.Line("%s %s", p.Style().Bad(r.ID+" takes no records:"), term.Escape(s.Waits))
			}
		}
	}
	p.Heading("Key space")
	p.Line("%s", keyspaceBar(doc.RangeList, p.Width(), p.ASCII()))
}

// copiesText says how many copies there are where there are fewer than the factor asks for.
func copiesText(doc topicDocument) string {
	if doc.FewCopies == 0 {
		return ""
	}
	fewest := doc.ReplicationFactor
	for _, r := range doc.RangeList {
		for _, s := range r.Segments {
			fewest = min(fewest, doc.ReplicationFactor-s.lacks(doc.ReplicationFactor))
		}
	}
	return fmt.Sprintf("; %s with fewer copies, down to %d of %d", plural(int64(doc.FewCopies), "segment"), fewest, doc.ReplicationFactor)
}

// lackingText says what the sizes do not cover.
func lackingText(doc topicDocument) string {
	unknown := int64(0)
	for _, r := range doc.RangeList {
		for _, s := range r.Segments {
			if s.Unknown {
				unknown++
			}
		}
	}
	switch {
	case unknown > 0:
		return fmt.Sprintf("; not counted: %s of which no replica answered", plural(unknown, "segment"))
	case doc.Partial:
		return "; not all leaders answered, so it may be more"
	}
	return ""
}

// keyspaceBar draws the active ranges as slices of the hash space.
func keyspaceBar(ranges []rangeRow, width int, ascii bool) string {
	fill, cut, left, right := "▄", "│", "0x0 ", " 2⁶⁴"
	if ascii {
		fill, cut, right = "-", "|", " 2^64"
	}
	cells := max(10, min(width, 100)-len("0x0 ")-len(" 2^64"))
	starts := map[int]bool{}
	active := 0
	for _, r := range ranges {
		if r.State != "active" {
			continue
		}
		active++
		if at := int(float64(r.Start) / (1 << 32) / (1 << 32) * float64(cells)); at > 0 {
			starts[at] = true
		}
	}
	var b strings.Builder
	for i := range cells {
		if starts[i] {
			b.WriteString(cut)
		} else {
			b.WriteString(fill)
		}
	}
	text := left + b.String() + right
	if active > cells/2 {
		text += "\n" + plural(int64(active), "range") + ", too many to tell apart here"
	}
	return text
}
