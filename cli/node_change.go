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

type nodeChanger interface {
	ChangeNode(ctx context.Context, r sdk.ChangeNode) (sdk.ChangedNode, error)
}

const schemaNodeChange = "node.change/1"

// changedNode is the document of node leave, forget and replace.
type changedNode struct {
	Schema   string   `json:"schema"`
	Node     string   `json:"node" col:"NODE"`
	Change   string   `json:"change" col:"CHANGE" doc:"leave, forget or replace"`
	Before   string   `json:"before" col:"BEFORE"`
	After    string   `json:"after" col:"AFTER"`
	Segments int      `json:"segments" col:"SEGMENTS" doc:"whose only copies are on that node"`
	Votes    int      `json:"shard_votes" col:"SHARDS" doc:"metadata shards that it votes in"`
	Shards   []string `json:"shards" col:"VOTES-IN,wide"`
	DryRun   bool     `json:"dry_run"`
}

// nodeChange is what the three commands differ in.
type nodeChange struct {
	*app
	change   sdk.NodeChange
	verb     string // "forget"
	done     string // "forgot n4"
	would    string // "forget n4"
	warning  string
	reached  func(n *sdk.NodeStatus) bool // --wait: the node as listed, nil when it is not
	awaiting string                       // what --wait waits for
	wait     bool
	dryRun   bool
	detailed bool
}

func newNodeLeaveCommand(a *app) *cobra.Command {
	return newNodeChangeCommand(&nodeChange{
		app: a, change: sdk.LeaveNode, verb: "leave", done: "told %s to leave", would: "tell %s to leave",
		warning:  "the node hands its leaderships over and stops; its data stays on its disk and counts when it returns",
		awaiting: "it has left", reached: func(n *sdk.NodeStatus) bool { return n == nil || n.State == "left" || n.State == "dead" },
	}, &cobra.Command{
		Use:   "leave <node>",
		Short: "Stop a living node in good order; its data stays and counts when it returns",
		Example: `  node leave n3 --dry-run
  node leave n3 --wait`,
	})
}

func newNodeForgetCommand(a *app) *cobra.Command {
	return newNodeChangeCommand(&nodeChange{
		app: a, change: sdk.ForgetNode, verb: "forget", done: "forgot %s", would: "forget %s",
		warning:  "the node's copies count as lost at once and are made anew elsewhere",
		awaiting: "it is out", reached: func(n *sdk.NodeStatus) bool { return n == nil || n.Status == "out" },
	}, &cobra.Command{
		Use:   "forget <node>",
		Short: "Take a dead node out of the cluster at once, for good",
		Long: "Takes a dead node out at once, instead of after node_out_secs. Its copies count as lost and are made anew elsewhere;\n" +
			"its seats in metadata shards are given to others. A node that lives is refused: let it leave first.\n\n" + untilDead,
		Example: `  node forget n3 --dry-run
  node forget n3 --yes --wait`,
	})
}

// untilDead says what commands about a dead node do with one that was killed a moment ago.
const untilDead = "A node that was killed a moment ago is waited for, until the others believe it dead: that takes about 7 s. If --timeout\n" +
	"ends before, the exit code is 3 and nothing was done."

func newNodeReplaceCommand(a *app) *cobra.Command {
	return newNodeChangeCommand(&nodeChange{
		app: a, change: sdk.ReplaceNode, verb: "replace", done: "%s may come back with another disk", would: "let %s come back with another disk",
		warning:  "the copies on the node's disk count as lost; whoever starts under this name with another one is admitted",
		awaiting: "it has been admitted", reached: func(n *sdk.NodeStatus) bool { return n != nil && n.State == "alive" && n.Admitted },
	}, &cobra.Command{
		Use:   "replace <node> [disk]",
		Short: "Admit a node under its name with another disk, after the old one was lost or rolled back",
		Long: "A node whose disk is not the one that the cluster knows is refused: an empty or rolled-back disk must not vouch for\n" +
			"records that it has lost. This accepts the loss: the disk that the cluster knows is given up, and the next start under\n" +
			"this name is admitted with whatever it has. disk is the id of the one given up, as the node's log and node describe\n" +
			"name it; without it, it is the one that the node has at present.\n\n" + untilDead,
		Example: `  node replace n3 --dry-run
  node replace n3 6f1c0f5e-5b1f-4f0e-9f43-0d6d3f0a1c55 --yes`,
	})
}

