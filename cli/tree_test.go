package cli

import (
	"context"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/eastguard/eastguard/internal/term"
)

// newTestSession is a session without a cluster, and what it printed.
func newTestSession(t *testing.T, env ...string) (*Session, func() (out, errs string)) {
	t.Helper()
	vars := map[string]string{"LC_ALL": "C.UTF-8"}
	for _, e := range env {
		k, v, _ := strings.Cut(e, "=")
		vars[k] = v
	}
	streams, _, out, errs := term.Test()
	s := NewSession(Deps{
		IO: streams, Getenv: func(name string) string { return vars[name] }, Version: "1.2.3",
		Connect: func(Target) (Client, error) { t.Fatal("this test has no cluster"); return nil, nil },
	})
	return s, func() (string, string) { return out.String(), errs.String() }
}

// eachCommand calls f with every command of the tree.
func eachCommand(cmd *cobra.Command, f func(*cobra.Command)) {
	f(cmd)
	for _, sub := range cmd.Commands() {
		eachCommand(sub, f)
	}
}

// shorts is the one meaning that each short flag has everywhere.
var shorts = map[string]string{
	"s": "seeds", "c": "config", "o": "output", "w": "watch", "y": "yes", "q": "quiet", "v": "verbose", "h": "help", "k": "key",
	"H": "header", "g": "group", "n": "count", "f": "follow", "F": "format", "t": "timeout", "r": "range", "z": "compression",
	"e": "execute", "K": "key-delimiter", "D": "record-delimiter", "B": "before", "A": "after", "O": "output-file",
}

func TestShortFlagsMeanOneThing(t *testing.T) {
	s, _ := newTestSession(t)
	eachCommand(NewRoot(s), func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Shorthand != "" && shorts[f.Shorthand] != f.Name {
				t.Errorf("%s: -%s is --%s, elsewhere it is --%s", cmd.CommandPath(), f.Shorthand, f.Name, shorts[f.Shorthand])
			}
			if f.Shorthand != "" && strings.Trim(f.Shorthand, "0123456789") == "" {
				t.Errorf("%s: -%s would hide negative numbers", cmd.CommandPath(), f.Shorthand)
			}
		})
	})
}

func TestUnknownVerbUnderEveryNoun(t *testing.T) {
	s, _ := newTestSession(t)
	var nouns [][]string
	eachCommand(NewRoot(s), func(cmd *cobra.Command) {
		if !cmd.HasSubCommands() {
			return
		}
		if cmd.RunE == nil {
			t.Errorf("%s has no RunE: cobra would print help and exit 0", cmd.CommandPath())
		}
		nouns = append(nouns, strings.Fields(cmd.CommandPath())[1:])
	})
	if len(nouns) < 5 {
		t.Fatalf("only %d nouns", len(nouns))
	}
	for _, noun := range nouns {
		err := s.execute(context.Background(), s.IO, append(noun, "frobnicate"))
		if ExitCode(err) != ExitUsage {
			t.Errorf("%v frobnicate: exit %d, %v", noun, ExitCode(err), err)
		}
	}
}

func TestUnknownFlagOfEveryCommand(t *testing.T) {
	s, output := newTestSession(t)
	var paths [][]string
	eachCommand(NewRoot(s), func(cmd *cobra.Command) { paths = append(paths, strings.Fields(cmd.CommandPath())[1:]) })
	for _, path := range paths {
		if err := s.execute(context.Background(), s.IO, append(path, "--frobnicate")); ExitCode(err) != ExitUsage {
			t.Errorf("%v --frobnicate: exit %d", path, ExitCode(err))
		}
	}
	if out, _ := output(); out != "" {
		t.Errorf("stdout: %q", out)
	}
}

func TestEveryCommandIsDocumented(t *testing.T) {
	s, _ := newTestSession(t)
	eachCommand(NewRoot(s), func(cmd *cobra.Command) {
		path := cmd.CommandPath()
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: its short help is %q", path, cmd.Short)
		}
		if name := cmd.Annotations[noteSchema]; name != "" {
			if _, ok := documents[name]; !ok {
				t.Errorf("%s: there is no schema %s", path, name)
			}
		}
		for _, code := range strings.Fields(cmd.Annotations[noteExits]) {
			if exitWords[code] == "" {
				t.Errorf("%s: exit code %s has no words", path, code)
			}
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s: --%s has no help", path, f.Name)
			}
		})
	})
}

