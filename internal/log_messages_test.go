package internal_test

import (
	"go/ast"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// docs/OPERATIONS.md explains every message that a broker logs at info or above, by name.
func TestLogMessagesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/OPERATIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	ofBroker := []string{"server", "internal", "cmd/eastguard"}
	found := 0
	for _, s := range load(t) {
		if !withinAny(s.pkg, ofBroker) || withinAny(s.pkg, []string{"internal/sim", "internal/term"}) {
			continue
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			args := logged(n)
			if args == nil {
				return true
			}
			found++
			message := spelled(args[0])
			if !strings.Contains(string(page), "`"+message+"`") {
				t.Errorf("docs/OPERATIONS.md does not say what %q means, which %s logs: add it to the table of messages, or log it at debug", message, s.pkg)
			}
			return true
		})
	}
	if found < 20 {
		t.Fatalf("only %d messages were found: the test does not see them any more", found)
	}
}

// logKey is how the name of a value in the log is spelled.
var logKey = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

// Whoever searches a log for its errors, or has a machine do it, searches for one name.
func TestLogKeysAreSpelledAlike(t *testing.T) {
	found := 0
	for _, s := range load(t) {
		ast.Inspect(s.ast, func(n ast.Node) bool {
			args := logged(n)
			for i := 1; i < len(args); i++ {
				literal, ok := args[i].(*ast.BasicLit)
				if !ok {
					continue // an attribute, or values of a call's own
				}
				found++
				i++ // its value
				if key := spelled(literal); !logKey.MatchString(key) || key == "err" {
					t.Errorf("%s: the key %q: spell it in lower case with underscores, and an error %q", s.at(literal), key, "error")
				}
			}
			return true
		})
	}
	if found < 100 {
		t.Fatalf("only %d keys were found: the test does not see them any more", found)
	}
}

// logged are the constant message of a call of a logger at info or above, and the keys and values that follow it.
func logged(n ast.Node) []ast.Expr {
	call, isCall := n.(*ast.CallExpr)
	if !isCall || len(call.Args) == 0 {
		return nil
	}
	sel, isSel := call.Fun.(*ast.SelectorExpr)
	if !isSel {
		return nil
	}
	at := map[string]int{"Info": 0, "Warn": 0, "Error": 0, "Log": 2} // which argument is the message
	if i, logs := at[sel.Sel.Name]; !logs || len(call.Args) <= i {
		return nil
	}
	name := ""
	switch x := sel.X.(type) {
	case *ast.SelectorExpr:
		name = x.Sel.Name
	case *ast.Ident:
		name = x.Name
	}
	if !slices.Contains([]string{"Logger", "logger", "log"}, name) {
		return nil
	}
	args := call.Args[at[sel.Sel.Name]:]
	if _, isLiteral := args[0].(*ast.BasicLit); !isLiteral {
		return nil
	}
	return args
}
