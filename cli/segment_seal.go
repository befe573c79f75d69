package cli

import (
	"context"
	"errors"
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
	Silent   []string         `json:"silent" doc:"force-seal: replicas whose copies are not known"`
	DryRun   bool             `json:"dry_run"`
}

func newSealedSegment(r sdk.SealedSegment) sealedSegment {
	doc := sealedSegment{
		Schema: schemaSegmentSeal, Topic: r.Topic, Range: r.Range.String(), Old: r.Old.String(), Boundary: &r.Boundary, Replicas: nodeIDs(r.Replicas),
		GapMs: r.GapMs, Cause: r.Cause.String(), Lossy: r.Lossy, Known: copyRows(r.Known), Silent: nodeIDs(r.Silent), DryRun: r.DryRun,
	}
	if r.New != 0 {
		doc.New = r.New.String()
	}
	if r.DryRun && len(r.Known) == 0 && len(r.Silent) == 0 {
		doc.Boundary = nil // the leader goes on taking records until then
	}
	return doc
}

type segmentSealOptions struct {
	*app
	reason                         string
	wait, accept, dryRun, detailed bool
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

func newSegmentForceSealCommand(a *app) *cobra.Command {
	o := &segmentSealOptions{app: a}
	cmd := &cobra.Command{
		Use:   "force-seal <segment>",
		Short: "End a segment of which no intact replica can be reached, accepting a loss",
		Long: "A segment's end is known from one intact replica. While none can be reached its range waits, and that is right: they\n" +
			"may come back with every record. When they never will, this ends the segment at the longest copy that answers.\n" +
			"What was acked above it is gone; that it was accepted is recorded for ever, and readers above the new end are told.\n" +
			"If a replica can still be brought back, do that instead.",
		Example: `  segment force-seal s907 --dry-run
  segment force-seal s907 --accept-data-loss --reason "n1 and n2 burnt down"`,
		Args:              argsBetween(1, 1),
		Annotations:       map[string]string{noteChanges: "yes", noteSchema: "segment.seal", noteExits: "4 5 12"},
		ValidArgsFunction: a.completeActiveSegment,
	}
	cmd.Flags().BoolVar(&o.accept, "accept-data-loss", false, "accept that records above the longest copy that answers are gone")
	cmd.Flags().StringVar(&o.reason, "reason", "", "`TEXT` that is recorded with it, for ever")
	addPlanFlags(cmd.Flags(), &o.dryRun, &o.detailed)
	cmd.RunE = a.withDeadline(func(ctx context.Context, _ *cobra.Command, args []string) error {
		id, err := sdk.ParseSegmentID(args[0])
		if err != nil {
			return err
		}
		if !o.accept && !o.dryRun {
			return usagef("ending segment %s by force may lose acked records for good", id).WithHint("see what is known of its copies with --dry-run; then pass --accept-data-loss")
		}
		admin, err := a.admin()
		if err != nil {
			return err
		}
		return runSegmentForceSeal(ctx, o, admin, id)
	})
	return cmd
}

func runSegmentForceSeal(ctx context.Context, o *segmentSealOptions, admin segmentSealer, id sdk.SegmentID) error {
	plan, err := admin.ForceSealSegment(ctx, sdk.ForceSealSegment{Segment: id, Reason: o.reason, DryRun: true})
	if err != nil {
		return suggestSegment(err)
	}
	doc := newSealedSegment(plan)
	if plan.New != 0 && len(plan.Known) == 0 {
		return hasEnded(id, plan)
	}
	if o.dryRun {
		return o.printPlan(doc)
	}
	warning := "acked records above the boundary are gone for good; it is recorded for ever that you accepted this"
	if err := o.confirmL2(ctx, id.String(), func(p *term.Page) { sealPage(p, doc) }, warning); err != nil {
		return err
	}
	done, err := admin.ForceSealSegment(ctx, sdk.ForceSealSegment{Segment: id, Reason: o.reason, AcceptDataLoss: true})
	if err != nil {
		return err
	}
	return unprinted(o.print(newSealedSegment(done)))
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
	p.Table([]sealedSegment{doc})
	if len(doc.Known) > 0 {
		p.Heading("Copies that answered")
		p.Table(doc.Known)
	}
	for _, n := range doc.Silent {
		p.Line("%s whether the copy on %s is whole; what only it had goes", p.Style().Warn("unknown:"), term.Escape(n))
	}
	if doc.Lossy {
		p.Line("%s", p.Style().Bad("records acked above the boundary may be lost"))
	}
}
