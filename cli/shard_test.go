package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/sdk"
)

func TestShardList(t *testing.T) {
	out, _, exit, _ := onThree(t, func(a *fakeAdmin) {
		a.shards[2].Leader, a.shards[2].State = "", "no_leader"
		a.shards[1].Trails = 7
	}, "shard list")
	require.Equal(t, strings.Join([]string{
		"SHARD  STATE      LEADER  TERM  COMMIT  APPLIED  TRAILS  FOLLOWERS  TOPICS   AGE",
		"0      ok         n1         4     100      100       0  n2 n3           0  1m00s",
		"1      ok         n2         4     100      100       7  n1 n3           1  1m00s",
		"2      no_leader  -          4     100      100       0  n1 n2 n3        2  1m00s",
		"3      ok         n1         4     100      100       0  n2 n3           3  1m00s",
		"",
	}, "\n"), strings.ReplaceAll(out, "TOPICS  AGE", "TOPICS   AGE"))
	require.Equal(t, ExitOK, exit)

	out, errs, exit, _ := onThree(t, func(a *fakeAdmin) { a.noLeaders = []sdk.ShardID{{Root: 2}} }, "shard list -o json")
	require.Equal(t, ExitPartial, exit)
	require.Contains(t, errs, "1 shard did not answer: 2")
	require.NoError(t, matchSchema("shard.list", out))
	out, _, _, _ = onThree(t, func(a *fakeAdmin) { a.shards[2].State = "no_leader" }, "shard list --state no_leader -o name")
	require.Equal(t, "2\n", out)
	out, _, _, _ = onThree(t, nil, "shard list --node n9 -o json")
	require.Equal(t, "[]\n", out)
	_, _, exit, _ = onThree(t, nil, "shard list --state odd")
	require.Equal(t, ExitUsage, exit)
}

func TestShardLeaders(t *testing.T) {
	out, _, exit, _ := onThree(t, func(a *fakeAdmin) {
		dead("n3")(a)
		a.shards[3].Leader = "n1"
	}, "shard leaders")
	require.Equal(t, strings.Join([]string{
		"NODE  LEADERS  SHARE  SKEW  FOLLOWERS",
		"n1          2    50%     0          2",
		"n2          1    25%    -1          3",
		"n3          1    25%     1          3",
		"",
	}, "\n"), out)
	require.Equal(t, ExitOK, exit)
	out, _, _, _ = onThree(t, nil, "shard leaders -o json")
	require.NoError(t, matchSchema("shard.leaders", out))
	_, errs, _, _ := onThree(t, func(a *fakeAdmin) { a.shards[0].Leader = "" }, "shard leaders")
	require.Contains(t, errs, "1 shard without a leader")
}

func TestSkew(t *testing.T) {
	for _, tt := range []struct {
		leaders, least, most int
		alive                bool
		want                 int
	}{{11, 10, 11, true, 0}, {10, 10, 11, true, 0}, {12, 10, 11, true, 1}, {8, 10, 11, true, -2}, {3, 10, 11, false, 3}, {0, 10, 11, false, 0}} {
		require.Equal(t, tt.want, skew(tt.leaders, tt.least, tt.most, tt.alive), "%+v", tt)
	}
}

func TestShardDescribe(t *testing.T) {
	out, _, exit, _ := onThree(t, nil, "shard describe 3")
	require.Equal(t, ExitOK, exit)
	require.Contains(t, out, "Leader    n1, for 1m00s\n")
	require.Contains(t, out, "Log       1 to 100, committed 100, applied 100\n")
	require.Contains(t, out, "NODE  ROLE    MATCH  TRAILS  INTENDED  LINK\nn1    leader    100       0  yes       reachable\nn2    voter      99       1  yes       reachable\n")
	out, _, _, _ = onThree(t, nil, "shard describe 3 -o json")
	require.NoError(t, matchSchema("shard.describe", out))
	_, errs, exit, _ := onThree(t, nil, "shard describe 77")
	require.Equal(t, ExitNotFound, exit)
	require.Contains(t, errs, "eg-cli shard list")
	_, _, exit, _ = onThree(t, nil, "shard describe twelve")
	require.Equal(t, ExitUsage, exit)
}

func TestShardLocate(t *testing.T) {
	out, _, exit, _ := onThree(t, nil, "shard locate orders")
	require.Equal(t, "TOPIC   HASH                SHARD  MEMBERS   LEADER\norders  0x1800000000000000  3      n1 n2 n3  n1\n", out)
	require.Equal(t, ExitOK, exit)
	out, _, _, _ = onThree(t, nil, "shard locate orders -o json")
	require.NoError(t, matchSchema("shard.locate", out))
	_, _, exit, _ = onThree(t, nil, "shard locate not/a/name")
	require.Equal(t, ExitUsage, exit)
}

