package cli

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

type shardMover interface {
	TransferShard(ctx context.Context, r sdk.TransferShard) (sdk.TransferredShard, error)
	BalanceShards(ctx context.Context, dryRun bool) (sdk.BalancedShards, error)
}

// moveRow is a row of shard transfer and shard balance.
type moveRow struct {
	Shard        string  `json:"shard" col:"SHARD"`
	From         string  `json:"from" col:"FROM"`
	To           string  `json:"to" col:"TO"`
	Term         *uint64 `json:"term" col:"TERM" doc:"in which the new leader leads; null: it is not known yet"`
	LeaderlessMs float64 `json:"leaderless_ms" col:"LEADERLESS" as:"ms" doc:"nobody led for so long"`
	Result       string  `json:"result" col:"RESULT" doc:"moved, would move, none, failed"`
	Error        string  `json:"error" col:"ERROR,wide"`
}

func newMoveRow(m sdk.ShardMove, dryRun bool) moveRow {
	row := moveRow{
		Shard: m.Shard.String(), From: string(m.From), To: string(m.To), Term: &m.Term, LeaderlessMs: float64(m.LeaderlessUs) / 1000,
		Result: "moved", Error: m.Error,
	}
	switch {
	case m.Error != "":
		row.Result = "failed"
	case m.From == m.To:
		row.Result = "none"
	case dryRun:
		row.Result, row.Term = "would move", nil // the term to come is not known
	}
	return row
}

type shardMoveOptions struct {
	*app
	wait, dryRun, detailed bool
}

func newShardTransferCommand(a *app) *cobra.Command {
	o := &shardMoveOptions{app: a}
	cmd := &cobra.Command{
		Use:   "transfer <shard> <node>",
		Short: "Move the leadership of a shard to one of its voters",
		Long: "Moves the leadership of a shard. Its topics cannot be created, altered or rolled for some milliseconds meanwhile;\n" +
			"reads and writes of their records go on. The brokers even leaderships out by themselves and may move it back.",
		Example: `  shard transfer 12 n2
  shard transfer 12 n2 --yes --wait`,
		Args:              argsBetween(2, 2),
		Annotations:       map[string]string{noteChanges: "yes", noteSchema: "shard.move", noteExits: "4 5 12"},
		ValidArgsFunction: a.completeShardThenNode,
	}
	addPlanFlags(cmd.Flags(), &o.dryRun, &o.detailed)
	cmd.Flags().BoolVar(&o.wait, "wait", false, "wait until the others have heard of it")
	cmd.RunE = a.withDeadline(func(ctx context.Context, _ *cobra.Command, args []string) error {
		id, err := sdk.ParseShardID(args[0])
		if err != nil {
			return err
		}
		admin, err := a.admin()
		if err != nil {
			return err
		}
		return runShardTransfer(ctx, o, admin, sdk.TransferShard{Shard: id, To: sdk.NodeID(args[1])})
	})
	return cmd
}

func runShardTransfer(ctx context.Context, o *shardMoveOptions, admin interface {
	shardMover
	shardDescriber
	nodeLister
}, r sdk.TransferShard,
) error {
	plan := r
	plan.DryRun = true
	found, err := admin.TransferShard(ctx, plan)
	if err != nil {
		return o.suggestNode(ctx, admin, string(r.To), suggestShard(err))
	}
	row := newMoveRow(found.Move, true)
	if row.Result == "none" && !o.machine() {
		o.note("node %s leads shard %s already", term.Escape(row.To), row.Shard)
		return nil
	}
	if o.dryRun || row.Result == "none" {
		return o.printMoves([]moveRow{row}, o.dryRun)
	}
	name := "shard " + row.Shard
	if err := o.confirmL1(ctx, name, func(p *term.Page) { movePlan(p, []moveRow{row}) }, "the shard's topics cannot be changed while nobody leads it"); err != nil {
		return err
	}
	done, err := admin.TransferShard(ctx, r)
	if err != nil {
		return err
	}
	var late error
	if o.wait {
		late = o.awaitLeader(ctx, admin, r)
	}
	return firstError(unprinted(o.printMoves([]moveRow{newMoveRow(done.Move, false)}, false)), late)
}

// awaitLeader waits until whoever answers names the new leader.
func (o *shardMoveOptions) awaitLeader(ctx context.Context, admin shardDescriber, r sdk.TransferShard) error {
	for {
		s, err := admin.DescribeShard(ctx, r.Shard)
		if err == nil && s.Status.Leader == r.To {
			return nil
		}
		select {
		case <-time.After(healthPoll):
		case <-ctx.Done():
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return context.Cause(ctx)
			}
			return errorf(sdk.CodeNotMet, "it was done, but %s was not seen to lead shard %s in time", r.To, r.Shard).WithHint("see: eg-cli shard describe %s", r.Shard)
		}
	}
}

