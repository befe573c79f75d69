package cli

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/sdk"
)

type nodePinger interface {
	Ping(ctx context.Context, id sdk.NodeID) (time.Duration, error)
	Reach(ctx context.Context, r sdk.Reach) (sdk.Reached, error)
}

// pingRow is a row of node ping.
type pingRow struct {
	Node   string `json:"node" col:"NODE"`
	Via    string `json:"via" col:"VIA" doc:"direct: from this client; else the node that pinged it"`
	Sent   int    `json:"sent" col:"SENT"`
	OK     int    `json:"ok" col:"OK"`
	P50Us  int64  `json:"p50_us" col:"P50" as:"us"`
	P99Us  int64  `json:"p99_us" col:"P99" as:"us"`
	Gossip string `json:"gossip" col:"GOSSIP" doc:"what membership says, seen from via"`
	Link   string `json:"link" col:"LINK" doc:"what the connection from via says: reachable, unreachable, refused"`
	Error  string `json:"error" col:"ERROR"`
}

type nodePingOptions struct {
	*app
	count    int
	indirect bool
}

const maxPings = 100

func newNodePingCommand(a *app) *cobra.Command {
	o := &nodePingOptions{app: a}
	cmd := &cobra.Command{
		Use:   "ping [node]…",
		Short: "Reach nodes from here, and with --indirect from each other; exit 12 if one does not answer",
		Example: `  node ping
  node ping n2 n3 --count 10
  node ping --indirect`,
		Args:              argsAtLeast(0),
		Annotations:       map[string]string{noteSchema: "node.ping", noteExits: "4 12"},
		ValidArgsFunction: a.completeNodesMany,
	}
	cmd.Flags().IntVar(&o.count, "count", 3, "`N` pings to each, at most 100")
	cmd.Flags().BoolVar(&o.indirect, "indirect", false, "each node that answers pings the others too")
	o.watchable(cmd, func(ctx context.Context, args []string) error {
		if o.count < 1 || o.count > maxPings {
			return usagef("--count is from 1 to %d", maxPings)
		}
		admin, err := a.admin()
		if err != nil {
			return err
		}
		return runNodePing(ctx, o, admin, args)
	})
	return cmd
}

func runNodePing(ctx context.Context, o *nodePingOptions, admin interface {
	nodePinger
	nodeLister
}, names []string,
) error {
	list, err := admin.ListNodes(ctx)
	if err != nil {
		return err
	}
	targets, err := o.targets(ctx, admin, list, names)
	if err != nil {
		return err
	}
	rows := make([][]pingRow, len(targets))
	var asked sync.WaitGroup
	for i, n := range targets {
		asked.Go(o.Guard.Func(func() { rows[i] = []pingRow{o.direct(ctx, admin, n)} }))
	}
	asked.Wait()
	all := slices.Concat(rows...)
	if o.indirect {
		all = append(all, o.byOthers(ctx, admin, list, targets)...)
	}
	if err := o.output().List(all); err != nil {
		return err
	}
	if slices.ContainsFunc(all, func(r pingRow) bool { return r.OK < r.Sent || r.Error != "" }) {
		return notMet("a node did not answer")
	}
	return nil
}

// targets are the nodes named; without names all but those that said farewell.
func (o *nodePingOptions) targets(ctx context.Context, admin nodeLister, list sdk.NodeList, names []string) ([]sdk.NodeStatus, error) {
	var targets []sdk.NodeStatus
	for _, n := range list.Nodes {
		if len(names) == 0 && n.State != "left" || slices.Contains(names, string(n.ID)) {
			targets = append(targets, n)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(targets, func(n sdk.NodeStatus) bool { return string(n.ID) == name }) {
			return nil, o.suggestNode(ctx, admin, name, errorf(sdk.CodeNodeNotFound, "node %q not found", name))
		}
	}
	return targets, nil
}

// direct pings one node from here, one ping after the other. The first opens the connection and is not counted in the
// times unless it is the only one.
func (o *nodePingOptions) direct(ctx context.Context, admin nodePinger, n sdk.NodeStatus) pingRow {
	row := pingRow{Node: string(n.ID), Via: "direct", Gossip: n.State}
	var took []int64
	for i := range o.count {
		row.Sent++
		once, cancel := context.WithTimeout(ctx, nodePatience)
		d, err := admin.Ping(once, n.ID)
		cancel()
		if err != nil {
			row.Error = describe(err).Message
			if ctx.Err() != nil || o.count-i > 2 && row.OK == 0 {
				break // whoever does not listen at all is not asked a hundred times
			}
			continue
		}
		row.OK++
		if i > 0 || o.count == 1 {
			took = append(took, d.Microseconds())
		}
	}
	row.P50Us, row.P99Us = pingTimes(took)
	row.Link = map[bool]string{true: "reachable", false: "unreachable"}[row.OK > 0]
	return row
}

// byOthers makes each living node reach the targets, all at once.
func (o *nodePingOptions) byOthers(ctx context.Context, admin nodePinger, list sdk.NodeList, targets []sdk.NodeStatus) []pingRow {
	rows := make([][]pingRow, len(list.Nodes))
	slots := make(chan struct{}, observersAtOnce)
	var asked sync.WaitGroup
	for i, from := range list.Nodes {
		if from.State == "dead" || from.State == "left" {
			continue
		}
		asked.Go(o.Guard.Func(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			rows[i] = o.by(ctx, admin, from.ID, targets)
		}))
	}
	asked.Wait()
	all := slices.Concat(rows...)
	slices.SortStableFunc(all, func(a, b pingRow) int { return strings.Compare(a.Node, b.Node) })
	return all
}

func (o *nodePingOptions) by(ctx context.Context, admin nodePinger, from sdk.NodeID, targets []sdk.NodeStatus) []pingRow {
	r := sdk.Reach{From: from, Count: o.count}
	for _, t := range targets {
		if t.ID != from {
			r.Nodes = append(r.Nodes, t.ID)
		}
	}
	if len(r.Nodes) == 0 {
		return nil
	}
	reached, err := admin.Reach(ctx, r)
	if err != nil {
		// The node itself has a row of its own; what it would have said of the others is not known.
		return []pingRow{{Node: "-", Via: string(from), Error: describe(err).Message}}
	}
	var rows []pingRow
	for _, p := range reached.Peers {
		row := pingRow{Node: string(p.Node), Via: string(from), Sent: p.Sent, OK: p.OK, Gossip: p.Gossip, Link: p.Link, Error: p.Error}
		row.P50Us, row.P99Us = pingTimes(p.RttUs)
		rows = append(rows, row)
	}
	return rows
}

// pingTimes are the median and the 99th of a few times.
func pingTimes(us []int64) (p50, p99 int64) {
	if len(us) == 0 {
		return 0, 0
	}
	us = slices.Sorted(slices.Values(us))
	return us[(len(us)-1)/2], us[(len(us)-1)*99/100]
}
