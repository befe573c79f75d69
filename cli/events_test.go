package cli

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

func event(node, kind, subject string, more ...func(*sdk.Event)) sdk.WatchEvent {
	e := sdk.Event{Seq: 1, TimeMs: testNow.UnixMilli(), Node: sdk.NodeID(node), Type: kind, Subject: subject}
	for _, f := range more {
		f(&e)
	}
	return sdk.WatchEvent{Node: e.Node, Boot: 2, Time: testNow, Event: &e}
}

func gap(node string, g sdk.WatchGap) sdk.WatchEvent {
	return sdk.WatchEvent{Node: sdk.NodeID(node), Time: testNow, Gap: &g}
}

var someEvents = []sdk.WatchEvent{
	event("n1", "TOPIC_CREATED", "orders", func(e *sdk.Event) { e.Detail = "ranges=1" }),
	event("n2", "SEGMENT_SEALED", "orders/r9", func(e *sdk.Event) { e.Cause, e.GapMs = "REPLICA_FAILURE", 96 }),
	event("n2", "SEGMENT_SEALED", "clicks/r1"),
	event("n3", "LEADER_CHANGED", "shard 3", func(e *sdk.Event) { e.Before, e.After = "n1", "n2" }),
	{Node: "n1", State: &sdk.NodeState{}},
}

func onEvents(t *testing.T, c *fakeClient, line string, more ...string) (out, errs string, exit int) {
	t.Helper()
	out, errs, err := run(t, c, "", false, []string{"TZ=UTC"}, append(strings.Fields(line), more...)...)
	return out, errs, ExitCode(err)
}

func TestEvents(t *testing.T) {
	c := &fakeClient{events: someEvents}
	out, errs, exit := onEvents(t, c, "events --time utc")
	require.Equal(t, strings.Join([]string{
		"12:04:31.207Z  n1    TOPIC_CREATED     orders          ranges=1",
		"12:04:31.207Z  n2    SEGMENT_SEALED    orders/r9       REPLICA_FAILURE  gap 96 ms",
		"12:04:31.207Z  n2    SEGMENT_SEALED    clicks/r1",
		"12:04:31.207Z  n3    LEADER_CHANGED    shard 3         n1 -> n2",
		"",
	}, "\n"), out)
	require.Equal(t, ExitOK, exit, errs)
	require.True(t, c.watched.Once)
	require.Equal(t, testNow.Add(-eventsBack), c.watched.Since)

	for line, want := range map[string]int{
		"events --type SEAL": 2, "events --type seal,leader": 3, "events --type LEADER_CHANGED": 1, "events --topic orders": 2,
		"events --topic order": 0, "events --type TOPIC --topic clicks": 0, "events -n 2": 2, "events --type SEG": 2,
	} {
		out, _, exit := onEvents(t, &fakeClient{events: someEvents}, line+" -o jsonl")
		require.Equal(t, want, strings.Count(out, "\n"), line)
		require.Equal(t, ExitOK, exit, line)
		if want > 0 {
			require.NoError(t, matchSchema("events", out), line)
		}
	}
	_, errs, exit = onEvents(t, &fakeClient{}, "events --time utc")
	require.Equal(t, ExitOK, exit)
	require.Contains(t, errs, "no events since")
}

func TestEventsSince(t *testing.T) {
	for text, want := range map[string]time.Time{
		"10m": testNow.Add(-10 * time.Minute), "@2026-11-29T12:00:00Z": time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC), "@-5m": testNow.Add(-5 * time.Minute),
	} {
		c := &fakeClient{}
		_, errs, exit := onEvents(t, c, "events --since "+text)
		require.Equal(t, ExitOK, exit, errs)
		require.WithinDuration(t, want, c.watched.Since, 0, text)
	}
	for _, line := range []string{"events --since yesterday-ish", "events -n -1", "events extra"} {
		_, _, exit := onEvents(t, &fakeClient{}, line)
		require.Equal(t, ExitUsage, exit, line)
	}
	c := &fakeClient{}
	_, _, exit := onEvents(t, c, "events -f -t 50ms --node n1,n2")
	require.Equal(t, ExitOK, exit, "the end of a stream by --timeout is a normal one")
	require.False(t, c.watched.Once)
	require.Equal(t, testNow, c.watched.Since)
	require.Equal(t, []sdk.NodeID{"n1", "n2"}, c.watched.Nodes)
}

