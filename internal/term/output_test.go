package term

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/eastguard/eastguard/internal/base"
)

type fruitBase struct {
	Origin string `json:"origin" col:"ORIGIN,wide"`
}

type fruit struct {
	Name string `json:"name" col:"NAME"`
	fruitBase
	Count  int64             `json:"count" col:"COUNT" as:"count"`
	Bytes  int64             `json:"size_bytes" col:"SIZE" as:"bytes"`
	Picked Time              `json:"picked_at" col:"AGE" as:"age"`
	Tags   map[string]string `json:"tags" col:"TAGS,wide"`
	Secret string            `json:"secret"`
	Note   *string           `json:"note,omitempty"`
}

var testNow = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func fruits() []fruit {
	return []fruit{
		{Name: "fig", Count: 1200, Bytes: 2048, Picked: Time{testNow.Add(-90 * time.Second)}, fruitBase: fruitBase{"TR"}, Tags: map[string]string{"b": "2", "a": "1"}},
		{Name: "apple", Count: 7, Bytes: 16, Secret: "x"},
		{Name: "kiwi\x1b[2J", Count: 30, Bytes: 1 << 30, Picked: Time{testNow.Add(-72 * time.Hour)}},
	}
}

func render(t *testing.T, o Output, rows any) string {
	t.Helper()
	var b bytes.Buffer
	o.W, o.Human = &b, Human{Time: TimeUTC, Bytes: BytesIEC, Now: testNow}
	if err := o.List(rows); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestShareOfAWhole(t *testing.T) {
	type disk struct {
		Used  int64 `json:"used_bytes" col:"DISK" as:"share" of:"Total"`
		Total int64 `json:"total_bytes"`
	}
	type node struct {
		Name string `json:"name" col:"NODE"`
		disk
	}
	rows := []node{{"n1", disk{174 << 30, 252 << 30}}, {"n2", disk{0, math.MaxInt64}}, {"n3", disk{Used: 1 << 30}}}
	if got, want := render(t, Output{}, rows), "NODE              DISK\nn1    69% of 252.0 GiB\nn2       0% of 8.0 EiB\nn3             1.0 GiB\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := render(t, Output{Format: FormatCSV}, rows[:1]); !strings.Contains(got, "n1,186831077376") {
		t.Errorf("csv: %s", got)
	}
}

