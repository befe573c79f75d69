package internal_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// This file is the architecture as a test. A package imports only packages of a lower layer; what a layer may
// use of the outside world is fenced. Each failure says what to do instead. Test files may import upward, so
// they are not looked at.

const module = "github.com/eastguard/eastguard/"

// layers is the package map of the README, once. A package that is not here fails the test: give it its layer.
var layers = [][]string{
	0: {"internal/base", "internal/keyspace", "internal/header", "internal/vfs", "internal/invariant", "internal/task"},
	1: {"internal/ring", "internal/record", "internal/wire", "internal/config", "internal/term", "internal/telemetry", "internal/lobby"},
	2: {"internal/meta", "internal/replica", "internal/rangestate", "internal/topology", "internal/group", "internal/pledge", "internal/wal", "internal/segment", "internal/mux"},
	3: {"internal/planner", "internal/peer", "internal/store"},
	4: {"internal/gossip", "internal/shard", "internal/dataplane", "internal/coord", "internal/routing"},
	5: {"sdk"},
	6: {"server", "cli", "tui"},
	7: {"sdk/sdktest", "internal/sim", "cmd/eastguard", "cmd/eg-cli", "cmd/eg-top"},
}

// bedrock holds the nouns and assertions that layer 0 itself may use; they import nothing of this module.
var bedrock = []string{"internal/base", "internal/invariant"}

// outside the layers: tools that no product package may import.
var tools = []string{"scripts"}

// pure packages are functions of their arguments: no goroutine, channel, lock, clock, logger, file or socket.
var pure = []string{
	"internal/meta", "internal/replica", "internal/rangestate", "internal/topology", "internal/group",
	"internal/pledge", "internal/planner", "internal/keyspace", "internal/header", "internal/ring",
	"tui/store", "tui/styles", "tui/component", "tui/keymap", "tui/page",
}

// screens are the parts of tui, lowest first: each imports only those before it.
var screens = []string{"tui/store", "tui/feed", "tui/styles", "tui/component", "tui/keymap", "tui/page", "tui/app"}

// impure imports, and what a pure package does instead.
var impure = map[string]string{
	"os":                         "return what is to be done and let the shell around the core do it",
	"io/fs":                      "return what is to be done and let the shell around the core do it",
	"net":                        "return messages and let the shell send them",
	"net/http":                   "return messages and let the shell send them",
	"sync":                       "a core belongs to one goroutine; its shell does the locking",
	"sync/atomic":                "a core belongs to one goroutine; its shell publishes snapshots",
	"log":                        "return events and let the shell log them",
	"log/slog":                   "return events and let the shell log them",
	"context":                    "a core never waits, so it has nothing to cancel",
	"math/rand":                  "take the choice, or a *rand.Rand of math/rand/v2, as an argument",
	"crypto/rand":                "take the id as an argument",
	"runtime":                    "a core knows nothing of the machine",
	"os/exec":                    "a core knows nothing of the machine",
	"golang.org/x/sync/errgroup": "a core belongs to one goroutine",
}

// fences: who alone may import a library, so that its types go no further and it can be replaced.
var fences = []struct {
	library string
	users   []string // packages, with everything below them
	instead string
}{
	{"github.com/hashicorp/raft", []string{"internal/shard"}, "go through internal/shard"},
	{"github.com/hashicorp/memberlist", []string{"internal/gossip"}, "go through internal/gossip"},
	{"charm.land/bubbletea", []string{"tui/app"}, "draw in tui/page, as cells of tui/component, and let tui/app show them"},
	{"charm.land/lipgloss", []string{"tui/styles"}, "name a role of tui/styles"},
	{"github.com/chzyer/readline", []string{"cli"}, "go through cli/lineedit"},
	{"github.com/spf13/cobra", []string{"cmd", "cli"}, "declare commands in cli, or flags in internal/config"},
	{"github.com/knadh/koanf", []string{"internal/config"}, "add a row to the table of internal/config"},
	{"go.yaml.in/yaml", []string{"internal/config", "internal/term", "cli"}, "read settings through internal/config, print through internal/term"},
	{"golang.org/x/sys/unix", []string{"internal/vfs", "internal/mux", "internal/term"}, "open files through internal/vfs, sockets through internal/mux"},
	{"testing", []string{"sdk/sdktest", "internal/sim"}, "move it to a _test.go file"},
	{"github.com/stretchr/testify", []string{"sdk/sdktest", "internal/sim"}, "move it to a _test.go file"},
	{"flag", []string{"cmd", "scripts"}, "take options as arguments; package main reads flags"},
}

