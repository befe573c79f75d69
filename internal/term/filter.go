package term

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/template"
	"time"

	"github.com/itchyny/gojq"

	"github.com/eastguard/eastguard/internal/base"
)

// Query is a compiled --jq or --where expression.
type Query struct {
	code *gojq.Code
	text string
}

// CompileQuery parses a jq expression.
func CompileQuery(text string) (*Query, error) {
	parsed, err := gojq.Parse(text)
	if err != nil {
		return nil, base.Errorf(base.CodeInvalidArgument, "", "jq expression %q: %v", text, err)
	}
	code, err := gojq.Compile(parsed)
	if err != nil {
		return nil, base.Errorf(base.CodeInvalidArgument, "", "jq expression %q: %v", text, err)
	}
	return &Query{code: code, text: text}, nil
}

// Run calls emit with each result of the expression on the JSON form of v.
func (q *Query) Run(v any, emit func(any) error) error {
	doc, err := generic(v)
	if err != nil {
		return err
	}
	iter := q.code.Run(doc)
	for {
		result, ok := iter.Next()
		if !ok {
			return nil
		}
		if err, ok := result.(error); ok {
			if halt, ok := err.(*gojq.HaltError); ok && halt.Value() == nil {
				return nil
			}
			return base.Errorf(base.CodeInvalidArgument, "", "jq expression %q: %v", q.text, err)
		}
		if err := emit(result); err != nil {
			return err
		}
	}
}

// Truthy reports whether the expression's first result is neither false nor null. An expression that fails on v,
// because a field is a number here and an object there, is not true of it.
func (q *Query) Truthy(v any) (bool, error) {
	doc, err := generic(v)
	if err != nil {
		return false, err
	}
	result, ok := q.code.Run(doc).Next()
	_, failed := result.(error)
	return ok && !failed && result != nil && result != false, nil
}

// generic is v as encoding/json would give it back. Numbers keep all their digits, because offsets beyond 2^53
// are offsets too.
func generic(v any) (any, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var doc any
	err = dec.Decode(&doc)
	return doc, err
}

// filtered prints v through --jq or --template: strings as they are, everything else as compact JSON.
func (o *Output) filtered(w io.Writer, v any) error {
	if o.Template != "" {
		return o.templated(w, v)
	}
	q, err := CompileQuery(o.JQ)
	if err != nil {
		return err
	}
	return q.Run(v, func(result any) error {
		if s, ok := result.(string); ok {
			_, err := fmt.Fprintln(w, o.harmless(s))
			return err
		}
		return o.writeJSON(w, result, false)
	})
}

func (o *Output) templated(w io.Writer, v any) error {
	t, err := template.New("--template").Funcs(template.FuncMap{
		"json": func(v any) (string, error) {
			b, err := marshal(v, false)
			return strings.TrimSuffix(string(b), "\n"), err
		},
		"upper": strings.ToUpper,
		"lower": strings.ToLower,
		"join":  joinAny,
		"bytes": func(n json.Number) (string, error) {
			i, err := n.Int64()
			return o.Human.Bytes.Format(i), err
		},
		"date": func(s string) (string, error) {
			t, err := time.Parse(time.RFC3339Nano, s)
			return o.Human.Time.FormatDate(t, o.Human.Now), err
		},
	}).Parse(o.Template)
	if err != nil {
		return base.Errorf(base.CodeInvalidArgument, "", "--template: %v", err)
	}
	doc, err := generic(v)
	if err != nil {
		return err
	}
	var b strings.Builder
	if err := t.Execute(&b, doc); err != nil {
		return base.Errorf(base.CodeInvalidArgument, "", "--template: %v", err)
	}
	text := o.harmless(b.String())
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, err = io.WriteString(w, text)
	return err
}

func joinAny(sep string, list []any) string {
	parts := make([]string, len(list))
	for i, v := range list {
		parts[i] = fmt.Sprint(v)
	}
	return strings.Join(parts, sep)
}

// harmless escapes text that the user's own expression produced, where it goes to a terminal.
func (o *Output) harmless(s string) string {
	if o.TTY {
		return EscapeLines(s)
	}
	return s
}
