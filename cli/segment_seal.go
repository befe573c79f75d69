package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

type segmentSealer interface {
	SealSegment(ctx context.Context, r sdk.SealSegment) (sdk.SealedSegment, error)
	ForceSealSegment(ctx context.Context, r sdk.ForceSealSegment) (sdk.SealedSegment, error)
}

const schemaSegmentSeal = "segment.seal/1"

// sealedSegment is the document of segment seal and segment force-seal.
type sealedSegment struct {
	Schema   string           `json:"schema"`
	Topic    string           `json:"topic"`
	Range    string           `json:"range"`
	Old      string           `json:"old" col:"OLD"`
	New      string           `json:"new" col:"NEW"`
	Boundary *int64           `json:"boundary" col:"BOUNDARY" doc:"end of the old, base of the new; null: not known before it is done"`
	Replicas []string         `json:"replicas" col:"REPLICAS" doc:"of the new, the leader first"`
	GapMs    int64            `json:"gap_ms" col:"GAP" as:"ms" doc:"producers waited for so long"`
	Cause    string           `json:"cause"`
	Lossy    bool             `json:"lossy" doc:"acked records above the boundary may be lost"`
	Known    []segmentCopyRow `json:"known" doc:"force-seal: what the replicas that answered hold"`
	Silent   []string         `json:"silent" doc:"force-seal: replicas whose copies are not known to their end"`
	DryRun   bool             `json:"dry_run"`

	soFar int64 // of a plan without a boundary: the end of what is committed by now
}

func newSealedSegment(r sdk.SealedSegment) sealedSegment {
	doc := sealedSegment{
		Schema: schemaSegmentSeal, Topic: r.Topic, Range: r.Range.String(), Old: r.Old.String(), Boundary: &r.Boundary, Replicas: nodeIDs(r.Replicas),
		GapMs: r.GapMs, Cause: r.Cause.String(), Lossy: r.Lossy, Known: fencedCopies(r.Known), Silent: nodeIDs(r.Silent), DryRun: r.DryRun,
	}
	if r.New != 0 {
		doc.New = r.New.String()
	}
	if r.DryRun && len(r.Known) == 0 && len(r.Silent) == 0 {
		doc.Boundary, doc.soFar = nil, r.Boundary // the leader goes on taking records until then
	}
	return doc
}

// fencedCopies are the answers to fences: each says where its copy ends, and little else.
func fencedCopies(copies []sdk.SegmentCopy) []segmentCopyRow {
	rows := copyRows(copies)
	for i := range rows {
		row := &rows[i]
		row.Commit, row.IndexEntries = nil, nil
		if row.Bytes != nil && *row.Bytes == 0 && row.DurableEnd != nil && *row.DurableEnd > 0 {
			row.Bytes = nil
		}
	}
	return rows
}

// answeredRow is what people are shown of an answer to a fence.
type answeredRow struct {
	Node       string `col:"NODE"`
	State      string `col:"STATE"`
	DurableEnd *int64 `col:"DURABLE-END"`
	Bytes      *int64 `col:"SIZE" as:"bytes"`
}

func answeredRows(copies []segmentCopyRow) []answeredRow {
	rows := make([]answeredRow, 0, len(copies))
	for _, c := range copies {
		rows = append(rows, answeredRow{Node: c.Node, State: c.State, DurableEnd: c.DurableEnd, Bytes: c.Bytes})
	}
	return rows
}

// damagedAbove is where the copy of a node is known to be damaged; ok is false where that is not known.
func (d *sealedSegment) damagedAbove(node string) (end int64, ok bool) {
	i := slices.IndexFunc(d.Known, func(row segmentCopyRow) bool { return row.Node == node && row.State == "damaged" })
	if i < 0 || d.Known[i].DurableEnd == nil {
		return 0, false
	}
	return *d.Known[i].DurableEnd, true
}

// plan is what would be done, in a sentence.
func (d *sealedSegment) plan() string {
	what := d.Old + " of " + term.Escape(d.Topic) + "/" + d.Range
	if d.Boundary == nil {
		return fmt.Sprintf("would seal %s, at %d or above; the next segment opens on a set of nodes of its own", what, d.soFar)
	}
	return fmt.Sprintf("would end %s at %d, the longest copy that answers; the next segment goes on there", what, *d.Boundary)
}

type segmentSealOptions struct {
	*app
	reason                 string
	wait, dryRun, detailed bool
}

