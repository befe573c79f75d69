package cli_test

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/eastguard/eastguard/cli"
	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk/sdktest"
)

var update = flag.Bool("update", false, "write what was got into the golden files and scripts")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"eg-cli": func() {
			deps := cli.Deps{IO: term.System(os.Getenv), Getenv: os.Getenv, Version: "1.2.3"}
			os.Exit(cli.Main(context.Background(), deps, os.Args[1:]))
		},
	})
}

// TestScripts runs the whole program against a real broker, one for each file. The scripts are the reference of
// what each command prints and how it exits. Besides testscript's own commands they have:
//
//	exits N            the program before exited with N
//	masked FILE        stdout, with times and ids masked, is FILE
//	json FIELD…        stdout is one JSON document (or one a line) with these fields
//	matches NAME       stdout is JSON by the schema of that name: every field known, none missing
//	jsonerror CODE N   stderr is one line of JSON with this code and exit
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		if scriptsUnder != nil && !slices.Contains(scriptsUnder, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := sdktest.Start(t)
			testscript.Run(t, testscript.Params{
				Files: []string{file}, UpdateScripts: *update, RequireExplicitExec: true,
				Setup: func(env *testscript.Env) error {
					env.Setenv("EG_SEEDS", broker.Addr())
					env.Setenv("HOME", env.WorkDir)
					env.Setenv("TZ", "UTC")
					env.Setenv("LC_ALL", "C.UTF-8")
					return nil
				},
				Cmds: map[string]func(*testscript.TestScript, bool, []string){
					"exits": exits, "masked": masked, "json": hasJSON, "matches": matches, "jsonerror": jsonError,
				},
			})
		})
	}
}

// exits runs the program and wants a certain exit code: exits N eg-cli args…
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits N program args…")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := "0"
	if err != nil {
		code = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if code != args[0] {
		ts.Fatalf("exit %s, want %s", code, args[0])
	}
	if args[1] == "eg-cli" && !helpNames(code, args[2:]) {
		ts.Fatalf("exit %s is not among those that the command's help names", code)
	}
}

// helpNames reports whether the help of the command that args begin with lists an exit code. A batch
// gives those of whatever it runs, and a context that is not there is exit 4 for all.
func helpNames(code string, args []string) bool {
	words := args
	if i := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "-") }); i >= 0 {
		words = args[:i]
	}
	if len(words) == 0 || words[0] == "run" || words[0] == "help" || slices.Contains(args, "--context") {
		return true
	}
	io, _, out, _ := term.Test()
	deps := cli.Deps{IO: io, Getenv: func(string) string { return "" }}
	if cli.Main(context.Background(), deps, append(slices.Clone(words), "--help")) != 0 {
		return true // no such command
	}
	_, list, ok := strings.Cut(out.String(), "\nEXIT CODES\n")
	list, _, _ = strings.Cut(list, "\n\n")
	return !ok || slices.ContainsFunc(strings.Split(list, ","), func(s string) bool { return strings.Fields(s)[0] == code })
}

var masks = []struct {
	re *regexp.Regexp
	to string
}{
	{regexp.MustCompile(`\b\d+(\.\d+)? m?s\b`), "T ms"},
	{regexp.MustCompile(`\d\d\d\d-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?( UTC|Z)?`), "DATE"},
	{regexp.MustCompile(`\d\d:\d\d:\d\d\.\d\d\d`), "TIME"},
	{regexp.MustCompile(`\d\d\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d\d\dZ`), "TIMESTAMP"},
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UUID"},
	{regexp.MustCompile(`shard \d+`), "shard S"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "HOST:PORT"},
	{regexp.MustCompile(`\b[\d.]+k? records/s`), "R records/s"},
	{regexp.MustCompile(`"took_ms":[\d.]+`), `"took_ms":T`},
	{regexp.MustCompile(`"shard":"\d+"`), `"shard":"S"`},
	{regexp.MustCompile(`"segment":"s\d+"`), `"segment":"sN"`},
}

func mask(s string) string {
	for _, m := range masks {
		s = m.re.ReplaceAllString(s, m.to)
	}
	return s
}

func masked(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: masked FILE")
	}
	got, want := mask(ts.ReadFile("stdout")), ts.ReadFile(args[0])
	if got != want {
		ts.Fatalf("stdout, masked:\n%s\nwant:\n%s", got, want)
	}
}

func hasJSON(ts *testscript.TestScript, neg bool, args []string) {
	dec := json.NewDecoder(strings.NewReader(ts.ReadFile("stdout")))
	n := 0
	for dec.More() {
		var doc any
		if err := dec.Decode(&doc); err != nil {
			ts.Fatalf("stdout is not JSON: %v", err)
		}
		n++
		rows, isList := doc.([]any)
		if !isList {
			rows = []any{doc}
		}
		for _, row := range rows {
			for _, field := range args {
				if _, ok := row.(map[string]any)[field]; !ok {
					ts.Fatalf("no field %q in %v", field, row)
				}
			}
		}
	}
	if n == 0 != neg {
		ts.Fatalf("%d JSON documents on stdout", n)
	}
}

func matches(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: matches NAME")
	}
	if err := cli.MatchSchema(args[0], ts.ReadFile("stdout")); err != nil {
		ts.Fatalf("%v", err)
	}
}

func jsonError(ts *testscript.TestScript, neg bool, args []string) {
	text := ts.ReadFile("stderr")
	var doc struct {
		Error struct {
			Code, Message, Hint, Outcome string
			Exit                         *int
			Retryable                    *bool
		}
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil || strings.Count(text, "\n") != 1 {
		ts.Fatalf("stderr is not one line of JSON: %v\n%s", err, text)
	}
	if err := cli.MatchSchema("error", text); err != nil {
		ts.Fatalf("%v", err)
	}
	e := doc.Error
	if e.Code != args[0] || e.Exit == nil || strings.TrimSpace(args[1]) != jsonInt(*e.Exit) {
		ts.Fatalf("code %s, want %s; %s", e.Code, args[0], text)
	}
	if e.Message == "" || e.Outcome == "" || e.Retryable == nil || neg {
		ts.Fatalf("incomplete: %s", text)
	}
}

func jsonInt(n int) string { b, _ := json.Marshal(n); return string(b) }