func newShardBalanceCommand(a *app) *cobra.Command {
	o := &shardMoveOptions{app: a}
	cmd := &cobra.Command{
		Use:   "balance",
		Short: "Spread the leaderships evenly over the nodes, now",
		Long: "Spreads the leaderships evenly over the nodes that live. The brokers do the same by themselves, slowly; this does\n" +
			"not wait. Only voters can lead, so a shard moves only among the nodes that hold it.",
		Example:     "  shard balance --dry-run\n  shard balance --yes",
		Args:        argsBetween(0, 0),
		Annotations: map[string]string{noteChanges: "yes", noteSchema: "shard.move", noteExits: "5 8 12", noteDeadline: deadlineOwn},
	}
	addPlanFlags(cmd.Flags(), &o.dryRun, &o.detailed)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		admin, err := a.admin()
		if err != nil {
			return err
		}
		return runShardBalance(cmd.Context(), o, admin)
	}
	return cmd
}

// balanceTime is how long a balance may take: each move has seconds of its own.
const balanceTime = 2 * time.Minute

func runShardBalance(ctx context.Context, o *shardMoveOptions, admin shardMover) error {
	asking, cancel := o.answerIn(ctx)
	plan, err := admin.BalanceShards(asking, true)
	cancel()
	if err != nil {
		return err
	}
	rows := moveRows(plan, true)
	switch {
	case len(rows) == 0 && len(plan.Missing) > 0:
		return unasked(plan) // nobody can say that they are even
	case o.dryRun || len(rows) == 0:
		return firstError(o.printMoves(rows, o.dryRun), unasked(plan))
	}
	name := plural(int64(len(rows)), "shard")
	if err := o.confirmL1(ctx, name, func(p *term.Page) { movePlan(p, rows) }, "topics of a shard cannot be changed while nobody leads it"); err != nil {
		return err
	}
	limit := balanceTime
	if o.timeoutGiven() && o.set.timeout > 0 {
		limit = o.set.timeout
	}
	ctx, cancel = context.WithTimeout(ctx, limit)
	defer cancel()
	done, err := admin.BalanceShards(ctx, false)
	if err != nil {
		return err
	}
	rows = moveRows(done, false)
	if err := o.printMoves(rows, false); err != nil {
		return unprinted(err)
	}
	failed := 0
	for _, r := range rows {
		if r.Error != "" {
			failed++
		}
	}
	if failed > 0 {
		return partly(false, "%d of %s could not be moved", failed, plural(int64(len(rows)), "shard")).WithHint("see ERROR of each with -o wide; try again")
	}
	return unasked(done)
}

// unasked fails with PARTIAL when a node did not answer: what it leads may be uneven still.
func unasked(b sdk.BalancedShards) error {
	if len(b.Missing) == 0 {
		return nil
	}
	names := make([]string, 0, len(b.Missing))
	for _, node := range b.Missing {
		names = append(names, string(node))
	}
	e := errorf(sdk.CodePartial, "no answer from %s: of what is led there nothing is known", strings.Join(names, ", "))
	if !b.DryRun {
		e = e.WithOutcome(sdk.OutcomeApplied)
	}
	return e.WithHint("see: eg-cli node list")
}

func moveRows(b sdk.BalancedShards, dryRun bool) []moveRow {
	rows := []moveRow{}
	for _, m := range b.Moves {
		rows = append(rows, newMoveRow(m, dryRun))
	}
	return rows
}

func (o *shardMoveOptions) printMoves(rows []moveRow, dryRun bool) error {
	if len(rows) == 0 && !o.machine() {
		o.note("the leaderships are even")
		return nil
	}
	var err error
	if dryRun && !o.machine() {
		err = o.output().Object(rows, func(p *term.Page) { movePlan(p, rows) })
	} else {
		err = o.output().List(rows)
	}
	if err != nil {
		return err
	}
	if o.detailed && dryRun && slices.ContainsFunc(rows, func(r moveRow) bool { return r.Result == "would move" }) {
		return notMet("leaderships would move")
	}
	return nil
}

// movePlan says which leaderships would move. One that cannot be decided has its reason.
func movePlan(p *term.Page, rows []moveRow) {
	for _, r := range rows {
		if r.Error != "" {
			p.Line("shard %s cannot move from %s: %s", r.Shard, orDash(r.From), term.Escape(r.Error))
			continue
		}
		p.Line("would move the leadership of shard %s from %s to %s", r.Shard, orDash(r.From), orDash(r.To))
	}
}
