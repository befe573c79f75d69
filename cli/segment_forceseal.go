package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/sdk"
)

type segmentForceSealOptions struct {
	*app
	reason                   string
	accept, dryRun, detailed bool
}

func newSegmentForceSealCommand(a *app) *cobra.Command {
	o := &segmentForceSealOptions{app: a}
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

func runSegmentForceSeal(ctx context.Context, o *segmentForceSealOptions, admin segmentSealer, id sdk.SegmentID) error {
	seal := loss[sealedSegment]{
		name: id.String(), would: "the segment would be sealed", page: sealPage,
		warning: "acked records above the boundary are gone for good; it is recorded for ever that you accepted this",
		plan: func(ctx context.Context) (sealedSegment, error) {
			plan, err := admin.ForceSealSegment(ctx, sdk.ForceSealSegment{Segment: id, Reason: o.reason, DryRun: true})
			switch {
			case err != nil:
				return sealedSegment{}, suggestSegment(err)
			case plan.New != 0 && len(plan.Known) == 0:
				return sealedSegment{}, hasEnded(id, plan)
			}
			return newSealedSegment(plan), nil
		},
		do: func(ctx context.Context) (sealedSegment, error) {
			done, err := admin.ForceSealSegment(ctx, sdk.ForceSealSegment{Segment: id, Reason: o.reason, AcceptDataLoss: true})
			return newSealedSegment(done), err
		},
	}
	return seal.run(ctx, o.app, o.dryRun, o.detailed)
}
