package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/sdk"
)

// onThree runs one line against a fake cluster of three nodes that spoil may change first.
func onThree(t *testing.T, spoil func(a *fakeAdmin), line string, more ...string) (out, errs string, exit int, admin *fakeAdmin) {
	t.Helper()
	admin = &fakeAdmin{topics: topicsOf("t"), fakeNodes: threeNodes()}
	if spoil != nil {
		spoil(admin)
	}
	out, errs, err := run(t, &fakeClient{admin: admin}, "", false, nil, append(strings.Fields(line), more...)...)
	return out, errs, ExitCode(err), admin
}

func dead(ids ...sdk.NodeID) func(*fakeAdmin) {
	return func(a *fakeAdmin) {
		for _, id := range ids {
			n, _ := a.fakeNodes.find(id)
			n.State = "dead"
			a.silent = append(a.silent, id)
		}
	}
}

func TestNodeList(t *testing.T) {
	out, errs, exit, _ := onThree(t, dead("n3"), "node list")
	require.Equal(t, strings.Join([]string{
		"ST  NODE  ADDRESS         RACK  BOOT  OWNS  LEADERS  SHARDS  SEGMENTS              DISK     IN/s  OUT/s  FSYNC-P99  UPTIME  VERSION",
		"AN  n1    10.0.0.11:2921  -        1   33%        4       0        12  41% of 100.0 GiB  2.0 MiB    0 B     1.9 ms   1h00m  1.2.3",
		"AN  n2    10.0.0.12:2921  -        2   33%        4       0        12  41% of 100.0 GiB  2.0 MiB    0 B     1.9 ms   1h00m  1.2.3",
		"DN  n3    10.0.0.13:2921  -        3   33%        4       0        12  41% of 100.0 GiB  2.0 MiB    0 B     1.9 ms   1h00m  1.2.3",
		"",
	}, "\n"), out)
	require.Equal(t, ExitOK, exit, "that a dead node does not answer is no news: %s", errs)

	out, errs, exit, _ = onThree(t, func(a *fakeAdmin) { a.silent = []sdk.NodeID{"n2"} }, "node list -o json")
	require.Equal(t, ExitPartial, exit)
	require.Contains(t, errs, "n2 did not answer for itself")
	require.NoError(t, matchSchema("node.list", out))
	var rows []struct{ Answered bool }
	require.NoError(t, json.Unmarshal([]byte(out), &rows))
	require.Len(t, rows, 3)
	require.False(t, rows[1].Answered)

	out, _, exit, _ = onThree(t, dead("n3"), "node list --state dead,left -o name")
	require.Equal(t, "n3\n", out)
	require.Equal(t, ExitOK, exit)
	_, _, exit, _ = onThree(t, nil, "node list --state sleeping")
	require.Equal(t, ExitUsage, exit)
}

func TestStateLetters(t *testing.T) {
	for in, want := range map[string]string{
		"alive ": "AN", "alive normal": "AN", "alive draining": "AD", "alive leaving": "AL", "suspect normal": "SN", "dead normal": "DN",
		"dead out": "DO", "left normal": "LN", "odd odd": "??",
	} {
		state, status, _ := strings.Cut(in, " ")
		require.Equal(t, want, stateLetters(state, status), in)
	}
}

func TestNodeDescribe(t *testing.T) {
	out, _, exit, _ := onThree(t, nil, "node describe n2")
	require.Equal(t, ExitOK, exit)
	require.Contains(t, out, "Node          n2, start 2\n")
	require.Contains(t, out, "KEY          VALUE  SOURCE\nclient_port  2921   default\nnode_id      n2     flag\n")
	out, _, _, _ = onThree(t, nil, "node describe n2 --changed --config-only")
	require.Equal(t, "KEY      VALUE  SOURCE\nnode_id  n2     flag\n", out)
	out, _, _, _ = onThree(t, nil, "node describe --counters")
	require.Equal(t, "COUNTER               VALUE\neastguard_acks_total     12\n", out)
	out, _, _, _ = onThree(t, nil, "node describe n2 -o json")
	require.NoError(t, matchSchema("node.describe", out))
	_, errs, exit, _ := onThree(t, nil, "node describe n22")
	require.Equal(t, ExitNotFound, exit)
	require.Contains(t, errs, `did you mean "n2"?`)
}