// below[pkg] lists all that pkg may import of this module, where its layer alone would allow more.
var below = map[string][]string{
	"sdk": {"internal/base", "internal/keyspace", "internal/header", "internal/record", "internal/wire", "internal/mux", "internal/group", "internal/ring", "internal/task", "internal/telemetry", "internal/invariant"},
	"cli": {"sdk", "internal/term", "internal/base", "internal/task"},
	"tui": {"sdk", "internal/term", "internal/base", "internal/task"},
}

// osFileCalls are the functions of package os with which a broker package would bypass vfs, and with it every
// crash and fault test.
var osFileCalls = []string{
	"Open", "OpenFile", "Create", "CreateTemp", "ReadFile", "WriteFile", "Remove", "RemoveAll", "Rename", "Mkdir", "MkdirAll",
	"MkdirTemp", "ReadDir", "Stat", "Lstat", "Truncate", "Link", "Symlink", "NewFile", "DirFS", "CopyFS", "OpenRoot", "Chtimes", "Chmod",
}

// source is one non-test Go file.
type source struct {
	pkg  string // path below the module: internal/wal
	file string
	fset *token.FileSet
	ast  *ast.File
}

func (s source) at(n ast.Node) string {
	p := s.fset.Position(n.Pos())
	return fmt.Sprintf("%s:%d", s.file, p.Line)
}

func TestArchitecture(t *testing.T) {
	sources := load(t)
	for name, check := range map[string]func(source) []string{
		"layers": checkLayers,
		"fences": checkFences,
		"pure":   checkPure,
		"exit":   checkExit,
		"files":  checkFiles,
		"guards": checkGuards,
	} {
		t.Run(name, func(t *testing.T) {
			for _, s := range sources {
				for _, problem := range check(s) {
					t.Error(problem)
				}
			}
		})
	}
}

// load parses every Go file of the module but tests, in one pass.
func load(t *testing.T) []source {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	var sources []source
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, name)
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if rel != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || hasGoMod(name)) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") {
			return nil
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		sources = append(sources, source{pkg: path.Dir(rel), file: rel, fset: fset, ast: file})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(sources) == 0 {
		t.Fatal("no Go files found")
	}
	return sources
}

func hasGoMod(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// layerOf finds a package's layer; a folder below a listed one belongs to it.
func layerOf(pkg string) (layer int, unit string, ok bool) {
	for n, units := range layers {
		for _, u := range units {
			if within(pkg, u) && len(u) > len(unit) {
				layer, unit, ok = n, u, true
			}
		}
	}
	return layer, unit, ok
}

// screenOf is the place of a package among the parts of tui, -1 for others.
func screenOf(pkg string) int {
	return slices.IndexFunc(screens, func(part string) bool { return within(pkg, part) })
}

func within(pkg, unit string) bool { return pkg == unit || strings.HasPrefix(pkg, unit+"/") }

func withinAny(pkg string, units []string) bool {
	return slices.ContainsFunc(units, func(u string) bool { return within(pkg, u) })
}

// imports yields each import's path and its node.
func (s source) imports(yield func(string, ast.Node) bool) {
	for _, spec := range s.ast.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil || !yield(name, spec) {
			return
		}
	}
}

func checkLayers(s source) []string {
	var problems []string
	if withinAny(s.pkg, tools) {
		return nil
	}
	layer, unit, ok := layerOf(s.pkg)
	if !ok {
		return []string{fmt.Sprintf("%s: package %s has no layer: add it to layers in internal/arch_test.go and to the README's package map", s.file, s.pkg)}
	}
	for name, node := range s.imports {
		target, ours := strings.CutPrefix(name, module)
		if !ours {
			continue
		}
		if withinAny(target, tools) {
			problems = append(problems, fmt.Sprintf("%s: imports the tool %s: move what is shared into a package with a layer", s.at(node), target))
			continue
		}
		targetLayer, targetUnit, ok := layerOf(target)
		from, to := screenOf(s.pkg), screenOf(target)
		switch {
		case from >= 0 && to > from:
			problems = append(problems, fmt.Sprintf("%s: %s imports %s, which lies above it: hand in a func or a value from tui/app", s.at(node), s.pkg, target))
		case !ok || targetUnit == unit:
		case slices.Contains(bedrock, targetUnit) && !slices.Contains(bedrock, unit):
		case targetLayer == layer:
			problems = append(problems, fmt.Sprintf("%s: %s and %s are both of layer %d: declare the small interface that is needed where it is used, and let server wire the two", s.at(node), unit, targetUnit, layer))
		case targetLayer > layer:
			problems = append(problems, fmt.Sprintf("%s: %s [%d] imports %s [%d], which lies above it: turn the call around with an interface or a func field", s.at(node), unit, layer, targetUnit, targetLayer))
		}
		if allowed, limited := below[unit]; limited && targetUnit != unit && !withinAny(target, allowed) {
			problems = append(problems, fmt.Sprintf("%s: %s may import only %s of this module: offer what is needed through one of them", s.at(node), unit, strings.Join(allowed, ", ")))
		}
	}
	return problems
}

