package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/sdk"
)

func logLine(node, level, message string, attrs ...string) sdk.LogEvent {
	l := &sdk.LogLine{Seq: 7, TimeMs: testNow.UnixMilli(), Level: level, Message: message}
	for i := 0; i+1 < len(attrs); i += 2 {
		l.Attrs = append(l.Attrs, sdk.LogAttr{Key: attrs[i], Value: attrs[i+1]})
	}
	return sdk.LogEvent{Node: sdk.NodeID(node), Boot: 2, Line: l}
}

func TestNodeLogs(t *testing.T) {
	c := &fakeClient{lines: []sdk.LogEvent{
		logLine("n1", "info", "broker started", "version", "1.2.3"),
		logLine("n2", "warn", "fsync was slow", "took", "480ms", "path", "a b"),
	}}
	out, errs, exit := onEvents(t, c, "node logs n1 n2 --time utc --level info --grep fsync --last 20")
	require.Equal(t, ExitOK, exit, errs)
	require.Equal(t, strings.Join([]string{
		"12:04:31.207Z  n1  INFO   broker started  version=1.2.3",
		`12:04:31.207Z  n2  WARN   fsync was slow  took=480ms  path="a b"`,
		"",
	}, "\n"), out)
	require.Equal(t, sdk.LogOptions{Nodes: []sdk.NodeID{"n1", "n2"}, Level: "info", Contains: "fsync", Last: 20}, c.logged)

	out, _, exit = onEvents(t, c, "node logs -o jsonl")
	require.Equal(t, ExitOK, exit)
	require.Equal(t, 2, strings.Count(out, "\n"))
	require.NoError(t, matchSchema("node.logs", out))
	require.Equal(t, defaultLogLines, c.logged.Last)

	for _, line := range []string{"node logs --level loud", "node logs --last -1"} {
		_, _, exit := onEvents(t, &fakeClient{}, line)
		require.Equal(t, ExitUsage, exit, line)
	}
	_, _, exit = onEvents(t, c, "node logs -f -t 50ms")
	require.Equal(t, ExitOK, exit, "the end of a stream by --timeout is a normal one")
	require.True(t, c.logged.Follow)
}

// Nodes that could not be asked are told of, and the exit says so; what is logged is escaped.
func TestNodeLogsInTrouble(t *testing.T) {
	c := &fakeClient{lines: []sdk.LogEvent{
		{Node: "n3", Err: errorf(sdk.CodeUnreachable, "connection refused")},
		{Node: "n2", Boot: 1, Lost: 12},
		logLine("n1", "error", "bad\x1b[2J\nname", "path", "\x1b]0;x\a"),
	}}
	out, errs, exit := onEvents(t, c, "node logs")
	require.Equal(t, ExitPartial, exit)
	require.Contains(t, errs, "not reached: connection refused")
	require.Contains(t, errs, "12 lines were dropped")
	require.NotContains(t, out, "\x1b")
	require.Equal(t, 1, strings.Count(out, "\n"))

	out, _, _ = onEvents(t, c, "node logs -o jsonl")
	require.Equal(t, 3, strings.Count(out, "\n"))
	require.NoError(t, matchSchema("node.logs", out))
}