func TestNodeRing(t *testing.T) {
	out, _, exit, _ := onThree(t, dead("n3"), "node ring --ascii")
	require.Equal(t, ExitOK, exit)
	require.Contains(t, out, "NODE  BELIEVED  STATUS  RACK  BOOT  TOKENS  SINCE\nn1    alive     normal  -        1       2  1h00m\n")
	require.Contains(t, out, "\nn3   33.3%  ####")
	require.Contains(t, out, "ring 0x0000000000000abc, version 9, as n1 has it\n")
	out, _, _, _ = onThree(t, nil, "node ring --tokens --observer n2")
	require.Contains(t, out, "TOKEN               NODE  SPAN\n0x2000000000000000  n1    68.7500%\n0x3000000000000000  n1    6.2500%\n")
	require.Contains(t, out, "as n2 has it")
	for _, line := range []string{"node ring -o json", "node ring -o json --tokens"} {
		out, _, _, _ = onThree(t, nil, line)
		require.NoError(t, matchSchema("node.ring", out), line)
	}
	out, _, exit, _ = onThree(t, nil, "node ring -o dot")
	require.Equal(t, ExitOK, exit)
	require.True(t, strings.HasPrefix(out, "digraph ring {\n"), out)
	require.Equal(t, 3, strings.Count(out, "->"), "runs of one node are one")
	_, _, exit, _ = onThree(t, nil, "node list -o dot")
	require.Equal(t, ExitUsage, exit, "only where something is drawn")
	_, _, exit, _ = onThree(t, nil, "node ring --observer n9")
	require.Equal(t, ExitNotFound, exit)
}

func TestNodeRingVerify(t *testing.T) {
	out, _, exit, _ := onThree(t, dead("n3"), "node ring --verify")
	require.Equal(t, strings.Join([]string{
		"BELIEVES  n1  n2  n3  RING                VERSION",
		"n1        A   A   D   0x0000000000000abc  9",
		"n2        A   A   D   0x0000000000000abc  9",
		"n3        -   -   -   -                   -",
		"agreed: every node that lives has the same ring and believes the same",
		"",
	}, "\n"), out)
	require.Equal(t, ExitOK, exit)

	differ := func(a *fakeAdmin) {
		a.rings = map[sdk.NodeID]sdk.NodeRing{"n2": {Observer: "n2", Hash: 0xdef, Version: 8, Members: []sdk.RingMember{
			{Node: "n1", State: "alive"}, {Node: "n2", State: "alive"}, {Node: "n3", State: "suspect"},
		}}}
	}
	out, _, exit, _ = onThree(t, differ, "node ring --verify")
	require.Equal(t, ExitNotMet, exit)
	require.Contains(t, out, "n1 has ring 0x0000000000000abc, version 9; n2 has ring 0x0000000000000def, version 8\n")
	require.Contains(t, out, "n1 believes that n3 is alive; n2 that it is suspect\n")
	out, _, exit, _ = onThree(t, differ, "node ring --verify -o json")
	require.Equal(t, ExitNotMet, exit)
	require.NoError(t, matchSchema("node.verify", out))

	out, _, exit, _ = onThree(t, func(a *fakeAdmin) { a.silent = []sdk.NodeID{"n2"} }, "node ring --verify")
	require.Equal(t, ExitPartial, exit, out)
	require.Contains(t, out, "n2 did not answer: node n2 does not answer\n")
	_, _, exit, _ = onThree(t, nil, "node ring --verify --tokens")
	require.Equal(t, ExitUsage, exit)
}

