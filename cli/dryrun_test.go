package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/sdk"
)

// dryRuns is a line for each command that can be tried without a change.
var dryRuns = map[string]string{
	"create-topic":       "create-topic new 3",
	"topic create":       "topic create new 3",
	"topic alter":        "topic alter t segment_age=2h",
	"topic delete":       "topic delete t",
	"segment seal":       "segment seal s5",
	"segment force-seal": "segment force-seal s5",
	"shard transfer":     "shard transfer 3 n2",
	"shard balance":      "shard balance",
	"shard recover":      "shard recover 3",
	"node leave":         "node leave n3",
	"node forget":        "node forget n3",
	"node replace":       "node replace n3",
}

// Every dry run says what it would do in words that cannot be taken for what was done, and exits 12 when asked to.
func TestDryRunsSayWhatTheyWouldDo(t *testing.T) {
	s, _ := newTestSession(t)
	eachCommand(NewRoot(s), func(cmd *cobra.Command) {
		if cmd.Flags().Lookup("dry-run") == nil {
			return
		}
		name := strings.TrimPrefix(cmd.CommandPath(), "eg-cli ")
		line, ok := dryRuns[name]
		if !ok {
			t.Errorf("%s has a --dry-run that this test does not know", name)
			return
		}
		spoil := func(a *fakeAdmin) { a.moves = []sdk.ShardMove{{Shard: sdk.ShardID{Root: 3}, From: "n1", To: "n2"}} }
		if name == "node forget" {
			spoil = dead("n3")
		}
		out, errs, exit, admin := onThree(t, spoil, line+" --dry-run --detailed-exitcode")
		require.Equal(t, ExitNotMet, exit, "%s: %s", name, errs)
		require.Regexp(t, `(?m)^would |would delete$`, out+errs, name)
		require.NotContains(t, out, "-  -", name)
		require.Empty(t, admin.sealed, name)
		require.Empty(t, admin.forced, name)
		require.Empty(t, admin.moved, name)
		require.Empty(t, admin.recovered, name)
		require.Empty(t, admin.changes, name)
		require.Empty(t, admin.deleted, name)
		require.Empty(t, admin.altered, name)
	})
}