func TestListFormats(t *testing.T) {
	tests := map[string]struct {
		out  Output
		want string
	}{
		"table": {Output{}, `
NAME         COUNT     SIZE  AGE
fig          1,200  2.0 KiB  1m30s
apple            7     16 B  -
kiwi\x1b[2J     30  1.0 GiB  3d00h
`},
		"wide": {Output{Format: FormatWide}, `
NAME         ORIGIN  COUNT     SIZE  AGE    TAGS
fig          TR      1,200  2.0 KiB  1m30s  a=1,b=2
apple        -           7     16 B  -      -
kiwi\x1b[2J  -          30  1.0 GiB  3d00h  -
`},
		"no headers, one column": {Output{NoHeaders: true, Columns: []string{"name"}}, `
fig
apple
kiwi\x1b[2J
`},
		"column not shown by default": {Output{Columns: []string{"NAME", "secret"}}, `
NAME         SECRET
fig          -
apple        x
kiwi\x1b[2J  -
`},
		"sorted and limited": {Output{SortBy: "count:desc", Limit: 2, Columns: []string{"name", "count"}}, `
NAME         COUNT
fig          1,200
kiwi\x1b[2J     30
`},
		"sorted by heading": {Output{SortBy: "SIZE", Columns: []string{"name"}}, `
NAME
apple
fig
kiwi\x1b[2J
`},
		"csv": {Output{Format: FormatCSV, Columns: []string{"name", "count", "picked_at"}, Limit: 2}, `
name,count,picked_at
fig,1200,2026-11-29T11:58:30.000Z
apple,7,
`},
		"name": {Output{Format: FormatName, TTY: true}, `
fig
apple
kiwi\x1b[2J
`},
		"jq":       {Output{JQ: ".[] | select(.count > 20) | .size_bytes"}, "\n2048\n1073741824\n"},
		"jq text":  {Output{JQ: ".[0].name"}, "\nfig\n"},
		"template": {Output{Template: `{{range .}}{{.name | upper}} {{bytes .size_bytes}};{{end}}`, Limit: 2}, "\nFIG 2.0 KiB;APPLE 16 B;\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(strings.TrimPrefix(tt.want, "\n"), render(t, tt.out, fruits())); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestMachineFormatsHoldTheSame(t *testing.T) {
	var fromJSON, fromYAML []map[string]any
	if err := json.Unmarshal([]byte(render(t, Output{Format: FormatJSON}, fruits())), &fromJSON); err != nil {
		t.Fatal(err)
	}
	text := render(t, Output{Format: FormatYAML}, fruits())
	if err := yaml.Unmarshal([]byte(text), &fromYAML); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, "\x1b") {
		t.Error("an escape byte in YAML")
	}
	asJSON := func(v any) string { b, _ := json.Marshal(v); return string(b) }
	if asJSON(fromJSON) != asJSON(fromYAML) {
		t.Errorf("json %s\nyaml %s", asJSON(fromJSON), asJSON(fromYAML))
	}
	lines := strings.Split(strings.TrimSpace(render(t, Output{Format: FormatJSONL}, fruits())), "\n")
	if len(lines) != 3 {
		t.Fatalf("jsonl has %d lines", len(lines))
	}
	for i, l := range lines {
		var row map[string]any
		if err := json.Unmarshal([]byte(l), &row); err != nil || asJSON(row) != asJSON(fromJSON[i]) {
			t.Errorf("line %d: %s, %v", i, l, err)
		}
	}
	records, err := csv.NewReader(strings.NewReader(render(t, Output{Format: FormatCSV}, fruits()))).ReadAll()
	if err != nil || len(records) != 4 || records[3][0] != "kiwi\x1b[2J" {
		t.Errorf("csv %q, %v: into a pipe it is the data itself", records, err)
	}
}

// TestWideIsASubsetOfJSON is the contract: no column without a JSON field.
func TestWideIsASubsetOfJSON(t *testing.T) {
	var rows []map[string]any
	if err := json.Unmarshal([]byte(render(t, Output{Format: FormatJSON}, fruits())), &rows); err != nil {
		t.Fatal(err)
	}
	header, _, _ := strings.Cut(render(t, Output{Format: FormatTSV}, fruits()), "\n")
	for _, name := range strings.Split(header, "\t") {
		if _, ok := rows[0][name]; !ok {
			t.Errorf("column %s is not in JSON", name)
		}
	}
}

func TestEmptyListIsAnArray(t *testing.T) {
	if got := render(t, Output{Format: FormatJSON}, []fruit(nil)); got != "[]\n" {
		t.Errorf("got %q", got)
	}
	if got := render(t, Output{}, []fruit(nil)); got != "NAME  COUNT  SIZE  AGE\n" {
		t.Errorf("got %q", got)
	}
}

func TestBadShapes(t *testing.T) {
	for _, o := range []Output{{Columns: []string{"nope"}}, {SortBy: "nope"}, {SortBy: "name:up"}, {JQ: ".["}, {JQ: ".x.y"}, {Template: "{{"}} {
		o.W = new(bytes.Buffer)
		if err := o.List(fruits()); !errors.Is(err, base.CodeInvalidArgument) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestNarrowTerminalShrinksTextOnly(t *testing.T) {
	rows := []fruit{{Name: strings.Repeat("long", 20), Count: 123456789, Bytes: 1}}
	got := render(t, Output{Width: 40}, rows)
	for _, line := range strings.Split(strings.TrimSpace(got), "\n") {
		if Width(line) > 40 {
			t.Errorf("line of %d cells: %q", Width(line), line)
		}
	}
	if !strings.Contains(got, "123,456,789") {
		t.Errorf("a number was cut:\n%s", got)
	}
}

func TestObject(t *testing.T) {
	v := fruits()[0]
	text := func(p *Page) {
		p.Fields("Name", v.Name, "Long name", "x\ny")
		p.Heading("More")
		p.Table(fruits()[:1])
	}
	tests := map[string]struct {
		out  Output
		want string
	}{
		"text":  {Output{}, "Name       fig\nLong name  x\\ny\n\nMore\nNAME  COUNT     SIZE  AGE\nfig   1,200  2.0 KiB  1m30s\n"},
		"jsonl": {Output{Format: FormatJSONL}, `{"name":"fig","origin":"TR","count":1200,"size_bytes":2048,"picked_at":"2026-11-29T11:58:30.000Z","tags":{"a":"1","b":"2"},"secret":""}` + "\n"},
		"csv":   {Output{Format: FormatCSV, Columns: []string{"name", "count"}}, "name,count\nfig,1200\n"},
		"name":  {Output{Format: FormatName}, "fig\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			tt.out.W, tt.out.Human = &b, Human{Time: TimeUTC, Bytes: BytesIEC, Now: testNow}
			if err := tt.out.Object(v, text); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, b.String()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestStream(t *testing.T) {
	tests := map[string]struct {
		out  Output
		want string
	}{
		"text": {Output{}, "fig!\napple!\n"},
		"json": {Output{Format: FormatJSON, Columns: []string{"name"}}, `{"name":"fig",`},
		"csv":  {Output{Format: FormatCSV, Columns: []string{"name", "count"}}, "name,count\nfig,1200\napple,7\n"},
		"jq":   {Output{JQ: ".count"}, "1200\n7\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			tt.out.W, tt.out.Human = &b, Human{Now: testNow}
			s, err := tt.out.Stream()
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range fruits()[:2] {
				if err := s.Item(f, func(w *bufio.Writer) error { _, err := fmt.Fprintf(w, "%s!\n", f.Name); return err }); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Flush(); err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(b.String(), tt.want) {
				t.Errorf("got %q, want %q", b.String(), tt.want)
			}
			if name == "json" && strings.Count(b.String(), "\n") != 2 {
				t.Errorf("a stream prints one object a line: %q", b.String())
			}
		})
	}
}

func TestSchema(t *testing.T) {
	b, err := Schema("fruit/1", "list", fruit{})
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Type  string
		Items struct {
			Properties map[string]map[string]any
			Required   []string
		}
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Type != "array" || doc.Items.Properties["count"]["type"] != "integer" || doc.Items.Properties["origin"]["type"] != "string" {
		t.Errorf("%s", b)
	}
	if diff := cmp.Diff([]string{"name", "origin", "count", "size_bytes", "picked_at", "tags", "secret"}, doc.Items.Required); diff != "" {
		t.Errorf("required (-want +got)\n%s", diff)
	}
}

// A terminal too narrow for a table gets fewer columns, whole, before anything is cut; who names columns gets them.
func TestSpareColumnsAreLeftOut(t *testing.T) {
	type row struct {
		Node    string `json:"node" col:"NODE"`
		Address string `json:"address" col:"ADDRESS"`
		Disk    string `json:"disk" col:"DISK,spare"`
		Shards  int    `json:"shards" col:"SHARDS"`
		Version string `json:"version" col:"VERSION,spare"`
	}
	rows := []row{{"n1", "10.0.0.11:2921", "82% of 252 GiB", 4, "1.2.3"}}
	all := "NODE  ADDRESS         DISK            SHARDS  VERSION\nn1    10.0.0.11:2921  82% of 252 GiB       4  1.2.3\n"
	if got := render(t, Output{Width: 53}, rows); got != all {
		t.Errorf("all fit:\n%s", got)
	}
	if got, want := render(t, Output{Width: 52}, rows), "NODE  ADDRESS         DISK            SHARDS …\nn1    10.0.0.11:2921  82% of 252 GiB       4\n"; got != want {
		t.Errorf("one has no room:\n%s", got)
	}
	if got, want := render(t, Output{Width: 40, ASCII: true}, rows), "NODE  ADDRESS         SHARDS ...\nn1    10.0.0.11:2921       4\n"; got != want {
		t.Errorf("two have no room:\n%s", got)
	}
	if got, want := render(t, Output{Width: 20, NoHeaders: true}, rows), "n1  10.0.0.11:29…  4\n"; got != want {
		t.Errorf("nothing more to leave out:\n%s", got)
	}
	if got := render(t, Output{Width: 30, Columns: []string{"node", "version", "disk"}}, rows); !strings.HasPrefix(got, "NODE  VERSION  DISK") {
		t.Errorf("columns by name:\n%s", got)
	}
}