func TestNodePing(t *testing.T) {
	out, _, exit, _ := onThree(t, nil, "node ping n2 --count 2")
	require.Equal(t, "NODE  VIA     SENT  OK      P50      P99  GOSSIP  LINK       ERROR\nn2    direct     2   2  0.50 ms  0.50 ms  alive   reachable  -\n", out)
	require.Equal(t, ExitOK, exit)

	out, _, exit, _ = onThree(t, func(a *fakeAdmin) { a.silent = []sdk.NodeID{"n3"} }, "node ping --indirect -o json")
	require.Equal(t, ExitNotMet, exit)
	require.NoError(t, matchSchema("node.ping", out))
	var rows []pingRow
	require.NoError(t, json.Unmarshal([]byte(out), &rows))
	via := map[string]int{}
	for _, r := range rows {
		via[r.Via]++
	}
	require.Equal(t, map[string]int{"direct": 3, "n1": 2, "n2": 2, "n3": 1}, via)

	_, errs, exit, _ := onThree(t, nil, "node ping n9")
	require.Equal(t, ExitNotFound, exit)
	require.Contains(t, errs, "did you mean")
	_, _, exit, _ = onThree(t, nil, "node ping --count 0")
	require.Equal(t, ExitUsage, exit)
	out, _, exit, _ = onThree(t, dead("n3"), "node ping")
	require.Equal(t, ExitNotMet, exit, "a dead node does not answer: a look that leaves it out would say that all is well")
	require.Contains(t, out, "n3    direct")
	out, _, exit, _ = onThree(t, func(a *fakeAdmin) { dead("n3")(a); n, _ := a.fakeNodes.find("n3"); n.State = "left" }, "node ping")
	require.Equal(t, ExitOK, exit, "who said farewell is not expected to")
	require.NotContains(t, out, "n3")
}

func TestNodeChanges(t *testing.T) {
	out, _, exit, admin := onThree(t, nil, "node leave n3 --dry-run")
	require.Equal(t, "would tell n3 to leave  alive, normal -> left  it votes in 1 metadata shard\n"+
		"2 segments with their only copies there; the node hands its leaderships over and stops; its data stays on its disk and counts when it returns\n", out)
	require.Equal(t, ExitOK, exit)
	require.Empty(t, admin.changes)
	_, _, exit, _ = onThree(t, nil, "node leave n3 --dry-run --detailed-exitcode")
	require.Equal(t, ExitNotMet, exit)

	_, errs, exit, admin := onThree(t, nil, "node leave n3")
	require.Equal(t, ExitUsage, exit, "nobody is there to confirm")
	require.Contains(t, errs, "--yes")
	require.Empty(t, admin.changes)

	out, _, exit, admin = onThree(t, nil, "node leave n3 --yes -o json")
	require.Equal(t, ExitOK, exit)
	require.NoError(t, matchSchema("node.change", out))
	require.Equal(t, []sdk.ChangeNode{{Node: "n3", Change: sdk.LeaveNode}}, admin.changes)

	_, _, exit, admin = onThree(t, nil, "node forget n3 --yes")
	require.Equal(t, ExitConflict, exit, "it lives")
	require.Empty(t, admin.changes)

	disk := base.UUID{7}
	_, _, exit, admin = onThree(t, nil, "node replace n3 --yes", disk.String())
	require.Equal(t, ExitOK, exit)
	require.Equal(t, []sdk.ChangeNode{{Node: "n3", Change: sdk.ReplaceNode, Disk: disk}}, admin.changes)
	_, _, exit, _ = onThree(t, nil, "node replace n3 notadisk --yes")
	require.Equal(t, ExitUsage, exit)
	_, _, exit, _ = onThree(t, nil, "node leave n4 --yes")
	require.Equal(t, ExitNotFound, exit)
	_, _, exit, _ = onThree(t, nil, "node leave n3 --yes --read-only")
	require.Equal(t, ExitDenied, exit)
}

func TestNodeLeaveWaits(t *testing.T) {
	_, _, exit, admin := onThree(t, func(a *fakeAdmin) {
		a.onLook = func(f *fakeNodes) {
			if f.looks == 2 {
				f.nodes[2].State = "left"
			}
		}
	}, "node leave n3 --yes --wait")
	require.Equal(t, ExitOK, exit)
	require.GreaterOrEqual(t, admin.looks, 2)
	_, errs, exit, _ := onThree(t, nil, "node leave n3 --yes --wait -t 300ms")
	require.Equal(t, ExitNotMet, exit)
	require.Contains(t, errs, "it was not seen within 300ms that it has left")
}
