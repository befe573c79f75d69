package term

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// writeJSON prints v on one line, or indented.
func (o *Output) writeJSON(w io.Writer, v any, indent bool) error {
	b, err := marshal(v, indent)
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

// marshal is encoding/json without the HTML escapes, with those of a terminal, and a newline at the end.
func marshal(v any, indent bool) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if indent {
		enc.SetIndent("", "  ")
	}
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return escapeJSON(b.Bytes()), nil
}

// writeYAML prints the JSON form as YAML in the same order of keys. JSON is YAML, so the document is parsed
// from it and only its style is changed; strings that need escapes keep their quotes.
func (o *Output) writeYAML(w io.Writer, v any) error {
	doc, err := marshal(v, false)
	if err != nil {
		return err
	}
	var node yaml.Node
	if err := yaml.Unmarshal(doc, &node); err != nil {
		return err
	}
	blockStyle(&node)
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(&node); err != nil {
		return err
	}
	if err := enc.Close(); err != nil {
		return err
	}
	_, err = w.Write(escapeJSON(b.Bytes()))
	return err
}

func blockStyle(n *yaml.Node) {
	quoted := n.Kind == yaml.ScalarNode && n.Tag == "!!str" &&
		(strings.ContainsFunc(n.Value, actsOnTerminal) || strings.Contains(n.Value, "\n"))
	n.Style = 0
	if quoted {
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, c := range n.Content {
		blockStyle(c)
	}
}

// field is one value on its way into CSV or TSV, where null and empty must not look the same.
type field struct {
	text        string
	null, empty bool // of a Text; other values that are not there are neither
}

// writeCSV follows RFC 4180, with a header and raw numbers. Null is an empty field, and empty text an empty field in
// quotes.
func (o *Output) writeCSV(w *bufio.Writer, cols []column, rows reflect.Value) error {
	return o.eachRecord(cols, rows, func(fields []field) error {
		for i, f := range fields {
			if i > 0 {
				w.WriteByte(',')
			}
			switch {
			case f.empty, f.text == "" && len(fields) == 1, csvQuoted(f.text): // a blank line would be no record
				w.WriteString(`"` + strings.ReplaceAll(f.text, `"`, `""`) + `"`)
			default:
				w.WriteString(f.text)
			}
		}
		return w.WriteByte('\n') // the writer keeps its first error
	})
}

// csvQuoted reports whether text has to be quoted: for what separates, and for blanks at its beginning, which some
// readers drop.
func csvQuoted(text string) bool {
	return strings.ContainsAny(text, ",\"\r\n") || text != "" && (text[0] == ' ' || text[0] == '\t')
}

// tsvEscaper does what the text/tab-separated-values type asks: no tab or line end inside a field.
var tsvEscaper = strings.NewReplacer("\\", `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`)

// tsvNull is null. A text never looks like that, since its backslashes are escaped.
const tsvNull = `\N`

func (o *Output) writeTSV(w *bufio.Writer, cols []column, rows reflect.Value) error {
	return o.eachRecord(cols, rows, func(fields []field) error {
		for i, f := range fields {
			if i > 0 {
				w.WriteByte('\t')
			}
			if f.null {
				w.WriteString(tsvNull)
			}
			w.WriteString(tsvEscaper.Replace(f.text))
		}
		return w.WriteByte('\n')
	})
}

// eachRecord gives the header and then each row as raw text, made harmless where it goes to a terminal.
func (o *Output) eachRecord(cols []column, rows reflect.Value, write func([]field) error) error {
	fields := make([]field, len(cols))
	if !o.NoHeaders {
		for i, c := range cols {
			fields[i] = field{text: c.name}
		}
		if err := write(fields); err != nil {
			return err
		}
	}
	for i := range rows.Len() {
		for j, c := range cols {
			fields[j] = c.field(rows.Index(i))
			if o.TTY {
				fields[j].text = Escape(fields[j].text)
			}
		}
		if err := write(fields); err != nil {
			return err
		}
	}
	return nil
}

func (c column) field(row reflect.Value) field {
	f := field{text: c.raw(row)}
	if v := c.value(row); v.IsValid() {
		if t, ok := v.Interface().(Text); ok {
			f.null, f.empty = t.state == textNull, t.state == textString && t.s == ""
		}
	}
	return f
}

// writeNames prints what the rows are called, one a line, for use in $(…): their name or id, else the first column.
func (o *Output) writeNames(w *bufio.Writer, cols []column, rows reflect.Value) error {
	called := cols[0]
	if i := slices.IndexFunc(cols, func(c column) bool { return c.name == "name" || c.name == "id" }); i >= 0 && len(o.Columns) == 0 {
		called = cols[i]
	}
	for i := range rows.Len() {
		name := called.raw(rows.Index(i))
		if o.TTY {
			name = Escape(name)
		}
		if _, err := w.WriteString(name + "\n"); err != nil {
			return err
		}
	}
	return nil
}
