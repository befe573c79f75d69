package cli

import (
	"bytes"
	"context"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/cli/lineedit"
	"github.com/eastguard/eastguard/cli/script"
)

// completeLine lists what can follow a line at the prompt. It asks the tree the way the shells' scripts do, so that
// both complete the same.
func (s *Session) completeLine(ctx context.Context, line string) []lineedit.Candidate {
	p := script.ParsePartial(line)
	switch {
	case p.Comment:
		return nil
	case p.Target:
		return completeFiles(p.Last)
	case p.Meta:
		return s.completeMeta(p)
	}
	words := p.Words
	if len(words) > 0 && words[0] == program {
		words = words[1:]
	}
	root, _ := newTree(s, s.IO)
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(io.Discard)
	root.SetArgs(append(append([]string{cobra.ShellCompRequestCmd}, words...), p.Last))
	if err := root.ExecuteContext(ctx); err != nil {
		return nil
	}
	var candidates []lineedit.Candidate
	for _, l := range strings.Split(out.String(), "\n") {
		if l == "" || strings.HasPrefix(l, ":") || strings.HasPrefix(l, "_activeHelp_") {
			continue
		}
		text, help, _ := strings.Cut(l, "\t")
		if strings.HasPrefix(text, p.Last) {
			// Back quotes mark a flag's value in help texts and mean nothing to a reader.
			candidates = append(candidates, lineedit.Candidate{Text: text, Help: strings.ReplaceAll(help, "`", "")})
		}
	}
	if strings.HasPrefix(p.Last, "-") {
		ownFlagsFirst(root, candidates)
	}
	if len(words) == 0 {
		for _, own := range []lineedit.Candidate{{Text: "exit", Help: "leave"}, {Text: "quit", Help: "leave"}} {
			if p.Last != "" && strings.HasPrefix(own.Text, p.Last) {
				candidates = append(candidates, own)
			}
		}
	}
	return candidates
}

// ownFlagsFirst puts a command's own flags before those that all commands have: the list is cut off at its end.
func ownFlagsFirst(root *cobra.Command, flags []lineedit.Candidate) {
	global := func(c lineedit.Candidate) bool {
		name := strings.TrimLeft(c.Text, "-")
		return name == "help" || root.PersistentFlags().Lookup(name) != nil || len(name) == 1 && root.PersistentFlags().ShorthandLookup(name) != nil
	}
	slices.SortStableFunc(flags, func(a, b lineedit.Candidate) int {
		switch ga, gb := global(a), global(b); {
		case ga == gb:
			return 0
		case gb:
			return -1
		}
		return 1
	})
}

func (s *Session) completeMeta(p script.Partial) []lineedit.Candidate {
	var all []lineedit.Candidate
	switch {
	case len(p.Words) == 0:
		for _, name := range slices.Sorted(maps.Keys(metaCommands)) {
			all = append(all, lineedit.Candidate{Text: name, Help: metaCommands[name]})
		}
	case p.Words[0] == "set" && len(p.Words) == 1:
		all = append(all, lineedit.Candidate{Text: "hints", Help: "grey hints"}, lineedit.Candidate{Text: "timing", Help: "show how long each command took"}, lineedit.Candidate{Text: "vi", Help: "vi keys"})
		for _, g := range globalSettings {
			all = append(all, lineedit.Candidate{Text: g.key, Help: g.help})
		}
	case p.Words[0] == "set" && len(p.Words) == 2:
		values := enumFlags[strings.ReplaceAll(p.Words[1], "_", "-")]
		if values == nil {
			values = []string{"on", "off"}
		}
		for _, v := range values {
			all = append(all, lineedit.Candidate{Text: v})
		}
	case p.Words[0] == "source":
		return completeFiles(p.Last)
	case p.Words[0] == "use":
		if set, err := s.resolve(NewRoot(s).PersistentFlags()); err == nil {
			for _, c := range set.file.Contexts {
				all = append(all, lineedit.Candidate{Text: c.Name, Help: strings.Join(c.Seeds, ",")})
			}
		}
	}
	return slices.DeleteFunc(all, func(c lineedit.Candidate) bool { return !strings.HasPrefix(c.Text, p.Last) })
}