// TestHelpTeaches checks that what the root's help names works.
func TestHelpTeaches(t *testing.T) {
	s, output := newTestSession(t)
	if err := s.execute(context.Background(), s.IO, []string{"help"}); err != nil {
		t.Fatal(err)
	}
	out, _ := output()
	root := NewRoot(s)
	for _, noun := range strings.Fields("publish consume topic cluster bench config context completion version explain schema") {
		if !strings.Contains(out, noun) {
			t.Errorf("help does not name %s", noun)
		}
		if cmd, _, err := root.Find([]string{noun}); err != nil || cmd == root {
			t.Errorf("help names %s, which does not exist", noun)
		}
	}
	for name, topic := range helpTopics {
		if !strings.Contains(out, name) {
			t.Errorf("help does not name the topic %s", name)
		}
		for i, line := range strings.Split(topic(), "\n") {
			if term.Width(line) > 130 {
				t.Errorf("help %s: line %d has %d cells", name, i+1, term.Width(line))
			}
		}
	}
	for i, line := range strings.Split(out, "\n") {
		if term.Width(line) > 80 {
			t.Errorf("help: line %d has %d cells", i+1, term.Width(line))
		}
	}
}

func TestKeepNegatives(t *testing.T) {
	s, _ := newTestSession(t)
	tests := map[string]string{
		"consume t -10":                "consume -- t -10",
		"consume t -10 5 -f":           "consume -f -- t -10 5",
		"consume -n 5 t -10":           "consume -n 5 -- t -10",
		"consume t -10 -fn 5":          "consume -fn 5 -- t -10",
		"consume t -10 --idle 2s":      "consume --idle 2s -- t -10",
		"consume t -10 --idle=2s":      "consume --idle=2s -- t -10",
		"sub t -10":                    "consume -- t -10",
		"publish t k -5":               "publish -- t k -5",
		"consume t -o json -10":        "consume -o json -- t -10",
		"-s h:1 consume t -10":         "consume -s h:1 -- t -10",
		"consume t earliest 10":        "consume t earliest 10",
		"consume t --expect -1":        "consume --expect -1 -- t",
		"consume t -k -5 -10":          "consume -k -5 -- t -10",
		"consume -- t -10":             "consume -- t -10",
		"cluster health --min-nodes 1": "cluster health --min-nodes 1",
	}
	for in, want := range tests {
		if got := strings.Join(keepNegatives(NewRoot(s), strings.Fields(in)), " "); got != want {
			t.Errorf("%q\n got  %q\n want %q", in, got, want)
		}
	}
}

func TestEachLineHasAFreshTree(t *testing.T) {
	s, output := newTestSession(t)
	for _, line := range []string{"schema -o name --no-headers", "schema --limit 1"} {
		if err := s.execute(context.Background(), s.IO, strings.Fields(line)); err != nil {
			t.Fatal(err)
		}
	}
	out, _ := output()
	if !strings.HasSuffix(out, "NAME           KIND\nbench.consume  object\n") {
		t.Errorf("flags of one line hold for the next:\n%s", out)
	}
}

func TestChooseFront(t *testing.T) {
	tests := []struct {
		args string
		tty  bool
		want frontEnd
	}{
		{"", true, frontREPL},
		{"", false, frontBatch},
		{"-s host:1", true, frontREPL},
		{"-o json", false, frontBatch},
		{"--seeds=host:1 -v", true, frontREPL},
		{"topic list", true, frontOnce},
		{"-s host:1 topic list", false, frontOnce},
		{"-e x", true, frontBatch},
		{"-o json -e x", true, frontBatch},
		{"--execute=x", true, frontBatch},
		{"--version", true, frontOnce},
		{"-h", false, frontOnce},
		{"--", true, frontREPL},
	}
	for _, tt := range tests {
		if got, _ := chooseFront(strings.Fields(tt.args), tt.tty); got != tt.want {
			t.Errorf("%q, tty %v: front end %d, want %d", tt.args, tt.tty, got, tt.want)
		}
	}
}

// TestFrontFlagsAreKnown keeps the list of flags with a value in step with the flags.
func TestFrontFlagsAreKnown(t *testing.T) {
	s, _ := newTestSession(t)
	NewRoot(s).PersistentFlags().VisitAll(func(f *pflag.Flag) {
		if got := frontFlagTakesNext("--" + f.Name); got != wantsValue(f) {
			t.Errorf("--%s: takes a value %v, the front end believes %v", f.Name, wantsValue(f), got)
		}
		if f.Shorthand != "" && frontFlagTakesNext("-"+f.Shorthand) != wantsValue(f) {
			t.Errorf("-%s: the front end believes otherwise", f.Shorthand)
		}
	})
}

func BenchmarkNewTree(b *testing.B) {
	streams, _, _, _ := term.Test()
	s := NewSession(Deps{IO: streams, Getenv: func(string) string { return "" }})
	for b.Loop() {
		NewRoot(s)
	}
}