func TestShardTransfer(t *testing.T) {
	out, _, exit, admin := onThree(t, nil, "shard transfer 3 n2 --dry-run")
	require.Equal(t, "would move the leadership of shard 3 from n1 to n2\n", out)
	require.Equal(t, ExitOK, exit)
	require.Empty(t, admin.moved)
	_, _, exit, _ = onThree(t, nil, "shard transfer 3 n2 --dry-run --detailed-exitcode")
	require.Equal(t, ExitNotMet, exit)
	_, _, exit, admin = onThree(t, nil, "shard transfer 3 n2")
	require.Equal(t, ExitUsage, exit)
	require.Empty(t, admin.moved)
	out, _, exit, _ = onThree(t, nil, "shard transfer 3 n2 --yes --wait")
	require.Equal(t, "SHARD  FROM  TO  TERM  LEADERLESS  RESULT\n3      n1    n2     5      4.2 ms  moved\n", out)
	require.Equal(t, ExitOK, exit)
	out, _, exit, admin = onThree(t, nil, "shard transfer 3 n1 -o json")
	require.Equal(t, ExitOK, exit, "it leads already: nothing to confirm")
	require.Contains(t, out, `"result": "none"`)
	require.NoError(t, matchSchema("shard.move", out))
	require.Empty(t, admin.moved)
	_, errs, _, _ := onThree(t, nil, "shard transfer 3 n1")
	require.Contains(t, errs, "node n1 leads shard 3 already")
	_, _, exit, _ = onThree(t, nil, "shard transfer 3 n9 --yes")
	require.Equal(t, ExitNotFound, exit)
	_, _, exit, _ = onThree(t, nil, "shard transfer 77 n1 --yes")
	require.Equal(t, ExitNotFound, exit)
}

func TestShardBalance(t *testing.T) {
	_, errs, exit, admin := onThree(t, nil, "shard balance")
	require.Equal(t, ExitOK, exit)
	require.Contains(t, errs, "the leaderships are even")
	require.Equal(t, []string{"plan balance"}, admin.calls)

	moves := func(a *fakeAdmin) {
		a.moves = []sdk.ShardMove{{Shard: sdk.ShardID{Root: 3}, From: "n1", To: "n2", LeaderlessUs: 1500}, {Shard: sdk.ShardID{Root: 4}, From: "n1", To: "n3", Error: "n3 is not caught up"}}
	}
	_, _, exit, admin = onThree(t, moves, "shard balance")
	require.Equal(t, ExitUsage, exit)
	require.Equal(t, []string{"plan balance"}, admin.calls)
	out, errs, exit, admin := onThree(t, moves, "shard balance --yes")
	require.Equal(t, ExitPartial, exit)
	require.Contains(t, out, "3      n1    n2     0      1.5 ms  moved\n4      n1    n3     0           -  failed\n")
	require.Contains(t, errs, "1 of 2 shards could not be moved")
	require.Equal(t, []string{"plan balance", "balance"}, admin.calls)
	silent := func(a *fakeAdmin) { a.unasked = []sdk.NodeID{"n3"} }
	_, errs, exit, admin = onThree(t, silent, "shard balance")
	require.Equal(t, ExitPartial, exit)
	require.Contains(t, errs, "no answer from n3")
	require.NotContains(t, errs, "even")
	require.Equal(t, []string{"plan balance"}, admin.calls)
	out, errs, exit, _ = onThree(t, func(a *fakeAdmin) { silent(a); moves(a); a.moves = a.moves[:1] }, "shard balance --yes")
	require.Equal(t, ExitPartial, exit)
	require.Contains(t, out, "moved")
	require.Contains(t, errs, "no answer from n3")
	out, _, exit, _ = onThree(t, nil, "shard balance -o json --dry-run")
	require.Equal(t, "[]\n", out)
	require.Equal(t, ExitOK, exit)
}

func TestShardRecover(t *testing.T) {
	_, errs, exit, admin := onThree(t, nil, "shard recover 3")
	require.Equal(t, ExitUsage, exit)
	require.Contains(t, errs, "--accept-metadata-loss")
	require.Empty(t, admin.calls)
	out, _, exit, admin := onThree(t, nil, "shard recover 3 --dry-run")
	require.Equal(t, ExitOK, exit)
	require.Contains(t, out, "would rebuild shard 3 from the log of n2, which ends at term 4, index 88; its generation becomes ")
	require.Contains(t, out, "LOG  TERM  INDEX  RESULT\nn2      4     88  taken\nn1      3     90  older\n")
	require.Contains(t, out, "lost: voter 09000000-0000-0000-0000-000000000000 did not answer")
	require.Empty(t, admin.recovered)
	_, _, exit, _ = onThree(t, nil, "shard recover 3 --accept-metadata-loss")
	require.Equal(t, ExitUsage, exit, "without --yes somebody has to type the name")
	out, _, exit, admin = onThree(t, nil, "shard recover 3 --accept-metadata-loss --yes -o json")
	require.Equal(t, ExitOK, exit)
	require.NoError(t, matchSchema("shard.recover", out))
	require.Equal(t, []sdk.RecoverShard{{Shard: sdk.ShardID{Root: 3}, AcceptLoss: true}}, admin.recovered)
}

func TestRoute(t *testing.T) {
	out, _, exit, _ := onThree(t, nil, "route t user123")
	require.Equal(t, "HASH                RANGE  SHARD  SHARD-LEADER  SEGMENT  WRITE-LEADER  REPLICAS  READ-FROM\n0x4abc000000000000  r2     3      n1            s5       n2            n2 n3     n3\n", out)
	require.Equal(t, ExitOK, exit)
	out, _, _, _ = onThree(t, func(a *fakeAdmin) { a.silent = []sdk.NodeID{"n3"} }, "route t user123 --trace")
	require.Contains(t, out, "write leader at 10.0.0.12:2921: answers\n")
	require.Contains(t, out, "replica at 10.0.0.13:2921: node n3 does not answer\n")
	for _, line := range []string{"route t k -o json", "route t k --trace -o json"} {
		out, _, _, _ = onThree(t, nil, line)
		require.NoError(t, matchSchema("route", out))
	}
	_, _, exit, _ = onThree(t, nil, "route nope k")
	require.Equal(t, ExitNotFound, exit)
}