func checkFences(s source) []string {
	var problems []string
	for name, node := range s.imports {
		for _, f := range fences {
			if within(name, f.library) && !withinAny(s.pkg, f.users) && !withinAny(s.pkg, tools) {
				problems = append(problems, fmt.Sprintf("%s: only %s may import %s: %s", s.at(node), strings.Join(f.users, ", "), f.library, f.instead))
			}
		}
	}
	return problems
}

func checkPure(s source) []string {
	if !withinAny(s.pkg, pure) {
		return nil
	}
	var problems []string
	add := func(n ast.Node, what, instead string) {
		problems = append(problems, fmt.Sprintf("%s: the pure core %s %s: %s", s.at(n), s.pkg, what, instead))
	}
	for name, node := range s.imports {
		if instead, bad := impure[name]; bad {
			add(node, "imports "+name, instead)
		}
	}
	times := s.localName("time")
	ast.Inspect(s.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			add(n, "starts a goroutine", "return the work to the shell")
		case *ast.ChanType:
			add(n, "has a channel", "return a value; the shell tells others")
		case *ast.SendStmt:
			add(n, "sends on a channel", "return a value; the shell tells others")
		case *ast.SelectStmt:
			add(n, "waits", "take what was waited for as an argument")
		case *ast.SelectorExpr:
			if isCall := selects(n, times, "Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"); isCall {
				add(n, "uses time."+n.Sel.Name, "take the time as an argument")
			}
		}
		return true
	})
	return problems
}

// checkExit keeps the end of the process, and panics dressed as logging, in package main.
func checkExit(s source) []string {
	if s.ast.Name.Name == "main" {
		return nil
	}
	var problems []string
	oses, logs, calls := s.localName("os"), s.localName("log"), s.localName("syscall")
	ast.Inspect(s.ast, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if ok && (selects(sel, oses, "Exit") || selects(sel, calls, "Exit") ||
			selects(sel, logs, "Fatal", "Fatalf", "Fatalln", "Panic", "Panicf", "Panicln")) {
			problems = append(problems, fmt.Sprintf("%s: only cmd may end the process: return an error", s.at(sel)))
		}
		return true
	})
	return problems
}

// checkFiles sends the broker's file access through vfs.
func checkFiles(s source) []string {
	_, unit, _ := layerOf(s.pkg)
	broker := strings.HasPrefix(unit, "internal/") || unit == "server"
	if !broker || unit == "internal/vfs" || unit == "internal/term" || unit == "internal/sim" {
		return nil
	}
	var problems []string
	oses := s.localName("os")
	kernel := make(map[ast.Node]bool) // calls that read what is no file: /proc
	ast.Inspect(s.ast, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && len(call.Args) > 0 {
			name, isLiteral := call.Args[0].(*ast.BasicLit)
			kernel[call.Fun] = isLiteral && strings.HasPrefix(name.Value, `"/proc/`)
		}
		if sel, ok := n.(*ast.SelectorExpr); ok && selects(sel, oses, osFileCalls...) && !kernel[sel] {
			problems = append(problems, fmt.Sprintf("%s: os.%s bypasses the crash and fault tests: take a vfs.FS and call it", s.at(sel), sel.Sel.Name))
		}
		return true
	})
	return problems
}

// localName is the name under which the file imports a package of the standard library; "" when it does not.
func (s source) localName(importPath string) string {
	for name, node := range s.imports {
		if name != importPath {
			continue
		}
		if spec, ok := node.(*ast.ImportSpec); ok && spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(importPath)
	}
	return ""
}

// selects reports whether sel is pkg.name for one of the names.
func selects(sel *ast.SelectorExpr, pkg string, names ...string) bool {
	id, ok := sel.X.(*ast.Ident)
	return ok && pkg != "" && id.Name == pkg && slices.Contains(names, sel.Sel.Name)
}

