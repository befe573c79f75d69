package sdk_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
)

// TestAliasesListTheirFields: an alias of a type in an internal package has no fields in go doc, so its comment
// lists them. EASTGUARD_REWRITE=1 brings the comments up to date.
func TestAliasesListTheirFields(t *testing.T) {
	files := []string{"types.go", "errors.go", "admin_types.go", "admin_types_nodes.go", "admin_types_segments.go", "watch_types.go"}
	aliases := map[string]string{} // internal name, such as base.Error, to the name here
	for _, name := range files {
		eachAlias(t, name, nil, func(_ *ast.CommentGroup, here, pkg, there string) { aliases[pkg+"."+there] = here })
	}
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		want, moved := bytes.Clone(source), 0
		eachAlias(t, name, source, func(doc *ast.CommentGroup, here, pkg, there string) {
			fields := fieldsOf(t, pkg, there, aliases)
			if fields == "" {
				return
			}
			from, to := int(doc.Pos())-1, int(doc.End())-1 // the file set holds this file alone, from 1
			indent := string(source[bytes.LastIndexByte(source[:from], '\n')+1 : from])
			var lines []string
			for _, c := range doc.List {
				if strings.HasPrefix(c.Text, "//\t") {
					break
				}
				lines = append(lines, c.Text)
			}
			if lines[len(lines)-1] != "//" {
				lines = append(lines, "//")
			}
			for l := range strings.Lines(fields) {
				lines = append(lines, "//\t"+strings.TrimRight(l, " \n"))
			}
			text := strings.Join(lines, "\n"+indent)
			if text != string(source[from:to]) {
				want = slices.Replace(want, from+moved, to+moved, []byte(text)...)
				moved += len(text) - (to - from)
				if os.Getenv("EASTGUARD_REWRITE") == "" {
					t.Errorf("%s: the comment on %s does not list the fields of %s.%s; EASTGUARD_REWRITE=1 mends it", name, here, pkg, there)
				}
			}
		})
		if os.Getenv("EASTGUARD_REWRITE") != "" && !bytes.Equal(source, want) {
			if err := os.WriteFile(name, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// eachAlias visits the types of a file that are aliases of another package's.
func eachAlias(t *testing.T, name string, source []byte, visit func(doc *ast.CommentGroup, here, pkg, there string)) {
	t.Helper()
	var src any
	if source != nil {
		src = source
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok || decl.Tok != token.TYPE {
			continue
		}
		for _, s := range decl.Specs {
			spec := s.(*ast.TypeSpec)
			sel, ok := spec.Type.(*ast.SelectorExpr)
			if !ok || !spec.Assign.IsValid() {
				continue
			}
			doc := spec.Doc
			if doc == nil {
				doc = decl.Doc
			}
			visit(doc, spec.Name.Name, sel.X.(*ast.Ident).Name, sel.Sel.Name)
		}
	}
}

// fieldsOf lists the fields of a struct, one a line with its comment; nothing for another kind of type.
func fieldsOf(t *testing.T, pkg, name string, aliases map[string]string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "internal", pkg, "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no package %s: %v", pkg, err)
	}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		object := file.Scope.Lookup(name)
		if object == nil {
			continue
		}
		s, ok := object.Decl.(*ast.TypeSpec).Type.(*ast.StructType)
		if !ok {
			return ""
		}
		var b strings.Builder
		w := tabwriter.NewWriter(&b, 0, 0, 1, ' ', 0)
		for _, f := range s.Fields.List {
			for _, n := range f.Names {
				if !n.IsExported() {
					continue
				}
				fmt.Fprintf(w, "%s\t%s", n.Name, typeText(f.Type, pkg, aliases))
				if c := strings.TrimSpace(f.Comment.Text()); c != "" {
					fmt.Fprintf(w, "\t// %s", c)
				}
				fmt.Fprintln(w)
			}
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	t.Fatalf("there is no %s.%s", pkg, name)
	return ""
}

// typeText prints a type as a user of this package writes it, where it has a name here.
func typeText(x ast.Expr, pkg string, aliases map[string]string) string {
	named := func(pkg, name string) string {
		if here, ok := aliases[pkg+"."+name]; ok {
			return here
		}
		return pkg + "." + name
	}
	switch x := x.(type) {
	case *ast.Ident:
		if !x.IsExported() {
			return x.Name
		}
		return named(pkg, x.Name)
	case *ast.SelectorExpr:
		if from := x.X.(*ast.Ident).Name; from != "time" {
			return named(from, x.Sel.Name)
		}
		return "time." + x.Sel.Name
	case *ast.StarExpr:
		return "*" + typeText(x.X, pkg, aliases)
	case *ast.ArrayType:
		return "[]" + typeText(x.Elt, pkg, aliases)
	case *ast.MapType:
		return "map[" + typeText(x.Key, pkg, aliases) + "]" + typeText(x.Value, pkg, aliases)
	}
	return fmt.Sprintf("%T", x)
}
