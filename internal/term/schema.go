package term

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"time"
)

// Schema is the JSON Schema of the documents that a row or object struct marshals to, with its properties in
// the struct's order. kind is "list" (an array of v), "object" or "stream" (one v a line).
func Schema(id, kind string, v any) ([]byte, error) {
	item := schemaOf(reflect.TypeOf(v))
	doc := ordered{{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"$id", id}}
	switch kind {
	case "list":
		doc = append(doc, member{"type", "array"}, member{"items", item})
	case "stream":
		doc = append(doc, member{"description", "one object a line"})
		doc = append(doc, item...)
	default:
		doc = append(doc, item...)
	}
	b, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, b, "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// ordered is a JSON object that keeps the order of its members.
type ordered []member

type member struct {
	name  string
	value any
}

// MarshalJSON prints the members in order.
func (o ordered) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(m.name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func schemaOf(t reflect.Type) ordered {
	switch t {
	case reflect.TypeFor[Time](), reflect.TypeFor[time.Time]():
		return ordered{{"type", []string{"string", "null"}}, {"format", "date-time"}}
	case reflect.TypeFor[Text]():
		return ordered{{"type", []string{"string", "null"}}}
	case reflect.TypeFor[Hash]():
		return ordered{{"type", "string"}, {"pattern", "^0x[0-9a-f]{16}$"}}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return nullable(schemaOf(t.Elem()))
	case reflect.Bool:
		return ordered{{"type", "boolean"}}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return ordered{{"type", "integer"}}
	case reflect.Float32, reflect.Float64:
		return ordered{{"type", "number"}}
	case reflect.Slice, reflect.Array:
		return ordered{{"type", "array"}, {"items", schemaOf(t.Elem())}}
	case reflect.Map:
		return ordered{{"type", "object"}, {"additionalProperties", schemaOf(t.Elem())}}
	case reflect.Struct:
		return schemaOfStruct(t)
	}
	return ordered{{"type", "string"}}
}

func nullable(s ordered) ordered {
	if name, ok := s[0].value.(string); ok && s[0].name == "type" {
		s[0].value = []string{name, "null"}
	}
	return s
}

func schemaOfStruct(t reflect.Type) ordered {
	props, required := structMembers(t)
	return ordered{{"type", "object"}, {"properties", props}, {"required", required}}
}

func structMembers(t reflect.Type) (props ordered, required []string) {
	required = []string{}
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, flags, _ := strings.Cut(tag, ",")
		switch {
		case f.Anonymous && tag == "" && f.Type.Kind() == reflect.Struct:
			p, r := structMembers(f.Type)
			props, required = append(props, p...), append(required, r...)
			continue
		case name == "" || name == "-":
			continue
		}
		s := schemaOf(f.Type)
		if strings.Contains(flags, "omitempty") && f.Type.Kind() == reflect.Pointer {
			s = schemaOf(f.Type.Elem())
		}
		if doc := f.Tag.Get("doc"); doc != "" {
			s = append(s, member{"description", doc})
		}
		props = append(props, member{name, s})
		if !strings.Contains(flags, "omit") {
			required = append(required, name)
		}
	}
	return props, required
}
