package config

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The README's table of settings is the table's own words. EASTGUARD_REWRITE=1 brings it up to date.
func TestReadmeListsTheSettings(t *testing.T) {
	const file, begin, end = "../../README.md", "rewrites -->\n", "<!-- end of settings -->"
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), begin)
	require.True(t, ok)
	_, after, ok := strings.Cut(rest, end)
	require.True(t, ok)

	want := before + begin + markdownTable() + end + after
	if os.Getenv("EASTGUARD_REWRITE") != "" {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(text), "run EASTGUARD_REWRITE=1 go test ./internal/config")
}

func markdownTable() string {
	var b strings.Builder
	b.WriteString("\n| key | default | |\n| --- | --- | --- |\n")
	for _, s := range settings {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", s.Key, markdownDefault(s), s.Help)
	}
	b.WriteString("\n")
	return b.String()
}

// markdownDefault prints sizes as people write them.
func markdownDefault(s Setting) string {
	n, isInt := s.Default.(int64)
	switch {
	case s.Kind == KindTriBool, Format(s.Default) == "":
		return ""
	case isInt && s.Unit == "bytes":
		for _, unit := range []struct {
			size int64
			name string
		}{{gib, "GiB"}, {mib, "MiB"}, {kib, "KiB"}} {
			if n%unit.size == 0 {
				return fmt.Sprintf("%d %s", n/unit.size, unit.name)
			}
		}
	case isInt && s.Unit != "":
		return fmt.Sprintf("%d %s", n, s.Unit)
	}
	return Format(s.Default)
}