func newSegmentSealCommand(a *app) *cobra.Command {
	o := &segmentSealOptions{app: a}
	cmd := &cobra.Command{
		Use:   "seal <segment>",
		Short: "End an active segment; the next one opens on a set of its own",
		Long: "Ends an active segment and opens its successor on a fresh set of nodes. Nothing is lost: producers wait for some\n" +
			"milliseconds, and consumers go on in the next segment.",
		Example: `  segment seal s907 --dry-run
  segment seal s907 --reason "move off n3" --yes --wait`,
		Args:              argsBetween(1, 1),
		Annotations:       map[string]string{noteChanges: "yes", noteSchema: "segment.seal", noteExits: "4 5 12"},
		ValidArgsFunction: a.completeActiveSegment,
	}
	cmd.Flags().StringVar(&o.reason, "reason", "", "`TEXT` for the journal")
	cmd.Flags().BoolVar(&o.wait, "wait", false, "wait until the next segment has all its copies")
	addPlanFlags(cmd.Flags(), &o.dryRun, &o.detailed)
	cmd.RunE = a.withDeadline(func(ctx context.Context, _ *cobra.Command, args []string) error {
		id, err := sdk.ParseSegmentID(args[0])
		if err != nil {
			return err
		}
		admin, err := a.admin()
		if err != nil {
			return err
		}
		return runSegmentSeal(ctx, o, admin, id)
	})
	return cmd
}

func runSegmentSeal(ctx context.Context, o *segmentSealOptions, admin interface {
	segmentSealer
	segmentDescriber
}, id sdk.SegmentID,
) error {
	plan, err := admin.SealSegment(ctx, sdk.SealSegment{Segment: id, Reason: o.reason, DryRun: true})
	if err != nil {
		return suggestSegment(err)
	}
	doc := newSealedSegment(plan)
	if plan.New != 0 {
		return hasEnded(id, plan)
	}
	if o.dryRun {
		return o.printPlan(doc)
	}
	if err := o.confirmL1(ctx, id.String(), func(p *term.Page) { sealPage(p, doc) }, "producers of the range wait for some milliseconds"); err != nil {
		return err
	}
	done, err := admin.SealSegment(ctx, sdk.SealSegment{Segment: id, Reason: o.reason})
	if err != nil {
		return err
	}
	var late error
	if o.wait && done.New != 0 {
		late = o.awaitCopies(ctx, admin, done.New)
	}
	return firstError(unprinted(o.print(newSealedSegment(done))), late)
}

// hasEnded refuses to seal what is sealed. The brokers answer such a request again, for the sake of retries.
func hasEnded(id sdk.SegmentID, s sdk.SealedSegment) error {
	return errorf(sdk.CodePreconditionFailed, "segment %s has ended already, at %d; %s follows it", id, s.Boundary, s.New).
		WithHint("see: eg-cli segment describe %s", id)
}

// awaitCopies waits until a segment has as many copies as its topic wants.
func (o *segmentSealOptions) awaitCopies(ctx context.Context, admin segmentDescriber, id sdk.SegmentID) error {
	for {
		s, err := admin.DescribeSegment(ctx, id)
		if err == nil && s.Row.Copies >= s.Row.ReplicationFactor {
			return nil
		}
		select {
		case <-time.After(healthPoll):
		case <-ctx.Done():
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return context.Cause(ctx)
			}
			return errorf(sdk.CodeNotMet, "it was done, but segment %s was not seen with all its copies in time", id).WithHint("see: eg-cli segment describe %s", id)
		}
	}
}

func (o *segmentSealOptions) printPlan(doc sealedSegment) error {
	if err := o.print(doc); err != nil {
		return err
	}
	if o.detailed {
		return notMet("the segment would be sealed")
	}
	return nil
}

func (o *segmentSealOptions) print(doc sealedSegment) error {
	return o.output().Object(doc, func(p *term.Page) { sealPage(p, doc) })
}

func sealPage(p *term.Page, doc sealedSegment) {
	if doc.DryRun {
		p.Line("%s", doc.plan())
	} else {
		p.Table([]sealedSegment{doc})
	}
	if len(doc.Known) > 0 {
		p.Heading("Copies that answered")
		p.Table(answeredRows(doc.Known))
	}
	for _, n := range doc.Silent {
		if end, ok := doc.damagedAbove(n); ok {
			p.Line("%s the copy on %s; what it had from %d on goes", p.Style().Warn("damaged:"), term.Escape(n), end)
			continue
		}
		p.Line("%s whether the copy on %s is whole; what only it had goes", p.Style().Warn("unknown:"), term.Escape(n))
	}
	if doc.Lossy {
		p.Line("%s", p.Style().Bad("records acked above the boundary may be lost"))
	}
}