// The README's map and traces are true: every package that exists has a row, every file it names is there.
func TestReadmeIsTrue(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme := string(text)
	seen := make(map[string]bool)
	for _, s := range load(t) {
		if _, unit, ok := layerOf(s.pkg); ok && !seen[unit] {
			seen[unit] = true
			if !strings.Contains(readme, "`"+unit+"`") {
				t.Errorf("README.md: the package map lacks `%s`: add its row", unit)
			}
		}
	}
	for _, name := range regexp.MustCompile("`([a-z0-9_./-]+\\.(?:go|md|sh))`").FindAllStringSubmatch(readme, -1) {
		found, _ := filepath.Glob(filepath.Join("..", filepath.FromSlash(name[1])))
		if len(found) == 0 && strings.Contains(name[1], "/") {
			t.Errorf("README.md names %s, which does not exist: mend the trace", name[1])
		}
	}
}

// TestChecksSeeViolations feeds each check a file that breaks its rule: a checker that sees nothing would pass
// for ever.
func TestChecksSeeViolations(t *testing.T) {
	for _, tc := range []struct {
		name, pkg, code string
		check           func(source) []string
		want            string
	}{
		{"upward", "internal/wal", `import "github.com/eastguard/eastguard/internal/store"`, checkLayers, "lies above it"},
		{"sideways", "internal/shard", `import "github.com/eastguard/eastguard/internal/coord"`, checkLayers, "both of layer 4"},
		{"bedrock", "internal/base", `import "github.com/eastguard/eastguard/internal/invariant"`, checkLayers, "both of layer 0"},
		{"unknown package", "internal/util", ``, checkLayers, "has no layer"},
		{"cli past the sdk", "cli", `import "github.com/eastguard/eastguard/internal/wire"`, checkLayers, "may import only sdk"},
		{"a tool", "server", `import "github.com/eastguard/eastguard/scripts/internal/floor"`, checkLayers, "imports the tool"},
		{"raft", "internal/coord", `import "github.com/hashicorp/raft"`, checkFences, "go through internal/shard"},
		{"bubbletea", "tui/page", `import tea "charm.land/bubbletea/v2"`, checkFences, "let tui/app show them"},
		{"a screen upward", "tui/component", `import "github.com/eastguard/eastguard/tui/page"`, checkLayers, "which lies above it"},
		{"a pure screen", "tui/page", `import "time"; var now = time.Now`, checkPure, "take the time as an argument"},
		{"cobra", "sdk", `import "github.com/spf13/cobra"`, checkFences, "declare commands in cli"},
		{"pure import", "internal/meta", `import "sync"`, checkPure, "shell does the locking"},
		{"pure clock", "internal/planner", `import "time"; var now = time.Now`, checkPure, "take the time as an argument"},
		{"pure renamed clock", "internal/planner", `import t "time"; func f() { t.Sleep(1) }`, checkPure, "take the time"},
		{"pure goroutine", "internal/replica", `func f() { go f() }`, checkPure, "starts a goroutine"},
		{"pure channel", "internal/replica", `func f(c chan int) {}`, checkPure, "has a channel"},
		{"exit", "server", `import "os"; func f() { os.Exit(1) }`, checkExit, "return an error"},
		{"log.Fatal", "sdk", `import "log"; func f() { log.Fatalf("x") }`, checkExit, "return an error"},
		{"a goroutine", "tui/feed", `func f() { go f() }`, checkGuards, "start it with"},
		{"a goroutine of a wait group", "sdk", `func f(wg *sync.WaitGroup) { wg.Go(func() {}) }`, checkGuards, "start it with"},
		{"a group", "sdk", `func f() { task.NewGroup(nil, "x") }`, checkGuards, "start it with"},
		{"a timer", "sdk", `func f() { time.AfterFunc(0, f) }`, checkGuards, "start it with"},
		{"one without a guard", "sdk", `func f() { go guard.Run(f); time.AfterFunc(0, c.guard.Func(f)); go f() }`, checkGuards, "start it with"},
		{"files", "internal/store", `import "os"; func f() { os.Remove("x") }`, checkFiles, "take a vfs.FS"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, "x.go", "package x\n"+tc.code, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			got := tc.check(source{pkg: tc.pkg, file: tc.pkg + "/x.go", fset: fset, ast: file})
			if len(got) != 1 || !strings.Contains(got[0], tc.want) {
				t.Fatalf("got %q, want one problem with %q", got, tc.want)
			}
		})
	}
}
