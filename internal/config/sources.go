package config

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"
)

// Source is one setting as it is in force, and where its value came from: "default", "eastguard.yaml:3",
// "env EASTGUARD_CLIENT_PORT" or "flag --client-port".
type Source struct {
	Key    string `json:"key"`
	Value  any    `json:"value"` // string, int64, bool, []string, map[string]string; nil is an unset true|false
	Source string `json:"source"`
}

// Sources lists every setting in the order of the table.
type Sources []Source

// Get finds a key's row.
func (s Sources) Get(key string) (Source, bool) {
	for _, row := range s {
		if row.Key == key {
			return row, true
		}
	}
	return Source{}, false
}

// WriteTable prints the rows for people. An empty value prints as "-", so that columns can be told apart.
func (s Sources) WriteTable(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "KEY\tVALUE\tSOURCE")
	for _, row := range s {
		value := Format(row.Value)
		if value == "" {
			value = "-"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\n", row.Key, printable(value), printable(row.Source))
	}
	return tw.Flush()
}

// printable keeps what is not a glyph, control and format characters of any kind, from moving the cursor, reordering the
// text or breaking the table.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

// WriteJSON prints the rows for programs: an array of key, value, source.
func (s Sources) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(s)
}