func completeFiles(prefix string) []lineedit.Candidate {
	matches, err := filepath.Glob(globQuote(prefix) + "*")
	if err != nil {
		return nil
	}
	var out []lineedit.Candidate
	for _, m := range matches {
		if info, err := os.Stat(m); err == nil && info.IsDir() {
			m += "/"
		}
		out = append(out, lineedit.Candidate{Text: m})
	}
	return out
}

var globQuoter = strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`)

func globQuote(s string) string { return globQuoter.Replace(s) }

// hinter says in grey what could follow a line. It is asked at every keystroke, so it keeps a tree of its own and
// never asks the cluster.
type hinter struct {
	s    *Session
	root *cobra.Command
}

func newHinter(s *Session) *hinter { return &hinter{s: s, root: NewRoot(s)} }

func (h *hinter) hint(line string) string {
	if !h.s.repl.hints {
		return ""
	}
	p := script.ParsePartial(line)
	if p.Quote != 0 || p.Target || p.Comment {
		return ""
	}
	if p.Meta {
		return metaHint(p)
	}
	words := p.Words
	if len(words) > 0 && words[0] == program {
		words = words[1:]
	}
	cmd, rest := h.descend(words)
	if len(rest) == 0 && p.Last != "" && cmd.HasAvailableSubCommands() {
		return h.commandHint(cmd, p.Last)
	}
	if strings.HasPrefix(p.Last, "-") || cmd == h.root {
		return ""
	}
	return h.argumentHint(cmd, rest, p.Last)
}

// descend follows words down the tree.
func (h *hinter) descend(words []string) (cmd *cobra.Command, rest []string) {
	cmd = h.root
	for i, w := range words {
		next := subcommand(cmd, w)
		if next == nil {
			return cmd, words[i:]
		}
		cmd = next
	}
	return cmd, nil
}

func subcommand(cmd *cobra.Command, word string) *cobra.Command {
	for _, sub := range cmd.Commands() {
		if sub.Name() == word || sub.HasAlias(word) {
			return sub
		}
	}
	return nil
}

// commandHint completes the name of the one command that word begins, and shows what it takes.
func (h *hinter) commandHint(cmd *cobra.Command, word string) string {
	var found *cobra.Command
	for _, sub := range cmd.Commands() {
		if sub.Name() == word {
			found = sub
			break
		}
		if sub.IsAvailableCommand() && strings.HasPrefix(sub.Name(), word) {
			if found != nil {
				return ""
			}
			found = sub
		}
	}
	if found == nil {
		return ""
	}
	hint := strings.TrimPrefix(found.Name(), word)
	if found.HasAvailableSubCommands() {
		return hint + " <verb>"
	}
	if _, args, ok := strings.Cut(found.Use, " "); ok {
		hint += " " + args
	}
	return hint
}

// argumentHint shows the arguments that are still to come.
func (h *hinter) argumentHint(cmd *cobra.Command, rest []string, last string) string {
	if cmd.HasAvailableSubCommands() {
		if len(rest) > 0 || last != "" {
			return ""
		}
		var names []string
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				names = append(names, sub.Name())
			}
		}
		return strings.Join(names, " | ")
	}
	_, args, ok := strings.Cut(cmd.Use, " ")
	if !ok {
		return ""
	}
	given, afterFlag := countArguments(cmd, rest)
	if afterFlag {
		return ""
	}
	if last != "" {
		given++
	}
	want := strings.Fields(args)
	if given >= len(want) {
		return ""
	}
	hint := strings.Join(want[given:], " ")
	if last != "" {
		hint = " " + hint
	}
	return hint
}

// countArguments counts words that are neither flags nor their values. afterFlag reports that the next word is the
// value of the last one.
func countArguments(cmd *cobra.Command, words []string) (n int, afterFlag bool) {
	for _, w := range words {
		switch {
		case afterFlag:
			afterFlag = false
		case strings.HasPrefix(w, "-") && !isNegative(w):
			afterFlag = takesNext(cmd, w)
		default:
			n++
		}
	}
	return n, afterFlag
}

func metaHint(p script.Partial) string {
	if len(p.Words) == 0 {
		return map[string]string{
			"set": " <name> <value>", "use": " <context>", "connect": " <host:port>", "watch": " <seconds> <command>", "source": " <file>", "history": " [n]",
		}[p.Last]
	}
	return ""
}
