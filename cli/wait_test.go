package cli

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/sdk"
)

func TestWaitNode(t *testing.T) {
	for state, met := range map[string]bool{"alive": true, "admitted": true, "dead": false, "left": false, "out": false, "gone": false, "suspect": false} {
		out, _, exit, _ := onThree(t, nil, "wait node n1 "+state+" -t 200ms -o json")
		require.NoError(t, matchSchema("wait", out))
		var doc waitDocument
		require.NoError(t, json.Unmarshal([]byte(out), &doc))
		require.Equal(t, met, doc.Met, state)
		require.Equal(t, map[bool]int{true: ExitOK, false: ExitNotMet}[met], exit, state)
	}
	out, _, exit, _ := onThree(t, nil, "wait node n9 gone")
	require.Equal(t, ExitOK, exit)
	require.Contains(t, out, "met: node n9 gone  not listed")

	// It becomes so while we wait.
	_, _, exit, admin := onThree(t, func(a *fakeAdmin) {
		a.onLook = func(f *fakeNodes) {
			if f.looks == 3 {
				f.nodes[2].State = "dead"
			}
		}
	}, "wait node n3 dead")
	require.Equal(t, ExitOK, exit)
	require.Equal(t, 3, admin.looks)
	for _, line := range []string{"wait node n1 asleep", "wait node n1", "wait nodes n1 alive", "wait"} {
		_, _, exit, _ = onThree(t, nil, line)
		require.Contains(t, []int{ExitUsage, ExitOK}, exit, line)
		require.Equal(t, line == "wait", exit == ExitOK, line)
	}
}

func TestWaitForNobody(t *testing.T) {
	away := func(a *fakeAdmin) { a.err = errorf(sdk.CodeUnreachable, "no broker answered") }
	began := time.Now()
	_, errs, exit, _ := onThree(t, away, "wait node n1 alive -t 300ms")
	require.Equal(t, ExitUnreachable, exit, errs)
	require.GreaterOrEqual(t, time.Since(began), 300*time.Millisecond, "dial errors are retried until then")
	_, _, exit, _ = onThree(t, func(a *fakeAdmin) { a.err = errorf(sdk.CodeDenied, "no") }, "wait node n1 alive")
	require.Equal(t, ExitDenied, exit, "and nothing else")
	_, _, exit, _ = onThree(t, func(a *fakeAdmin) {
		a.err = errorf(sdk.CodeUnreachable, "no broker answered")
		a.onNote = func(n int) {
			if n == 3 {
				a.err = nil
			}
		}
	}, "wait node n1 alive")
	require.Equal(t, ExitOK, exit)
}

func TestWaitShard(t *testing.T) {
	for text, want := range map[string]int{"ok": ExitOK, "led": ExitOK, "leader=n1": ExitOK, "leader=n2": ExitNotMet, "leader=": ExitUsage, "odd": ExitUsage} {
		_, _, exit, _ := onThree(t, nil, "wait shard 3 "+text+" -t 200ms")
		require.Equal(t, want, exit, text)
	}
	_, _, exit, _ := onThree(t, nil, "wait shard 77 ok")
	require.Equal(t, ExitNotFound, exit)
	_, _, exit, _ = onThree(t, nil, "wait shard x ok")
	require.Equal(t, ExitUsage, exit)
}

func TestWaitTopic(t *testing.T) {
	ready := func(a *fakeAdmin) {
		topic := a.topics["t"]
		topic.Ranges = []sdk.RangeDetail{{ID: 1, State: base.StateSealed}, {ID: 2, State: base.StateActive, Leader: "n1"}}
		a.topics["t"] = topic
	}
	for _, tt := range []struct {
		line string
		want int
	}{
		{"wait topic t ready", ExitOK},
		{"wait topic t gone -t 100ms", ExitNotMet},
		{"wait topic nope gone", ExitOK},
		{"wait topic nope ready -t 100ms", ExitNotMet},
		{"wait topic t odd", ExitUsage},
		{"wait range t r1 sealed", ExitOK},
		{"wait range t r2 active", ExitOK},
		{"wait range t r2 sealed -t 100ms", ExitNotMet},
		{"wait range t r9 sealed -t 100ms", ExitNotMet},
		{"wait range nope r1 sealed", ExitNotFound},
		{"wait range t x sealed", ExitUsage},
		{"wait range t r1 odd", ExitUsage},
	} {
		out, errs, exit, _ := onThree(t, ready, tt.line)
		require.Equal(t, tt.want, exit, "%s: %s%s", tt.line, out, errs)
	}
}

func TestWaitCluster(t *testing.T) {
	healthy := sdk.ClusterHealth{Nodes: 3}
	sick := sdk.ClusterHealth{Nodes: 2, Checks: []sdk.HealthCheck{{ID: "EG110", Name: "nodes are alive", Result: sdk.HealthFail, Detail: "n3 is dead"}}}
	out, _, exit, _ := onThree(t, func(a *fakeAdmin) { a.health = []sdk.ClusterHealth{sick, healthy} }, "wait cluster healthy --min-nodes 3")
	require.Equal(t, ExitOK, exit)
	require.Contains(t, out, "met: cluster healthy  PASS, 3 nodes alive")
	out, _, exit, _ = onThree(t, func(a *fakeAdmin) { a.health = []sdk.ClusterHealth{sick} }, "wait cluster healthy -t 200ms")
	require.Equal(t, ExitNotMet, exit)
	require.Contains(t, out, "not met: cluster healthy  FAIL, 2 nodes alive, EG110 nodes are alive: n3 is dead")
	_, _, exit, _ = onThree(t, nil, "wait cluster sick")
	require.Equal(t, ExitUsage, exit)
	_, _, exit, _ = onThree(t, nil, "wait cluster healthy --min-nodes -1")
	require.Equal(t, ExitUsage, exit)
}
