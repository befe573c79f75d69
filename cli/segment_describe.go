package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

type segmentDescriber interface {
	DescribeSegment(ctx context.Context, id sdk.SegmentID) (sdk.DescribedSegment, error)
}

const schemaSegmentDescribe = "segment.describe/1"

// segmentDocument is the document of segment describe.
type segmentDocument struct {
	Schema string `json:"schema"`
	segmentListRow
	Shard     string           `json:"shard"`
	Prev      string           `json:"prev" doc:"the segment before it in its range"`
	Next      string           `json:"next"`
	CopyList  []segmentCopyRow `json:"copy_list" doc:"in the order of the replicas"`
	ForcedBy  *forcedDocument  `json:"forced_seal,omitempty"`
	Durable   string           `json:"durability"`
	LastWrite term.Time        `json:"last_append_at"`
}

// segmentCopyRow is one replica's own word on its copy. What it did not say is null: a figure of 0 would be a word, too.
type segmentCopyRow struct {
	Node         string  `json:"node" col:"NODE"`
	Role         string  `json:"role" col:"ROLE"`
	State        string  `json:"state" col:"STATE" doc:"leader, in_sync, behind, missing, restarted, damaged, no_answer"`
	DurableEnd   *int64  `json:"durable_end" col:"DURABLE-END" doc:"null: not known"`
	Commit       *int64  `json:"commit" col:"COMMIT" doc:"up to which it serves reads; null: not known"`
	CRC          string  `json:"crc32c" col:"CRC" doc:"of a whole sealed copy"`
	LastFsyncMs  float64 `json:"last_fsync_ms" col:"LAST-FSYNC" as:"ms" doc:"how long its last batch was on the way to the disk"`
	Bytes        *int64  `json:"bytes" col:"SIZE" as:"bytes" doc:"null: not known"`
	IndexEntries *int64  `json:"index_entries" col:"INDEX" doc:"null: not known"`
	Fenced       bool    `json:"fenced" col:"FENCED,wide"`
	Disk         string  `json:"disk" col:"DISK,wide"`
	Error        string  `json:"error" col:"ERROR,wide"`
}

type forcedDocument struct {
	Reason string    `json:"reason"`
	At     term.Time `json:"at"`
	Silent []string  `json:"silent" doc:"replicas whose copies were not known"`
}

func newSegmentDescribeCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "describe <segment>",
		Short: "Show one segment: bounds, each replica's copy, how it was sealed",
		Example: `  segment describe s907
  segment describe s907 -o json --jq '.copy_list[] | {node, durable_end, crc32c}'`,
		Args:              argsBetween(1, 1),
		Annotations:       map[string]string{noteSchema: "segment.describe", noteExits: "4"},
		ValidArgsFunction: a.completeSegment,
	}
	a.watchable(cmd, func(ctx context.Context, args []string) error {
		id, err := sdk.ParseSegmentID(args[0])
		if err != nil {
			return err
		}
		admin, err := a.admin()
		if err != nil {
			return err
		}
		return runSegmentDescribe(ctx, a, admin, id)
	})
	return cmd
}

func runSegmentDescribe(ctx context.Context, a *app, admin segmentDescriber, id sdk.SegmentID) error {
	s, err := admin.DescribeSegment(ctx, id)
	if err != nil {
		return suggestSegment(err)
	}
	doc := newSegmentDocument(s)
	return a.output().Object(doc, func(p *term.Page) { segmentPage(p, doc) })
}

func newSegmentDocument(s sdk.DescribedSegment) segmentDocument {
	doc := segmentDocument{
		Schema: schemaSegmentDescribe, segmentListRow: newSegmentListRow(s.Row), Shard: s.Shard.String(), CopyList: copyRows(s.Copies),
		Durable: s.Settings.Durability.String(), LastWrite: timeOf(s.Row.Segment.LastAppendMs),
	}
	if s.Prev != 0 {
		doc.Prev = s.Prev.String()
	}
	if s.Next != 0 {
		doc.Next = s.Next.String()
	}
	if f := s.Forced; f != nil {
		doc.ForcedBy = &forcedDocument{Reason: f.Reason, At: timeOf(f.TimeMs), Silent: nodeIDs(f.Silent)}
	}
	return doc
}

// noAnswer is the state of a replica that said nothing of its copy.
const noAnswer = "no_answer"

func copyRows(copies []sdk.SegmentCopy) []segmentCopyRow {
	rows := []segmentCopyRow{}
	for _, c := range copies {
		row := segmentCopyRow{
			Node: string(c.Replica.Node), Role: c.Role, State: c.Replica.State, LastFsyncMs: float64(c.LastFsyncUs) / 1000,
			Fenced: c.Fenced, Disk: c.Replica.Disk.String(), Error: c.Error,
		}
		if c.Replica.State != noAnswer {
			entries := int64(c.IndexEntries)
			row.DurableEnd, row.Commit, row.Bytes, row.IndexEntries = &c.Replica.DurableEnd, &c.Commit, &c.Bytes, &entries
		}
		if c.CRC != 0 {
			row.CRC = fmt.Sprintf("%08x", c.CRC)
		}
		rows = append(rows, row)
	}
	return rows
}

func segmentPage(p *term.Page, doc segmentDocument) {
	h := p.Human()
	state := doc.stateInWords()
	if doc.State == "sealed" {
		state += " " + h.Time.FormatDate(doc.SealedAt.Time, h.Now) + ", " + orDash(doc.Cause)
	}
	end := itoa(doc.End)
	if doc.Unknown {
		end = "not known: no replica answers"
	}
	pairs := []string{
		"Segment", doc.ID + ", epoch " + itoa(int64(doc.Epoch)), "Range", doc.Subject + ", shard " + doc.Shard, "State", state,
		"Created", h.Time.FormatDate(doc.CreatedAt.Time, h.Now), "Offsets", itoa(doc.Base) + " to " + end,
		"Data", h.Bytes.Format(doc.Bytes) + " in " + plural(doc.Records, "record"),
		"Copies", fmt.Sprintf("%d whole of %d", doc.Copies, doc.Factor), "Durability", durabilityText(doc.Durable),
		"Before it", orDash(doc.Prev), "After it", orDash(doc.Next),
	}
	if doc.GapMs > 0 {
		pairs = append(pairs, "Gap", fmt.Sprintf("%d ms without an ack before its first", doc.GapMs))
	}
	if doc.Waits != "" {
		pairs = append(pairs, "Waits", doc.Waits)
	}
	p.Fields(pairs...)
	if f := doc.ForcedBy; f != nil {
		text := "ended by an operator " + h.Time.FormatDate(f.At.Time, h.Now) + " without knowing its end"
		if f.Reason != "" {
			text += ": " + term.Escape(f.Reason)
		}
		if len(f.Silent) > 0 {
			text += "; not known were the copies on " + term.Escape(strings.Join(f.Silent, ", "))
		}
		p.Line("%s", p.Style().Bad(text))
	}
	p.Heading("Replicas, the leader first")
	p.Table(doc.CopyList)
	for _, c := range doc.CopyList {
		if c.Error != "" {
			p.Line("%s: %s", term.Escape(c.Node), term.Escape(c.Error))
		}
	}
}

// durabilityText says in words what an ack promises.
func durabilityText(durability string) string {
	if durability == sdk.DurabilityReplicated.String() {
		return "in memory of every replica when it is acked; a power loss of all of them loses it"
	}
	return "on stable storage of every replica before it is acked"
}
