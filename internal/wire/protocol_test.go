package wire

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

// PROTOCOL.md names every kind, code and message, and its tables of CBOR fields are those of the Go types.
func TestProtocolDocumentIsComplete(t *testing.T) {
	text, err := os.ReadFile("PROTOCOL.md")
	require.NoError(t, err)
	for kind, name := range kindNames {
		require.Contains(t, string(text), fmt.Sprintf("| %d | `%s` |", uint16(kind), name))
	}
	for code, info := range base.Codes() {
		require.Contains(t, string(text), fmt.Sprintf("| %d | `%s` |", uint16(code), info.Name))
	}
	for _, m := range messages {
		require.Contains(t, string(text), reflect.TypeOf(m).Name())
	}

	const begin, end = "-rewrite -->\n", "<!-- end -->"
	head, rest, ok := strings.Cut(string(text), begin)
	require.True(t, ok)
	tables, tail, ok := strings.Cut(rest, end)
	require.True(t, ok)
	want := fieldTables(t)
	if *rewrite {
		require.NoError(t, os.WriteFile("PROTOCOL.md", []byte(head+begin+want+end+tail), 0o600))
		return
	}
	require.Equal(t, want, tables, "run go test ./internal/wire -rewrite")
}

// structDoc is a struct's declaration, for the comments in it.
type structDoc struct {
	doc    string
	fields map[string]string
}

// fieldTables writes a table for each CBOR message, and for the structures in it behind the first that has it.
func fieldTables(t *testing.T) string {
	docs := structDocs(t)
	var out strings.Builder
	done := map[reflect.Type]bool{}
	var write func(reflect.Type)
	write = func(typ reflect.Type) {
		if done[typ] {
			return
		}
		done[typ] = true
		d := docs[typ.Name()]
		fmt.Fprintf(&out, "### %s\n\n%s\n\n", typ.Name(), d.doc)
		if typ.NumField() > 0 {
			out.WriteString("| key | field | type | meaning |\n| --- | --- | --- | --- |\n")
		}
		var inner []reflect.Type
		for i := range typ.NumField() {
			f := typ.Field(i)
			key, _, _ := strings.Cut(f.Tag.Get("cbor"), ",")
			fmt.Fprintf(&out, "| %s | %s | %s | %s |\n", key, f.Name, typeName(f.Type), d.fields[f.Name])
			if s := structIn(f.Type); s != nil {
				inner = append(inner, s)
			}
		}
		out.WriteString("\n")
		for _, s := range inner {
			write(s)
		}
	}
	for _, m := range messages {
		if _, hot := m.(hotAppender); !hot {
			write(reflect.TypeOf(m))
		}
	}
	return "\n" + strings.ReplaceAll(out.String(), "\n\n\n", "\n\n")
}

func structIn(typ reflect.Type) reflect.Type {
	switch typ.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return structIn(typ.Elem())
	case reflect.Struct:
		return typ
	default:
		return nil
	}
}

// typeName says a type in the words of CBOR.
func typeName(typ reflect.Type) string {
	switch typ.Kind() {
	case reflect.Pointer:
		return typeName(typ.Elem()) + ", or absent"
	case reflect.Slice:
		return "array of " + typeName(typ.Elem())
	case reflect.Map:
		return "map of " + typeName(typ.Key()) + " to " + typeName(typ.Elem())
	case reflect.Array:
		return fmt.Sprintf("%d bytes", typ.Len())
	case reflect.Struct:
		return typ.Name()
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "bool"
	default:
		return typ.Kind().String()
	}
}

func structDocs(t *testing.T) map[string]structDoc {
	docs := map[string]structDoc{}
	for _, pattern := range []string{"*.go", "../base/*.go", "../keyspace/*.go"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range files {
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
			require.NoError(t, err)
			for _, decl := range f.Decls {
				gen, ok := decl.(*ast.GenDecl)
				if !ok || gen.Tok != token.TYPE {
					continue
				}
				for _, spec := range gen.Specs {
					spec := spec.(*ast.TypeSpec)
					if s, ok := spec.Type.(*ast.StructType); ok && spec.Name.IsExported() {
						docs[spec.Name.Name] = structDoc{doc: strings.TrimSpace(gen.Doc.Text()), fields: fieldDocs(s)}
					}
				}
			}
		}
	}
	return docs
}

func fieldDocs(s *ast.StructType) map[string]string {
	docs := map[string]string{}
	for _, f := range s.Fields.List {
		for _, name := range f.Names {
			docs[name.Name] = strings.TrimSpace(strings.ReplaceAll(f.Comment.Text(), "\n", " "))
		}
	}
	return docs
}
