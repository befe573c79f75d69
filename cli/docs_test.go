package cli

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/cli/script"
)

// TestCheatsParse runs every line that a cheat sheet or an example shows as far as its flags: what is taught must work.
func TestCheatsParse(t *testing.T) {
	s, _ := newTestSession(t)
	var lines []string
	for _, rows := range cheats {
		for _, r := range rows {
			lines = append(lines, r.Command)
		}
	}
	eachCommand(NewRoot(s), func(cmd *cobra.Command) {
		for _, l := range examplesOf(cmd) {
			lines = append(lines, strings.TrimPrefix(l, program+" "))
		}
	})
	require.Greater(t, len(lines), 80)
	for _, line := range lines {
		if strings.HasPrefix(line, "source ") {
			continue // a shell's
		}
		parsed, err := script.Parse(line)
		require.NoError(t, err, line)
		words := parsed[0].Words
		if i := slices.Index(words, "|"); i > 0 {
			words = words[:i]
		}
		root := NewRoot(s)
		cmd, rest, err := root.Find(keepNegatives(root, words))
		require.NoError(t, err, line)
		require.NotEqual(t, root, cmd, line)
		require.NoError(t, cmd.ParseFlags(rest), line)
		require.NoError(t, cmd.ValidateArgs(cmd.Flags().Args()), line)
	}
}

func TestDocs(t *testing.T) {
	s, output := newTestSession(t)
	require.NoError(t, s.execute(context.Background(), s.IO, []string{"docs", "md"}))
	out, _ := output()
	for _, want := range []string{"\n## topic\n", "\n### node ring\n", "    eg-cli node ring [flags]\n", "- `--verify` ", "Exit codes: 4 not found, 8 partial, 12 not met.\n", "eg-cli schema node.ring"} {
		require.Contains(t, out, want)
	}
	require.NotContains(t, out, "docs md\n", "packagers' commands are not for users")
	// docs/COMMANDS.md is this output: go test ./cli -update writes it.
	const page = "../docs/COMMANDS.md"
	if f := flag.Lookup("update"); f != nil && f.Value.String() == "true" {
		require.NoError(t, os.WriteFile(page, []byte(out), 0o644))
	}
	have, err := os.ReadFile(page)
	require.NoError(t, err)
	require.True(t, string(have) == out, "%s is not what eg-cli docs md prints; go test ./cli -run Docs -update writes it", page)
	dir := filepath.Join(t.TempDir(), "man1")
	require.NoError(t, s.execute(context.Background(), s.IO, []string{"docs", "man", "--dir", dir}))
	text, err := os.ReadFile(filepath.Join(dir, "eg-cli-node-ring.1"))
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(text), `.TH EG\-CLI\-NODE\-RING 1`), "%s", text)
	for _, l := range strings.Split(string(text), "\n") {
		require.False(t, strings.HasPrefix(l, "'"), "%q is a control line", l)
	}
	require.Equal(t, ExitUsage, ExitCode(s.execute(context.Background(), s.IO, []string{"docs", "man"})))
}

func TestCheat(t *testing.T) {
	s, output := newTestSession(t)
	require.NoError(t, s.execute(context.Background(), s.IO, []string{"cheat", "outage", "-o", "json"}))
	out, _ := output()
	require.NoError(t, matchSchema("cheat", out))
	require.Equal(t, ExitNotFound, ExitCode(s.execute(context.Background(), s.IO, []string{"cheat", "outag"})))
	_, errs := output()
	require.Contains(t, errs, `did you mean "cheat outage"?`)
	require.NoError(t, s.execute(context.Background(), s.IO, []string{"cheat"}))
}