func TestEventsTellOfGaps(t *testing.T) {
	lost := []sdk.WatchEvent{
		gap("n3", sdk.WatchGap{Err: errorf(sdk.CodeUnreachable, "connection refused")}), gap("n2", sdk.WatchGap{Lost: 7}),
		gap("n2", sdk.WatchGap{Over: true, Restarted: true}), gap("n1", sdk.WatchGap{Over: true}),
	}
	out, errs, exit := onEvents(t, &fakeClient{events: lost}, "events")
	require.Empty(t, out)
	require.Equal(t, ExitPartial, exit)
	for _, want := range []string{"n3  not reached: connection refused", "7 events fell out", "started anew", "answers again", "n3 could not be asked"} {
		require.Contains(t, errs, want)
	}
	out, _, exit = onEvents(t, &fakeClient{events: lost}, "events -o jsonl --jq .cause")
	require.Equal(t, "UNREACHABLE\nDROPPED\nRESTARTED\nBACK\n", out, "a program must not take the list for whole")
	require.Equal(t, ExitPartial, exit)
	out, _, _ = onEvents(t, &fakeClient{events: lost}, "events -o jsonl --type SEAL")
	require.Empty(t, out)
	_, _, exit = onEvents(t, &fakeClient{events: lost}, "events -f -n 9 -t 1")
	require.Equal(t, ExitOK, exit, "who follows is told, and goes on")
	_, errs, exit = onEvents(t, &fakeClient{events: lost[:1], watchErr: errorf(sdk.CodeUnreachable, "nobody")}, "events")
	require.Equal(t, ExitUnreachable, exit)
	require.Contains(t, errs, "nobody")
}

func TestEventsExec(t *testing.T) {
	out, errs, exit := onEvents(t, &fakeClient{events: someEvents}, "events --type SEAL --exec", `sh -c 'cat; echo "$1"' x '$(id); {{.Subject}}'`)
	require.Equal(t, ExitOK, exit, errs)
	require.Equal(t, 2, strings.Count(out, "\n"), "stdout is for the events")
	require.Equal(t, 2, strings.Count(errs, `"type":"SEGMENT_SEALED"`))
	require.Equal(t, 2, strings.Count(errs, "$(id); {{.Subject}}"), "nothing is put into the command")
	_, errs, exit = onEvents(t, &fakeClient{events: someEvents}, "events --exec false")
	require.Equal(t, ExitPartial, exit)
	require.Contains(t, errs, "4 runs of --exec failed")
	for _, bad := range []string{"cat > file", "a; b", ":set x y", "'open", "3 cat"} {
		_, _, exit := onEvents(t, &fakeClient{}, "events --exec", bad)
		require.Equal(t, ExitUsage, exit, bad)
	}
}

func TestExecIsBounded(t *testing.T) {
	said, err := runProgram(t.Context(), []string{"head", "-c", "100000", "/dev/zero"}, nil)
	require.NoError(t, err)
	require.Len(t, said, execSaid)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = runProgram(ctx, []string{"sleep", "60"}, nil)
	require.Error(t, err)
	_, err = runProgram(t.Context(), []string{"/no/such/program"}, nil)
	require.Error(t, err)
}

func TestEventsThatAreHostile(t *testing.T) {
	evil := event("n1", "TOPIC_CREATED", "a\x1b]0;x\x07b", func(e *sdk.Event) { e.Detail = "\x1b[2J" })
	out, _, _ := onEvents(t, &fakeClient{events: []sdk.WatchEvent{evil}}, "events")
	require.NotContains(t, out, "\x1b")
}

func TestEventsEndByCtrlC(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	streams, _, _, _ := term.Test()
	s := NewSession(Deps{IO: streams, Getenv: func(string) string { return "" }, Connect: func(Target) (Client, error) {
		return &fakeClient{admin: &fakeAdmin{}}, nil
	}})
	stop := errors.New("interrupted")
	time.AfterFunc(50*time.Millisecond, func() { cancel(quiet{stop}) })
	err := s.execute(ctx, streams, []string{"events", "-f"})
	require.ErrorIs(t, err, stop)
	require.True(t, s.ended, "which is how following ends")
}

// However many there were, the last are kept, and little more.
func TestEventsHoldsTheLast(t *testing.T) {
	for _, count := range []int64{1, 50, 700} {
		o := &eventsOptions{count: count}
		for seq := range uint64(5000) {
			o.hold(eventRow{Seq: seq})
			require.LessOrEqual(t, int64(len(o.held)), 2*count+heldSlack)
			last := o.lastHeld()
			require.Len(t, last, int(min(int64(seq)+1, count)))
			require.Equal(t, seq, last[len(last)-1].Seq)
		}
	}
}
