package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/sdk"
)

func newWaitSegmentCommand(a *app) *cobra.Command {
	return newWaitVerb(a, "4 12", &cobra.Command{
		Use:   "segment <segment> replicated|sealed",
		Short: "Wait until a segment has as many whole copies as its topic wants, or until it is sealed",
		Example: `  wait segment s907 sealed
  wait segment s907 replicated --timeout 5m`,
		Args: argsBetween(2, 2),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, to string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return a.completeSegment(cmd, args, to)
			}
			return words(len(args) == 1, "replicated", "sealed"), cobra.ShellCompDirectiveNoFileComp
		},
	}, func(admin Admin, args []string) (condition, error) {
		c := condition{what: "segment", subject: args[0], text: args[1]}
		id, err := sdk.ParseSegmentID(args[0])
		if err != nil {
			return c, err
		}
		if args[1] != "replicated" && args[1] != "sealed" {
			return c, badCondition(args[1], "replicated", "sealed")
		}
		c.look = func(ctx context.Context) (bool, string, error) {
			s, err := admin.DescribeSegment(ctx, id)
			if err != nil {
				return false, "", suggestSegment(err)
			}
			row := s.Row
			observed := fmt.Sprintf("%s, %d of %d copies", row.Segment.State, row.Copies, row.ReplicationFactor)
			if args[1] == "sealed" {
				return row.Segment.State.String() == "sealed", observed, nil
			}
			return row.Copies >= row.ReplicationFactor, observed, nil
		}
		return c, nil
	})
}
