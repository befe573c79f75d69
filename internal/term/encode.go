package term

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"reflect"
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

// writeCSV follows RFC 4180, with a header and raw numbers.
func (o *Output) writeCSV(w *bufio.Writer, cols []column, rows reflect.Value) error {
	cw := csv.NewWriter(w)
	cw.UseCRLF = false
	return o.eachRecord(cols, rows, func(fields []string) error {
		if err := cw.Write(fields); err != nil {
			return err
		}
		cw.Flush()
		return cw.Error()
	})
}

// tsvEscaper does what the text/tab-separated-values type asks: no tab or line end inside a field.
var tsvEscaper = strings.NewReplacer("\\", `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`)

func (o *Output) writeTSV(w *bufio.Writer, cols []column, rows reflect.Value) error {
	return o.eachRecord(cols, rows, func(fields []string) error {
		for i, f := range fields {
			fields[i] = tsvEscaper.Replace(f)
		}
		_, err := w.WriteString(strings.Join(fields, "\t") + "\n")
		return err
	})
}

// eachRecord gives the header and then each row as raw text, made harmless where it goes to a terminal.
func (o *Output) eachRecord(cols []column, rows reflect.Value, write func([]string) error) error {
	fields := make([]string, len(cols))
	if !o.NoHeaders {
		for i, c := range cols {
			fields[i] = c.name
		}
		if err := write(fields); err != nil {
			return err
		}
	}
	for i := range rows.Len() {
		for j, c := range cols {
			fields[j] = c.raw(rows.Index(i))
			if o.TTY {
				fields[j] = Escape(fields[j])
			}
		}
		if err := write(fields); err != nil {
			return err
		}
	}
	return nil
}

// writeNames prints the first column alone, one a line, for use in $(…).
func (o *Output) writeNames(w *bufio.Writer, cols []column, rows reflect.Value) error {
	for i := range rows.Len() {
		name := cols[0].raw(rows.Index(i))
		if o.TTY {
			name = Escape(name)
		}
		if _, err := w.WriteString(name + "\n"); err != nil {
			return err
		}
	}
	return nil
}
