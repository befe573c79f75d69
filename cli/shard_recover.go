package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

type shardRecoverer interface {
	RecoverShard(ctx context.Context, r sdk.RecoverShard) (sdk.RecoveredShard, error)
}

const schemaShardRecover = "shard.recover/1"

// recoveredShard is the document of shard recover.
type recoveredShard struct {
	Schema     string        `json:"schema"`
	Shard      string        `json:"shard"`
	Logs       []shardLogRow `json:"logs" doc:"every log that was found"`
	Lost       []string      `json:"lost" doc:"voters, by the ids of their metadata directories, that did not answer"`
	Generation uint64        `json:"generation" doc:"the new one: replicas of earlier ones set themselves aside"`
	DryRun     bool          `json:"dry_run"`
}

type shardLogRow struct {
	Node   string `json:"node" col:"LOG"`
	Term   uint64 `json:"term" col:"TERM"`
	Index  uint64 `json:"index" col:"INDEX"`
	Result string `json:"result" col:"RESULT" doc:"taken, older, or set aside by an earlier recovery"`
	Server string `json:"server" col:"SERVER,wide"`
}

type shardRecoverOptions struct {
	*app
	accept, dryRun, detailed bool
}

func newShardRecoverCommand(a *app) *cobra.Command {
	o := &shardRecoverOptions{app: a}
	cmd := &cobra.Command{
		Use:   "recover <shard>",
		Short: "Rebuild a shard that lost its quorum for good from the newest log that is left",
		Long: "A shard needs a majority of its voters. When that is gone for good, this makes the newest log among the voters that\n" +
			"answer the shard's only one. Changes that only the lost voters had are gone: topics created, altered or deleted, and\n" +
			"segments sealed, just before. That the loss was accepted is recorded for ever. If a lost voter can still be brought\n" +
			"back, do that instead.",
		Example: `  shard recover 12 --dry-run
  shard recover 12 --accept-metadata-loss`,
		Args:              argsBetween(1, 1),
		Annotations:       map[string]string{noteChanges: "yes", noteSchema: "shard.recover", noteExits: "4 5 12"},
		ValidArgsFunction: a.completeShard,
	}
	cmd.Flags().BoolVar(&o.accept, "accept-metadata-loss", false, "accept that what only the lost voters had is gone")
	addPlanFlags(cmd.Flags(), &o.dryRun, &o.detailed)
	cmd.RunE = a.withDeadline(func(ctx context.Context, _ *cobra.Command, args []string) error {
		id, err := sdk.ParseShardID(args[0])
		if err != nil {
			return err
		}
		if !o.accept && !o.dryRun {
			return usagef("recovering shard %s may lose metadata for good", id).WithHint("see what would be lost with --dry-run; then pass --accept-metadata-loss")
		}
		admin, err := a.admin()
		if err != nil {
			return err
		}
		return runShardRecover(ctx, o, admin, id)
	})
	return cmd
}

func runShardRecover(ctx context.Context, o *shardRecoverOptions, admin shardRecoverer, id sdk.ShardID) error {
	recovery := loss[recoveredShard]{
		name: "shard " + id.String(), would: "the shard would be rebuilt", page: recoverPage,
		warning: "changes that only the lost voters had are gone for good; it is recorded for ever that you accepted this",
		plan: func(ctx context.Context) (recoveredShard, error) {
			plan, err := admin.RecoverShard(ctx, sdk.RecoverShard{Shard: id, DryRun: true})
			if err != nil {
				return recoveredShard{}, unrecoverable(id, err)
			}
			return newRecoveredShard(plan), nil
		},
		do: func(ctx context.Context) (recoveredShard, error) {
			done, err := admin.RecoverShard(ctx, sdk.RecoverShard{Shard: id, AcceptLoss: true})
			return newRecoveredShard(done), err
		},
	}
	return recovery.run(ctx, o.app, o.dryRun, o.detailed)
}

// unrecoverable tells what to look at where a shard cannot be rebuilt.
func unrecoverable(id sdk.ShardID, cause error) error {
	var e *sdk.Error
	if errors.As(cause, &e) && e.Code == sdk.CodePreconditionFailed && e.HintText() == e.Code.Info().Hint {
		return e.WithHint("there is nothing to recover: eg-cli shard describe %s", id)
	}
	return suggestShard(cause)
}

func newRecoveredShard(r sdk.RecoveredShard) recoveredShard {
	doc := recoveredShard{Schema: schemaShardRecover, Shard: r.Shard.String(), Logs: []shardLogRow{}, Lost: []string{}, Generation: r.Generation, DryRun: r.DryRun}
	for _, l := range r.Logs {
		row := shardLogRow{Node: string(l.Node), Term: l.Term, Index: l.Index, Result: "older", Server: l.Server.String()}
		switch {
		case l.Chosen:
			row.Result = "taken"
		case l.Archived:
			row.Result = "set aside"
		}
		doc.Logs = append(doc.Logs, row)
	}
	slices.SortStableFunc(doc.Logs, func(a, b shardLogRow) int {
		return cmp.Or(cmp.Compare(b.Term, a.Term), cmp.Compare(b.Index, a.Index))
	})
	for _, u := range r.Lost {
		doc.Lost = append(doc.Lost, u.String())
	}
	return doc
}

// plan is what would be done, in a sentence.
func (d *recoveredShard) plan() string {
	for _, l := range d.Logs {
		if l.Result == "taken" {
			return fmt.Sprintf("would rebuild shard %s from the log of %s, which ends at term %d, index %d; its generation becomes %d",
				d.Shard, term.Escape(l.Node), l.Term, l.Index, d.Generation)
		}
	}
	return fmt.Sprintf("no log of shard %s was found: there is nothing to rebuild it from", d.Shard)
}

func recoverPage(p *term.Page, doc recoveredShard) {
	if doc.DryRun {
		p.Line("%s", doc.plan())
		p.Line("")
	}
	p.Table(doc.Logs)
	for _, lost := range doc.Lost {
		p.Line("%s voter %s did not answer; what only it had goes", p.Style().Warn("lost:"), lost)
	}
}
