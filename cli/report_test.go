package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

func TestExitCodes(t *testing.T) {
	tests := map[string]struct {
		err  error
		want int
	}{
		"nil":                       {nil, 0},
		"plain":                     {errors.New("x"), 1},
		"usage":                     {usagef("x"), 2},
		"unreachable":               {errorf(sdk.CodeUnreachable, "x"), 3},
		"wrapped":                   {fmt.Errorf("a: %w", errorf(sdk.CodeTopicNotFound, "x")), 4},
		"conflict":                  {errorf(sdk.CodeTopicExists, "x"), 5},
		"not enough nodes":          {errorf(sdk.CodeNotEnoughNodes, "x"), 5},
		"denied":                    {denied(sourced{}), 6},
		"timeout, may be applied":   {errorf(sdk.CodeTimeout, "x").WithOutcome(sdk.OutcomeUnknown), 7},
		"timeout, nothing was sent": {errorf(sdk.CodeTimeout, "x"), 3},
		"no leader, unknown":        {errorf(sdk.CodeNoLeader, "x").WithOutcome(sdk.OutcomeUnknown), 7},
		"partial":                   {errorf(sdk.CodePartial, "x"), 8},
		"integrity":                 {errorf(sdk.CodeCorruptData, "x").WithOutcome(sdk.OutcomeUnknown), 9},
		"unhealthy":                 {quiet{errorf(sdk.CodeUnhealthy, "x")}, 10},
		"not met":                   {notMet("x"), 12},
		"no context":                {&term.NoContextError{Name: "x"}, 4},
		"sigint":                    {signalled{syscall.SIGINT}, 130},
		"sigterm":                   {quiet{signalled{syscall.SIGTERM}}, 143},
		"deadline of ours":          {context.DeadlineExceeded, 3},
		"record sent, then silence": {sendError(context.DeadlineExceeded), 7},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := ExitCode(tt.err); got != tt.want {
				t.Errorf("exit %d, want %d", got, tt.want)
			}
		})
	}
}

func TestEveryCodeExplainsItself(t *testing.T) {
	for _, info := range base.Codes() {
		e := explanations[info.Name]
		if e.cause == "" || e.check == "" || e.fix == "" {
			t.Errorf("%s has no page", info.Name)
		}
		if info.Hint == "" || info.Summary == "" {
			t.Errorf("%s has no hint or summary", info.Name)
		}
	}
	for name, doc := range explainable() {
		if doc.Cause == "" || doc.Hint == "" || doc.Summary == "" {
			t.Errorf("%s: %+v", name, doc)
		}
	}
	for name := range explanations {
		if _, ok := explainable()[name]; !ok {
			t.Errorf("a page for %s, which is no code", name)
		}
	}
}

func reportOf(t *testing.T, err error, tty bool, env ...string) string {
	t.Helper()
	s, output := newTestSession(t, env...)
	s.IO.SetTTY(tty, tty, tty)
	s.IO.Decide(term.ColorAuto, false, s.Getenv)
	s.reportTo(s.IO, err)
	_, errs := output()
	return errs
}

func TestReportForPeople(t *testing.T) {
	err := detailed{errorf(sdk.CodeTopicExists, "topic %q already exists", "t\x1b[2J").WithHint("pass --if-not-exists"), []string{"created today"}}
	want := "error: topic \"t\\x1b[2J\" already exists [TOPIC_EXISTS]\n  created today\nhint: pass --if-not-exists\n"
	if got := reportOf(t, err, false); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got := reportOf(t, err, true); !strings.HasPrefix(got, "\x1b[31merror:\x1b[0m ") {
		t.Errorf("no colour on a terminal: %q", got)
	}
	if got := reportOf(t, err, true, "NO_COLOR=yes"); got != want {
		t.Errorf("NO_COLOR=yes: %q", got)
	}
	if got := reportOf(t, quiet{err}, false); got != "" {
		t.Errorf("said twice: %q", got)
	}
}

func TestReportForPrograms(t *testing.T) {
	err := fmt.Errorf("x: %w", &sdk.Error{Code: sdk.CodeTopicExists, Msg: "exists\n\u202e", Node: "n2", RequestID: base.RequestID{1}})
	got := reportOf(t, err, false, "EG_OUTPUT=json")
	var doc struct{ Error report }
	if jerr := json.Unmarshal([]byte(got), &doc); jerr != nil || strings.Count(got, "\n") != 1 {
		t.Fatalf("%q: %v", got, jerr)
	}
	e := doc.Error
	if e.Code != "TOPIC_EXISTS" || e.Exit != 5 || e.Node != "n2" || e.Outcome != "not_applied" || e.Retryable || e.RequestID == "" || e.Hint == "" {
		t.Errorf("%+v", e)
	}
}

func TestInnermostMessageIsShown(t *testing.T) {
	inner := base.Errorf(base.CodeUnreachable, "dial", "connection refused")
	err := base.Wrap(base.CodeUnreachable, "connect", base.Wrap(base.CodeUnreachable, "connect", inner))
	if got := describe(err).Message; got != "connection refused" {
		t.Errorf("message %q", got)
	}
}

func TestSuggest(t *testing.T) {
	names := []string{"create", "list", "describe", "alter", "delete", "publish", "consume", "topic"}
	for word, want := range map[string]string{
		"crate": "create", "creat": "create", "lst": "list", "lits": "list", "desc": "describe", "delte": "delete", "pubilsh": "publish",
		"xyz": "", "": "", "zz": "", "consum": "consume", "LIST": "list", "topics": "topic",
	} {
		if got := suggest(word, names); got != want {
			t.Errorf("suggest(%q) = %q, want %q", word, got, want)
		}
	}
}

// Whoever sees a check fail finds a page on it.
func TestEveryHealthCheckHasAPage(t *testing.T) {
	sources, err := filepath.Glob("../server/*.go")
	if err != nil || len(sources) == 0 {
		t.Fatal(err)
	}
	ids := regexp.MustCompile(`"(EG\d+)"`)
	found := 0
	for _, path := range sources {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range ids.FindAllStringSubmatch(string(text), -1) {
			if found++; healthChecks[m[1]].cause == "" {
				t.Errorf("%s: check %s has no page in explain", path, m[1])
			}
		}
	}
	if found < 5 {
		t.Errorf("only %d checks found in the broker's source", found)
	}
}