func newNodeChangeCommand(o *nodeChange, cmd *cobra.Command) *cobra.Command {
	most := 1
	if o.change == sdk.ReplaceNode {
		most = 2
	}
	cmd.Args = argsBetween(1, most)
	cmd.Annotations = map[string]string{noteChanges: "yes", noteSchema: "node.change", noteExits: "4 5 12", noteDeadline: deadlineOwn}
	cmd.ValidArgsFunction = o.completeNode
	addPlanFlags(cmd.Flags(), &o.dryRun, &o.detailed)
	cmd.Flags().BoolVar(&o.wait, "wait", false, "wait until "+o.awaiting+", for 60 s unless --timeout says otherwise")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r := sdk.ChangeNode{Node: sdk.NodeID(args[0]), Change: o.change}
		if len(args) > 1 {
			disk, err := sdk.ParseDiskID(args[1])
			if err != nil {
				return err
			}
			r.Disk = disk
		}
		admin, err := o.admin()
		if err != nil {
			return err
		}
		return runNodeChange(cmd.Context(), o, admin, r)
	}
	return cmd
}

func runNodeChange(ctx context.Context, o *nodeChange, admin interface {
	nodeChanger
	nodeLister
}, r sdk.ChangeNode,
) error {
	name := string(r.Node)
	plan := r
	plan.DryRun = true
	found, err := o.ask(ctx, admin, plan)
	if err != nil {
		return o.suggestNode(ctx, admin, name, err)
	}
	row := o.row(found)
	if o.dryRun {
		if err := o.printResult(row); err != nil {
			return err
		}
		if o.detailed {
			return notMet("the node would change")
		}
		return nil
	}
	if err := o.confirmL2(ctx, name, func(p *term.Page) { p.Line("%s", o.plan(row)) }, o.planWarning(row)); err != nil {
		return err
	}
	done, err := o.ask(ctx, admin, r)
	if err != nil {
		return err
	}
	var late error
	if o.wait {
		late = o.await(ctx, admin, r.Node)
	}
	row = o.row(done)
	o.Session.names.forget()
	return firstError(unprinted(o.printResult(row)), late)
}

// ask is one request within the command's time.
func (o *nodeChange) ask(ctx context.Context, admin nodeChanger, r sdk.ChangeNode) (sdk.ChangedNode, error) {
	ctx, cancel := o.answerIn(ctx)
	defer cancel()
	return admin.ChangeNode(ctx, r)
}

func (o *nodeChange) planWarning(row changedNode) string {
	if row.Segments > 0 {
		return plural(int64(row.Segments), "segment") + " with their only copies there; " + o.warning
	}
	return o.warning
}

// plan is what would be done, in a sentence.
func (o *nodeChange) plan(row changedNode) string {
	text := fmt.Sprintf("would "+o.would+"  %s -> %s  ", term.Escape(row.Node), orDash(row.Before), orDash(row.After))
	if row.Votes == 0 {
		return text + "it votes in no metadata shard"
	}
	return text + "it votes in " + pluralAs(int64(row.Votes), "metadata shard", "metadata shards")
}

func (o *nodeChange) row(r sdk.ChangedNode) changedNode {
	row := changedNode{
		Schema: schemaNodeChange, Node: string(r.Node), Change: o.change.String(), Before: r.Before, After: r.After,
		Segments: r.Segments, Shards: []string{}, DryRun: r.DryRun,
	}
	for _, s := range r.Shards {
		row.Shards = append(row.Shards, s.String())
	}
	row.Votes = len(row.Shards)
	return row
}

func (o *nodeChange) printResult(row changedNode) error {
	return o.output().Object(row, func(p *term.Page) {
		if row.DryRun {
			p.Line("%s", o.plan(row))
			p.Line("%s", p.Style().Warn(o.planWarning(row)))
			return
		}
		p.Line("%s  %s -> %s", fmt.Sprintf(o.done, term.Escape(row.Node)), orDash(row.Before), orDash(row.After))
	})
}

// await waits until the change has come about. A broker that does not answer is not yet a failure.
func (o *nodeChange) await(ctx context.Context, admin nodeLister, id sdk.NodeID) error {
	limit := healthWait
	if o.timeoutGiven() && o.set.timeout > 0 {
		limit = o.set.timeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTimeUp)
	defer cancel()
	o.note("waiting until %s", o.awaiting)
	for {
		once, stop := context.WithTimeout(ctx, healthAsk)
		list, err := admin.ListNodes(once)
		stop()
		if err == nil {
			i := slices.IndexFunc(list.Nodes, func(n sdk.NodeStatus) bool { return n.ID == id })
			var n *sdk.NodeStatus
			if i >= 0 {
				n = &list.Nodes[i]
			}
			if o.reached(n) {
				return nil
			}
		} else if !worthWaiting(err) && ctx.Err() == nil {
			return unprinted(err)
		}
		select {
		case <-time.After(healthPoll):
		case <-ctx.Done():
			if !errors.Is(context.Cause(ctx), errTimeUp) {
				return context.Cause(ctx)
			}
			return errorf(sdk.CodeNotMet, "it was done, but it was not seen within %s that %s", term.FormatSpan(limit), o.awaiting).
				WithHint("see: eg-cli node list")
		}
	}
}
