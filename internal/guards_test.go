package internal_test

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// guarded is what runs inside a program that owns a terminal, and starts goroutines: packages, or files of one. A panic in
// any of them is the guard's, who gives the terminal back first.
var guarded = []string{"sdk", "internal/mux/client.go", "internal/mux/conn.go", "internal/mux/outbox.go", "tui/feed", "tui/app"}

// theGuard is where the guard itself lives.
const theGuard = "tui/app/guard.go"

// checkGuards looks at every way to have something run on another goroutine.
func checkGuards(s source) []string {
	if s.file == theGuard || !slices.Contains(guarded, s.pkg) && !slices.Contains(guarded, s.file) {
		return nil
	}
	var problems []string
	add := func(n ast.Node, what string) {
		problems = append(problems, fmt.Sprintf("%s: %s nobody's guard sees a panic of: start it with Run, Func or NewGroup of a task.Guard", s.at(n), what))
	}
	ast.Inspect(s.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			if !ofGuard(n.Call) {
				add(n, "a goroutine that")
			}
		case *ast.CallExpr:
			sel, ok := n.Fun.(*ast.SelectorExpr)
			if !ok {
				break
			}
			_, literally := sel.X.(*ast.Ident)
			switch last := lastArg(n); {
			case sel.Sel.Name == "AfterFunc" && !ofGuard(last):
				add(n, "a timer that")
			case sel.Sel.Name == "NewGroup" && literally && !ofGuard(n):
				add(n, "a group that")
			case sel.Sel.Name == "Go" && len(n.Args) == 1 && !ofGuard(n) && !ofGuard(last):
				add(n, "a goroutine that")
			}
		}
		return true
	})
	return problems
}

func lastArg(call *ast.CallExpr) ast.Expr {
	if len(call.Args) == 0 {
		return nil
	}
	return call.Args[len(call.Args)-1]
}

// ofGuard reports whether e calls a method of something that is named a guard.
func ofGuard(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	name := ""
	switch x := sel.X.(type) {
	case *ast.Ident:
		name = x.Name
	case *ast.SelectorExpr:
		name = x.Sel.Name
	}
	return strings.EqualFold(name, "guard")
}
