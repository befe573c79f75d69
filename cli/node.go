package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

type nodeLister interface {
	ListNodes(ctx context.Context) (sdk.NodeList, error)
}

func newNodeCommand(a *app) *cobra.Command {
	return newGroup("node", "List, describe and reach nodes; let them leave, forget and replace them",
		newNodeListCommand(a, "list"),
		newNodeDescribeCommand(a),
		newNodeRingCommand(a),
		newNodePingCommand(a),
		newNodeLogsCommand(a),
		newNodeLeaveCommand(a),
		newNodeForgetCommand(a),
		newNodeReplaceCommand(a),
	)
}

// nodeRow is a node in node list and cluster status.
type nodeRow struct {
	ST             string            `json:"st" col:"ST" doc:"two letters: A alive, S suspect, D dead, L left, ? unknown; N normal, D draining, L leaving, O out"`
	ID             string            `json:"id" col:"NODE"`
	State          string            `json:"state" doc:"alive, suspect, dead, left"`
	Status         string            `json:"status" doc:"normal, draining, leaving, out"`
	ClientAddress  string            `json:"client_address" col:"ADDRESS"`
	Rack           string            `json:"rack" col:"RACK,spare"`
	Boot           uint64            `json:"boot" col:"BOOT,spare"`
	Vnodes         int               `json:"vnodes" col:"VNODES,wide"`
	Owns           float64           `json:"owns_percent" col:"OWNS,spare" as:"percent" doc:"share of the ring"`
	Leaders        int               `json:"leaders" col:"LEADERS" doc:"segments led here"`
	ShardLeaders   int               `json:"shard_leaders" col:"SHARDS" doc:"metadata shards led here"`
	Replicas       int               `json:"shard_replicas" col:"REPLICAS,wide" doc:"replicas of metadata shards"`
	Segments       int               `json:"segments" col:"SEGMENTS"`
	DiskUsed       int64             `json:"disk_used_bytes" col:"DISK,spare" as:"share" of:"DiskTotal" doc:"of the file system, by whomever"`
	DiskTotal      int64             `json:"disk_total_bytes"`
	InPerSec       int64             `json:"in_bytes_per_sec" col:"IN/s,spare" as:"bytes"`
	OutPerSec      int64             `json:"out_bytes_per_sec" col:"OUT/s,spare" as:"bytes"`
	FsyncP99Us     int64             `json:"fsync_p99_us" col:"FSYNC-P99,spare" as:"us"`
	AckP99Us       int64             `json:"ack_p99_us" col:"ACK-P99,wide" as:"us"`
	RttUs          int64             `json:"rtt_us" col:"RTT,wide" as:"us" doc:"between the node that answered and this one"`
	Connections    int               `json:"connections" col:"CONNS,wide" doc:"of clients"`
	UptimeMs       int64             `json:"uptime_ms" col:"UPTIME,spare" as:"uptime"`
	StartedAt      term.Time         `json:"started_at"`
	Since          term.Time         `json:"state_since" col:"SINCE,wide" as:"age" doc:"when the state began"`
	Admitted       bool              `json:"admitted" col:"ADMITTED,wide" doc:"the root shard has accepted this start"`
	RingHash       term.Hash         `json:"ring_hash" col:"RING,wide"`
	RingVersion    uint64            `json:"ring_version"`
	Labels         map[string]string `json:"labels" col:"LABELS,wide"`
	Version        string            `json:"version" col:"VERSION,spare"`
	RecordsIn      int64             `json:"in_records_per_sec"`
	RecordsOut     int64             `json:"out_records_per_sec"`
	AnsweredItself bool              `json:"answered" doc:"false: shown as others last heard of it"`
}

func newNodeRow(n sdk.NodeStatus, observedMs int64) nodeRow {
	row := nodeRow{
		ST: stateLetters(n.State, n.Status), ID: string(n.ID), Boot: n.Boot, State: n.State, Status: n.Status, ClientAddress: n.Address,
		Rack: n.Rack, Vnodes: n.Vnodes, Owns: float64(n.OwnsPerMillion) / 1e4, Leaders: n.Leaders, ShardLeaders: n.ShardLeaders,
		Replicas: n.Replicas, Segments: n.Segments, DiskUsed: n.DiskUsed, DiskTotal: n.DiskTotal, InPerSec: n.InBytesPerSec,
		OutPerSec: n.OutBytesPerSec, FsyncP99Us: n.FsyncP99Us, AckP99Us: n.AckP99Us, RttUs: n.RttUs, Connections: n.Connections,
		UptimeMs: n.UptimeMs, Since: timeOf(n.SinceMs), Admitted: n.Admitted, RingHash: term.Hash(n.RingHash), RingVersion: n.RingVersion,
		Labels: n.Labels, Version: n.Version, RecordsIn: n.InRecordsPerSec, RecordsOut: n.OutRecordsPerSec, AnsweredItself: true,
	}
	if n.UptimeMs > 0 {
		row.StartedAt = timeOf(observedMs - n.UptimeMs)
	}
	if row.Labels == nil {
		row.Labels = map[string]string{}
	}
	return row
}

