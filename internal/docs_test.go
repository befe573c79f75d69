package internal_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// docs/METRICS.md lists every metric that the code registers, in the code's own words. EASTGUARD_REWRITE=1 brings it
// up to date.
func TestMetricsAreDocumented(t *testing.T) {
	const file, begin, end = "../docs/METRICS.md", "<!-- kept by go test ./internal -->\n", "<!-- end -->"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s lacks its two marker lines", file)
	}
	want := before + begin + metricsTable(t) + end + after
	if os.Getenv("EASTGUARD_REWRITE") != "" {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(text) {
		t.Errorf("%s differs from the code: run EASTGUARD_REWRITE=1 go test ./internal", file)
	}
}

// metricsTable finds the calls that register metrics.
func metricsTable(t *testing.T) string {
	rows := make(map[string]string)
	for _, s := range load(t) {
		if withinAny(s.pkg, []string{"internal/telemetry"}) {
			continue
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			if name, row, ok := metricRow(n); ok {
				rows[name] = row
			}
			return true
		})
	}
	var names []string
	for name := range rows {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	b.WriteString("\n| name | kind | labels | |\n| --- | --- | --- | --- |\n")
	for _, name := range names {
		b.WriteString(rows[name])
	}
	b.WriteString("\n")
	return b.String()
}

func metricRow(n ast.Node) (name, row string, ok bool) {
	call, isCall := n.(*ast.CallExpr)
	if !isCall || len(call.Args) < 2 {
		return "", "", false
	}
	sel, isSel := call.Fun.(*ast.SelectorExpr)
	if !isSel || !slices.Contains([]string{"Counter", "CounterFunc", "Gauge", "GaugeFunc", "Histogram"}, sel.Sel.Name) {
		return "", "", false
	}
	name, help := spelled(call.Args[0]), spelled(call.Args[1])
	if !strings.HasPrefix(name, "eastguard_") {
		return "", "", false
	}
	kind, isFunc := strings.CutSuffix(sel.Sel.Name, "Func")
	pairs := call.Args[2:]
	if isFunc {
		pairs = call.Args[3:]
	}
	return name, fmt.Sprintf("| `%s` | %s | %s | %s |\n", name, strings.ToLower(kind), labelNames(pairs), help), true
}

// labelNames are the even ones of a metric's labels.
func labelNames(pairs []ast.Expr) string {
	var names []string
	for i := 0; i < len(pairs); i += 2 {
		names = append(names, "`"+spelled(pairs[i])+"`")
	}
	return strings.Join(names, ", ")
}

// spelled is an expression's text; a part that is not a literal prints as what it is.
func spelled(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if s, err := strconv.Unquote(e.Value); err == nil {
			return s
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return spelled(e.X) + spelled(e.Y)
		}
	}
	return "KIND"
}
