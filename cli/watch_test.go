package cli

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

// watched runs a line with -w=1s for some seconds in virtual time. spoil changes the cluster before each look.
func watched(t *testing.T, tty bool, seconds string, spoil func(look int, a *fakeAdmin), line string) (out, errs string, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		getenv := func(v string) string { return map[string]string{"TERM": "xterm", "LC_ALL": "C.UTF-8"}[v] }
		streams, _, outBuf, errBuf := term.Test()
		streams.SetTTY(false, tty, tty)
		streams.SetSize(160, 20)
		admin := &fakeAdmin{topics: topicsOf("t"), fakeNodes: threeNodes()}
		admin.onNote = func(n int) { spoil(n, admin) }
		s := NewSession(Deps{IO: streams, Getenv: getenv, Now: time.Now, Connect: func(Target) (Client, error) {
			return &fakeClient{admin: admin}, nil
		}})
		err = s.execute(context.Background(), streams, append(strings.Fields(line), "-w=1s", "-t", seconds))
		out, errs = outBuf.String(), errBuf.String()
	})
	return out, errs, err
}

// frames are the screens of a repainted output.
func frames(out string) []string { return strings.Split(out, "\x1b[H")[1:] }

func TestWatchRepaints(t *testing.T) {
	out, errs, err := watched(t, true, "2.5", func(look int, a *fakeAdmin) {
		if look == 2 {
			a.shards[1].Commit = 1234567
		}
	}, "shard list")
	require.NoError(t, err, errs)
	require.Equal(t, 1, strings.Count(out, "\x1b[2J"), "the screen is cleared once; then it is written over")
	shown := frames(out)
	require.Len(t, shown, 3)
	require.Contains(t, shown[0], "eg-cli shard list  every 1s")
	require.Contains(t, shown[0], "q ends")
	require.NotContains(t, shown[0], "\x1b[7m")
	require.Contains(t, shown[1], "\x1b[7m1234567\x1b[0m", "what changed is marked")
	require.NotContains(t, shown[2], "\x1b[7m", "once")
	for _, f := range shown {
		require.Contains(t, f, wrapOff)
		require.Contains(t, f, wrapOn)
		for _, row := range strings.SplitAfter(strings.TrimSuffix(f, "\x1b[J"+wrapOn), "\n") {
			require.True(t, row == "" || strings.HasSuffix(row, "\x1b[K\n"), "each line is cleared behind its end: %q", row)
		}
	}
}

func TestWatchOutlastsItsBroker(t *testing.T) {
	away := func(look int, a *fakeAdmin) {
		a.err = nil
		if look == 2 || look == 3 {
			a.err = errorf(sdk.CodeUnreachable, "no broker answers at 10.0.0.11:2921")
		}
	}
	out, _, err := watched(t, true, "3.5", away, "node list")
	require.NoError(t, err)
	shown := frames(out)
	require.Len(t, shown, 4)
	for i, f := range shown {
		require.Contains(t, f, "10.0.0.12:2921", "the last answer stays")
		require.Contains(t, strings.Split(f, "\n")[1], "ST  NODE", "and where it was")
		require.Equal(t, i == 1 || i == 2, strings.Contains(f, "no broker answers"), "frame %d", i)
	}

	// Who reads a pipe is told once, and gets no document that says nothing new.
	out, errs, err := watched(t, false, "3.5", away, "node list -o json")
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(out, "observed_at"))
	require.Equal(t, 1, strings.Count(errs, "no broker answers"))

	// At the first look it is an error like any other.
	_, errs, err = watched(t, true, "3.5", func(_ int, a *fakeAdmin) { a.err = errorf(sdk.CodeUnreachable, "nobody") }, "node list")
	require.Equal(t, ExitUnreachable, ExitCode(err), errs)
	_, _, err = watched(t, true, "3.5", func(int, *fakeAdmin) {}, "shard describe 77")
	require.Equal(t, ExitNotFound, ExitCode(err))
}

func TestWatchGoesOnWithAVerdict(t *testing.T) {
	out, errs, err := watched(t, false, "2.5", func(look int, a *fakeAdmin) {
		a.silent = nil
		if look == 2 {
			a.silent = []sdk.NodeID{"n2"}
		}
	}, "node list -o json")
	require.NoError(t, err)
	require.Equal(t, 3, strings.Count(out, "observed_at"))
	require.Equal(t, 1, strings.Count(errs, "n2 did not answer for itself"))
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		require.True(t, strings.HasPrefix(line, `{"observed_at":"`), line)
	}
}

// Documents that follow each other can be told apart by whoever reads them.
func TestWatchedDocumentsCanBeRead(t *testing.T) {
	grows := func(look int, a *fakeAdmin) { a.shards[1].Commit = uint64(look) }
	out, errs, err := watched(t, false, "2.5", grows, "shard list -o yaml")
	require.NoError(t, err, errs)
	docs := yaml.NewDecoder(strings.NewReader(out))
	for look := 1; look <= 3; look++ {
		var rows []map[string]any
		require.NoError(t, docs.Decode(&rows), out)
		require.EqualValues(t, look, rows[1]["commit"])
	}
	require.ErrorIs(t, docs.Decode(new(any)), io.EOF)
	require.Equal(t, 3, strings.Count(out, "observed_at"))

	out, errs, err = watched(t, false, "2.5", grows, "shard list -o json --jq .[1].id,.[1].commit")
	require.NoError(t, err, errs)
	require.Equal(t, "1\n1\n1\n2\n1\n3\n", out, "what a filter made of it is left alone")
	out, errs, err = watched(t, false, "2.5", grows, "shard list --jq .[1].commit")
	require.NoError(t, err, errs)
	require.Equal(t, "1\n2\n3\n", out)
}

func TestMarkChanges(t *testing.T) {
	s, _, _, _ := term.Test()
	s.Decide(term.ColorAlways, false, func(string) string { return "" })
	for _, tt := range [][3]string{
		{"a  b", "a  b", "a  b"},
		{"n1    9  x y", "n1  100  x y", "n1  <100>  x y"},
		{"n1  9  x y", "n1  9  x z", "n1  9  <x z>"},
		{"a  b", "a  b  c", "<a  b  c>"},
		{"", "a", "<a>"},
		{"  5", "  7", "  <7>"},
	} {
		got := strings.NewReplacer("\x1b[7m", "<", "\x1b[0m", ">").Replace(markChanges(tt[0], tt[1], s.OutStyle()))
		require.Equal(t, tt[2], got)
	}
}
