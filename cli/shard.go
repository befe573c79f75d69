package cli

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

type shardLister interface {
	ListShards(ctx context.Context) (sdk.ShardList, error)
}

func newShardCommand(a *app) *cobra.Command {
	return newGroup("shard", "The metadata shards: where they are, who leads them",
		newShardListCommand(a, "list"),
		newShardLeadersCommand(a),
		newShardDescribeCommand(a),
		newShardLocateCommand(a),
		newShardTransferCommand(a),
		newShardBalanceCommand(a),
		newShardRecoverCommand(a),
	)
}

// shardRow is a shard in shard list and cluster status.
type shardRow struct {
	ID         string    `json:"id" col:"SHARD"`
	State      string    `json:"state" col:"STATE" doc:"ok, no_leader, catching_up, recovering; no_answer: its leader did not answer, the rest is hearsay"`
	Leader     string    `json:"leader" col:"LEADER"`
	Term       uint64    `json:"term" col:"TERM"`
	Commit     uint64    `json:"commit" col:"COMMIT"`
	Applied    uint64    `json:"applied" col:"APPLIED"`
	Trails     uint64    `json:"trails" col:"TRAILS" doc:"entries that the voter furthest behind lacks"`
	Voters     []string  `json:"voters"`
	Followers  []string  `json:"followers" col:"FOLLOWERS" doc:"the voters but for the leader"`
	NonVoters  []string  `json:"non_voters" col:"JOINING,wide"`
	Want       int       `json:"voters_wanted" col:"WANT,wide"`
	Topics     int       `json:"topics" col:"TOPICS"`
	Generation uint64    `json:"generation" col:"GEN,wide" doc:"counts its recoveries that accepted a loss"`
	Since      term.Time `json:"leader_since" col:"AGE" as:"age" doc:"when its leader began, or was lost"`
}

func newShardRow(s sdk.ShardStatus) shardRow {
	row := shardRow{
		ID: s.ID.String(), State: s.State, Leader: string(s.Leader), Term: s.Term, Commit: s.Commit, Applied: s.Applied, Trails: s.Trails,
		Voters: nodeIDs(s.Voters), Followers: []string{}, NonVoters: nodeIDs(s.NonVoters), Want: s.Want, Topics: s.Topics, Generation: s.Generation, Since: timeOf(s.SinceMs),
	}
	for _, v := range row.Voters {
		if v != row.Leader {
			row.Followers = append(row.Followers, v)
		}
	}
	return row
}

func nodeIDs(ids []sdk.NodeID) []string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = string(id)
	}
	return names
}

// shardStates are those of a shard; no_answer is what this program says of one whose leader did not answer.
var shardStates = []string{"ok", "no_leader", "catching_up", "recovering", "no_answer"}

type shardListOptions struct {
	*app
	node, state string
}

func newShardListCommand(a *app, use string) *cobra.Command {
	o := &shardListOptions{app: a}
	cmd := &cobra.Command{
		Use:   use,
		Short: "List the metadata shards, each as its leader sees it",
		Example: `  shard list
  shard list --state no_leader
  shard list --node n2 --sort-by trails:desc`,
		Args:        argsBetween(0, 0),
		Annotations: map[string]string{noteSchema: "shard.list", noteExits: "8"},
	}
	cmd.Flags().StringVar(&o.node, "node", "", "only shards that this `NODE` votes in")
	cmd.Flags().StringVar(&o.state, "state", "", "only shards in these `STATES`: ok, no_leader, catching_up, recovering, no_answer")
	completeWith(cmd, "node", a.completeNode)
	completeWith(cmd, "state", oneOfWords(shardStates...))
	o.watchable(cmd, func(ctx context.Context, _ []string) error {
		admin, err := a.admin()
		if err != nil {
			return err
		}
		return runShardList(ctx, o, admin)
	})
	return cmd
}

