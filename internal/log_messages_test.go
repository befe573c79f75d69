package internal_test

import (
	"go/ast"
	"os"
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
			message, ok := loggedMessage(n)
			if !ok {
				return true
			}
			found++
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

// loggedMessage is the constant message of a call of a logger at info or above.
func loggedMessage(n ast.Node) (string, bool) {
	call, isCall := n.(*ast.CallExpr)
	if !isCall || len(call.Args) == 0 {
		return "", false
	}
	sel, isSel := call.Fun.(*ast.SelectorExpr)
	if !isSel {
		return "", false
	}
	at := map[string]int{"Info": 0, "Warn": 0, "Error": 0, "Log": 2} // which argument is the message
	if i, logs := at[sel.Sel.Name]; !logs || len(call.Args) <= i {
		return "", false
	}
	name := ""
	switch x := sel.X.(type) {
	case *ast.SelectorExpr:
		name = x.Sel.Name
	case *ast.Ident:
		name = x.Name
	}
	if !slices.Contains([]string{"Logger", "logger", "log"}, name) {
		return "", false
	}
	literal, isLiteral := call.Args[at[sel.Sel.Name]].(*ast.BasicLit)
	if !isLiteral {
		return "", false
	}
	return spelled(literal), true
}
