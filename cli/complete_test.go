package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/eastguard/eastguard/cli/lineedit"
)

// TestCompletionOfFlags: the prompt cuts long lists off at their end, so what belongs to the command comes first.
func TestCompletionOfFlags(t *testing.T) {
	s, _ := newTestSession(t)
	flags := s.completeLine(t.Context(), "topic create t --")
	index := func(name string) int {
		return slices.IndexFunc(flags, func(c lineedit.Candidate) bool { return c.Text == name })
	}
	own, global := []string{"--ranges", "--strategy", "--if-not-exists"}, []string{"--help", "--output", "--yes"}
	for _, o := range own {
		for _, g := range global {
			if index(o) < 0 || index(g) < index(o) {
				t.Errorf("%s is at %d, %s at %d", o, index(o), g, index(g))
			}
		}
	}
	for _, f := range flags {
		if strings.Contains(f.Help, "`") {
			t.Errorf("%s: the help %q has the marks of its source", f.Text, f.Help)
		}
	}
}

func TestExcerpt(t *testing.T) {
	for text, want := range map[string]string{
		"topic list":             "topic list",
		"publish t k \"a\nb\"":   "publish t k \"a …",
		strings.Repeat("é", 100): strings.Repeat("é", 80) + " …",
	} {
		if got := excerpt(text); got != want {
			t.Errorf("excerpt(%q) = %q, want %q", text, got, want)
		}
	}
}