func runShardList(ctx context.Context, o *shardListOptions, admin shardLister) error {
	keep, err := oneOf("state", o.state, shardStates...)
	if err != nil {
		return err
	}
	list, err := admin.ListShards(ctx)
	if err != nil {
		return err
	}
	rows := []shardRow{}
	for _, s := range list.Shards {
		row := newShardRow(s)
		if slices.Contains(list.Missing, s.ID) && row.State == "ok" {
			row.State = "no_answer"
		}
		if keep(row.State) && (o.node == "" || slices.Contains(row.Voters, o.node)) {
			rows = append(rows, row)
		}
	}
	if err := o.output().List(rows); err != nil {
		return err
	}
	return o.incomplete(list.Missing)
}

// leaderRow is a row of shard leaders.
type leaderRow struct {
	Node      string  `json:"id" col:"NODE"`
	Leaders   int     `json:"leaders" col:"LEADERS"`
	Share     float64 `json:"share_percent" col:"SHARE" as:"percent"`
	Skew      int     `json:"skew" col:"SKEW" doc:"leaderships above (or below) an even share among the nodes that live"`
	Followers int     `json:"followers" col:"FOLLOWERS" doc:"shards that it votes in and does not lead"`
	State     string  `json:"state" col:"STATE,wide"`
}

func newShardLeadersCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "leaders",
		Short: "How the leaderships are spread over the nodes",
		Example: `  shard leaders
  shard leaders -w
  shard leaders --sort-by leaders:desc`,
		Args:        argsBetween(0, 0),
		Annotations: map[string]string{noteSchema: "shard.leaders", noteExits: "8"},
	}
	a.watchable(cmd, func(ctx context.Context, _ []string) error {
		admin, err := a.admin()
		if err != nil {
			return err
		}
		return runShardLeaders(ctx, a, admin)
	})
	return cmd
}

func runShardLeaders(ctx context.Context, a *app, admin interface {
	shardLister
	nodeLister
},
) error {
	shards, err := admin.ListShards(ctx)
	if err != nil {
		return err
	}
	nodes, err := admin.ListNodes(ctx)
	if err != nil {
		return err
	}
	rows, leaderless := leaderRows(shards, nodes)
	if err := a.output().List(rows); err != nil {
		return err
	}
	if leaderless > 0 {
		a.note("%s without a leader: eg-cli shard list --state no_leader", plural(int64(leaderless), "shard"))
	}
	return a.incomplete(shards.Missing)
}

// leaderRows counts. An even share is the ceiling for as many nodes as the remainder says, so 11, 11 and 10 of 32
// shards are no skew.
func leaderRows(shards sdk.ShardList, nodes sdk.NodeList) (rows []leaderRow, leaderless int) {
	at := map[sdk.NodeID]int{}
	row := func(id sdk.NodeID) *leaderRow {
		i, ok := at[id]
		if !ok {
			i = len(rows)
			at[id] = i
			rows = append(rows, leaderRow{Node: string(id)})
		}
		return &rows[i]
	}
	live := 0
	for _, n := range nodes.Nodes {
		row(n.ID).State = n.State
		if n.State == "alive" {
			live++
		}
	}
	led := 0
	for _, s := range shards.Shards {
		if s.Leader == "" || slices.Contains(shards.Missing, s.ID) {
			leaderless++
			s.Leader = ""
		} else {
			row(s.Leader).Leaders++
			led++
		}
		for _, v := range s.Voters {
			if v != s.Leader {
				row(v).Followers++
			}
		}
	}
	for i := range rows {
		r := &rows[i]
		if led > 0 {
			r.Share = 100 * float64(r.Leaders) / float64(led)
		}
		if live > 0 {
			r.Skew = skew(r.Leaders, led/live, (led+live-1)/live, r.State == "alive")
		}
	}
	slices.SortFunc(rows, func(a, b leaderRow) int { return cmp.Compare(a.Node, b.Node) })
	return rows, leaderless
}

func skew(leaders, least, most int, alive bool) int {
	switch {
	case !alive:
		return leaders
	case leaders > most:
		return leaders - most
	case leaders < least:
		return leaders - least
	}
	return 0
}

// suggestShard tells which shards there are where one was not found.
func suggestShard(cause error) error {
	var e *sdk.Error
	if !errors.As(cause, &e) || e.Code != sdk.CodeShardNotFound {
		return cause
	}
	return e.WithHint("see which there are: eg-cli shard list")
}
