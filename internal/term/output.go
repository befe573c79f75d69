package term

import (
	"bufio"
	"cmp"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/eastguard/eastguard/internal/base"
)

// Format is the -o flag.
type Format string

// The formats. All but Table and Wide are for machines.
const (
	FormatTable Format = "table"
	FormatWide  Format = "wide"
	FormatJSON  Format = "json"
	FormatJSONL Format = "jsonl"
	FormatYAML  Format = "yaml"
	FormatCSV   Format = "csv"
	FormatTSV   Format = "tsv"
	FormatName  Format = "name"
)

// Formats lists them in the order of help.
var Formats = []Format{FormatTable, FormatWide, FormatJSON, FormatJSONL, FormatYAML, FormatCSV, FormatTSV, FormatName}

// ParseFormat reads the flag's value.
func ParseFormat(s string) (Format, error) {
	if f := Format(s); slices.Contains(Formats, f) {
		return f, nil
	}
	return "", base.Errorf(base.CodeInvalidArgument, "", "-o %q is not one of table, wide, json, jsonl, yaml, csv, tsv, name", s)
}

// Human is how people see sizes and times.
type Human struct {
	Time  TimeMode
	Bytes BytesMode
	Now   time.Time
}

// Output is one command's choice of format and shape. The zero value with W set prints a plain table.
type Output struct {
	W         io.Writer
	Format    Format
	Columns   []string // --columns, by json name or heading
	NoHeaders bool
	SortBy    string // --sort-by name[:desc]
	Limit     int    // 0 = all
	JQ        string // works on the JSON form and wins over Format
	Template  string // the same, as a Go template
	Human     Human
	Width     int   // cells to fit tables in; 0 = as wide as they get
	TTY       bool  // W is a terminal, so machine text must be made harmless too
	ASCII     bool  // no glyphs outside ASCII
	Style     Style // headings
}

// Machine reports whether the output is for a program.
func (o *Output) Machine() bool {
	return o.JQ != "" || o.Template != "" || (o.Format != "" && o.Format != FormatTable && o.Format != FormatWide)
}

// JSON reports whether errors and events should be JSON too.
func (o *Output) JSON() bool {
	return o.JQ != "" || o.Format == FormatJSON || o.Format == FormatJSONL || o.Format == FormatYAML
}

// List prints rows, a slice of row structs: a table, or a JSON array.
func (o *Output) List(rows any) error {
	v, err := o.shaped(reflect.ValueOf(rows))
	if err != nil {
		return err
	}
	w := bufio.NewWriter(o.W)
	if err := o.list(w, v); err != nil {
		return err
	}
	return w.Flush()
}

func (o *Output) list(w *bufio.Writer, rows reflect.Value) error {
	switch {
	case o.JQ != "" || o.Template != "":
		return o.filtered(w, rows.Interface())
	case o.Format == FormatJSON:
		return o.writeJSON(w, rows.Interface(), true)
	case o.Format == FormatYAML:
		return o.writeYAML(w, rows.Interface())
	case o.Format == FormatJSONL:
		for i := range rows.Len() {
			if err := o.writeJSON(w, rows.Index(i).Interface(), false); err != nil {
				return err
			}
		}
		return nil
	}
	cols, err := o.choose(columnsOf(rows.Type().Elem()))
	if err != nil {
		return err
	}
	return o.cells(w, cols, rows)
}

// Object prints one value: text decides the human form, the rest is as for a list of one.
func (o *Output) Object(v any, text func(*Page)) error {
	w := bufio.NewWriter(o.W)
	if err := o.object(w, v, text, true); err != nil {
		return err
	}
	return w.Flush()
}

func (o *Output) object(w *bufio.Writer, v any, text func(*Page), indent bool) error {
	switch {
	case o.JQ != "" || o.Template != "":
		return o.filtered(w, v)
	case o.Format == FormatJSON:
		return o.writeJSON(w, v, indent)
	case o.Format == FormatJSONL:
		return o.writeJSON(w, v, false)
	case o.Format == FormatYAML:
		if !indent {
			w.WriteString("---\n")
		}
		return o.writeYAML(w, v)
	case !o.Machine() && text != nil:
		p := &Page{o: o, w: w}
		text(p)
		return p.err
	}
	rv := reflect.ValueOf(v)
	if rv.Kind() == reflect.Pointer {
		rv = rv.Elem()
	}
	rows := reflect.MakeSlice(reflect.SliceOf(rv.Type()), 0, 1)
	rows = reflect.Append(rows, rv)
	cols, err := o.choose(scalars(columnsOf(rv.Type()), rv))
	if err != nil {
		return err
	}
	return o.cells(w, cols, rows)
}

