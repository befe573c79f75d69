package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// schema is as much of JSON Schema as ours use.
type schema struct {
	Type                 any
	Properties           map[string]*schema
	Required             []string
	Items                *schema
	AdditionalProperties *schema
}

// MatchSchema is matchSchema for the tests outside.
var MatchSchema = matchSchema

// matchSchema checks a document, or a stream of them, against the golden schema of that name. A field that the
// schema does not know is an error here, though readers must ignore it: it would be missing from the documentation.
func matchSchema(name, text string) error {
	b, err := os.ReadFile(filepath.Join("testdata", "schema", name+".json"))
	if err != nil {
		return err
	}
	var s schema
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	for n := 0; ; n++ {
		var doc any
		switch err := dec.Decode(&doc); {
		case err == io.EOF && n > 0:
			return nil
		case err != nil:
			return fmt.Errorf("document %d of %s: %w", n+1, name, err)
		}
		if err := s.match(name, doc); err != nil {
			return err
		}
	}
}

func (s *schema) match(at string, doc any) error {
	kind := kindOf(doc)
	if !slices.Contains(s.types(), kind) && !(kind == "integer" && slices.Contains(s.types(), "number")) {
		return fmt.Errorf("%s is %s, want %v", at, kind, s.Type)
	}
	switch v := doc.(type) {
	case []any:
		for i, item := range v {
			if err := s.Items.match(fmt.Sprintf("%s[%d]", at, i), item); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, name := range s.Required {
			if _, ok := v[name]; !ok {
				return fmt.Errorf("%s has no %s", at, name)
			}
		}
		for name, value := range v {
			sub := s.Properties[name]
			if sub == nil {
				sub = s.AdditionalProperties
			}
			if sub == nil {
				return fmt.Errorf("%s.%s is in no schema", at, name)
			}
			if err := sub.match(at+"."+name, value); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *schema) types() []string {
	switch t := s.Type.(type) {
	case string:
		return []string{t}
	case []any:
		var out []string
		for _, v := range t {
			out = append(out, v.(string))
		}
		return out
	}
	return nil
}

func kindOf(doc any) string {
	switch v := doc.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case json.Number:
		if strings.Trim(v.String(), "-0123456789") == "" {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	}
	return "object"
}