// stateLetters is state and status in two letters, as nodetool has them: AN is alive and normal.
func stateLetters(state, status string) string {
	letters := []byte("??")
	switch state {
	case "alive", "suspect", "dead", "left":
		letters[0] = state[0] - 'a' + 'A'
	}
	switch status {
	case "", "normal":
		letters[1] = 'N'
	case "draining", "leaving", "out":
		letters[1] = status[0] - 'a' + 'A'
	}
	return string(letters)
}

// nodeStates are what the nodes may believe of one.
var nodeStates = []string{"alive", "suspect", "dead", "left"}

type nodeListOptions struct {
	*app
	state string
}

func newNodeListCommand(a *app, use string) *cobra.Command {
	o := &nodeListOptions{app: a}
	cmd := &cobra.Command{
		Use:   use,
		Short: "List the nodes: state, place, load",
		Long: "Lists the nodes. ST is two letters: A alive, S suspect, D dead, L left; then N normal, D draining, L leaving, O out.\n" +
			"Each living node is asked for its own figures; one that does not answer is shown as the others last heard of it,\n" +
			"and the command exits 8 if it is believed to be alive.",
		Example: `  node list
  node list -w
  node list -o json --jq '.[] | select(.state != "alive") | .id'`,
		Args:        argsBetween(0, 0),
		Annotations: map[string]string{noteSchema: "node.list", noteExits: "8"},
	}
	cmd.Flags().StringVar(&o.state, "state", "", "only nodes in these `STATES`: alive, suspect, dead, left")
	completeWith(cmd, "state", oneOfWords(nodeStates...))
	o.watchable(cmd, func(ctx context.Context, _ []string) error {
		admin, err := a.admin()
		if err != nil {
			return err
		}
		return runNodeList(ctx, o, admin)
	})
	return cmd
}

func runNodeList(ctx context.Context, o *nodeListOptions, admin nodeLister) error {
	keep, err := oneOf("state", o.state, nodeStates...)
	if err != nil {
		return err
	}
	list, err := admin.ListNodes(ctx)
	if err != nil {
		return err
	}
	rows := []nodeRow{}
	for _, n := range list.Nodes {
		if keep(n.State) {
			row := newNodeRow(n, list.ObservedMs)
			row.AnsweredItself = !slices.Contains(list.Missing, n.ID)
			rows = append(rows, row)
		}
	}
	if err := o.output().List(rows); err != nil {
		return err
	}
	return silentNodes(list)
}

// silentNodes fails with PARTIAL when a node that is believed to be alive did not answer for itself. That a dead one
// did not is no surprise, and its row says so.
func silentNodes(list sdk.NodeList) error {
	var names []string
	for _, n := range list.Nodes {
		if n.State == "alive" && slices.Contains(list.Missing, n.ID) {
			names = append(names, string(n.ID))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return errorf(sdk.CodePartial, "the figures are not complete: %s did not answer for %s", strings.Join(names, ", "), themselves(len(names))).
		WithHint("they are shown as the others last heard of them; see: eg-cli node ping")
}

func themselves(n int) string {
	if n == 1 {
		return "itself"
	}
	return "themselves"
}

// oneOf reads a comma-separated list of allowed words; empty allows everything.
func oneOf(flag, list string, words ...string) (func(string) bool, error) {
	if list == "" {
		return func(string) bool { return true }, nil
	}
	chosen := strings.Split(list, ",")
	for _, w := range chosen {
		if !slices.Contains(words, w) {
			return nil, usagef("--%s %q is not one of %s", flag, w, strings.Join(words, ", "))
		}
	}
	return func(s string) bool { return slices.Contains(chosen, s) }, nil
}

// suggestNode adds the nearest node's name to a "not found".
func (a *app) suggestNode(ctx context.Context, admin nodeLister, name string, cause error) error {
	var e *sdk.Error
	if !errors.As(cause, &e) || e.Code != sdk.CodeNodeNotFound {
		return cause
	}
	if best := suggest(name, a.nodeNames(ctx, admin)); best != "" && best != name {
		return e.WithHint("did you mean %q?", best)
	}
	return e.WithHint("see which there are: eg-cli node list")
}