func (o *Output) cells(w *bufio.Writer, cols []column, rows reflect.Value) error {
	switch o.Format {
	case FormatCSV:
		return o.writeCSV(w, cols, rows)
	case FormatTSV:
		return o.writeTSV(w, cols, rows)
	case FormatName:
		return o.writeNames(w, cols, rows)
	case FormatTable, FormatWide, FormatJSON, FormatJSONL, FormatYAML:
	}
	return o.writeTable(w, cols, rows)
}

// scalars keeps the columns of an object that fit a cell, as a list of words does: its tables and sections are not for CSV.
func scalars(cols []column, v reflect.Value) []column {
	return slices.DeleteFunc(cols, func(c column) bool {
		f := c.value(v)
		if !f.IsValid() {
			return false
		}
		switch f.Interface().(type) {
		case Time, Text:
			return false
		}
		words := f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.String
		return f.Kind() == reflect.Slice && !words || f.Kind() == reflect.Struct
	})
}

// choose narrows cols to --columns, or to the default (table) or all (wide, csv, tsv) of those with a heading.
func (o *Output) choose(all []column) ([]column, error) {
	if len(o.Columns) == 0 {
		var cols []column
		for _, c := range all {
			if c.heading != "" && (!c.wide || o.Format == FormatWide || o.Machine()) {
				cols = append(cols, c)
			}
		}
		if cols == nil { // an object that is not shown as a table: every scalar it has
			cols = all
		}
		return cols, nil
	}
	var cols []column
	for _, want := range o.Columns {
		c, err := findColumn(all, want)
		if err != nil {
			return nil, err
		}
		if c.heading == "" {
			c.heading = strings.ToUpper(c.name)
		}
		cols = append(cols, c)
	}
	return cols, nil
}

func findColumn(cols []column, name string) (column, error) {
	var known []string
	for _, c := range cols {
		if strings.EqualFold(c.name, name) || c.heading != "" && strings.EqualFold(c.heading, name) {
			return c, nil
		}
		known = append(known, c.name)
	}
	return column{}, base.Errorf(base.CodeInvalidArgument, "", "no column %q here", name).
		WithHint("the columns are: %s", strings.Join(known, ", "))
}

// shaped sorts and cuts a copy of rows. A nil slice becomes an empty one, so that JSON prints [].
func (o *Output) shaped(rows reflect.Value) (reflect.Value, error) {
	out := reflect.AppendSlice(reflect.MakeSlice(rows.Type(), 0, rows.Len()), rows)
	if o.SortBy != "" {
		name, dir, _ := strings.Cut(o.SortBy, ":")
		if dir != "" && dir != "asc" && dir != "desc" {
			return out, base.Errorf(base.CodeInvalidArgument, "", "--sort-by %q: the order is asc or desc", o.SortBy)
		}
		c, err := findColumn(columnsOf(rows.Type().Elem()), name)
		if err != nil {
			return out, err
		}
		sortRows(out, c, dir == "desc")
	}
	if o.Limit > 0 && out.Len() > o.Limit {
		out = out.Slice(0, o.Limit)
	}
	return out, nil
}

func sortRows(rows reflect.Value, c column, desc bool) {
	n := rows.Len()
	index := make([]int, n)
	for i := range index {
		index[i] = i
	}
	slices.SortStableFunc(index, func(a, b int) int {
		if desc {
			a, b = b, a
		}
		return c.compare(rows.Index(a), rows.Index(b))
	})
	sorted := reflect.MakeSlice(rows.Type(), n, n)
	for to, from := range index {
		sorted.Index(to).Set(rows.Index(from))
	}
	reflect.Copy(rows, sorted)
}

// compare orders two rows by the column: numbers and times by value, all else by its machine text.
func (c column) compare(a, b reflect.Value) int {
	x, y := c.value(a), c.value(b)
	if !x.IsValid() || !y.IsValid() {
		return cmp.Compare(boolInt(x.IsValid()), boolInt(y.IsValid()))
	}
	if tx, ok := x.Interface().(Time); ok {
		return tx.Compare(y.Interface().(Time).Time)
	}
	if numeric(x.Type()) {
		return cmp.Compare(number(x), number(y))
	}
	return strings.Compare(c.raw(a), c.raw(b))
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
